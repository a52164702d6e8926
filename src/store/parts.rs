//! Parts of nodes other than ports: how they are written with their node, found and listed. One table holds all kinds.

use std::collections::HashMap;

use diesel::prelude::*;

use super::connection::{AnyConnection, Db};
use super::fault::{Fault, ReadFault, violated};
use super::nodes::{NODES_PER_QUERY, unsortable};
use super::page::{cut, text_or, time_or};
use super::rows::{read, text, write};
use super::schema::{nodes, parts};
use super::types::{Ident, Page, PartFilter, PartOfNode, SaveError};
use crate::node::parts::{Part, PartKind};
use crate::node::portgroups::Portgroup;
use crate::node::volume::{VolumeConnector, VolumeTarget};
use crate::node::{Node, NodeId};

/// The form in which parts are written.
const PART_FORM: u32 = 1;

#[derive(Insertable)]
#[diesel(table_name = parts)]
#[diesel(treat_none_as_default_value = false)]
struct Row {
    id: String,
    seq: i64,
    kind: &'static str,
    node_id: String,
    name: Option<String>,
    claim: Option<String>,
    created_at: i64,
    updated_at: Option<i64>,
    body: String,
}

/// A row to be written, with the field and the value its claim is known by to clients.
struct Written {
    row: Row,
    claimed: Option<(&'static str, String)>,
}

fn rows_of<T: PartKind>(node: &Node) -> impl Iterator<Item = Written> {
    T::of(node).iter().map(|part| {
        let claimed = part.is.claim();
        Written {
            row: Row {
                id: part.id.to_string(),
                seq: 0,
                kind: T::NAME,
                node_id: node.id.to_string(),
                name: part.is.name().map(text),
                claim: claimed.as_ref().map(|(_, value)| text(value)),
                created_at: part.created_at.0,
                updated_at: part.updated_at.map(|at| at.0),
                body: write(PART_FORM, part),
            },
            claimed,
        }
    })
}

/// True when the node has any.
pub(super) fn has_any(node: &Node) -> bool {
    !(node.portgroups.is_empty()
        && node.volume_connectors.is_empty()
        && node.volume_targets.is_empty())
}

/// Makes the stored parts of a node those it has now. Parts that stay keep their place in the order of creation.
pub(super) fn replace(
    conn: &mut AnyConnection,
    node: &Node,
    mut next_seq: impl FnMut() -> i64,
) -> Result<(), Fault> {
    let of_node = parts::table.filter(parts::node_id.eq(node.id.to_string()));
    let stored: HashMap<String, i64> = of_node
        .clone()
        .select((parts::id, parts::seq))
        .load(conn)?
        .into_iter()
        .collect();
    if !stored.is_empty() {
        diesel::delete(of_node).execute(conn)?;
    }
    let now = rows_of::<Portgroup>(node)
        .chain(rows_of::<VolumeConnector>(node))
        .chain(rows_of::<VolumeTarget>(node));
    for Written { mut row, claimed } in now {
        row.seq = stored.get(&row.id).copied().unwrap_or_else(&mut next_seq);
        diesel::insert_into(parts::table)
            .values(&row)
            .execute(conn)
            .map_err(|error| {
                let (field, value) = match (violated(&error), claimed) {
                    (Some("parts.id"), _) => ("uuid", row.id.clone()),
                    (Some("parts.name"), _) => ("name", row.name.clone().unwrap_or_default()),
                    (Some("parts.claim"), Some(claimed)) => claimed,
                    _ => return Fault::Database(error),
                };
                Fault::Save(SaveError::Duplicate { field, value })
            })?;
    }
    Ok(())
}

/// The last number of the order of creation.
pub(super) fn last_seq(conn: &mut AnyConnection) -> QueryResult<i64> {
    let last: Option<i64> = parts::table
        .select(diesel::dsl::max(parts::seq))
        .first(conn)?;
    Ok(last.unwrap_or(0))
}

/// The UUID, kind, node and body of a part.
type Stored = (String, String, String, String);

/// Gives nodes their parts, in the order of creation.
pub(super) fn attach(conn: &mut AnyConnection, to: &mut [Node]) -> Result<(), ReadFault> {
    // Most sites have none at all, and asking for those of a thousand nodes takes as long as reading the nodes.
    if to.len() > 1
        && parts::table
            .select(parts::id)
            .first::<String>(conn)
            .optional()?
            .is_none()
    {
        return Ok(());
    }
    for some in to.chunks_mut(NODES_PER_QUERY) {
        let ids: Vec<String> = some.iter().map(|node| node.id.to_string()).collect();
        let rows: Vec<Stored> = parts::table
            .filter(parts::node_id.eq_any(ids))
            .order(parts::seq)
            .select((parts::id, parts::kind, parts::node_id, parts::body))
            .load(conn)?;
        if rows.is_empty() {
            continue;
        }
        let mut place: HashMap<NodeId, &mut Node> =
            some.iter_mut().map(|node| (node.id, node)).collect();
        for (id, kind, node_id, body) in rows {
            if let Some(node) = place.get_mut(&owner(&node_id)?) {
                match kind.as_str() {
                    Portgroup::NAME => add::<Portgroup>(node, &id, &body)?,
                    VolumeConnector::NAME => add::<VolumeConnector>(node, &id, &body)?,
                    VolumeTarget::NAME => add::<VolumeTarget>(node, &id, &body)?,
                    other => {
                        return Err(ReadFault::unreadable(format!(
                            "{other:?} in parts.kind is no kind this program knows; run a newer one"
                        )));
                    }
                }
            }
        }
    }
    Ok(())
}

fn add<T: PartKind>(to: &mut Node, id: &str, body: &str) -> Result<(), ReadFault> {
    let part: Part<T> = part_from(id, body)?;
    T::of_mut(to).push(part);
    Ok(())
}

fn part_from<T: PartKind>(id: &str, body: &str) -> Result<Part<T>, ReadFault> {
    read(PART_FORM, T::NAME, id, body).map_err(ReadFault::unreadable)
}

fn owner(node_id: &str) -> Result<NodeId, ReadFault> {
    node_id
        .parse()
        .map_err(|_| ReadFault::unreadable(format!("{node_id:?} in parts.node_id is no UUID")))
}

fn found<T: PartKind>(
    (id, node_id, body): (String, String, String),
) -> Result<PartOfNode<T>, ReadFault> {
    Ok(PartOfNode {
        node: owner(&node_id)?,
        part: part_from(&id, &body)?,
    })
}

/// One part.
pub(super) fn find<T: PartKind>(
    conn: &mut AnyConnection,
    ident: &Ident<uuid::Uuid>,
) -> Result<Option<PartOfNode<T>>, ReadFault> {
    let query = parts::table
        .filter(parts::kind.eq(T::NAME))
        .select((parts::id, parts::node_id, parts::body))
        .into_boxed::<Db>();
    let query = match ident {
        Ident::Id(id) => query.filter(parts::id.eq(id.to_string())),
        Ident::Name(name) => query.filter(parts::name.eq(text(name))),
    };
    let row = query.first(conn).optional()?;
    row.map(found).transpose()
}

/// Parts of one kind by filter and page.
pub(super) fn list<T: PartKind>(
    conn: &mut AnyConnection,
    filter: PartFilter,
    page: &Page,
) -> Result<Vec<PartOfNode<T>>, ReadFault> {
    let PartFilter {
        node,
        claim,
        shards,
    } = filter;
    let mut query = parts::table
        .filter(parts::kind.eq(T::NAME))
        .into_boxed::<Db>();
    if let Some(node) = node {
        query = query.filter(parts::node_id.eq(node.to_string()));
    }
    if let Some(claim) = claim {
        query = query.filter(parts::claim.eq(text(&claim)));
    }
    if let Some(shards) = shards {
        let shards: Vec<String> = shards.iter().map(|shard| text(shard)).collect();
        let theirs = nodes::table
            .filter(nodes::shard.eq_any(shards))
            .select(nodes::id);
        query = query.filter(parts::node_id.eq_any(theirs));
    }
    let query = match page.sort_key.as_deref() {
        None => cut!(conn, parts, query, page, parts::seq, i64),
        Some("uuid") => cut!(conn, parts, query, page, parts::id, String),
        Some("name") => cut!(conn, parts, query, page, text_or(parts::name, ""), String),
        Some("address" | "connector_id") => {
            cut!(conn, parts, query, page, text_or(parts::claim, ""), String)
        }
        Some("created_at") => cut!(conn, parts, query, page, parts::created_at, i64),
        Some("updated_at") => cut!(
            conn,
            parts,
            query,
            page,
            time_or(parts::updated_at, 0_i64),
            i64
        ),
        Some(other) => return Err(unsortable("parts", other)),
    };
    let rows: Vec<(String, String, String)> = query
        .select((parts::id, parts::node_id, parts::body))
        .load(conn)?;
    rows.into_iter().map(found).collect()
}
