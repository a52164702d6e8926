//! `GET /` and `GET /v1`: which versions there are and where things are. Needs no credentials and touches no database, so that
//! agents and clients get it whenever the server lives.

use serde_json::{Value, json};

use super::endpoints;
use super::error::Error;
use super::microversion::{MAXIMUM, MINIMUM};
use super::reply::{Document, Reply};
use super::request::Request;

/// `GET /`
pub async fn root(request: &Request) -> Result<Reply, Error> {
    request.query_arguments()?.finish()?;
    Ok(Reply::body(&root_document(&request.base)))
}

/// `GET /v1`
pub async fn version(request: &Request) -> Result<Reply, Error> {
    request.query_arguments()?.finish()?;
    Ok(Reply::body(&version_document(
        &request.base,
        request.microversion.0,
    )))
}

/// What version 1 links to, as far as it is there.
const RESOURCES: &[&str] = &[
    "chassis",
    "nodes",
    "ports",
    "portgroups",
    "drivers",
    "lookup",
    "heartbeat",
    "volume",
    "conductors",
    "allocations",
    "events",
    "deploy_templates",
    "shards",
    "continue_inspection",
    "runbooks",
    "inspection_rules",
];

fn root_document(base: &str) -> Document {
    let mut document = Document::default();
    document.put("name", "Upbeat Bare Metal API");
    document.put(
        "description",
        "Takes bare-metal machines from a rack to a running system.",
    );
    document.put("default_version", about_version(base));
    document.put("versions", json!([about_version(base)]));
    document
}

fn version_document(base: &str, microversion: u16) -> Document {
    let mut document = Document::default();
    document.put("id", "v1");
    document.put(
        "links",
        json!([{"href": format!("{base}/v1/"), "rel": "self"}]),
    );
    document.put(
        "media_types",
        json!([{
            "base": "application/json",
            "type": "application/vnd.openstack.ironic.v1+json",
        }]),
    );
    document.put("version", about_version(base));
    for name in RESOURCES.iter().copied() {
        let path = format!("/v1/{name}");
        let since = endpoints::all()
            .filter(|row| row.path == path || row.path.starts_with(&format!("{path}/")))
            .map(|row| row.since)
            .min();
        if since.is_some_and(|since| since <= microversion) {
            document.put(
                name,
                json!([
                    {"href": format!("{base}/v1/{name}/"), "rel": "self"},
                    {"href": format!("{base}/{name}/"), "rel": "bookmark"},
                ]),
            );
        }
    }
    document
}

fn about_version(base: &str) -> Value {
    json!({
        "id": "v1",
        "links": [{"href": format!("{base}/v1/"), "rel": "self"}],
        "status": "CURRENT",
        "min_version": MINIMUM.to_string(),
        "version": MAXIMUM.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_find_the_maximum_where_they_look_for_it() {
        let root = serde_json::to_value(root_document("http://h")).unwrap();
        assert_eq!(root["default_version"]["version"], "1.115");
        assert_eq!(root["default_version"]["min_version"], "1.1");
        assert_eq!(root["versions"].as_array().unwrap().len(), 1);
        assert_eq!(root["versions"][0]["id"], "v1");
    }

    #[test]
    fn only_what_the_version_has_is_linked() {
        let at = |minor| serde_json::to_value(version_document("http://h", minor)).unwrap();
        assert!(at(21).get("lookup").is_none());
        assert_eq!(at(22)["lookup"][0]["href"], "http://h/v1/lookup/");
        assert!(at(48).get("conductors").is_none());
        assert!(at(49).get("conductors").is_some());
        assert!(at(115).get("nothing").is_none());
    }
}
