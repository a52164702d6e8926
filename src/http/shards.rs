//! `GET /v1/shards`: how many nodes each shard has.

use serde_json::json;

use super::error::Error;
use super::reply::Reply;
use super::request::Request;

/// What clients call the nodes that are in no shard.
const NO_SHARD: &str = "None";

/// `GET /v1/shards`
pub async fn list(request: &Request) -> Result<Reply, Error> {
    request.query_arguments()?.finish()?;
    let counts = request.api.conductor.reader().count_by_shard().await?;
    let shards: Vec<_> = counts
        .into_iter()
        .map(|(name, count)| {
            let name = name.unwrap_or_else(|| NO_SHARD.to_owned());
            json!({"name": name, "count": count})
        })
        .collect();
    Ok(Reply::body(&json!({"shards": shards})))
}
