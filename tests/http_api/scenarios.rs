//! What agents and clients get wrong or do at the same time, as it was reported from the field.

use std::sync::{Arc, Mutex, OnceLock};

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::server::{Answer, Server, at, server};

const FIRST_MAC: &str = "52:54:00:aa:00:01";
const SECOND_MAC: &str = "52:54:00:aa:00:02";
const URL: &str = "http://127.0.0.1:9";

/// A node with a port.
async fn node_with_port(server: &Server, mac: &str) -> String {
    let uuid = server
        .node(json!({
            "driver": "fake-hardware",
            "driver_info": {"bmc_password": "geheim"},
            "instance_info": {
                "image_source": "http://127.0.0.1:9/i.raw", "image_os_hash_algo": "sha256",
                "image_os_hash_value": "a".repeat(64),
            },
        }))
        .await;
    let port = json!({"address": mac, "node_uuid": uuid});
    server
        .send("POST", "/v1/ports", Some(port))
        .await
        .has_status(201);
    uuid
}

/// The same, and it waits for its agent.
pub async fn waiting_node(server: &Server, mac: &str) -> String {
    let uuid = node_with_port(server, mac).await;
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

/// What is logged from now on, by all tests of this process.
fn heard() -> Arc<Mutex<Vec<u8>>> {
    static LOG: OnceLock<Arc<Mutex<Vec<u8>>>> = OnceLock::new();
    let log = LOG.get_or_init(|| {
        let log = Arc::<Mutex<Vec<u8>>>::default();
        let writer = log.clone();
        tracing_subscriber::fmt()
            .with_max_level(tracing::Level::WARN)
            .with_ansi(false)
            .with_writer(move || ToLog(writer.clone()))
            .init();
        log
    });
    log.clone()
}

struct ToLog(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for ToLog {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

async fn lookup(server: &Server, query: &str) -> Answer {
    server.get(&format!("/v1/lookup?{query}")).await
}

async fn token(server: &Server, uuid: &str) -> String {
    let answer = lookup(server, &format!("node_uuid={uuid}")).await;
    let token = &answer.has_status(200).json()["config"]["agent_token"];
    token.as_str().unwrap().to_owned()
}

async fn heartbeat(server: &Server, uuid: &str, callback_url: Value, token: &str) -> Answer {
    let body =
        json!({"callback_url": callback_url, "agent_token": token, "agent_version": "13.0.0"});
    let path = format!("/v1/heartbeat/{uuid}");
    server.send("POST", &path, Some(body)).await
}

#[actix_web::test]
async fn a_token_is_good_for_its_own_node_only() {
    let server = server().await;
    let first = waiting_node(&server, FIRST_MAC).await;
    let second = waiting_node(&server, SECOND_MAC).await;
    let tokens = [token(&server, &first).await, token(&server, &second).await];
    assert_ne!(tokens[0], tokens[1]);
    for (uuid, wrong) in [(&first, &tokens[1]), (&second, &tokens[0])] {
        let text = heartbeat(&server, uuid, json!(URL), wrong)
            .await
            .has_status(400)
            .fault_string();
        assert!(
            text.contains("token") && !text.contains(wrong.as_str()),
            "{text}"
        );
    }
    for (uuid, right) in [(&first, &tokens[0]), (&second, &tokens[1])] {
        heartbeat(&server, uuid, json!(URL), right)
            .await
            .has_status(202);
    }
}

#[actix_web::test]
async fn lookups_at_the_same_time_all_get_the_same_token_at_once() {
    let server = server().await;
    let uuid = waiting_node(&server, FIRST_MAC).await;
    // As many as the node's queue holds: nobody is told to come again.
    let query = format!("addresses={FIRST_MAC}&node_uuid={uuid}");
    let answers = join_all((0..16).map(|_| lookup(&server, &query))).await;
    let mut tokens: Vec<String> = answers
        .into_iter()
        .map(|answer| answer.has_status(200).json()["config"]["agent_token"].to_string())
        .collect();
    tokens.dedup();
    assert_eq!(tokens.len(), 1);
    assert_eq!(tokens[0].trim_matches('"').len(), 43);
}

#[actix_web::test]
async fn addresses_of_two_nodes_find_neither_and_the_uuid_still_finds_one() {
    let server = server().await;
    let first = waiting_node(&server, FIRST_MAC).await;
    let second = waiting_node(&server, SECOND_MAC).await;
    let both = format!("addresses={FIRST_MAC},{SECOND_MAC}");
    let unknown = lookup(&server, "addresses=52:54:00:ff:ff:ff").await;
    let log = heard();
    let torn = lookup(&server, &both).await;
    assert_eq!((torn.status, torn.body), (404, unknown.body));
    // The agent learns nothing, the operator all it takes.
    let log = String::from_utf8(log.lock().unwrap().clone()).unwrap();
    let line = log
        .lines()
        .find(|line| line.contains("more than one node") && line.contains(&first))
        .unwrap_or_else(|| panic!("not in the log: {log}"));
    for part in ["WARN", FIRST_MAC, SECOND_MAC, &second] {
        assert!(line.contains(part), "{part}: {line}");
    }
    for uuid in [&first, &second] {
        let found = lookup(&server, &format!("{both}&node_uuid={uuid}")).await;
        assert_eq!(found.has_status(200).json()["node"]["uuid"], **uuid);
    }
    for (mac, uuid) in [(FIRST_MAC, &first), (SECOND_MAC, &second)] {
        let found = lookup(&server, &format!("addresses={mac}")).await;
        assert_eq!(found.has_status(200).json()["node"]["uuid"], **uuid);
    }
}

#[actix_web::test]
async fn addresses_that_are_no_macs_spoil_nothing() {
    let server = server().await;
    let uuid = waiting_node(&server, FIRST_MAC).await;
    // InfiniBand, Fibre Channel, nothing, nonsense.
    let infiniband = "80:00:02:08:fe:80:00:00:00:00:00:00:f4:52:14:03:00:01:02:03";
    let odd = format!("{infiniband},21:00:F4:E9:01:02:03:04,,zz");
    for query in [
        format!("addresses={FIRST_MAC},{odd}"),
        format!("addresses={odd},{}", FIRST_MAC.to_uppercase()),
        format!("addresses={odd}&node_uuid={uuid}"),
    ] {
        let found = lookup(&server, &query).await;
        assert_eq!(found.has_status(200).json()["node"]["uuid"], *uuid);
    }
    lookup(&server, &format!("addresses={odd}"))
        .await
        .has_status(400)
        .fault_string();
}

#[actix_web::test]
async fn a_lookup_tells_an_agent_no_more_than_it_needs() {
    let server = server().await;
    waiting_node(&server, FIRST_MAC).await;
    let found = lookup(&server, &format!("addresses={FIRST_MAC}"))
        .await
        .has_status(200);
    let document = found.json();
    let fields: Vec<&String> = document["node"].as_object().unwrap().keys().collect();
    assert_eq!(
        fields,
        [
            "driver_internal_info",
            "instance_info",
            "links",
            "properties",
            "uuid"
        ]
    );
    let text = String::from_utf8(found.body).unwrap();
    assert!(
        !text.contains("geheim") && !text.contains("bmc_password"),
        "{text}"
    );
}

#[actix_web::test]
async fn callback_urls_that_are_none_are_refused_and_nothing_is_kept() {
    let server = server().await;
    let uuid = waiting_node(&server, FIRST_MAC).await;
    let token = token(&server, &uuid).await;
    let path = format!("/v1/nodes/{uuid}");
    let before = server.get(&path).await.json();
    for url in [
        json!("ftp://127.0.0.1:9999"),
        json!("javascript:1"),
        json!("file:///etc/passwd"),
        json!("https://[::1"),
        json!("not a url"),
        json!("https://127.0.0.1:99999"),
        json!("https://"),
        json!(format!("http://127.0.0.1:9999/{}", "x".repeat(100_000))),
        json!("http://127.0.0.1:9999\u{0}"),
        json!(""),
        json!(null),
        json!(9999),
        json!(["http://127.0.0.1:9999"]),
    ] {
        let shown = url.to_string().chars().take(60).collect::<String>();
        let answer = heartbeat(&server, &uuid, url, &token).await;
        assert_eq!(answer.status, 400, "{shown}");
        let text = answer.fault_string();
        assert!(text.len() < 2_000, "{shown}: {} bytes", text.len());
    }
    assert_eq!(server.get(&path).await.json(), before);
    heartbeat(&server, &uuid, json!(URL), &token)
        .await
        .has_status(202);
}

#[actix_web::test]
async fn the_agent_of_a_deleted_node_is_told_that_there_is_none() {
    let server = server().await;
    let uuid = waiting_node(&server, FIRST_MAC).await;
    let token = token(&server, &uuid).await;
    let path = format!("/v1/nodes/{uuid}");
    server
        .send("PUT", &format!("{path}/maintenance"), None)
        .await
        .has_status(202);
    server.send("DELETE", &path, None).await.has_status(204);
    heartbeat(&server, &uuid, json!(URL), &token)
        .await
        .has_status(404)
        .fault_string();
    for query in [
        format!("node_uuid={uuid}"),
        format!("addresses={FIRST_MAC}"),
    ] {
        lookup(&server, &query).await.has_status(404);
    }
    // Enrolled anew under the same UUID it has nothing to do with the old agent.
    let document = json!({"driver": "fake-hardware", "uuid": uuid});
    server
        .send("POST", "/v1/nodes", Some(document))
        .await
        .has_status(201);
    heartbeat(&server, &uuid, json!(URL), &token)
        .await
        .has_status(400)
        .fault_string();
}

#[actix_web::test]
async fn a_node_is_deleted_once_whoever_else_asks_for_it_meanwhile() {
    let server = server().await;
    for _ in 0..40 {
        let uuid = server.node(json!({"driver": "fake-hardware"})).await;
        let path = format!("/v1/nodes/{uuid}");
        let deletes = (0..3).map(|_| server.send("DELETE", &path, None));
        let reads = (0..4).map(|_| server.get(&path));
        let beats = (0..4).map(|_| heartbeat(&server, &uuid, json!(URL), "x"));
        let (deleted, read, beaten) =
            tokio::join!(join_all(deletes), join_all(reads), join_all(beats));
        let mut codes: Vec<u16> = deleted.iter().map(|answer| answer.status).collect();
        codes.sort_unstable();
        assert_eq!(codes, [204, 404, 404], "{deleted:?}");
        for answer in read {
            assert!([200, 404].contains(&answer.status), "{answer:?}");
        }
        for answer in beaten {
            assert!([400, 404].contains(&answer.status), "{answer:?}");
        }
        server.get(&path).await.has_status(404);
    }
    assert_eq!(server.node_count().await, 0);
}

#[actix_web::test]
async fn lists_are_whole_while_nodes_are_being_deleted() {
    const NODES: usize = 60;
    let server = server().await;
    let mut uuids = Vec::new();
    for number in 0..NODES {
        uuids.push(node_with_port(&server, &format!("52:54:00:ee:00:{number:02x}")).await);
    }
    let deleting = async {
        for uuid in &uuids {
            server
                .send("DELETE", &format!("/v1/nodes/{uuid}"), None)
                .await
                .has_status(204);
        }
    };
    let listing = |path: &'static str, key: &'static str| {
        let server = &server;
        async move {
            let mut counts = vec![NODES];
            while counts.last() != Some(&0) {
                let list = server.get(path).await.has_status(200).json();
                counts.push(list[key].as_array().unwrap().len());
            }
            assert!(counts.is_sorted_by(|a, b| a >= b), "{counts:?}");
        }
    };
    tokio::join!(
        deleting,
        listing("/v1/nodes/detail?limit=1000", "nodes"),
        listing("/v1/ports/detail?limit=1000", "ports")
    );
}

#[actix_web::test]
async fn an_agent_too_old_for_the_present_still_gets_its_token_and_reports() {
    let server = server().await;
    let uuid = waiting_node(&server, FIRST_MAC).await;
    let path = format!("/v1/lookup?addresses={FIRST_MAC}");
    // It could not read which versions there are, and goes on with the one it is sure of.
    let found = server.raw("GET", &path, &at("1.31"), b"").await;
    let token = found.has_status(200).json()["config"]["agent_token"].clone();
    assert_eq!(token.as_str().unwrap().len(), 43);
    let body = json!({"callback_url": URL, "agent_token": token, "agent_version": "13.0.0"});
    let path = format!("/v1/heartbeat/{uuid}");
    server
        .raw("POST", &path, &at("1.36"), body.to_string().as_bytes())
        .await
        .has_status(202);
}
