//! `.../vendor_passthru`: methods that a driver has beyond the API, of nodes and of hardware types. A method is named in the path or
//! in the query; what it is told stands in the body.

use serde_json::json;
use uuid::Uuid;

use super::drivers;
use super::error::Error;
use super::nodes::deliver;
use super::reply::Reply;
use super::request::Request;
use crate::node::hardware::vendor::{call_vendor_method, vendor_methods};
use crate::node::{Event, HardwareRequest};

/// `GET /v1/nodes/{node}/vendor_passthru/methods`
pub async fn methods(request: &Request, ident: &str) -> Result<Reply, Error> {
    request.query_arguments()?.finish()?;
    let node = request.node(ident).await?;
    Ok(Reply::body(&vendor_methods(&node.attributes)?))
}

/// Any HTTP method of `/v1/nodes/{node}/vendor_passthru`, with and without the vendor method behind it.
pub async fn call(
    request: &Request,
    ident: &str,
    http_method: &str,
    in_path: Option<&str>,
) -> Result<Reply, Error> {
    let mut arguments = request.arguments()?;
    let name = match in_path {
        Some(name) => name.to_owned(),
        None => arguments.need_text("method")?,
    };
    let node = request.node(ident).await?;
    let call = call_vendor_method(
        &node,
        &name,
        http_method,
        &arguments.into_object(),
        Uuid::new_v4(),
    )?;
    if let Some(asked) = call.request {
        deliver(
            request,
            ident,
            Event::Hardware(HardwareRequest::Vendor(asked)),
        )
        .await?;
    }
    Ok(match call.answer {
        Some(answer) => Reply::body(&answer),
        None => Reply::Accepted { location: None },
    })
}

/// `GET /v1/drivers/{driver}/vendor_passthru/methods`: no hardware type of this version has any.
pub async fn methods_of_driver(request: &Request, name: &str) -> Result<Reply, Error> {
    request.query_arguments()?.finish()?;
    drivers::find(name)?;
    Ok(Reply::body(&json!({})))
}

/// Any HTTP method of `/v1/drivers/{driver}/vendor_passthru`.
pub async fn call_of_driver(request: &Request, name: &str) -> Result<Reply, Error> {
    request.arguments()?;
    drivers::find(name)?;
    Err(Error::Bad(format!(
        "The driver {name} has no vendor methods of its own; those of its nodes are called through a node."
    )))
}
