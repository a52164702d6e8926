//! Nodes: create, list, show, patch, delete.

use serde_json::{Value, json};
use uuid::Uuid;

use super::error::Error;
use super::lists;
use super::objects;
use super::outline::Outlines;
use super::patch;
use super::reply::{Document, Reply, json_text};
use super::request::{Arguments, Request, no_such_node, parse_uuid, refuse_young_field};
use super::view::{self, Frame, NODE_FIELDS, Selection};
use crate::catalog::Chassis;
use crate::conductor::DeliverError;
use crate::node::{
    Event, Maintenance, Node, NodeId, Provision, ProvisionState, Refused, attributes, update,
};
use crate::store::{Ident, NODE_SORT_KEYS, NodeFilter, NodeOutline, Page};

/// What views of this request need.
pub fn frame(request: &Request) -> Frame<'_> {
    Frame {
        base: &request.base,
        microversion: request.microversion,
        conductor: request.api.conductor.host(),
    }
}

/// `POST /v1/nodes`
pub async fn create(request: &Request) -> Result<Reply, Error> {
    request.query_arguments()?.finish()?;
    let Value::Object(document) = request.document()? else {
        return Err(Error::Bad(
            "A node is described by a JSON object.".to_owned(),
        ));
    };
    let minor = request.microversion.0;
    refuse_young_field(attributes::too_new(&document, minor))?;
    let new = attributes::parse_new(&document, minor)?;
    check_parent(request, None, new.attributes.parent_node.as_deref()).await?;
    check_chassis(request, new.attributes.chassis_uuid.as_deref()).await?;
    let id = new.id.unwrap_or_else(|| NodeId(Uuid::new_v4()));
    let mut node = Node::enrolled(id, new.attributes, request.api.conductor.now());
    if minor < 11 {
        node.provision = Provision::Available;
    }
    if new.maintenance {
        node.maintenance = Some(Maintenance::default().into());
    }
    let node = request.api.conductor.create(node).await?;
    Ok(Reply::Created {
        body: json_text(&full(&node, request)),
        location: format!("{}/v1/nodes/{}", request.base, node.id),
    })
}

/// `GET /v1/nodes`, `GET /v1/nodes/detail`
pub async fn list(request: &Request, is_detail: bool) -> Result<Reply, Error> {
    listed(request, None, is_detail).await
}

/// `GET /v1/chassis/{chassis}/nodes`, and with `/detail`
pub async fn list_of_chassis(
    request: &Request,
    ident: &str,
    is_detail: bool,
) -> Result<Reply, Error> {
    let chassis = objects::find::<Chassis>(request, ident).await?.id;
    listed(request, Some(chassis), is_detail).await
}

async fn listed(request: &Request, within: Option<Uuid>, is_detail: bool) -> Result<Reply, Error> {
    let mut arguments = request.query_arguments()?;
    let mut filter = filter(request, &mut arguments).await?;
    let mut path = "nodes".to_owned();
    if let Some(chassis) = within {
        filter.nodes.chassis_uuid = Some(chassis.to_string());
        path = format!("chassis/{chassis}/nodes");
    }
    if is_detail {
        path.push_str("/detail");
    }
    let mut wish = lists::wish(
        request,
        &mut arguments,
        NODE_FIELDS,
        NODE_SORT_KEYS,
        is_detail,
    )?;
    arguments.finish()?;
    let is_paged = filter.nodes.instance_uuid.is_none();
    if !is_paged {
        wish.page = Page::by_age(request.api.settings.page_items_max, None);
    }
    let frame = frame(request);
    let reader = request.api.conductor.reader();
    let (nodes, page) = (filter.nodes, wish.page.clone());
    let shown: Vec<(Uuid, Document)> = if filter.matches_nothing {
        Vec::new()
    } else if let Some(outlines) = Outlines::of(&wish.selection, frame) {
        let found = reader.node_outlines(nodes, page).await?;
        let shown = |of: &NodeOutline| (of.id.0, outlines.document(of, frame));
        found.iter().map(|of| shown(of)).collect()
    } else {
        let found = reader.nodes(nodes, page).await?;
        let shown = |node: &Node| {
            let document = view::document(NODE_FIELDS, node, &wish.selection, frame);
            (node.id.0, document)
        };
        found.iter().map(shown).collect()
    };
    let (ids, shown): (Vec<Uuid>, Vec<Document>) = shown.into_iter().unzip();
    let last = ids.last().copied().filter(|_| is_paged);
    let next = lists::next(request, &path, &wish.page, shown.len(), last);
    Ok(Reply::Body(lists::list_text("nodes", &shown, next)))
}

/// `GET /v1/nodes/{node}`
pub async fn show(request: &Request, ident: &str) -> Result<Reply, Error> {
    let mut arguments = request.query_arguments()?;
    let selection = lists::chosen(request, &mut arguments, NODE_FIELDS)?;
    arguments.finish()?;
    let node = request.node(ident).await?;
    Ok(Reply::body(&view::document(
        NODE_FIELDS,
        &node,
        &selection,
        frame(request),
    )))
}

/// `PATCH /v1/nodes/{node}`
pub async fn change(request: &Request, ident: &str) -> Result<Reply, Error> {
    let mut arguments = request.query_arguments()?;
    let reset_interfaces = arguments.take_bool("reset_interfaces")?;
    arguments.finish()?;
    let microversion = request.microversion.0;
    let operations = patch::operations(&request.document()?, microversion)?;
    refuse_young_field(update::too_new(&operations, microversion))?;
    for operation in &operations {
        if operation.path == ["parent_node"] {
            check_parent(request, Some(ident), operation.value.as_str()).await?;
        }
        if operation.path == ["chassis_uuid"] {
            check_chassis(request, operation.value.as_str()).await?;
        }
    }
    let event = Event::Patch {
        operations,
        reset_interfaces: reset_interfaces.unwrap_or(false),
        microversion,
    };
    let node = deliver(request, ident, event).await?;
    Ok(Reply::body(&full(&node, request)))
}

/// `DELETE /v1/nodes/{node}`
pub async fn delete(request: &Request, ident: &str) -> Result<Reply, Error> {
    request.arguments()?.finish()?;
    let id = request.node_id(ident).await?;
    if has_children(request, id).await? {
        return Err(Refused::Conflict {
            text: format!(
                "Node {id} has child nodes (GET /v1/nodes/{id}/children); delete them, or remove their parent_node, first."
            ),
        }
        .into());
    }
    deliver(request, ident, Event::Delete).await?;
    Ok(Reply::Nothing)
}

/// Hands an event to the node a path names, and returns the node as it is afterwards.
///
/// # Errors
/// [`Error::NotFound`] if there is no such node; whatever the node answers.
pub async fn deliver(
    request: &Request,
    ident: &str,
    event: Event,
) -> Result<std::sync::Arc<Node>, Error> {
    let id = request.node_id(ident).await?;
    match request.api.conductor.deliver(id, event).await {
        Ok(answer) => Ok(answer.node),
        Err(DeliverError::NotFound) => Err(no_such_node(ident)),
        Err(error) => Err(error.into()),
    }
}

fn full(node: &Node, request: &Request) -> Document {
    view::document(NODE_FIELDS, node, &Selection::Full, frame(request))
}

/// A parent must be there. What is no UUID is refused later, by name of the field.
///
/// Parents and children are two generations, no more: otherwise a chain could become a ring, whose nodes no list would show.
async fn check_parent(
    request: &Request,
    child: Option<&str>,
    parent: Option<&str>,
) -> Result<(), Error> {
    let Some(id) = parent.and_then(parse_uuid) else {
        return Ok(());
    };
    if let Some(child) = child {
        let child = request.node_id(child).await?;
        if has_children(request, child).await? {
            let problem = "the node has child nodes, so it can't be one itself";
            return Err(attributes::bad("parent_node", problem).into());
        }
    }
    match request
        .api
        .conductor
        .reader()
        .node(Ident::Id(NodeId(id)))
        .await?
    {
        Some(parent) if parent.attributes.parent_node.is_some() => {
            let problem = format!("node {id} is a child itself; name its parent");
            Err(attributes::bad("parent_node", &problem).into())
        }
        Some(_) => Ok(()),
        None => Err(attributes::bad("parent_node", &format!("there is no node {id}")).into()),
    }
}

async fn has_children(request: &Request, id: NodeId) -> Result<bool, Error> {
    Ok(!children_of(request, id, 1).await?.is_empty())
}

async fn children_of(request: &Request, id: NodeId, limit: usize) -> Result<Vec<Node>, Error> {
    let filter = NodeFilter {
        parent_node: Some(id.to_string()),
        ..NodeFilter::default()
    };
    let reader = request.api.conductor.reader();
    Ok(reader.nodes(filter, Page::by_age(limit, None)).await?)
}

/// A chassis must be there, as a parent must.
async fn check_chassis(request: &Request, chassis: Option<&str>) -> Result<(), Error> {
    let Some(id) = chassis.and_then(parse_uuid) else {
        return Ok(());
    };
    match objects::find::<Chassis>(request, &id.to_string()).await {
        Err(Error::NotFound(_)) => {
            Err(attributes::bad("chassis_uuid", &format!("there is no chassis {id}")).into())
        }
        other => other.map(|_| ()),
    }
}

struct Filter {
    nodes: NodeFilter,
    /// A condition that no node of this server meets.
    matches_nothing: bool,
}

async fn filter(request: &Request, arguments: &mut Arguments) -> Result<Filter, Error> {
    let mut matches_nothing = false;
    let chassis_uuid = match arguments.take_uuid("chassis_uuid")? {
        None => None,
        Some(id) => {
            let chassis = objects::find::<Chassis>(request, &id.to_string()).await?;
            Some(chassis.id.to_string())
        }
    };
    let provision_state = match arguments.take_text("provision_state")? {
        None => None,
        Some(name) => Some(
            ProvisionState::parse(&name)
                .ok_or_else(|| Error::Bad(format!("Provision state \"{name}\" is not valid")))?,
        ),
    };
    if let Some(host) = arguments.take_text("conductor")? {
        matches_nothing = host != request.api.conductor.host();
    }
    let fault = arguments.take_text("fault")?;
    if let Some(fault) = &fault {
        const FAULTS: [&str; 4] = [
            "power failure",
            "clean failure",
            "rescue abort failure",
            "service failure",
        ];
        if !FAULTS.contains(&fault.as_str()) {
            return Err(Error::Bad(format!(
                "fault \"{fault}\" is not valid; use one of {}.",
                FAULTS.join(", ")
            )));
        }
    }
    let nodes = NodeFilter {
        provision_state,
        maintenance: arguments.take_bool("maintenance")?,
        associated: arguments.take_bool("associated")?,
        instance_uuid: arguments
            .take_uuid("instance_uuid")?
            .map(|id| id.to_string()),
        instance_name: arguments.take_text("instance_name")?,
        driver: arguments.take_text("driver")?,
        resource_class: arguments.take_text("resource_class")?,
        conductor_group: arguments
            .take_text("conductor_group")?
            .map(|group| group.to_lowercase()),
        owner: arguments.take_text("owner")?,
        lessee: arguments.take_text("lessee")?,
        project: arguments.take_text("project")?,
        fault,
        retired: arguments.take_bool("retired")?,
        description_contains: arguments.take_text("description_contains")?,
        shards: arguments.take_text("shard")?.map(|list| split(&list)),
        sharded: arguments.take_bool("sharded")?,
        parent_node: arguments.take_text("parent_node")?,
        chassis_uuid,
        include_children: arguments.take_bool("include_children")?.unwrap_or(false),
    };
    Ok(Filter {
        nodes,
        matches_nothing,
    })
}

/// The entries of a comma-separated list.
pub fn split(list: &str) -> Vec<String> {
    list.split(',')
        .map(str::trim)
        .filter(|entry| !entry.is_empty())
        .map(str::to_owned)
        .collect()
}

/// `GET /v1/nodes/{node}/children`
pub async fn children(request: &Request, ident: &str) -> Result<Reply, Error> {
    request.query_arguments()?.finish()?;
    let parent = request.node(ident).await?.id;
    let found = children_of(request, parent, usize::MAX).await?;
    let children: Vec<String> = found.iter().map(|node| node.id.to_string()).collect();
    let href = format!("{}/v1/nodes/{parent}/children", request.base);
    Ok(Reply::body(&json!({
        "children": children,
        "links": {"href": href, "rel": "self"},
    })))
}

/// `GET /v1/nodes/{node}/inventory`: what the last inspection found.
pub async fn inventory(request: &Request, ident: &str) -> Result<Reply, Error> {
    request.query_arguments()?.finish()?;
    let node = request.node(ident).await?.id;
    match request.api.conductor.reader().inventory(node).await? {
        Some(found) => Ok(Reply::body(&found)),
        None => Err(Error::NotFound(format!(
            "Inventory record not found for node {node}; it was never inspected."
        ))),
    }
}

/// `GET /v1/nodes/{node}/states`
pub async fn states(request: &Request, ident: &str) -> Result<Reply, Error> {
    request.query_arguments()?.finish()?;
    let node = request.node(ident).await?;
    Ok(Reply::body(&view::states(&node, frame(request))))
}
