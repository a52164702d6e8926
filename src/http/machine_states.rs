//! `PUT /v1/nodes/{node}/states/...`: boot mode, secure boot, console and the RAID that is wanted. Power and provision verbs are in
//! `power` and `provision`.

use serde_json::{Value, json};

use super::error::Error;
use super::management::ask;
use super::nodes::deliver;
use super::reply::Reply;
use super::request::Request;
use super::view::states_address;
use crate::node::hardware::uses;
use crate::node::{BootMode, Event, HardwareRequest, Refused};

/// `PUT /v1/nodes/{node}/states/boot_mode`
pub async fn set_boot_mode(request: &Request, ident: &str) -> Result<Reply, Error> {
    let mut arguments = request.arguments()?;
    let target = arguments.need_text("target")?;
    arguments.finish()?;
    let mode = BootMode::parse(&target).ok_or_else(|| {
        Error::Bad(format!(
            "The requested boot mode \"{target}\" is not known; use bios or uefi."
        ))
    })?;
    accepted(request, ident, HardwareRequest::BootMode(mode), "").await
}

/// `PUT /v1/nodes/{node}/states/secure_boot`
pub async fn set_secure_boot(request: &Request, ident: &str) -> Result<Reply, Error> {
    let mut arguments = request.arguments()?;
    let on = arguments.need_bool("target")?;
    arguments.finish()?;
    accepted(request, ident, HardwareRequest::SecureBoot(on), "").await
}

/// `GET /v1/nodes/{node}/states/console`
pub async fn console(request: &Request, ident: &str) -> Result<Reply, Error> {
    request.query_arguments()?.finish()?;
    let node = request.node(ident).await?;
    if !uses(&node.attributes, "console", "fake") {
        return Err(Refused::Unsupported {
            what: format!(
                "The driver {} has no console with the console_interface of this node.",
                node.attributes.driver
            ),
        }
        .into());
    }
    let is_on = node.hardware.console_enabled;
    let info = is_on.then(|| json!({"type": "fake", "url": format!("fake://{}", node.id)}));
    Ok(Reply::body(
        &json!({"console_enabled": is_on, "console_info": info}),
    ))
}

/// `PUT /v1/nodes/{node}/states/console`
pub async fn set_console(request: &Request, ident: &str) -> Result<Reply, Error> {
    let mut arguments = request.arguments()?;
    let on = arguments.need_bool("enabled")?;
    arguments.finish()?;
    accepted(request, ident, HardwareRequest::Console(on), "/console").await
}

/// `PUT /v1/nodes/{node}/states/raid`: the body is the RAID that is wanted.
pub async fn set_target_raid(request: &Request, ident: &str) -> Result<Reply, Error> {
    request.query_arguments()?.finish()?;
    let Value::Object(target) = request.document()? else {
        return Err(Error::Bad(
            "A RAID is described by a JSON object with logical_disks; {} takes the wish for one back.".to_owned(),
        ));
    };
    ask(request, ident, HardwareRequest::TargetRaid(target)).await
}

/// Asks something that goes on in the background; tells where to look.
async fn accepted(
    request: &Request,
    ident: &str,
    what: HardwareRequest,
    below: &str,
) -> Result<Reply, Error> {
    let node = deliver(request, ident, Event::Hardware(what)).await?;
    let address = states_address(&request.base, node.id);
    Ok(Reply::Accepted {
        location: Some(format!("{address}{below}")),
    })
}
