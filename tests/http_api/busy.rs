//! Requests to nodes that are at something else: they wait a short while, in their order, and are answered in any case.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use serde_json::{Value, json};
use upbeat::conductor::Settings;

use crate::server::{Answer, Server, server_of};

/// Longer than any test takes: what comes earlier has not come because the time was over.
const LONG: Duration = Duration::from_secs(600);

/// A server whose nodes are waited for that long.
async fn patient(busy_wait: Duration) -> Server {
    let change = |settings: &mut Settings| {
        settings.busy_wait = busy_wait;
        settings.mailbox_messages_max = 64;
    };
    server_of(change, |_| {}).await
}

/// A node that waits for an agent which never comes, and takes no changes meanwhile.
async fn busy_node(server: &Server) -> String {
    let uuid = server
        .node(json!({
            "driver": "fake-hardware",
            "instance_info": {
                "image_source": "http://127.0.0.1:9/i.raw", "image_os_hash_algo": "sha256",
                "image_os_hash_value": "a".repeat(64),
            },
        }))
        .await;
    for (verb, state) in [
        ("manage", "manageable"),
        ("provide", "available"),
        ("active", "wait call-back"),
    ] {
        asked(server, &uuid, verb).await.has_status(202);
        server
            .node_when(&uuid, |node| node["provision_state"] == state)
            .await;
    }
    uuid
}

async fn asked(server: &Server, uuid: &str, verb: &str) -> Answer {
    let path = format!("/v1/nodes/{uuid}/states/provision");
    server
        .send("PUT", &path, Some(json!({"target": verb})))
        .await
}

async fn patched(server: &Server, uuid: &str, path: &str, value: Value) -> Answer {
    let patch = json!([{"op": "add", "path": path, "value": value}]);
    server
        .send("PATCH", &format!("/v1/nodes/{uuid}"), Some(patch))
        .await
}

/// Until so many requests wait.
async fn wait(server: &Server, requests: i64) {
    let limit = Instant::now() + Duration::from_secs(10);
    while server.behind.metrics.requests_waiting.get() != requests {
        assert!(
            Instant::now() < limit,
            "{} wait instead of {requests}",
            server.behind.metrics.requests_waiting.get()
        );
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

#[actix_web::test]
async fn requests_wait_for_a_busy_node_and_are_carried_out_in_their_order() {
    let server = patient(LONG).await;
    let uuid = busy_node(&server).await;
    let one = patched(&server, &uuid, "/extra/last", json!(1));
    let two = async {
        wait(&server, 1).await;
        patched(&server, &uuid, "/extra/last", json!(2)).await
    };
    let three = async {
        wait(&server, 2).await;
        patched(&server, &uuid, "/extra/last", json!(3)).await
    };
    let ended = async {
        wait(&server, 3).await;
        // What ends the work does not wait behind what waits for its end, and looking waits for nothing.
        let seen = server.get(&format!("/v1/nodes/{uuid}")).await.json();
        assert_eq!(seen["provision_state"], "wait call-back");
        server.get("/v1/nodes/detail").await.has_status(200);
        asked(&server, &uuid, "abort").await.has_status(202);
    };
    let (one, two, three, ()) = tokio::join!(one, two, three, ended);
    for (answer, last) in [(one, 1), (two, 2), (three, 3)] {
        let node = answer.has_status(200).json();
        assert_eq!(node["extra"]["last"], last, "each saw its own change");
        assert_eq!(node["provision_state"], "deploy failed");
    }
    let node = server.get(&format!("/v1/nodes/{uuid}")).await.json();
    assert_eq!(node["extra"]["last"], 3, "the last one came last");
    wait(&server, 0).await;
}

#[actix_web::test]
async fn what_waited_for_nothing_is_told_what_runs_since_when_and_what_ends_it() {
    let server = patient(Duration::from_millis(50)).await;
    let uuid = busy_node(&server).await;
    for answer in [
        patched(&server, &uuid, "/extra/a", json!(1)).await,
        server
            .send(
                "PUT",
                &format!("/v1/nodes/{uuid}/states/power"),
                Some(json!({"target": "power off"})),
            )
            .await,
    ] {
        let text = answer.has_status(409).fault_string();
        for part in [
            "\"wait call-back\"",
            "waits for: ",
            ", since 20",
            "at the latest until 20",
            "(liveness deadline)",
            "\"abort\"",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
    let node = server.get(&format!("/v1/nodes/{uuid}")).await.json();
    assert_eq!(node["extra"], json!({}));
    wait(&server, 0).await;
}

#[actix_web::test]
async fn what_can_never_be_does_not_wait() {
    let server = patient(LONG).await;
    let uuid = busy_node(&server).await;
    asked(&server, &uuid, "provide").await.has_status(400);
    patched(&server, &uuid, "no path", json!(1))
        .await
        .has_status(400);
}

#[actix_web::test]
async fn only_so_many_wait_and_the_others_are_told_at_once() {
    let server = patient(LONG).await;
    let uuid = busy_node(&server).await;
    let many = (0..20).map(|number| patched(&server, &uuid, "/extra/n", json!(number)));
    let ended = async {
        wait(&server, 16).await;
        asked(&server, &uuid, "abort").await.has_status(202);
    };
    let (answers, ()) = tokio::join!(join_all(many), ended);
    let with = |status| answers.iter().filter(move |answer| answer.status == status);
    // Those that came after the abort found a node that was free again.
    assert!(with(200).count() >= 16);
    assert_eq!(with(200).count() + with(409).count(), 20);
}

#[actix_web::test]
async fn a_conductor_that_stops_answers_who_waits_and_nobody_waits_any_more() {
    let server = patient(LONG).await;
    let uuid = busy_node(&server).await;
    let waits = patched(&server, &uuid, "/extra/a", json!(1));
    let stops = async {
        wait(&server, 1).await;
        server.behind.conductor.hurry();
    };
    let (answer, ()) = tokio::join!(waits, stops);
    answer.has_status(409);
    patched(&server, &uuid, "/extra/a", json!(1))
        .await
        .has_status(409);
    wait(&server, 0).await;
}

#[actix_web::test]
async fn who_waits_for_a_node_that_is_removed_is_told_that_it_is_gone() {
    let server = patient(LONG).await;
    let uuid = busy_node(&server).await;
    let path = format!("/v1/nodes/{uuid}");
    let waits = async {
        let power = json!({"target": "power off"});
        let path = format!("{path}/states/power");
        server.send("PUT", &path, Some(power)).await
    };
    let goes = async {
        wait(&server, 1).await;
        let maintenance = format!("{path}/maintenance");
        server
            .send("PUT", &maintenance, Some(json!({})))
            .await
            .has_status(202);
        server.send("DELETE", &path, None).await.has_status(204);
        // Not 409, which clients would repeat.
        server.send("DELETE", &path, None).await.has_status(404);
    };
    let (answer, ()) = tokio::join!(waits, goes);
    answer.has_status(404);
}

#[actix_web::test]
async fn of_two_instances_that_want_a_node_at_the_same_time_one_gets_it() {
    let server = patient(LONG).await;
    let uuid = server.node(json!({"driver": "fake-hardware"})).await;
    let instances: Vec<String> = (0..8).map(|_| uuid::Uuid::new_v4().to_string()).collect();
    let wishes = instances
        .iter()
        .map(|instance| patched(&server, &uuid, "/instance_uuid", json!(instance)));
    let answers = join_all(wishes).await;
    let got: Vec<&String> = instances
        .iter()
        .zip(&answers)
        .filter(|(_, answer)| answer.status == 200)
        .map(|(instance, _)| instance)
        .collect();
    assert_eq!(got.len(), 1, "{answers:?}");
    assert!(
        answers
            .iter()
            .all(|answer| [200, 409].contains(&answer.status)),
        "{answers:?}"
    );
    let node = server.get(&format!("/v1/nodes/{uuid}")).await.json();
    assert_eq!(&node["instance_uuid"], got[0]);
    // The same once more is no conflict.
    patched(&server, &uuid, "/instance_uuid", json!(got[0]))
        .await
        .has_status(200);
    // One instance has one node.
    let other = server.node(json!({"driver": "fake-hardware"})).await;
    patched(&server, &other, "/instance_uuid", json!(got[0]))
        .await
        .has_status(409);
}
