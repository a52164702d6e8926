//! `GET /v1/conductors`: this conductor, which is the only one this version knows.

use serde_json::json;

use super::error::Error;
use super::lists::{self, list_text};
use super::nodes::frame;
use super::reply::Reply;
use super::request::Request;
use super::view::{self, Frame, Selection, Shown, links};
use crate::node::hardware::HARDWARE_TYPES;

/// What is known of a conductor.
pub struct Known {
    group: String,
    is_alive: bool,
}

const fn field(
    name: &'static str,
    is_short: bool,
    value: fn(&Known, Frame<'_>) -> serde_json::Value,
) -> Shown<Known> {
    Shown {
        name,
        since: 49,
        is_short,
        can_be_asked: true,
        value,
    }
}

/// The fields of a conductor.
pub const FIELDS: &[Shown<Known>] = &[
    field("created_at", false, |_, _| serde_json::Value::Null),
    field("updated_at", false, |_, _| serde_json::Value::Null),
    field("hostname", true, |_, frame| json!(frame.conductor)),
    field("conductor_group", true, |known, _| json!(known.group)),
    field("alive", true, |known, _| json!(known.is_alive)),
    field("drivers", false, |_, _| {
        json!(
            HARDWARE_TYPES
                .iter()
                .map(|known| known.name)
                .collect::<Vec<_>>()
        )
    }),
    field("links", true, |_, frame| {
        links(frame.base, &format!("conductors/{}", frame.conductor))
    }),
];

/// `GET /v1/conductors`
pub async fn list(request: &Request) -> Result<Reply, Error> {
    let mut arguments = request.query_arguments()?;
    let marker = arguments.take_text("marker")?;
    let wish = lists::wish(
        request,
        &mut arguments,
        FIELDS,
        &["hostname", "conductor_group"],
        false,
    )?;
    arguments.finish()?;
    let shown = match marker {
        None => vec![view::document(
            FIELDS,
            &known(request),
            &wish.selection,
            frame(request),
        )],
        Some(host) if host == request.api.conductor.host() => Vec::new(),
        Some(host) => return Err(no_such_conductor(&host)),
    };
    Ok(Reply::Body(list_text("conductors", &shown, None)))
}

/// `GET /v1/conductors/{host}`
pub async fn show(request: &Request, host: &str) -> Result<Reply, Error> {
    let mut arguments = request.query_arguments()?;
    let selection = match arguments.take_text("fields")? {
        None => Selection::Full,
        Some(list) => view::asked(FIELDS, &list, request.microversion)?,
    };
    arguments.finish()?;
    if host != request.api.conductor.host() {
        return Err(no_such_conductor(host));
    }
    Ok(Reply::body(&view::document(
        FIELDS,
        &known(request),
        &selection,
        frame(request),
    )))
}

fn known(request: &Request) -> Known {
    Known {
        group: request.api.settings.conductor_group.clone(),
        is_alive: true,
    }
}

fn no_such_conductor(host: &str) -> Error {
    Error::NotFound(format!("Conductor {host} could not be found."))
}
