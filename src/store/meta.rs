//! Facts about the whole database.

use diesel::prelude::*;

use super::connection::AnyConnection;
use super::schema::meta;

/// The value stored under `key`.
pub(super) fn get(conn: &mut AnyConnection, key: &str) -> QueryResult<Option<String>> {
    meta::table
        .find(key)
        .select(meta::value)
        .first(conn)
        .optional()
}

/// Stores `value` under `key` unless something is there; returns what is there then.
pub(super) fn set_if_absent(
    conn: &mut AnyConnection,
    key: &str,
    value: &str,
) -> QueryResult<String> {
    if let Some(stored) = get(conn, key)? {
        return Ok(stored);
    }
    // Nobody else writes: see the locks in `open`.
    diesel::insert_into(meta::table)
        .values((meta::key.eq(key), meta::value.eq(value)))
        .execute(conn)?;
    Ok(value.to_owned())
}

/// Stores `value` under `key`, whatever was there.
pub(super) fn set(conn: &mut AnyConnection, key: &str, value: &str) -> QueryResult<()> {
    on_backend!(conn, c => diesel::insert_into(meta::table)
        .values((meta::key.eq(key), meta::value.eq(value)))
        .on_conflict(meta::key)
        .do_update()
        .set(meta::value.eq(value))
        .execute(c))?;
    Ok(())
}
