//! Ports: create, list, show, patch, delete; and the ports of one node.

use serde_json::Value;
use uuid::Uuid;

use super::error::Error;
use super::lists;
use super::nodes::{frame, split};
use super::parts;
use super::patch;
use super::reply::{Document, Reply, json_text};
use super::request::{Arguments, Request, parse_uuid, refuse_young_field};
use super::view::{self, PORT_FIELDS, Selection};
use crate::conductor::DeliverError;
use crate::node::portgroups::Portgroup;
use crate::node::{Event, PortId, Reply as NodeReply, attributes, ports};
use crate::store::{Ident, PORT_SORT_KEYS, PortFilter, PortOfNode};

/// `POST /v1/ports`
pub async fn create(request: &Request) -> Result<Reply, Error> {
    request.query_arguments()?.finish()?;
    let Value::Object(document) = request.document()? else {
        return Err(Error::Bad(
            "A port is described by a JSON object.".to_owned(),
        ));
    };
    refuse_young_field(ports::too_new(&document, request.microversion.0))?;
    let new = ports::new_port(&document)?;
    let no_node = || -> Error {
        attributes::bad("node_uuid", &format!("there is no node {}", new.node)).into()
    };
    let node = match request.node_id(&new.node).await {
        Err(Error::NotFound(_)) => return Err(no_node()),
        other => other?,
    };
    let mut port = new.port.clone();
    port.id = new.id.unwrap_or_else(|| PortId(Uuid::new_v4()));
    port.created_at = request.api.conductor.now();
    let answer = match request
        .api
        .conductor
        .deliver(node, Event::PortCreate(Box::new(port.clone())))
        .await
    {
        Err(DeliverError::NotFound) => return Err(no_node()),
        other => other?,
    };
    let id = match answer.reply {
        NodeReply::PortCreated(id) => id,
        NodeReply::Done
        | NodeReply::Token { .. }
        | NodeReply::TokenLater
        | NodeReply::Refused(_) => port.id,
    };
    let stored = answer.node.ports.iter().find(|stored| stored.id == id);
    let of = PortOfNode {
        node,
        port: stored.unwrap_or(&port).clone(),
    };
    Ok(Reply::Created {
        body: json_text(&full(&of, request)),
        location: format!("{}/v1/ports/{id}", request.base),
    })
}

/// `GET /v1/ports`, `GET /v1/ports/detail`
pub async fn list(request: &Request, is_detail: bool) -> Result<Reply, Error> {
    let mut arguments = request.query_arguments()?;
    let mut filter = PortFilter::default();
    let mut matches_nothing = false;
    if let Some(address) = arguments.take_text("address")? {
        let address = attributes::mac_address(&address).ok_or_else(|| {
            Error::Bad(format!(
                "address: expected a MAC address but received {address}."
            ))
        })?;
        filter.address = Some(address);
    }
    let by_uuid = arguments.take_uuid("node_uuid")?.map(|id| id.to_string());
    let by_ident = arguments.take_text("node")?;
    if let Some(ident) = by_ident.or(by_uuid) {
        filter.node = Some(match request.node(&ident).await {
            Err(Error::BadIdentifier(text)) => return Err(Error::Bad(text)),
            other => other?.id,
        });
    }
    if let Some(group) = arguments.take_text("portgroup")? {
        filter.portgroup = Some(match parts::find::<Portgroup>(request, &group).await {
            Err(Error::BadIdentifier(text)) => return Err(Error::Bad(text)),
            other => other?.part.id,
        });
    }
    if let Some(list) = arguments.take_text("shard")? {
        filter.shards = Some(split(&list));
    }
    if let Some(text) = arguments.take_text("description_contains")? {
        filter.description_contains = Some(text);
    }
    if let Some(list) = arguments.take_text("conductor_groups")? {
        matches_nothing = !has_own_group(request, &list);
    }
    let path = if is_detail { "ports/detail" } else { "ports" };
    listed(request, arguments, filter, is_detail, path, matches_nothing).await
}

/// `GET /v1/nodes/{node}/ports`, and with `/detail`
pub async fn list_of_node(request: &Request, ident: &str, is_detail: bool) -> Result<Reply, Error> {
    let arguments = request.query_arguments()?;
    let node = request.node(ident).await?.id;
    let filter = PortFilter {
        node: Some(node),
        ..PortFilter::default()
    };
    let path = if is_detail {
        format!("nodes/{node}/ports/detail")
    } else {
        format!("nodes/{node}/ports")
    };
    listed(request, arguments, filter, is_detail, &path, false).await
}

/// The ports of a group, for `GET /v1/portgroups/{portgroup}/ports`.
pub async fn list_of_group(
    request: &Request,
    group: Uuid,
    is_detail: bool,
) -> Result<Reply, Error> {
    let arguments = request.query_arguments()?;
    let filter = PortFilter {
        portgroup: Some(group),
        ..PortFilter::default()
    };
    let mut path = format!("portgroups/{group}/ports");
    if is_detail {
        path.push_str("/detail");
    }
    listed(request, arguments, filter, is_detail, &path, false).await
}

/// True when the group of this conductor, which serves all nodes here, is in a comma-separated list.
pub fn has_own_group(request: &Request, list: &str) -> bool {
    list.split(',')
        .any(|group| group.trim().to_lowercase() == request.api.settings.conductor_group)
}

async fn listed(
    request: &Request,
    mut arguments: Arguments,
    filter: PortFilter,
    is_detail: bool,
    path: &str,
    matches_nothing: bool,
) -> Result<Reply, Error> {
    let wish = lists::wish(
        request,
        &mut arguments,
        PORT_FIELDS,
        PORT_SORT_KEYS,
        is_detail,
    )?;
    arguments.finish()?;
    let found = if matches_nothing {
        Vec::new()
    } else {
        let reader = request.api.conductor.reader();
        reader.ports(filter, wish.page.clone()).await?
    };
    Ok(lists::answer(
        request,
        "ports",
        path,
        &wish,
        PORT_FIELDS,
        &found,
        |of| of.port.id.0,
    ))
}

/// `GET /v1/ports/{port}`
pub async fn show(request: &Request, ident: &str) -> Result<Reply, Error> {
    let mut arguments = request.query_arguments()?;
    let selection = lists::chosen(request, &mut arguments, PORT_FIELDS)?;
    arguments.finish()?;
    let of = find(request, ident).await?;
    Ok(Reply::body(&view::document(
        PORT_FIELDS,
        &of,
        &selection,
        frame(request),
    )))
}

/// `PATCH /v1/ports/{port}`
pub async fn change(request: &Request, ident: &str) -> Result<Reply, Error> {
    request.query_arguments()?.finish()?;
    let microversion = request.microversion.0;
    let operations = patch::operations(&request.document()?, microversion)?;
    refuse_young_field(ports::patch_too_new(&operations, microversion))?;
    let old = find(request, ident).await?;
    let id = old.port.id;
    let answer = match request
        .api
        .conductor
        .deliver(old.node, Event::PortPatch { id, operations })
        .await
    {
        Err(DeliverError::NotFound) => return Err(no_such_port(ident)),
        other => other?,
    };
    let port = answer.node.ports.iter().find(|port| port.id == id);
    let of = PortOfNode {
        node: old.node,
        port: port.cloned().ok_or_else(|| no_such_port(ident))?,
    };
    Ok(Reply::body(&full(&of, request)))
}

/// `DELETE /v1/ports/{port}`
pub async fn delete(request: &Request, ident: &str) -> Result<Reply, Error> {
    request.arguments()?.finish()?;
    let old = find(request, ident).await?;
    let event = Event::PortDelete { id: old.port.id };
    match request.api.conductor.deliver(old.node, event).await {
        Err(DeliverError::NotFound) => Err(no_such_port(ident)),
        other => {
            other?;
            Ok(Reply::Nothing)
        }
    }
}

async fn find(request: &Request, text: &str) -> Result<PortOfNode, Error> {
    let ident = match parse_uuid(text) {
        Some(id) => Ident::Id(PortId(id)),
        None if attributes::is_name(text) && request.microversion.0 >= 88 => {
            Ident::Name(text.to_owned())
        }
        None => {
            return Err(Error::BadIdentifier(format!(
                "Expected a UUID (or, from version 1.88 on, a name) of a port but received {text}."
            )));
        }
    };
    let found = request.api.conductor.reader().port(ident).await?;
    found.ok_or_else(|| no_such_port(text))
}

fn no_such_port(name: &str) -> Error {
    Error::NotFound(format!("Port {name} could not be found."))
}

fn full(of: &PortOfNode, request: &Request) -> Document {
    view::document(PORT_FIELDS, of, &Selection::Full, frame(request))
}
