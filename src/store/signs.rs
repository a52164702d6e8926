//! Signs of life of nodes, in rows of their own: written often, read with their nodes.

use std::collections::HashMap;

use diesel::prelude::*;

use super::connection::{AnyConnection, directly};
use super::fault::{Fault, ReadFault};
use super::nodes::NODES_PER_QUERY;
use super::rows::number;
use super::schema::{nodes, signs};
use super::types::SaveError;
use crate::node::{Node, NodeId, Signs};

/// Writes the signs of life of a node, which is stored in an older version.
pub(super) fn set(conn: &mut AnyConnection, node: &Node) -> Result<(), Fault> {
    let id = node.id.to_string();
    let version = number(node.version);
    let body = serde_json::to_string(&Signs::of(node))
        .expect("what is stored is plain data with text keys");
    let update = diesel::update(signs::table.find(&id))
        .set((signs::version.eq(version), signs::body.eq(&body)));
    let changed = directly!(conn, |conn| update.execute(conn))?;
    if changed == 1 {
        return Ok(());
    }
    let known: Option<i64> = nodes::table
        .find(&id)
        .select(nodes::version)
        .first(conn)
        .optional()?;
    if known.is_none() {
        return Err(Fault::Save(SaveError::VersionConflict));
    }
    diesel::insert_into(signs::table)
        .values((
            signs::node_id.eq(&id),
            signs::version.eq(version),
            signs::body.eq(&body),
        ))
        .execute(conn)?;
    Ok(())
}

pub(super) type Row = (String, i64, String);

/// Gives nodes the signs of life that are newer than they are.
pub(super) fn attach(conn: &mut AnyConnection, to: &mut [Node]) -> Result<(), ReadFault> {
    for some in to.chunks_mut(NODES_PER_QUERY) {
        let ids: Vec<String> = some
            .iter()
            // Others show none.
            .filter(|node| node.session.is_some() || node.next_deadline().is_some())
            .map(|node| node.id.to_string())
            .collect();
        if ids.is_empty() {
            continue;
        }
        let rows: Vec<Row> = signs::table.filter(signs::node_id.eq_any(ids)).load(conn)?;
        distribute(rows, some)?;
    }
    Ok(())
}

/// Puts rows into their nodes.
pub(super) fn distribute(rows: Vec<Row>, to: &mut [Node]) -> Result<(), ReadFault> {
    let mut place: HashMap<NodeId, &mut Node> = to.iter_mut().map(|node| (node.id, node)).collect();
    for (id, version, body) in rows {
        let unreadable = |why: String| {
            ReadFault::unreadable(format!(
                "the signs of life of node {id} can't be read: {why}"
            ))
        };
        let node_id: NodeId = id
            .parse()
            .map_err(|_| unreadable("the id is no UUID".to_owned()))?;
        let Some(node) = place.get_mut(&node_id) else {
            continue;
        };
        if version <= number(node.version) {
            // They were of an older node.
            continue;
        }
        let of_node: Signs =
            serde_json::from_str(&body).map_err(|error| unreadable(error.to_string()))?;
        of_node.put_into(node);
        node.version = version.unsigned_abs();
    }
    Ok(())
}
