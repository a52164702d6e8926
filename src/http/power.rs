//! `PUT /v1/nodes/{node}/states/power`: power changes.

use super::error::Error;
use super::nodes::deliver;
use super::reply::Reply;
use super::request::Request;
use super::view::states_address;
use crate::node::{Event, PowerRequest, PowerState};

/// A week: whoever wants to wait longer wants something else.
const TIMEOUT_S_MAX: i64 = 7 * 24 * 3_600;

/// `PUT /v1/nodes/{node}/states/power`
pub async fn change(request: &Request, ident: &str) -> Result<Reply, Error> {
    let mut arguments = request.arguments()?;
    let target = arguments.need_text("target")?;
    let timeout = arguments.take_integer("timeout")?;
    arguments.finish()?;
    if timeout.is_some_and(|seconds| !(1..=TIMEOUT_S_MAX).contains(&seconds)) {
        return Err(Error::Bad(format!(
            "timeout: must be a positive number of seconds, at most {TIMEOUT_S_MAX}."
        )));
    }
    let change = match target.as_str() {
        "power on" => PowerRequest::Set(PowerState::On),
        "power off" => PowerRequest::Set(PowerState::Off),
        "rebooting" => PowerRequest::Reboot,
        "soft power off" => PowerRequest::SoftOff,
        "soft rebooting" => PowerRequest::SoftReboot,
        _ => {
            return Err(Error::Bad(format!(
                "The requested power state \"{target}\" is not known; use \"power on\", \"power off\", \"rebooting\", \"soft power off\" or \"soft rebooting\"."
            )));
        }
    };
    if matches!(change, PowerRequest::SoftOff | PowerRequest::SoftReboot) {
        request.need(27, &format!("target \"{target}\""))?;
    }
    let limit_ms = timeout.map(|seconds| seconds * 1_000);
    let node = deliver(request, ident, Event::Power { change, limit_ms }).await?;
    Ok(Reply::Accepted {
        location: Some(states_address(&request.base, node.id)),
    })
}
