//! What a busy node is at, in words for whoever wanted something else of it. Pure.

use serde_json::Value;

use super::view;
use crate::conductor::Busy;
use crate::node::Refused;

/// What a node is at that can't do anything else now, since when, and what ends it.
pub fn what_runs(busy: &Busy) -> String {
    let mut text = Refused::Busy { state: busy.state }.to_string();
    let Some(runs) = &busy.runs else {
        return text;
    };
    text.push_str(&format!(" It waits for: {}", runs.what));
    if let Value::String(since) = view::time(runs.since) {
        text.push_str(&format!(", since {since}"));
    }
    if let Some((name, at)) = runs.deadlines.first()
        && let Value::String(at) = view::time(Some(*at))
    {
        text.push_str(&format!(", at the latest until {at} ({name} deadline)"));
    }
    text.push('.');
    if !busy.ends.is_empty() {
        let ends: Vec<String> = busy.ends.iter().map(|verb| format!("\"{verb}\"")).collect();
        text.push_str(&format!(" To end it now, send {}.", ends.join(" or ")));
    }
    text
}
