//! The ledger of agent commands as rows, for people and for counting; the conductor reads the node's body.

use diesel::prelude::*;
use diesel::upsert::excluded;

use super::connection::{AnyConnection, on_backend};
use super::rows::CommandRow;
use super::schema::commands;
use crate::node::Node;

/// How many commands are kept of each node; the oldest go first.
pub const COMMANDS_KEPT_PER_NODE: i64 = 100;

/// Writes the node's latest command, if anything of it is new.
pub(super) fn save(conn: &mut AnyConnection, node: &Node) -> QueryResult<()> {
    let Some(command) = &node.command else {
        return Ok(());
    };
    let row = CommandRow::new(node, command);
    let changed = upsert(conn, &row)?;
    if changed > 0 && row.number > COMMANDS_KEPT_PER_NODE {
        diesel::delete(
            commands::table
                .filter(commands::node_id.eq(node.id.to_string()))
                .filter(commands::number.le(row.number - COMMANDS_KEPT_PER_NODE)),
        )
        .execute(conn)?;
    }
    Ok(())
}

fn upsert(conn: &mut AnyConnection, row: &CommandRow) -> QueryResult<usize> {
    // The `WHERE` of an upsert; the prelude's `filter` is for queries.
    use diesel::query_dsl::methods::FilterDsl as _;
    on_backend!(conn, c => diesel::insert_into(commands::table)
        .values(row)
        .on_conflict((commands::node_id, commands::number))
        .do_update()
        .set((
            commands::attempt.eq(excluded(commands::attempt)),
            commands::phase.eq(excluded(commands::phase)),
            commands::changed_at.eq(excluded(commands::changed_at)),
            commands::error.eq(excluded(commands::error)),
        ))
        .filter(
            commands::phase
                .ne(excluded(commands::phase))
                .or(commands::attempt.ne(excluded(commands::attempt))),
        )
        .execute(c))
}
