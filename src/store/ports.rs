//! Ports: how they are written with their node, found and listed.

use std::collections::HashMap;

use diesel::prelude::*;

use super::connection::{AnyConnection, Db};
use super::fault::{Fault, ReadFault, violated};
use super::nodes::{NODES_PER_QUERY, containing, unsortable};
use super::page::{cut, text_or, time_or};
use super::rows::{PortRow, port_from, text};
use super::schema::{nodes, ports};
use super::types::{Ident, Page, PortFilter, PortOfNode, SaveError};
use crate::node::{Node, NodeId, PortId};

/// Makes the stored ports of a node those it has now. Ports that stay keep their place in the order of creation.
pub(super) fn replace(
    conn: &mut AnyConnection,
    node: &Node,
    mut next_seq: impl FnMut() -> i64,
) -> Result<(), Fault> {
    let node_id = node.id.to_string();
    let stored: HashMap<String, i64> = ports::table
        .filter(ports::node_id.eq(&node_id))
        .select((ports::id, ports::seq))
        .load(conn)?
        .into_iter()
        .collect();
    if !stored.is_empty() {
        diesel::delete(ports::table.filter(ports::node_id.eq(&node_id))).execute(conn)?;
    }
    for port in node.ports.iter() {
        let seq = stored.get(&port.id.to_string()).copied();
        diesel::insert_into(ports::table)
            .values(PortRow::new(
                node.id,
                seq.unwrap_or_else(&mut next_seq),
                port,
            ))
            .execute(conn)
            .map_err(|error| {
                let (field, value) = match violated(&error) {
                    Some("ports.id") => ("port uuid", port.id.to_string()),
                    Some("ports.address") => ("address", port.address.clone()),
                    Some("ports.name") => ("port name", port.name.clone().unwrap_or_default()),
                    _ => return Fault::Database(error),
                };
                Fault::Save(SaveError::Duplicate { field, value })
            })?;
    }
    Ok(())
}

/// The last number of the order of creation.
pub(super) fn last_seq(conn: &mut AnyConnection) -> QueryResult<i64> {
    let last: Option<i64> = ports::table
        .select(diesel::dsl::max(ports::seq))
        .first(conn)?;
    Ok(last.unwrap_or(0))
}

type Row = (String, String, String);

/// Gives nodes their ports, in the order of creation.
pub(super) fn attach(conn: &mut AnyConnection, to: &mut [Node]) -> Result<(), ReadFault> {
    for some in to.chunks_mut(NODES_PER_QUERY) {
        let ids: Vec<String> = some.iter().map(|node| node.id.to_string()).collect();
        let rows: Vec<Row> = ports::table
            .filter(ports::node_id.eq_any(ids))
            .order(ports::seq)
            .select((ports::id, ports::node_id, ports::body))
            .load(conn)?;
        distribute(rows, some)?;
    }
    Ok(())
}

/// Puts rows of `(id, node_id, body)` into their nodes.
pub(super) fn distribute(rows: Vec<Row>, to: &mut [Node]) -> Result<(), ReadFault> {
    let mut place: HashMap<NodeId, &mut Node> = to.iter_mut().map(|node| (node.id, node)).collect();
    for row in rows {
        let PortOfNode { node, port } = read(row)?;
        if let Some(node) = place.get_mut(&node) {
            node.ports.push(port);
        }
    }
    Ok(())
}

fn read((id, node_id, body): Row) -> Result<PortOfNode, ReadFault> {
    Ok(PortOfNode {
        node: node_id.parse().map_err(|_| {
            ReadFault::unreadable(format!("{node_id:?} in ports.node_id is no UUID"))
        })?,
        port: port_from(&id, &body).map_err(ReadFault::unreadable)?,
    })
}

/// One port.
pub(super) fn find(
    conn: &mut AnyConnection,
    ident: &Ident<PortId>,
) -> Result<Option<PortOfNode>, ReadFault> {
    let query = ports::table
        .select((ports::id, ports::node_id, ports::body))
        .into_boxed::<Db>();
    let query = match ident {
        Ident::Id(id) => query.filter(ports::id.eq(id.to_string())),
        Ident::Name(name) => query.filter(ports::name.eq(text(name))),
    };
    let row: Option<Row> = query.first(conn).optional()?;
    row.map(read).transpose()
}

/// Ports by filter and page.
pub(super) fn list(
    conn: &mut AnyConnection,
    filter: PortFilter,
    page: &Page,
) -> Result<Vec<PortOfNode>, ReadFault> {
    let query = filtered(filter);
    let query = match page.sort_key.as_deref() {
        None => cut!(conn, ports, query, page, ports::seq, i64),
        Some("uuid") => cut!(conn, ports, query, page, ports::id, String),
        Some("address") => cut!(conn, ports, query, page, ports::address, String),
        Some("name") => cut!(conn, ports, query, page, text_or(ports::name, ""), String),
        Some("created_at") => cut!(conn, ports, query, page, ports::created_at, i64),
        Some("updated_at") => cut!(
            conn,
            ports,
            query,
            page,
            time_or(ports::updated_at, 0_i64),
            i64
        ),
        Some(other) => return Err(unsortable("ports", other)),
    };
    let rows: Vec<Row> = query
        .select((ports::id, ports::node_id, ports::body))
        .load(conn)?;
    rows.into_iter().map(read).collect()
}

fn filtered(filter: PortFilter) -> ports::BoxedQuery<'static, Db> {
    let PortFilter {
        node,
        address,
        portgroup,
        shards,
        description_contains,
    } = filter;
    let mut query = ports::table.into_boxed::<Db>();
    if let Some(node) = node {
        query = query.filter(ports::node_id.eq(node.to_string()));
    }
    if let Some(address) = address {
        query = query.filter(ports::address.eq(text(&address).to_lowercase()));
    }
    if let Some(group) = portgroup {
        query = query.filter(ports::portgroup_uuid.eq(group.to_string()));
    }
    if let Some(part) = description_contains {
        query = query.filter(ports::description.like(containing(&part)).escape('\\'));
    }
    if let Some(shards) = shards {
        let shards: Vec<String> = shards.iter().map(|shard| text(shard)).collect();
        let theirs = nodes::table
            .filter(nodes::shard.eq_any(shards))
            .select(nodes::id);
        query = query.filter(ports::node_id.eq_any(theirs));
    }
    query
}
