//! What inspections found: one document per node, written in the commit that ends the inspection.

use diesel::prelude::*;
use serde_json::Value;

use super::connection::AnyConnection;
use super::fault::ReadFault;
use super::schema::inventories;
use crate::node::NodeId;

/// Stores a node's document, in place of the one it has.
pub(super) fn set(conn: &mut AnyConnection, node: NodeId, document: &Value) -> QueryResult<()> {
    let (node, body) = (node.to_string(), document.to_string());
    let changed = diesel::update(inventories::table.find(&node))
        .set(inventories::body.eq(&body))
        .execute(conn)?;
    if changed == 0 {
        diesel::insert_into(inventories::table)
            .values((inventories::node_id.eq(node), inventories::body.eq(body)))
            .execute(conn)?;
    }
    Ok(())
}

/// A node's document; none if it was never inspected.
pub(super) fn get(conn: &mut AnyConnection, node: NodeId) -> Result<Option<Value>, ReadFault> {
    let body: Option<String> = inventories::table
        .find(node.to_string())
        .select(inventories::body)
        .first(conn)
        .optional()?;
    body.map(|body| {
        serde_json::from_str(&body).map_err(|error| {
            ReadFault::unreadable(format!(
                "the stored inventory of node {node} can't be read: {error}; inspect it again"
            ))
        })
    })
    .transpose()
}
