//! What belongs to nodes besides ports, as clients see it: port groups, volume connectors, volume targets.
//!
//! What all of them have in common is here; each kind adds its table of fields and its filters. Whether a node may have, change or lose
//! one is decided by the node.

pub mod portgroups;
pub mod volume;

use serde_json::Value;
use uuid::Uuid;

use super::error::Error;
use super::lists;
use super::nodes::frame;
use super::patch;
use super::reply::{Document, Reply, json_text};
use super::request::{Arguments, Request, refuse_young_field, uuid_or_name};
use super::view::{self, Selection, Shown};
use crate::conductor::DeliverError;
use crate::node::parts::{self, Part, PartChange, PartKind};
use crate::node::values::bad;
use crate::node::{NodeId, fields};
use crate::store::{PartFilter, PartOfNode};

/// A kind of parts that has endpoints.
pub trait Served: PartKind {
    /// The key of lists.
    const PLURAL: &'static str;
    /// Where they are.
    const PATH: &'static str;
    /// Its fields.
    const SHOWN: &'static [Shown<PartOfNode<Self>>];
    /// What lists can be sorted by.
    const SORT_KEYS: &'static [&'static str];

    /// How a path may name one besides by its UUID.
    fn is_name(_: &str) -> bool {
        false
    }

    /// The filters of its lists besides that for a node; none: nothing can match.
    fn filter(_: &Request, _: &mut Arguments) -> Result<Option<PartFilter>, Error> {
        Ok(Some(PartFilter::default()))
    }
}

/// `POST /v1/{path}`
pub async fn create<T: Served>(request: &Request) -> Result<Reply, Error> {
    let document = request.description()?;
    refuse_young_field(fields::too_new(
        T::FIELDS,
        &document,
        request.microversion.0,
    ))?;
    let new = parts::read_new::<T>(&document)?;
    let no_node =
        || -> Error { bad("node_uuid", &format!("there is no node {}", new.node)).into() };
    let node = match request.node_id(&new.node).await {
        Err(Error::NotFound(_)) => return Err(no_node()),
        other => other?,
    };
    let part = Part {
        id: new.id.unwrap_or_else(Uuid::new_v4),
        created_at: request.api.conductor.now(),
        updated_at: None,
        is: new.is.clone(),
    };
    let event = T::event(PartChange::Create(Box::new(part.clone())));
    match request.api.conductor.deliver(node, event).await {
        Err(DeliverError::NotFound) => return Err(no_node()),
        other => other?,
    };
    let id = part.id;
    Ok(Reply::Created {
        body: json_text(&full(request, &PartOfNode { node, part })),
        location: format!("{}/v1/{}/{id}", request.base, T::PATH),
    })
}

/// `GET /v1/{path}`, and with `/detail` where there is that.
pub async fn list<T: Served>(request: &Request, is_detail: bool) -> Result<Reply, Error> {
    let mut arguments = request.query_arguments()?;
    let node = match arguments.take_text("node")? {
        None => None,
        Some(ident) => Some(match request.node(&ident).await {
            Err(Error::BadIdentifier(text)) => return Err(Error::Bad(text)),
            other => other?.id,
        }),
    };
    let filter = T::filter(request, &mut arguments)?;
    let filter = filter.map(|filter| PartFilter { node, ..filter });
    listed::<T>(request, arguments, filter, is_detail, T::PATH.to_owned()).await
}

/// `GET /v1/nodes/{node}/{path}`, and with `/detail` where there is that.
pub async fn list_of_node<T: Served>(
    request: &Request,
    ident: &str,
    is_detail: bool,
) -> Result<Reply, Error> {
    let arguments = request.query_arguments()?;
    let node = request.node(ident).await?.id;
    let filter = PartFilter {
        node: Some(node),
        ..PartFilter::default()
    };
    let path = format!("nodes/{node}/{}", T::PATH);
    listed::<T>(request, arguments, Some(filter), is_detail, path).await
}

async fn listed<T: Served>(
    request: &Request,
    mut arguments: Arguments,
    filter: Option<PartFilter>,
    is_detail: bool,
    mut path: String,
) -> Result<Reply, Error> {
    let wish = lists::wish(request, &mut arguments, T::SHOWN, T::SORT_KEYS, is_detail)?;
    arguments.finish()?;
    let reader = request.api.conductor.reader();
    let found: Vec<PartOfNode<T>> = match filter {
        Some(filter) => reader.parts(filter, wish.page.clone()).await?,
        None => Vec::new(),
    };
    if is_detail {
        path.push_str("/detail");
    }
    Ok(lists::answer(
        request,
        T::PLURAL,
        &path,
        &wish,
        T::SHOWN,
        &found,
        |of| of.part.id,
    ))
}

/// `GET /v1/{path}/{ident}`
pub async fn show<T: Served>(request: &Request, ident: &str) -> Result<Reply, Error> {
    let mut arguments = request.query_arguments()?;
    let selection = lists::chosen(request, &mut arguments, T::SHOWN)?;
    arguments.finish()?;
    let of = find::<T>(request, ident).await?;
    Ok(Reply::body(&view::document(
        T::SHOWN,
        &of,
        &selection,
        frame(request),
    )))
}

/// `PATCH /v1/{path}/{ident}`
pub async fn change<T: Served>(request: &Request, ident: &str) -> Result<Reply, Error> {
    request.query_arguments()?.finish()?;
    let minor = request.microversion.0;
    let operations = patch::operations(&request.document()?, minor)?;
    refuse_young_field(fields::patch_too_new(T::FIELDS, &operations, minor))?;
    let PartOfNode { node, part: old } = find::<T>(request, ident).await?;
    let id = old.id;
    let event = T::event(PartChange::Patch { id, operations });
    let answer = match request.api.conductor.deliver(node, event).await {
        Err(DeliverError::NotFound) => return Err(no_such::<T>(ident)),
        other => other?,
    };
    let part = parts::find::<T>(&answer.node, id).cloned();
    let part = part.ok_or_else(|| no_such::<T>(ident))?;
    Ok(Reply::body(&full(request, &PartOfNode { node, part })))
}

/// `DELETE /v1/{path}/{ident}`
pub async fn delete<T: Served>(request: &Request, ident: &str) -> Result<Reply, Error> {
    request.arguments()?.finish()?;
    let PartOfNode { node, part } = find::<T>(request, ident).await?;
    let event = T::event(PartChange::Delete { id: part.id });
    match request.api.conductor.deliver(node, event).await {
        Err(DeliverError::NotFound) => Err(no_such::<T>(ident)),
        other => {
            other?;
            Ok(Reply::Nothing)
        }
    }
}

/// The part a path names.
///
/// # Errors
/// [`Error::BadIdentifier`], [`Error::NotFound`], [`Error::NotRead`].
pub async fn find<T: Served>(request: &Request, text: &str) -> Result<PartOfNode<T>, Error> {
    let ident = uuid_or_name(text, T::is_name)?;
    let found = request.api.conductor.reader().part(ident).await?;
    found.ok_or_else(|| no_such::<T>(text))
}

fn no_such<T: PartKind>(name: &str) -> Error {
    Error::NotFound(format!("{} {name} could not be found.", T::NAME))
}

fn full<T: Served>(request: &Request, of: &PartOfNode<T>) -> Document {
    view::document(T::SHOWN, of, &Selection::Full, frame(request))
}

/// The UUID of a part's node, as clients see it.
fn node_uuid(node: NodeId) -> Value {
    Value::String(node.to_string())
}

/// The fields every kind has: UUID and times at the beginning, links at the end.
macro_rules! fields_of {
    ($kind:ty, $path:literal, $($field:expr),+ $(,)?) => {
        &[
            $crate::http::view::short($crate::http::view::shown("uuid", 1, |of: &PartOfNode<$kind>, _| {
                serde_json::json!(of.part.id.to_string())
            })),
            $crate::http::view::unasked($crate::http::view::shown("created_at", 1, |of: &PartOfNode<$kind>, _| {
                $crate::http::view::time(Some(of.part.created_at))
            })),
            $crate::http::view::unasked($crate::http::view::shown("updated_at", 1, |of: &PartOfNode<$kind>, _| {
                $crate::http::view::time(of.part.updated_at)
            })),
            $($field,)+
            $crate::http::view::short($crate::http::view::shown("links", 1, |of: &PartOfNode<$kind>, frame| {
                $crate::http::view::links(frame.base, &format!(concat!($path, "/{}"), of.part.id))
            })),
        ]
    };
}
pub(super) use fields_of;
