//! Allocations, and the allocation of one node.

use serde_json::json;
use uuid::Uuid;

use super::{Served, created, fields_of, find, full, no_such, read_new};
use crate::catalog::{Allocation, Record};
use crate::http::error::Error;
use crate::http::reply::Reply;
use crate::http::request::{Arguments, Request};
use crate::http::view::{Shown, short, shown};
use crate::node::values::{bad, is_name, text_of};
use crate::node::{Node, NodeId};
use crate::store::RecordFilter;

macro_rules! own {
    ($name:ident, $since:literal) => {
        short(shown(
            stringify!($name),
            $since,
            |of: &Record<Allocation>, _| json!(of.is.$name),
        ))
    };
}

impl Served for Allocation {
    const PLURAL: &'static str = "allocations";
    const SHOWN: &'static [Shown<Record<Allocation>>] = fields_of!(
        Allocation,
        "allocations",
        own!(name, 1),
        short(shown("node_uuid", 1, |of: &Record<Allocation>, _| {
            json!(of.is.node_uuid.map(|id| id.to_string()))
        })),
        short(shown("state", 1, |of: &Record<Allocation>, _| {
            json!(of.is.state.name())
        })),
        own!(resource_class, 1),
        own!(candidate_nodes, 1),
        own!(traits, 1),
        own!(extra, 1),
        own!(last_error, 1),
        own!(owner, 60),
    );

    fn is_name(text: &str) -> bool {
        is_name(text)
    }

    async fn filter(request: &Request, arguments: &mut Arguments) -> Result<RecordFilter, Error> {
        let node = match arguments.take_text("node")? {
            None => None,
            Some(ident) => Some(match request.node(&ident).await {
                Err(Error::BadIdentifier(text)) => return Err(Error::Bad(text)),
                other => other?.id,
            }),
        };
        Ok(RecordFilter {
            names: None,
            owner: arguments.take_text("owner")?,
            state: arguments.take_text("state")?,
            resource_class: arguments.take_text("resource_class")?,
            node,
        })
    }
}

/// `POST /v1/allocations`
pub async fn create(request: &Request) -> Result<Reply, Error> {
    let mut document = request.description()?;
    let node = match document.remove("node").filter(|value| !value.is_null()) {
        None => None,
        Some(value) => {
            request.need(58, "field node")?;
            Some(named_node(request, "node", text_of("node", &value, 255)?).await?)
        }
    };
    let (id, mut allocation) = read_new::<Allocation>(request, document)?;
    let mut candidates = Vec::new();
    for ident in &allocation.candidate_nodes {
        let found = named_node(request, "candidate_nodes", ident).await?;
        candidates.push(found.id.to_string());
    }
    allocation.candidate_nodes = candidates;
    let id = match &node {
        Some(node) => backfill(node, id, &mut allocation)?,
        None if allocation.resource_class.is_none() => {
            return Err(bad("resource_class", "is missing; name the class of the node").into());
        }
        None => id.unwrap_or_else(Uuid::new_v4),
    };
    let record = request.api.conductor.allocate(id, allocation).await?;
    Ok(created(request, &record))
}

/// Makes the wish one for a certain node, which is in use already.
fn backfill(node: &Node, id: Option<Uuid>, wish: &mut Allocation) -> Result<Uuid, Error> {
    if !wish.candidate_nodes.is_empty() {
        return Err(bad("candidate_nodes", "can't be given together with node").into());
    }
    if wish.resource_class.is_none() {
        wish.resource_class = node.attributes.resource_class.clone();
    }
    if wish.resource_class.is_none() {
        return Err(bad(
            "resource_class",
            "is missing, and the node has none; set that of the node first",
        )
        .into());
    }
    wish.backfill = Some(node.id);
    let instance = node.attributes.instance_uuid.as_deref();
    let instance = instance.and_then(|text| Uuid::try_parse(text).ok());
    Ok(id.or(instance).unwrap_or_else(Uuid::new_v4))
}

/// A node that a body names must be there.
async fn named_node(request: &Request, field: &str, ident: &str) -> Result<Node, Error> {
    match request.node(ident).await {
        Err(Error::NotFound(_) | Error::BadIdentifier(_)) => {
            Err(bad(field, &format!("there is no node {ident}")).into())
        }
        other => other,
    }
}

/// `DELETE /v1/allocations/{allocation}`
pub async fn delete(request: &Request, ident: &str) -> Result<Reply, Error> {
    request.arguments()?.finish()?;
    let id = find::<Allocation>(request, ident).await?.id;
    end(request, id, || no_such::<Allocation>(ident)).await
}

/// `GET /v1/nodes/{node}/allocation`
pub async fn show_of_node(request: &Request, ident: &str) -> Result<Reply, Error> {
    request.query_arguments()?.finish()?;
    let node = request.node(ident).await?;
    let id = allocation_of(&node)?;
    let found = request
        .api
        .conductor
        .reader()
        .record::<Allocation>(crate::store::Ident::Id(id))
        .await?;
    let record = found.ok_or_else(|| has_none(node.id))?;
    Ok(Reply::body(&full(request, &record)))
}

/// `DELETE /v1/nodes/{node}/allocation`
pub async fn delete_of_node(request: &Request, ident: &str) -> Result<Reply, Error> {
    request.arguments()?.finish()?;
    let node = request.node(ident).await?;
    let id = allocation_of(&node)?;
    end(request, id, || has_none(node.id)).await
}

async fn end(request: &Request, id: Uuid, gone: impl Fn() -> Error) -> Result<Reply, Error> {
    use crate::conductor::DeliverError;
    match request.api.conductor.end_allocation(id).await {
        Ok(()) => Ok(Reply::Nothing),
        Err(DeliverError::NotFound) => Err(gone()),
        Err(error) => Err(error.into()),
    }
}

fn allocation_of(node: &Node) -> Result<Uuid, Error> {
    node.allocation.ok_or_else(|| has_none(node.id))
}

fn has_none(node: NodeId) -> Error {
    Error::NotFound(format!("Node {node} has no allocation."))
}
