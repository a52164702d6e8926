//! `PUT /v1/nodes/{node}/states/power`: power changes.

use super::error::Error;
use super::nodes::deliver;
use super::reply::Reply;
use super::request::Request;
use super::view::states_address;
use crate::node::{Event, PowerRequest, PowerState};

/// `PUT /v1/nodes/{node}/states/power`
pub async fn change(request: &Request, ident: &str) -> Result<Reply, Error> {
    let mut arguments = request.arguments()?;
    let Some(target) = arguments.take_text("target")? else {
        return Err(Error::Bad("Missing mandatory parameter: target".to_owned()));
    };
    let timeout = arguments.take_integer("timeout")?;
    arguments.finish()?;
    if let Some(seconds) = timeout {
        request.need(27, "timeout")?;
        if seconds <= 0 {
            return Err(Error::Bad(
                "timeout: must be a positive number of seconds.".to_owned(),
            ));
        }
    }
    let change = match target.as_str() {
        "power on" => PowerRequest::Set(PowerState::On),
        "power off" => PowerRequest::Set(PowerState::Off),
        "rebooting" => PowerRequest::Reboot,
        "soft power off" | "soft rebooting" => {
            request.need(27, &format!("target \"{target}\""))?;
            return Err(Error::Bad(format!(
                "Target \"{target}\" is not supported by the drivers of this version; use \"power off\" or \"rebooting\"."
            )));
        }
        _ => {
            return Err(Error::Bad(format!(
                "The requested power state \"{target}\" is not known; use \"power on\", \"power off\" or \"rebooting\"."
            )));
        }
    };
    let node = deliver(request, ident, Event::power(change)).await?;
    Ok(Reply::Accepted {
        location: Some(states_address(&request.base, node.id)),
    })
}
