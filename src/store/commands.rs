//! The ledger of agent commands as rows, for people and for counting; the conductor reads the node's body.

use diesel::prelude::*;

use super::connection::{AnyConnection, directly};
use super::rows::CommandRow;
use super::schema::commands;
use super::types::LedgerEntry;
use crate::command::Command;
use crate::node::{Node, NodeId};
use crate::timestamp::Timestamp;

/// How many commands are kept of each node; the oldest go first.
pub const COMMANDS_KEPT_PER_NODE: i64 = 100;

/// Writes the node's last two commands, if anything of them is new.
///
/// Most saves change nothing here, so it looks first: diesel prepares a look-up once per connection, but an upsert every time.
pub(super) fn save(conn: &mut AnyConnection, node: &Node) -> QueryResult<()> {
    for command in [node.previous_command.as_deref(), node.command.as_ref()]
        .into_iter()
        .flatten()
    {
        save_one(conn, node, command)?;
    }
    Ok(())
}

fn save_one(conn: &mut AnyConnection, node: &Node, command: &Command) -> QueryResult<()> {
    let row = CommandRow::new(node, command);
    let find = commands::table
        .find((&row.node_id, row.number))
        .select((commands::attempt, commands::phase));
    let stored: Option<(i64, String)> = directly!(conn, |conn| find.first(conn)).optional()?;
    match stored {
        None => {
            let insert = diesel::insert_into(commands::table).values(&row);
            directly!(conn, |conn| insert.execute(conn))?;
            if row.number > COMMANDS_KEPT_PER_NODE {
                let too_old = commands::table
                    .filter(commands::node_id.eq(&row.node_id))
                    .filter(commands::number.le(row.number - COMMANDS_KEPT_PER_NODE));
                diesel::delete(too_old).execute(conn)?;
            }
        }
        Some((attempt, phase)) if attempt == row.attempt && phase == row.phase => {}
        Some(_) => {
            diesel::update(commands::table.find((&row.node_id, row.number)))
                .set((
                    commands::attempt.eq(row.attempt),
                    commands::phase.eq(&row.phase),
                    commands::changed_at.eq(row.changed_at),
                    commands::error.eq(&row.error),
                ))
                .execute(conn)?;
        }
    }
    Ok(())
}

type Row = (i64, String, i64, String, i64, i64, Option<String>);

/// The commands of a node that are kept, oldest first.
pub(super) fn list(conn: &mut AnyConnection, node: NodeId) -> QueryResult<Vec<LedgerEntry>> {
    let rows: Vec<Row> = commands::table
        .filter(commands::node_id.eq(node.to_string()))
        .order(commands::number)
        .select((
            commands::number,
            commands::request,
            commands::attempt,
            commands::phase,
            commands::planned_at,
            commands::changed_at,
            commands::error,
        ))
        .load(conn)?;
    let entry =
        |(number, request, attempt, phase, planned_at, changed_at, error): Row| LedgerEntry {
            number: number.unsigned_abs(),
            request,
            attempt: attempt.unsigned_abs(),
            phase,
            planned_at: Timestamp(planned_at),
            changed_at: Timestamp(changed_at),
            error,
        };
    Ok(rows.into_iter().map(entry).collect())
}
