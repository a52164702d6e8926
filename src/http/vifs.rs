//! `/v1/nodes/{node}/vifs`: virtual network interfaces of the instance. With the `noop` network they are only remembered.

use serde_json::{Value, json};

use super::error::Error;
use super::management::ask;
use super::reply::Reply;
use super::request::{Request, parse_uuid};
use crate::node::HardwareRequest;
use crate::node::hardware::recorded::Vif;

/// `GET /v1/nodes/{node}/vifs`
pub async fn list(request: &Request, ident: &str) -> Result<Reply, Error> {
    request.query_arguments()?.finish()?;
    let node = request.node(ident).await?;
    let vifs: Vec<Value> = node
        .hardware
        .vifs
        .iter()
        .map(|vif| json!({"id": vif.id}))
        .collect();
    Ok(Reply::body(&json!({ "vifs": vifs })))
}

/// `POST /v1/nodes/{node}/vifs`: whatever else is said of the interface is kept.
pub async fn attach(request: &Request, ident: &str) -> Result<Reply, Error> {
    request.query_arguments()?.finish()?;
    let Value::Object(mut info) = request.document()? else {
        return Err(Error::Bad(
            "A VIF is described by a JSON object with its id.".to_owned(),
        ));
    };
    let id = match info.remove("id") {
        Some(Value::String(id)) if !id.is_empty() && id.len() <= 255 && !id.contains('\0') => id,
        _ => {
            return Err(Error::Bad(
                "id: must be a string of 1 to 255 characters.".to_owned(),
            ));
        }
    };
    let places = ["port_uuid", "portgroup_uuid"];
    for place in places {
        let Some(value) = info.get(place) else {
            continue;
        };
        request.need(67, place)?;
        let uuid = value.as_str().and_then(parse_uuid).ok_or_else(|| {
            Error::Bad(format!("{place}: must be the UUID of a port or portgroup."))
        })?;
        info.insert(place.to_owned(), json!(uuid.to_string()));
    }
    if places.iter().all(|place| info.contains_key(*place)) {
        return Err(Error::Bad(
            "port_uuid and portgroup_uuid can't both be given.".to_owned(),
        ));
    }
    ask(request, ident, HardwareRequest::AttachVif(Vif { id, info })).await
}

/// `DELETE /v1/nodes/{node}/vifs/{vif}`
pub async fn detach(request: &Request, ident: &str, vif: &str) -> Result<Reply, Error> {
    request.arguments()?.finish()?;
    ask(request, ident, HardwareRequest::DetachVif(vif.to_owned())).await
}
