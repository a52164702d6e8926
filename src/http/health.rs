//! `GET /health/live`, `GET /health/ready` and `GET /metrics`, for whoever watches the process.

use serde_json::json;

use super::error::Error;
use super::reply::Reply;
use super::request::Request;
use crate::store::ReadError;

/// The process answers.
pub async fn alive(_: &Request) -> Result<Reply, Error> {
    Ok(Reply::body(&json!({"alive": true})))
}

/// Recovery is done and the database answers.
pub async fn ready(request: &Request) -> Result<Reply, Error> {
    if !request.api.conductor.is_ready() {
        return Err(Error::NotReady(
            "The conductor is starting: it has not yet recovered all nodes.".to_owned(),
        ));
    }
    match request.api.conductor.reader().ping().await {
        Ok(()) => Ok(Reply::body(&json!({"ready": true}))),
        Err(ReadError::UnknownMarker) => Err(Error::Internal),
        Err(ReadError::Unavailable(why)) => Err(Error::NotReady(why)),
    }
}

/// All measurements as text.
pub async fn metrics(request: &Request) -> Result<Reply, Error> {
    let metrics = &request.api.metrics;
    Ok(Reply::Text {
        text: (metrics.text)(),
        content_type: metrics.content_type,
    })
}
