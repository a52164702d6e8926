//! The history of nodes: rows in, rows out.

use diesel::prelude::*;
use uuid::Uuid;

use super::connection::{AnyConnection, Db, directly};
use super::fault::ReadFault;
use super::rows::text;
use super::schema::history;
use super::types::{HistoryEntry, Page, ReadError};
use crate::node::{HistoryLine, NodeId, ProvisionState, Severity};
use crate::timestamp::Timestamp;

/// How many lines are kept of each node; the oldest go first.
pub const HISTORY_KEPT_PER_NODE: i64 = 1_000;

#[derive(Insertable)]
#[diesel(table_name = history)]
struct Line<'a> {
    id: String,
    node_id: &'a str,
    number: i64,
    happened_at: i64,
    conductor: String,
    severity: &'static str,
    event_type: String,
    event: String,
    state: Option<&'static str>,
    target: Option<&'static str>,
    lasted_ms: Option<i64>,
}

fn severity_name(severity: Severity) -> &'static str {
    match severity {
        Severity::Info => "INFO",
        Severity::Error => "ERROR",
    }
}

fn severity_from(name: &str) -> Option<Severity> {
    [Severity::Info, Severity::Error]
        .into_iter()
        .find(|severity| severity_name(*severity) == name)
}

/// A new id in the order of time, so that the index of ids grows at its end and is not written all over.
fn id_at(at: Timestamp) -> Uuid {
    let (seconds, ms) = (at.0.div_euclid(1_000), at.0.rem_euclid(1_000));
    let nanoseconds = u32::try_from(ms * 1_000_000).unwrap_or(0);
    let at = uuid::Timestamp::from_unix(uuid::NoContext, seconds.unsigned_abs(), nanoseconds);
    Uuid::new_v7(at)
}

/// Adds lines, oldest first, and drops what is then too old.
pub(super) fn add(
    conn: &mut AnyConnection,
    node: NodeId,
    conductor: &str,
    lines: &[(Timestamp, HistoryLine)],
) -> QueryResult<()> {
    if lines.is_empty() {
        return Ok(());
    }
    let node_id = node.to_string();
    let last = history::table
        .filter(history::node_id.eq(&node_id))
        .select(diesel::dsl::max(history::number));
    let last: Option<i64> = directly!(conn, |conn| last.first(conn))?;
    let mut number = last.unwrap_or(0);
    // Hardly ever more than one or two.
    for (at, line) in lines {
        number += 1;
        let line = Line {
            id: id_at(*at).to_string(),
            node_id: &node_id,
            number,
            happened_at: at.0,
            conductor: text(conductor),
            severity: severity_name(line.severity),
            event_type: text(&line.event_type),
            event: text(&line.event),
            state: line.state.map(ProvisionState::name),
            target: line.target.map(ProvisionState::name),
            lasted_ms: line.lasted_ms,
        };
        let insert = diesel::insert_into(history::table).values(line);
        directly!(conn, |conn| insert.execute(conn))?;
    }
    if number > HISTORY_KEPT_PER_NODE {
        diesel::delete(
            history::table
                .filter(history::node_id.eq(&node_id))
                .filter(history::number.le(number - HISTORY_KEPT_PER_NODE)),
        )
        .execute(conn)?;
    }
    Ok(())
}

/// The UUID, time, conductor, severity, type, event, state, target and duration of a line.
type Row = (
    String,
    i64,
    String,
    String,
    String,
    String,
    Option<String>,
    Option<String>,
    Option<i64>,
);

/// A node's lines by page, oldest first unless the page goes backwards. `sort_key` is not looked at.
pub(super) fn list(
    conn: &mut AnyConnection,
    node: NodeId,
    page: &Page,
) -> Result<Vec<HistoryEntry>, ReadFault> {
    let node_id = node.to_string();
    let mut query = history::table
        .filter(history::node_id.eq(node_id.clone()))
        .into_boxed::<Db>();
    if let Some(marker) = page.marker {
        let number: i64 = history::table
            .filter(history::id.eq(marker.to_string()))
            .filter(history::node_id.eq(node_id))
            .select(history::number)
            .first(conn)
            .optional()?
            .ok_or(ReadFault::Read(ReadError::UnknownMarker))?;
        query = if page.descending {
            query.filter(history::number.lt(number))
        } else {
            query.filter(history::number.gt(number))
        };
    }
    query = if page.descending {
        query.order(history::number.desc())
    } else {
        query.order(history::number.asc())
    };
    let rows: Vec<Row> = query
        .limit(super::rows::limit(page.limit))
        .select((
            history::id,
            history::happened_at,
            history::conductor,
            history::severity,
            history::event_type,
            history::event,
            history::state,
            history::target,
            history::lasted_ms,
        ))
        .load(conn)?;
    rows.into_iter().map(entry).collect()
}

fn entry(row: Row) -> Result<HistoryEntry, ReadFault> {
    let (id, at, conductor, severity, event_type, event, state, target, lasted_ms) = row;
    let unreadable = || {
        ReadFault::unreadable(format!(
            "the history line {id} can't be read; remove that row"
        ))
    };
    Ok(HistoryEntry {
        id: Uuid::parse_str(&id).map_err(|_| unreadable())?,
        at: Timestamp(at),
        conductor,
        line: HistoryLine {
            severity: severity_from(&severity).ok_or_else(unreadable)?,
            event_type,
            event,
            state: state.as_deref().and_then(ProvisionState::parse),
            target: target.as_deref().and_then(ProvisionState::parse),
            lasted_ms,
        },
    })
}
