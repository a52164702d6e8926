//! `PUT` and `DELETE /v1/nodes/{node}/maintenance`.

use super::error::Error;
use super::nodes::deliver;
use super::reply::Reply;
use super::request::Request;
use crate::node::Event;

/// `PUT`: into maintenance.
pub async fn set(request: &Request, ident: &str) -> Result<Reply, Error> {
    let mut arguments = request.arguments()?;
    let reason = arguments.take_text("reason")?;
    arguments.finish()?;
    deliver(request, ident, Event::Maintenance { on: true, reason }).await?;
    Ok(Reply::Accepted { location: None })
}

/// `DELETE`: out of it.
pub async fn clear(request: &Request, ident: &str) -> Result<Reply, Error> {
    request.arguments()?.finish()?;
    let event = Event::Maintenance {
        on: false,
        reason: None,
    };
    deliver(request, ident, event).await?;
    Ok(Reply::Accepted { location: None })
}
