//! The traits of a node; and how traits are written in requests, which is the same for runbooks.

use serde_json::{Value, json};

use super::error::Error;
use super::nodes::deliver;
use super::reply::Reply;
use super::request::Request;
use crate::node::Event;
use crate::node::traits::TraitChange;
use crate::node::values::bad;

/// `GET /v1/nodes/{node}/traits`
pub async fn list(request: &Request, ident: &str) -> Result<Reply, Error> {
    request.query_arguments()?.finish()?;
    let node = request.node(ident).await?;
    Ok(Reply::body(&json!({"traits": node.traits})))
}

/// `PUT /v1/nodes/{node}/traits`
pub async fn replace(request: &Request, ident: &str) -> Result<Reply, Error> {
    change(request, ident, set(request)?).await
}

/// `PUT /v1/nodes/{node}/traits/{trait}`
pub async fn add(request: &Request, ident: &str, name: &str) -> Result<Reply, Error> {
    request.arguments()?.finish()?;
    change(request, ident, TraitChange::Add(name.to_owned())).await
}

/// `DELETE /v1/nodes/{node}/traits`, and with `/{trait}`
pub async fn remove(request: &Request, ident: &str, name: Option<&str>) -> Result<Reply, Error> {
    request.arguments()?.finish()?;
    change(request, ident, less(name)).await
}

async fn change(request: &Request, ident: &str, change: TraitChange) -> Result<Reply, Error> {
    deliver(request, ident, Event::Traits(change)).await?;
    Ok(Reply::Nothing)
}

/// One trait less, or all of them.
pub fn less(name: Option<&str>) -> TraitChange {
    match name {
        Some(name) => TraitChange::Remove(name.to_owned()),
        None => TraitChange::Clear,
    }
}

/// The list in the body of a request.
///
/// # Errors
/// [`Error::Bad`].
pub fn set(request: &Request) -> Result<TraitChange, Error> {
    let mut arguments = request.arguments()?;
    let Some(Value::Array(items)) = arguments.take("traits") else {
        return Err(bad("traits", "is missing; give a list of traits").into());
    };
    arguments.finish()?;
    let text = |item: &Value| item.as_str().map(str::to_owned);
    let names: Option<Vec<String>> = items.iter().map(text).collect();
    match names {
        Some(names) => Ok(TraitChange::Set(names)),
        None => Err(bad("traits", "must be a list of texts").into()),
    }
}
