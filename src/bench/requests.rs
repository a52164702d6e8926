//! Requests as they go onto the wire.

use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::{Value, json};

use super::{load, site};
use crate::conductor::TokenKey;

/// A request of the API's newest version.
pub fn request(method: &str, path: &str, body: Option<&Value>) -> Vec<u8> {
    let body = body.map(Value::to_string).unwrap_or_default();
    let mut text = format!(
        "{method} {path} HTTP/1.1\r\nhost: conductor.example\r\naccept: application/json\r\n\
         x-openstack-ironic-api-version: 1.110\r\n"
    );
    if !body.is_empty() {
        // Writing into a string can't fail.
        let _ = write!(
            text,
            "content-type: application/json\r\ncontent-length: {}\r\n",
            body.len()
        );
    }
    text.push_str("\r\n");
    text.push_str(&body);
    text.into_bytes()
}

/// The heartbeat of a node's agent, with its token.
pub fn heartbeat(key: &TokenKey, number: u64, callback_url: &str) -> Vec<u8> {
    let body = json!({
        "callback_url": callback_url,
        "agent_version": "13.0.0",
        "agent_token": site::token(key, number),
    });
    request(
        "POST",
        &format!("/v1/heartbeat/{}", site::id(number)),
        Some(&body),
    )
}

/// The heartbeats of nodes number 0 to `waiting` - 1 over and over, written once; neighbours in the database come far from each other.
pub fn heartbeats_of_all(key: &TokenKey, waiting: u64) -> Arc<load::Write> {
    let all: Vec<Vec<u8>> = (0..waiting)
        .map(|number| heartbeat(key, number, site::NOBODY))
        .collect();
    Arc::new(move |number, out: &mut Vec<u8>| {
        let index = usize::try_from(number * 7919 % waiting).unwrap_or(0);
        out.extend_from_slice(&all[index]);
    })
}
