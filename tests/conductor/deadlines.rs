//! When deadlines come: after what came before them, and all of them, however many.

use diesel::connection::SimpleConnection as _;
use futures_util::future::join_all;
use serde_json::{Value, json};
use tempfile::TempDir;
use upbeat::clock::Clock;
use upbeat::demo::FleetOptions;
use upbeat::node::work::{Work, WorkKind, WorkPhase};
use upbeat::node::{Attributes, BootMode, Node, NodeId, Provision};
use upbeat::store::{self, Change, Save, StoreSettings};
use uuid::Uuid;

use crate::support::api::eventually;
use crate::support::puppet::Puppet;
use crate::support::site::{MAC, Site};

const FIRED: &str = "upbeat_deadline_lateness_seconds_count{deadline=\"liveness\"}";

#[actix_web::test]
async fn a_heartbeat_that_came_before_the_deadline_wins_although_it_is_taken_after_it() {
    let site = Site::start(
        |config| {
            config.agent.require_tls = false;
            config.agent.heartbeat_timeout = 1;
            config.conductor.deploy_callback_timeout = 2;
        },
        FleetOptions::default(),
    )
    .await;
    let uuid = site.deploying().await;
    site.api.reaches(&uuid, "wait call-back").await;
    let mut puppet = Puppet::start().await;
    let token = puppet.arrives(&site.api, MAC, &uuid).await;
    // The agent answers nothing, so that only its heartbeats are signs of life.
    let _unanswered = puppet.next("the first question").await;

    // The node's actor waits for the database; behind that change waits the heartbeat.
    let mut lock = site.database();
    lock.batch_execute("BEGIN IMMEDIATE").unwrap();
    let api = site.api.clone();
    let path = format!("/v1/nodes/{uuid}/maintenance");
    let changing = actix_web::rt::spawn(async move { api.send("PUT", &path, json!({})).await });
    eventually("the change decided", async || {
        let decided = "upbeat_steps_seconds_count{event=\"maintenance\"}";
        (site.api.metric(decided).await == 1.0).then_some(())
    })
    .await;
    let release = async {
        let deadline = "/waiting/deadlines/liveness";
        let path = format!("/v1/nodes/{uuid}/commands");
        let commands = site.api.expect(200, "GET", &path, Value::Null).await;
        let at = commands.pointer(deadline).unwrap().as_str().unwrap();
        let at: jiff::Timestamp = at.parse().unwrap();
        eventually("the deadline's time", async || {
            let over = jiff::SignedDuration::from_millis(100);
            (jiff::Timestamp::now() > at + over).then_some(())
        })
        .await;
        lock.batch_execute("COMMIT").unwrap();
    };
    let (status, ()) = tokio::join!(puppet.heartbeats(&site.api, &uuid, &token), release);
    assert_eq!(status, 202);
    assert_eq!(changing.await.unwrap().0, 202);
    let node = site.api.node(&uuid).await;
    assert_eq!(node["provision_state"], "wait call-back");
    assert_eq!(site.api.metric(FIRED).await, 0.0);

    // With no heartbeat after it, the next deadline counts.
    let why = site.api.ends_failed(&uuid).await;
    assert!(why.contains("The agent went silent"), "{why}");
    assert_eq!(site.api.metric(FIRED).await, 1.0);
    site.stop().await;
}

/// A node in `wait call-back` whose agent must call by `due_in_ms` from now.
fn waiting(number: u128, due_in_ms: i64) -> Node {
    let now = Clock::start().now();
    let attributes = Attributes {
        driver: "fake-hardware".to_owned(),
        ..Attributes::default()
    };
    let mut node = Node::enrolled(NodeId(Uuid::from_u128(number)), attributes, now);
    let mut deploy = Work::begun(WorkKind::Deploy, now, BootMode::Bios, Vec::new());
    deploy.phase = WorkPhase::AwaitingAgent;
    node.provision = Provision::Working(deploy.into());
    node.deadlines.liveness = Some(now.plus_ms(due_in_ms));
    node
}

/// A folder with a database that holds these nodes.
pub async fn stored(nodes: impl Iterator<Item = Node>) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let store = store::open(&StoreSettings {
        url: format!("sqlite://{}", folder.path().join("upbeat.db").display()),
        readers: 1,
        host: "before".to_owned(),
        queue_max: 2_000,
    })
    .unwrap();
    let saving = nodes.map(|node| store.writer.save(Save::of(node.into(), Change::Insert)));
    for saved in join_all(saving).await {
        saved.unwrap();
    }
    store.handle.close().await;
    folder
}

#[actix_web::test]
async fn a_thousand_deadlines_due_at_once_are_all_handled_and_others_are_served_meanwhile() {
    const MANY: u128 = 1_000;
    // Due the moment the conductor starts; the last one has all day.
    let nodes = (0..=MANY).map(|n| waiting(n + 1, if n == MANY { 86_400_000 } else { 0 }));
    let folder = stored(nodes).await;

    // The queue to the database has places for few.
    let few = |config: &mut upbeat::config::Config| config.database.queue_max = 2;
    let site = Site::start_in(folder, few, FleetOptions::default()).await;
    let other = Uuid::from_u128(MANY + 1);
    let path = format!("/v1/nodes/{other}/maintenance");
    let failed = "upbeat_nodes{provision_state=\"deploy failed\"}";
    #[expect(clippy::cast_precision_loss, reason = "a thousand")]
    let many = MANY as f64;
    eventually("all of them failed", async || {
        let (status, answer) = site.api.send("PUT", &path, json!({})).await;
        assert_eq!(status, 202, "one caller at a time: {answer}");
        (site.api.metric(failed).await == many).then_some(())
    })
    .await;
    assert_eq!(site.api.metric(FIRED).await, many);
    assert_eq!(
        site.api.node(&other.to_string()).await["provision_state"],
        "wait call-back"
    );
    site.stop().await;
}
