//! `/v1/nodes/{node}/management/...`: boot device and non-maskable interrupt.

use serde_json::json;

use super::error::Error;
use super::nodes::deliver;
use super::reply::Reply;
use super::request::Request;
use crate::node::hardware::boot;
use crate::node::hardware::recorded::BootDevice;
use crate::node::{Event, HardwareRequest};

/// `GET /v1/nodes/{node}/management/boot_device`
pub async fn boot_device(request: &Request, ident: &str) -> Result<Reply, Error> {
    request.query_arguments()?.finish()?;
    let node = request.node(ident).await?;
    let device = boot::boot_device(&node);
    Ok(Reply::body(&json!({
        "boot_device": device.map(|device| &device.device),
        "persistent": device.map(|device| device.persistent),
    })))
}

/// `GET /v1/nodes/{node}/management/boot_device/supported`
pub async fn boot_devices(request: &Request, ident: &str) -> Result<Reply, Error> {
    request.query_arguments()?.finish()?;
    let node = request.node(ident).await?;
    let supported = boot::supported_boot_devices(&node.attributes);
    Ok(Reply::body(&json!({"supported_boot_devices": supported})))
}

/// `PUT /v1/nodes/{node}/management/boot_device`
pub async fn set_boot_device(request: &Request, ident: &str) -> Result<Reply, Error> {
    let mut arguments = request.arguments()?;
    let device = arguments.need_text("boot_device")?;
    let persistent = arguments.take_bool("persistent")?.unwrap_or(false);
    arguments.finish()?;
    ask(
        request,
        ident,
        HardwareRequest::BootDevice(BootDevice { device, persistent }),
    )
    .await
}

/// `PUT /v1/nodes/{node}/management/inject_nmi`
pub async fn inject_nmi(request: &Request, ident: &str) -> Result<Reply, Error> {
    request.arguments()?.finish()?;
    ask(request, ident, HardwareRequest::InjectNmi).await
}

/// Asks something of a node's machine; there is nothing to say when it is done.
pub(super) async fn ask(
    request: &Request,
    ident: &str,
    what: HardwareRequest,
) -> Result<Reply, Error> {
    deliver(request, ident, Event::Hardware(what)).await?;
    Ok(Reply::Nothing)
}
