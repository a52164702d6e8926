//! A full queue and a database that says no: callers are told to come again, and nothing is lost.

use std::time::Duration;

use diesel::connection::SimpleConnection as _;
use futures_util::future::join_all;
use serde_json::{Value, json};
use upbeat::demo::Faults;

use crate::support::site::{MAC, Site, quick_machines, wrote_once};

/// From now on no node can be stored, in the words of a disk that is full.
fn break_store(site: &Site) {
    site.database()
        .batch_execute(
            "CREATE TRIGGER full BEFORE UPDATE ON nodes BEGIN SELECT RAISE(ABORT, 'database or disk is full'); END",
        )
        .unwrap();
}

fn mend_store(site: &Site) {
    site.database().batch_execute("DROP TRIGGER full").unwrap();
}

/// Sends a change; answers the status and, with a refusal, when to come again.
async fn change(
    site: &Site,
    method: reqwest::Method,
    path: String,
    body: Value,
) -> (u16, Option<String>) {
    let answer = reqwest::Client::new()
        .request(method, format!("{}{path}", site.api.url))
        .header("X-OpenStack-Ironic-API-Version", "1.115")
        .json(&body)
        .send()
        .await
        .unwrap();
    let later = answer.headers().get("retry-after");
    let later = later.map(|value| value.to_str().unwrap().to_owned());
    (answer.status().as_u16(), later)
}

async fn patch(site: &Site, uuid: &str, key: usize) -> (u16, Option<String>) {
    let body = json!([{"op": "add", "path": format!("/extra/k{key}"), "value": key}]);
    change(
        site,
        reqwest::Method::PATCH,
        format!("/v1/nodes/{uuid}"),
        body,
    )
    .await
}

async fn maintenance(site: &Site, uuid: &str) -> (u16, Option<String>) {
    let path = format!("/v1/nodes/{uuid}/maintenance");
    change(site, reqwest::Method::PUT, path, json!({})).await
}

#[actix_web::test]
async fn a_full_queue_is_an_answer_and_what_was_taken_is_done() {
    let site = Site::start(
        |config| config.conductor.mailbox_messages_max = 2,
        quick_machines(),
    )
    .await;
    let uuid = site.node(Value::Null).await;
    let mut lock = site.database();
    lock.batch_execute("BEGIN IMMEDIATE").unwrap();
    let release = async {
        // Until then the node's actor waits for its first change to be stored.
        let full = "upbeat_mailbox_refused_total";
        crate::support::api::eventually("refusals", async || {
            (site.api.metric(full).await > 0.0).then_some(())
        })
        .await;
        lock.batch_execute("COMMIT").unwrap();
    };
    let asking = join_all((0..12).map(|key| patch(&site, &uuid, key)));
    let (answers, ()) = tokio::join!(asking, release);
    let node = site.api.node(&uuid).await;
    let mut refused = 0.0;
    for (key, (status, later)) in answers.into_iter().enumerate() {
        let is_there = !node["extra"][format!("k{key}")].is_null();
        match status {
            200 => assert!(is_there, "k{key} was promised"),
            503 => {
                refused += 1.0;
                assert!(!is_there, "k{key} was refused");
                assert_eq!(later.as_deref(), Some("1"));
            }
            other => panic!("{other}"),
        }
    }
    assert!(refused > 0.0);
    let counted = site.api.metric("upbeat_mailbox_refused_total").await;
    assert_eq!(counted, refused);
    site.stop().await;
}

#[actix_web::test]
async fn an_answer_that_comes_while_nothing_can_be_stored_is_taken_once_it_can() {
    let site = Site::with(Faults::none().slow_write(Duration::from_millis(600))).await;
    let uuid = site.deploying().await;
    site.writing().await;
    site.api.reaches(&uuid, "wait call-back").await;
    break_store(&site);
    let (status, later) = maintenance(&site, &uuid).await;
    assert_eq!(status, 503);
    assert!(later.is_some());
    site.sees("the end of the write", |journal| {
        journal.commands.last().unwrap().finished_at.is_some()
    })
    .await;
    // The conductor has met the end of the command as soon as a caller meets the closed database again.
    let (status, _) = maintenance(&site, &uuid).await;
    assert_eq!(status, 503);
    let node = site.api.node(&uuid).await;
    assert_eq!(node["provision_state"], "wait call-back");
    mend_store(&site);
    let node = site.api.ends_active(&uuid).await;
    assert_eq!(node["maintenance"], false, "nobody was promised anything");
    wrote_once(&site.journal());
    site.stop().await;
}

#[actix_web::test]
async fn nothing_is_sent_that_was_not_stored_before() {
    let site = Site::with(Faults::none()).await;
    let uuid = site.node(json!({"driver": "manual-management"})).await;
    site.api.ask(&uuid, "active").await;
    site.api.reaches(&uuid, "wait call-back").await;
    let path = format!("/v1/lookup?addresses={MAC}");
    site.api.expect(200, "GET", &path, Value::Null).await;
    break_store(&site);
    site.fleet.power(MAC, true);
    let journal = site
        .sees("a heartbeat that is put off", |journal| {
            journal
                .heartbeats
                .iter()
                .any(|beat| beat.status == Some(503))
        })
        .await;
    assert_eq!(journal.commands.len(), 0, "{journal:#?}");
    mend_store(&site);
    site.api.ends_active(&uuid).await;
    wrote_once(&site.journal());
    site.stop().await;
}
