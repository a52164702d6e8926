//! The API as an OpenAPI 3.1 document, made from the rows of its endpoints and the tables of fields; and a page to read it.
//!
//! ```text
//! endpoints ──▶ paths ─┐
//! tables of fields ──▶ resources ──▶ schemas ─┴▶ document ──▶ /openapi.json ──▶ /docs (a page without anything foreign)
//!                                                        └──▶ table (a file for people, checked by a test)
//! ```

mod by_hand;
mod objects;
mod paths;
pub mod resources;
mod schemas;
#[cfg(test)]
mod table;

use serde_json::{Value, json};

use super::error::Error;
use super::microversion::{MAXIMUM, MINIMUM};
use super::reply::Reply;
use super::request::Request;
use super::versions::ADDITIONS;

const PAGE: &str = include_str!("page.html");

/// `GET /openapi.json`
pub async fn show(request: &Request) -> Result<Reply, Error> {
    Ok(Reply::body(&document(&request.base)))
}

/// `GET /docs`
pub async fn page(_: &Request) -> Result<Reply, Error> {
    Ok(Reply::Text {
        text: PAGE.to_owned(),
        content_type: "text/html; charset=utf-8",
    })
}

/// The whole document. `base`: scheme and host of the server.
fn document(base: &str) -> Value {
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Upbeat Bare Metal API",
            "version": MAXIMUM.to_string(),
            "description": format!(
                "Microversions {MINIMUM} to {MAXIMUM}. A request says which it wants in the header \
                 X-OpenStack-Ironic-API-Version; without it, it gets {MINIMUM}. Every path that begins with /v1 is there \
                 without it, too, and with a slash at its end."
            ),
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": base}],
        "x-microversions": microversions(),
        "paths": paths::paths(),
        "components": {
            "securitySchemes": {"basic": {"type": "http", "scheme": "basic"}},
            "parameters": {"Microversion": paths::microversion()},
            "responses": {"Error": schemas::error_response()},
            "schemas": schemas::schemas(),
        },
    })
}

/// What each version brought.
fn microversions() -> Vec<Value> {
    ADDITIONS
        .iter()
        .map(|addition| {
            json!({
                "version": format!("1.{}", addition.minor),
                "about": addition.about,
                "things": addition.things,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::endpoints;
    use std::collections::BTreeSet;

    fn references(value: &Value, found: &mut BTreeSet<String>) {
        match value {
            Value::Object(map) => {
                for (key, value) in map {
                    if let ("$ref", Value::String(path)) = (key.as_str(), value) {
                        found.insert(path.clone());
                    }
                    references(value, found);
                }
            }
            Value::Array(items) => items.iter().for_each(|item| references(item, found)),
            _ => {}
        }
    }

    #[test]
    fn whatever_is_referred_to_is_there_and_nothing_else() {
        let document = document("http://h");
        let mut found = BTreeSet::new();
        references(&document, &mut found);
        for path in &found {
            let pointer = path.trim_start_matches('#');
            assert!(
                document.pointer(pointer).is_some(),
                "{path}: describe it in src/http/openapi"
            );
        }
        for name in document["components"]["schemas"]
            .as_object()
            .unwrap()
            .keys()
        {
            let path = format!("#/components/schemas/{name}");
            assert!(found.contains(&path), "{path} is used nowhere");
        }
    }

    #[test]
    fn every_endpoint_is_there_with_every_status_it_may_answer() {
        let document = document("http://h");
        for row in endpoints::all() {
            let operation = &document["paths"][row.path][row.method.name().to_lowercase()];
            for status in row.statuses() {
                assert!(
                    operation["responses"][status.to_string()].is_object(),
                    "{} {} {status}",
                    row.method.name(),
                    row.path
                );
            }
        }
    }

    #[test]
    fn names_of_operations_are_there_once() {
        let document = document("http://h");
        let mut names = BTreeSet::new();
        for (path, methods) in document["paths"].as_object().unwrap() {
            for (method, operation) in methods.as_object().unwrap() {
                let name = operation["operationId"].as_str().unwrap();
                assert!(names.insert(name.to_owned()), "{method} {path}: {name}");
            }
        }
    }

    #[test]
    fn the_page_needs_nothing_from_elsewhere() {
        for word in ["http://", "https://", "src=", "@import", "<link"] {
            assert!(!PAGE.contains(word), "{word}");
        }
    }
}
