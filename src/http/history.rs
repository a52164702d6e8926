//! `GET /v1/nodes/{node}/history`: what happened to a node, oldest first.

use serde_json::{Value, json};

use super::error::Error;
use super::lists;
use super::nodes::frame;
use super::reply::Reply;
use super::request::{Request, parse_uuid};
use super::view::{self, Frame, Selection, Shown, links, time};
use crate::node::{NodeId, ProvisionState, Severity};
use crate::store::{HistoryEntry, Page};

/// An entry and the node it is about.
pub struct Of {
    node: NodeId,
    entry: HistoryEntry,
}

const fn field(
    name: &'static str,
    is_short: bool,
    value: fn(&Of, Frame<'_>) -> Value,
) -> Shown<Of> {
    Shown {
        name,
        since: 78,
        is_short,
        can_be_asked: true,
        value,
    }
}

const fn since(since: u16, field: Shown<Of>) -> Shown<Of> {
    Shown { since, ..field }
}

/// The fields of an entry.
pub const FIELDS: &[Shown<Of>] = &[
    field("uuid", true, |of, _| json!(of.entry.id.to_string())),
    field("created_at", true, |of, _| time(Some(of.entry.at))),
    field("severity", true, |of, _| {
        json!(match of.entry.line.severity {
            Severity::Info => "INFO",
            Severity::Error => "ERROR",
        })
    }),
    field("event_type", false, |of, _| json!(of.entry.line.event_type)),
    field("event", true, |of, _| json!(of.entry.line.event)),
    field("conductor", false, |of, _| json!(of.entry.conductor)),
    field("user", false, |_, _| Value::Null),
    since(113, field("project", false, |_, _| Value::Null)),
    since(
        115,
        field("state", false, |of, _| {
            json!(of.entry.line.state.map(ProvisionState::name))
        }),
    ),
    since(
        115,
        field("target_provision_state", false, |of, _| {
            json!(of.entry.line.target.map(ProvisionState::name))
        }),
    ),
    since(
        115,
        field("duration_seconds", false, |of, _| {
            json!(of.entry.line.lasted_ms.map(|ms| ms / 1_000))
        }),
    ),
    field("links", true, |of, frame| {
        links(
            frame.base,
            &format!("nodes/{}/history/{}", of.node, of.entry.id),
        )
    }),
];

/// `GET /v1/nodes/{node}/history`
pub async fn list(request: &Request, ident: &str) -> Result<Reply, Error> {
    let mut arguments = request.query_arguments()?;
    let wish = lists::wish(request, &mut arguments, FIELDS, &[], false)?;
    arguments.finish()?;
    let node = request.node(ident).await?.id;
    let reader = request.api.conductor.reader();
    let entries = reader.history(node, wish.page.clone()).await?;
    let found: Vec<Of> = entries
        .into_iter()
        .map(|entry| Of { node, entry })
        .collect();
    let path = format!("nodes/{node}/history");
    Ok(lists::answer(
        request,
        "history",
        &path,
        &wish,
        FIELDS,
        &found,
        |of| of.entry.id,
    ))
}

/// `GET /v1/nodes/{node}/history/{entry}`
pub async fn show(request: &Request, ident: &str, entry: &str) -> Result<Reply, Error> {
    request.query_arguments()?.finish()?;
    let id = parse_uuid(entry)
        .ok_or_else(|| Error::BadIdentifier(format!("Expected a UUID but received {entry}.")))?;
    let node = request.node(ident).await?.id;
    let mut page = Page::by_age(request.api.settings.page_items_max, None);
    loop {
        let entries = request
            .api
            .conductor
            .reader()
            .history(node, page.clone())
            .await?;
        let is_last_page = entries.len() < page.limit;
        page.marker = entries.last().map(|entry| entry.id);
        if let Some(entry) = entries.into_iter().find(|entry| entry.id == id) {
            let of = Of { node, entry };
            return Ok(Reply::body(&view::document(
                FIELDS,
                &of,
                &Selection::Full,
                frame(request),
            )));
        }
        if is_last_page {
            return Err(Error::NotFound(format!(
                "Node history record {id} could not be found."
            )));
        }
    }
}
