//! What panics cost: one event, one restart, at worst one node, never its neighbours.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use diesel::RunQueryDsl as _;
use diesel::connection::SimpleConnection as _;
use serde_json::{Value, json};
use tempfile::TempDir;
use upbeat::config::Config;
use upbeat::demo::Faults;

use crate::support::puppet::Puppet;
use crate::support::site::{MAC, Site, database, quick_machines, wrote_once};

pub const OTHER_MAC: &str = "52:54:00:aa:00:02";

/// A site whose driver panics over the machine at [`MAC`] as often as `fragile` says.
pub async fn fragile_site(panics: usize) -> (Site, Arc<AtomicUsize>) {
    fragile_site_with(panics, |_| {}).await
}

pub async fn fragile_site_with(
    panics: usize,
    change: impl FnOnce(&mut Config),
) -> (Site, Arc<AtomicUsize>) {
    let fragile = Arc::new(AtomicUsize::new(panics));
    let left = fragile.clone();
    let site = Site::start_with(
        tempfile::tempdir().unwrap(),
        change,
        quick_machines(),
        move |macs| {
            let is_fragile = macs.iter().any(|mac| mac == MAC)
                && left
                    .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| {
                        left.checked_sub(1)
                    })
                    .is_ok();
            assert!(!is_fragile, "fragile driver");
        },
    )
    .await;
    site.fleet.add(MAC, Faults::none());
    site.fleet.add(OTHER_MAC, Faults::none());
    (site, fragile)
}

/// Changes the stored node behind the conductor's back.
pub fn spoil(folder: &TempDir, uuid: &str, change: impl FnOnce(&mut Value)) {
    let mut database = database(folder);
    let body: Body = diesel::sql_query("SELECT body FROM nodes WHERE id = ?")
        .bind::<diesel::sql_types::Text, _>(uuid)
        .get_result(&mut database)
        .unwrap();
    let mut document: Value = serde_json::from_str(&body.body).unwrap();
    // Around the node stands only the number of its form.
    let node = document
        .as_object_mut()
        .unwrap()
        .values_mut()
        .find(|value| value.is_object());
    change(node.expect("the node"));
    let version = document
        .as_object()
        .unwrap()
        .values()
        .find_map(|value| value["version"].as_i64());
    diesel::sql_query("UPDATE nodes SET body = ?, version = ?, waiting = 1 WHERE id = ?")
        .bind::<diesel::sql_types::Text, _>(document.to_string())
        .bind::<diesel::sql_types::BigInt, _>(version.unwrap())
        .bind::<diesel::sql_types::Text, _>(uuid)
        .execute(&mut database)
        .unwrap();
}

#[derive(diesel::QueryableByName)]
struct Body {
    #[diesel(sql_type = diesel::sql_types::Text)]
    body: String,
}

pub async fn is_quarantined(site: &Site, uuid: &str, cause: &str) -> Value {
    let node = site
        .api
        .node_when(uuid, "quarantined", |node| node["maintenance"] == true)
        .await;
    assert_eq!(node["fault"], "conductor failure");
    for field in ["last_error", "maintenance_reason"] {
        let text = node[field].as_str().unwrap();
        assert!(text.contains("gave up") && text.contains(cause), "{text}");
    }
    assert_eq!(site.api.metric("upbeat_quarantined_nodes").await, 1.0);
    node
}

pub async fn leaves_maintenance(site: &Site, uuid: &str) {
    let path = format!("/v1/nodes/{uuid}/maintenance");
    site.api.expect(202, "DELETE", &path, Value::Null).await;
}

#[actix_web::test]
async fn a_few_panics_cost_restarts_and_nothing_else() {
    let (site, left) = fragile_site(3).await;
    let uuid = site.deploying().await;
    site.api.ends_active(&uuid).await;
    wrote_once(&site.journal());
    assert_eq!(left.load(Ordering::SeqCst), 0);
    let restarts = "upbeat_actor_restarts_total{actor=\"node\",cause=\"panic\"}";
    assert_eq!(site.api.metric(restarts).await, 3.0);
    assert_eq!(site.api.metric("upbeat_quarantined_nodes").await, 0.0);
    site.stop().await;
}

#[actix_web::test]
async fn too_many_panics_quarantine_one_node_until_a_person_has_looked() {
    let (site, left) = fragile_site(usize::MAX).await;
    let uuid = site.node(Value::Null).await;
    let neighbour = site.api.available_node(OTHER_MAC, Value::Null).await;
    site.api.ask(&uuid, "active").await;
    is_quarantined(&site, &uuid, "fragile driver").await;

    // Agents are told so; operators still get through; the neighbour does not notice.
    let heartbeat = json!({"callback_url": "https://127.0.0.1:9", "agent_token": "x".repeat(43), "agent_version": "13.0.0"});
    let path = format!("/v1/heartbeat/{uuid}");
    let (status, _) = site.api.send("POST", &path, heartbeat).await;
    assert_eq!(status, 409);
    let lookup = format!("/v1/lookup?addresses={MAC}");
    let (status, _) = site.api.send("GET", &lookup, Value::Null).await;
    assert!((400..500).contains(&status), "{status}");
    let maintenance = format!("/v1/nodes/{uuid}/maintenance");
    let seen = json!({"reason": "I am looking"});
    site.api.expect(202, "PUT", &maintenance, seen).await;
    assert_eq!(
        site.api.node(&uuid).await["maintenance_reason"],
        "I am looking"
    );
    site.api.ask(&neighbour, "active").await;
    site.api.ends_active(&neighbour).await;

    // Still broken: it is given up on again, as visibly as before.
    leaves_maintenance(&site, &uuid).await;
    is_quarantined(&site, &uuid, "fragile driver").await;

    // Mended: the deploy goes on where it was.
    left.store(0, Ordering::SeqCst);
    leaves_maintenance(&site, &uuid).await;
    let node = site.api.ends(&uuid).await;
    assert_eq!(node["provision_state"], "active", "{}", node["last_error"]);
    assert_eq!(node["maintenance"], false);
    assert_eq!(node["fault"], Value::Null);
    assert_eq!(site.api.metric("upbeat_quarantined_nodes").await, 0.0);
    wrote_once(&site.journal());
    site.stop().await;
}

/// A node that can't decide anything that calls the driver: in builds that check arithmetic its counter overflows.
#[cfg(debug_assertions)]
pub fn cannot_call_its_driver(node: &mut Value) {
    node["driver_calls_made"] = u64::MAX.into();
}

#[cfg(debug_assertions)]
#[actix_web::test]
async fn a_deadline_whose_step_panics_quarantines_the_node_instead_of_running_hot() {
    let site = crate::crossing::site().await;
    let uuid = site.deploying().await;
    site.api.reaches(&uuid, "wait call-back").await;
    let folder = site.stop().await;
    spoil(&folder, &uuid, cannot_call_its_driver);
    let site = Site::start_in(folder, |_| {}, quick_machines()).await;
    is_quarantined(&site, &uuid, "overflow").await;
    let panics = site.api.metric("upbeat_step_panics_total").await;
    assert!((1.0..10.0).contains(&panics), "{panics}");

    // Nothing is awaited any more, and the next conductor still knows that it is quarantined.
    let folder = site.stop().await;
    spoil(&folder, &uuid, |node| {
        node["provision"] = json!({"state": "deploy_failed"});
        node["deadlines"] = json!({"liveness": null, "step": null, "driver": null, "look": null});
    });
    database(&folder)
        .batch_execute("UPDATE nodes SET waiting = 0, provision_state = 'deploy failed'")
        .unwrap();
    let site = Site::start_in(folder, |_| {}, quick_machines()).await;
    assert_eq!(site.api.metric("upbeat_quarantined_nodes").await, 1.0);
    leaves_maintenance(&site, &uuid).await;
    assert_eq!(site.api.metric("upbeat_quarantined_nodes").await, 0.0);
    site.stop().await;
}

#[cfg(debug_assertions)]
#[actix_web::test]
async fn a_step_that_panics_for_a_caller_costs_that_call_only() {
    let site = Site::with(Faults::none()).await;
    let uuid = site.node(Value::Null).await;
    let folder = site.stop().await;
    spoil(&folder, &uuid, cannot_call_its_driver);
    // The driver is called at once, and not when a turn has come.
    let unlimited = |config: &mut Config| config.conductor.max_concurrent_deploy = 0;
    let site = Site::start_in(folder, unlimited, quick_machines()).await;
    let path = format!("/v1/nodes/{uuid}/states/provision");
    let wish = json!({"target": "active"});
    let (status, answer) = site.api.send("PUT", &path, wish).await;
    assert_eq!(status, 500, "{answer}");
    let node = site.api.node(&uuid).await;
    assert_eq!(node["provision_state"], "available");
    assert_eq!(node["maintenance"], false);
    assert_eq!(site.api.metric("upbeat_step_panics_total").await, 1.0);
    site.stop().await;
}

#[cfg(debug_assertions)]
#[actix_web::test]
async fn a_restarted_node_gives_up_the_request_that_was_under_way() {
    let site = crate::crossing::site().await;
    let uuid = site.node(Value::Null).await;
    let folder = site.stop().await;
    // One call of the driver is left: the one that boots the ramdisk.
    spoil(&folder, &uuid, |node| {
        node["driver_calls_made"] = (u64::MAX - 1).into();
    });
    let site = Site::start_in(
        folder,
        |config| {
            config.agent.require_tls = false;
            config.agent.command_timeout = 25;
        },
        quick_machines(),
    )
    .await;
    site.api.ask(&uuid, "active").await;
    site.api.reaches(&uuid, "wait call-back").await;
    let mut puppet = Puppet::start().await;
    puppet.arrives(&site.api, MAC, &uuid).await;
    puppet.tells_its_steps().await;
    let mut write = puppet.command("deploy.execute_deploy_step").await;
    // The agent falls silent; giving up on it panics, which restarts the actor. From then on nobody knows whether the command
    // arrived, and what is concluded from reading the agent holds only once it can't arrive any more.
    let silent_since = Instant::now();
    write.is_given_up().await;
    let took = silent_since.elapsed();
    assert!(
        took < Duration::from_secs(15),
        "only by its own timeout: {took:?}"
    );
    is_quarantined(&site, &uuid, "overflow").await;
    site.stop().await;
}
