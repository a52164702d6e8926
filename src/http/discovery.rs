//! `GET /` and `GET /v1`: which versions there are and where things are. Needs no credentials and touches no database, so that
//! agents and clients get it whenever the server lives.

use serde_json::{Value, json};

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
    for (name, since) in [
        ("chassis", 1),
        ("nodes", 1),
        ("ports", 1),
        ("drivers", 1),
        ("lookup", 22),
        ("heartbeat", 22),
        ("portgroups", 23),
        ("volume", 32),
        ("conductors", 49),
        ("allocations", 52),
        ("deploy_templates", 55),
        ("shards", 82),
        ("runbooks", 92),
        ("inspection_rules", 96),
    ] {
        if microversion >= since {
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
        assert_eq!(root["default_version"]["version"], "1.110");
        assert_eq!(root["default_version"]["min_version"], "1.1");
        assert_eq!(root["versions"].as_array().unwrap().len(), 1);
        assert_eq!(root["versions"][0]["id"], "v1");
    }

    #[test]
    fn only_what_the_version_has_is_linked() {
        let at = |minor| serde_json::to_value(version_document("http://h", minor)).unwrap();
        assert!(at(21).get("lookup").is_none());
        assert_eq!(at(22)["lookup"][0]["href"], "http://h/v1/lookup/");
        assert!(at(91).get("runbooks").is_none() && at(92).get("runbooks").is_some());
    }
}
