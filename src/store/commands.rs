//! The ledger of agent commands as rows, for people and for counting; the conductor reads the node's body.

use diesel::prelude::*;

use super::connection::AnyConnection;
use super::rows::CommandRow;
use super::schema::commands;
use crate::node::Node;

/// How many commands are kept of each node; the oldest go first.
pub const COMMANDS_KEPT_PER_NODE: i64 = 100;

/// Writes the node's latest command, if anything of it is new.
///
/// Most saves change nothing here, so it looks first: diesel prepares a look-up once per connection, but an upsert every time.
pub(super) fn save(conn: &mut AnyConnection, node: &Node) -> QueryResult<()> {
    let Some(command) = &node.command else {
        return Ok(());
    };
    let row = CommandRow::new(node, command);
    let stored: Option<(i64, String)> = commands::table
        .find((&row.node_id, row.number))
        .select((commands::attempt, commands::phase))
        .first(conn)
        .optional()?;
    match stored {
        None => {
            diesel::insert_into(commands::table)
                .values(&row)
                .execute(conn)?;
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
