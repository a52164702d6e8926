//! Lookups and heartbeats, refused and accepted.

use serde_json::{Value, json};

use crate::server::{Answer, Server, at, server, server_with};

const MAC: &str = "52:54:00:aa:00:01";
const NOBODY: &str = "00000000-0000-0000-0000-000000000000";

/// A node that waits for its agent.
async fn waiting_node(server: &Server) -> String {
    let uuid = server
        .node(json!({
            "driver": "fake-hardware", "name": "waits",
            "instance_info": {
                "image_source": "http://127.0.0.1:9/i.raw", "image_os_hash_algo": "sha256",
                "image_os_hash_value": "a".repeat(64), "configdrive": "H4sI",
            },
        }))
        .await;
    let port = json!({"address": MAC, "node_uuid": uuid});
    server
        .send("POST", "/v1/ports", Some(port))
        .await
        .has_status(201);
    for (verb, state) in [
        ("manage", "manageable"),
        ("provide", "available"),
        ("active", "wait call-back"),
    ] {
        let path = format!("/v1/nodes/{uuid}/states/provision");
        server
            .send("PUT", &path, Some(json!({"target": verb})))
            .await
            .has_status(202);
        server
            .node_when(&uuid, |node| node["provision_state"] == state)
            .await;
    }
    uuid
}

async fn lookup(server: &Server, version: &str) -> Answer {
    server
        .raw(
            "GET",
            &format!("/v1/lookup?addresses={MAC}"),
            &at(version),
            b"",
        )
        .await
}

async fn heartbeat(server: &Server, ident: &str, version: &str, body: Value) -> Answer {
    let path = format!("/v1/heartbeat/{ident}");
    server
        .raw("POST", &path, &at(version), body.to_string().as_bytes())
        .await
}

#[actix_web::test]
async fn every_refused_lookup_looks_the_same() {
    let server = server().await;
    let resting = server.node(json!({"driver": "fake-hardware"})).await;
    let port = json!({"address": MAC, "node_uuid": resting});
    server
        .send("POST", "/v1/ports", Some(port))
        .await
        .has_status(201);
    let mut bodies = Vec::new();
    for query in [
        format!("addresses={MAC}"),
        "addresses=52:54:00:ff:ff:ff".to_owned(),
        format!("node_uuid={resting}"),
        format!("node_uuid={NOBODY}"),
    ] {
        bodies.push(
            server
                .get(&format!("/v1/lookup?{query}"))
                .await
                .has_status(404)
                .body,
        );
    }
    bodies.push(lookup(&server, "1.21").await.has_status(404).body);
    bodies.push(
        server
            .raw("GET", &format!("/v1/lookup?addresses={MAC}"), "", b"")
            .await
            .has_status(404)
            .body,
    );
    bodies.dedup();
    assert_eq!(bodies.len(), 1);
}

#[actix_web::test]
async fn malformed_lookups_are_400() {
    let server = server().await;
    for query in [
        "",
        "?addresses=",
        "?addresses=not-a-mac",
        "?node_uuid=x",
        "?addresses=x&colour=1",
    ] {
        server
            .get(&format!("/v1/lookup{query}"))
            .await
            .has_status(400)
            .fault_string();
    }
}

#[actix_web::test]
async fn the_token_is_given_until_the_first_heartbeat_and_masked_after() {
    let server = server().await;
    let uuid = waiting_node(&server).await;
    let first = lookup(&server, "1.62").await.has_status(200).json();
    let token = first["config"]["agent_token"].as_str().unwrap().to_owned();
    assert_eq!(token.len(), 43);
    // A lost answer is repeated; an agent that could not read the version document gets it too.
    for version in ["1.115", "1.31"] {
        assert_eq!(
            lookup(&server, version).await.json()["config"]["agent_token"],
            *token
        );
    }
    assert_eq!(first["node"]["uuid"], *uuid);
    assert_eq!(first["config"]["heartbeat_timeout"], 300);
    assert_eq!(first["node"]["instance_info"]["configdrive"], "******");
    assert_eq!(
        first["node"]["driver_internal_info"]["agent_secret_token"],
        "******"
    );
    assert!(first["node"]["properties"].is_object() && first["node"]["links"].is_array());

    let body = json!({"callback_url": "http://127.0.0.1:9", "agent_token": token, "agent_version": "13.0.0"});
    let answer = heartbeat(&server, &uuid, "1.68", body.clone())
        .await
        .has_status(202);
    assert!(answer.body.is_empty());
    assert_eq!(answer.header("content-length"), Some("0"));
    assert_eq!(answer.header("content-type"), None);
    for version in ["1.22", "1.62", "1.115"] {
        let again = lookup(&server, version).await.has_status(200);
        assert_eq!(again.json()["config"]["agent_token"], "******");
        assert!(!String::from_utf8(again.body).unwrap().contains(&token));
    }
    heartbeat(&server, "waits", "1.68", body)
        .await
        .has_status(202);
    let other = json!({"callback_url": "http://127.0.0.1:10", "agent_token": token, "agent_version": "13.0.0"});
    heartbeat(&server, &uuid, "1.68", other)
        .await
        .has_status(400)
        .fault_string();
}

#[actix_web::test]
async fn refused_heartbeats_move_nothing() {
    let server = server().await;
    let uuid = waiting_node(&server).await;
    let token = lookup(&server, "1.62").await.json()["config"]["agent_token"].clone();
    let before = server.get(&format!("/v1/nodes/{uuid}")).await.json();
    let url = "http://127.0.0.1:9";
    let cases = [
        (
            "1.68",
            json!({"agent_token": token, "agent_version": "13.0.0"}),
            "callback_url",
        ),
        (
            "1.68",
            json!({"callback_url": 5, "agent_token": token, "agent_version": "1"}),
            "callback_url",
        ),
        (
            "1.68",
            json!({"callback_url": "", "agent_token": token, "agent_version": "1"}),
            "callback_url",
        ),
        (
            "1.68",
            json!({"callback_url": "ftp://127.0.0.1", "agent_token": token, "agent_version": "1"}),
            "callback_url",
        ),
        (
            "1.68",
            json!({"callback_url": "http://192.0.2.1:9999", "agent_token": token, "agent_version": "1"}),
            "callback_url",
        ),
        (
            "1.68",
            json!({"callback_url": "http://u:p@127.0.0.1:9", "agent_token": token, "agent_version": "1"}),
            "callback_url",
        ),
        (
            "1.68",
            json!({"callback_url": url, "agent_version": "13.0.0"}),
            "token",
        ),
        (
            "1.68",
            json!({"callback_url": url, "agent_token": null, "agent_version": "13.0.0"}),
            "token",
        ),
        (
            "1.68",
            json!({"callback_url": url, "agent_token": "", "agent_version": "13.0.0"}),
            "token",
        ),
        (
            "1.68",
            json!({"callback_url": url, "agent_token": "y".repeat(43), "agent_version": "13.0.0"}),
            "token",
        ),
        (
            "1.68",
            json!({"callback_url": url, "agent_token": token}),
            "version",
        ),
        (
            "1.68",
            json!({"callback_url": url, "agent_token": token, "agent_version": "1", "odd": 1}),
            "odd",
        ),
        (
            "1.35",
            json!({"callback_url": url, "agent_token": token, "agent_version": "1"}),
            "agent_version",
        ),
        (
            "1.67",
            json!({"callback_url": url, "agent_token": token, "agent_version": "1", "agent_verify_ca": "x"}),
            "agent_verify_ca",
        ),
        (
            "1.71",
            json!({"callback_url": url, "agent_token": token, "agent_version": "1", "agent_status": "start"}),
            "agent_status",
        ),
        (
            "1.72",
            json!({"callback_url": url, "agent_token": token, "agent_version": "1", "agent_status": "odd"}),
            "status",
        ),
    ];
    let with = |field: &str, value: String| {
        let mut body = json!({"callback_url": url, "agent_token": token, "agent_version": "1"});
        body[field] = value.into();
        ("1.68", body, field.to_owned())
    };
    let certificate =
        |inside: &str| format!("-----BEGIN {inside}-----\nMA==\n-----END {inside}-----\n");
    let unusable = [
        with("agent_version", "1".repeat(256)),
        with("agent_verify_ca", certificate("CERTIFICATE").repeat(2_000)),
        with("agent_verify_ca", String::new()),
        with("agent_verify_ca", "no certificate".to_owned()),
        with("agent_verify_ca", certificate("PRIVATE KEY")),
    ];
    let cases = cases
        .into_iter()
        .map(|(version, body, word)| (version, body, word.to_owned()))
        .chain(unusable);
    for (version, body, word) in cases {
        let text = heartbeat(&server, &uuid, version, body.clone())
            .await
            .has_status(400)
            .fault_string();
        assert!(text.to_lowercase().contains(&word), "{body}: {text}");
    }
    assert_eq!(
        server.get(&format!("/v1/nodes/{uuid}")).await.json(),
        before
    );
    // The agent is still taken for unknown: it gets its token in full.
    assert_eq!(
        lookup(&server, "1.62").await.json()["config"]["agent_token"],
        token
    );
}

#[actix_web::test]
async fn an_unknown_node_is_told_before_what_is_wrong_with_the_rest() {
    let server = server().await;
    for body in [
        json!({"callback_url": "ftp://x", "agent_token": "x", "agent_version": "1"}),
        json!({"callback_url": "http://127.0.0.1:9", "agent_version": "1"}),
        json!({"callback_url": "http://127.0.0.1:9", "agent_token": "x"}),
        json!({"callback_url": "http://127.0.0.1:9", "agent_token": "x", "agent_version": "1"}),
    ] {
        for ident in [NOBODY, "no-such-name"] {
            let text = heartbeat(&server, ident, "1.68", body.clone())
                .await
                .has_status(404)
                .fault_string();
            assert_eq!(text, format!("Node {ident} could not be found."));
        }
    }
    let body =
        json!({"callback_url": "http://127.0.0.1:9", "agent_token": "x", "agent_version": "1"});
    heartbeat(&server, "no%20such%20name!", "1.68", body.clone())
        .await
        .has_status(400)
        .fault_string();
    heartbeat(&server, NOBODY, "1.21", body)
        .await
        .has_status(404)
        .fault_string();
}

#[actix_web::test]
async fn switched_off_endpoints_are_403() {
    let server = server_with(|settings| settings.agent.endpoints_enabled = false).await;
    lookup(&server, "1.62").await.has_status(403).fault_string();
    heartbeat(&server, NOBODY, "1.1", json!({}))
        .await
        .has_status(403)
        .fault_string();
}
