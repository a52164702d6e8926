//! `GET /v1/nodes/{node}/commands`: the ledger of a node's agent commands, and what the node waits for. Upbeat's own: other
//! conductors have nothing like it, and no client asks for it by itself.

use serde_json::{Map, Value, json};

use super::error::Error;
use super::reply::Reply;
use super::request::Request;
use super::view::time;
use crate::node::Waiting;
use crate::store::LedgerEntry;

/// `{"waiting": null or {...}, "commands": [...]}`, oldest command first.
pub async fn list(request: &Request, ident: &str) -> Result<Reply, Error> {
    request.query_arguments()?.finish()?;
    let node = request.node(ident).await?;
    let ledger = request.api.conductor.reader().commands(node.id).await?;
    Ok(Reply::body(&json!({
        "waiting": request.api.conductor.waiting(&node).map(|waiting| shown(&waiting)),
        "commands": ledger.iter().map(entry).collect::<Vec<Value>>(),
    })))
}

fn shown(waiting: &Waiting) -> Value {
    let deadlines: Map<String, Value> = waiting
        .deadlines
        .iter()
        .map(|(name, at)| ((*name).to_owned(), time(Some(*at))))
        .collect();
    json!({
        "for": waiting.what,
        "since": time(waiting.since),
        "deadlines": deadlines,
        "agent_heard_at": time(waiting.heard_at),
        "trouble": waiting.trouble,
        "queue": waiting.place.as_ref().map(|place| json!({
            "place": place.place,
            "of": place.of,
            "at_most": place.at_most,
        })),
    })
}

fn entry(entry: &LedgerEntry) -> Value {
    json!({
        "number": entry.number,
        "command": entry.request,
        "attempt": entry.attempt,
        "phase": entry.phase,
        "planned_at": time(Some(entry.planned_at)),
        "changed_at": time(Some(entry.changed_at)),
        "error": entry.error,
    })
}
