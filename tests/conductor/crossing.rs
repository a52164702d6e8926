//! Answers, heartbeats and restarts that meet at the worst moment.

use std::time::Duration;

use diesel::connection::SimpleConnection as _;
use serde_json::{Value, json};
use upbeat::demo::FleetOptions;

use crate::support::puppet::Puppet;
use crate::support::site::{MAC, Site, database, quick_machines};

/// A site for agents without TLS that are not of its fleet.
pub async fn site() -> Site {
    Site::start(
        |config| config.agent.require_tls = false,
        FleetOptions::default(),
    )
    .await
}

/// A node in `wait call-back` whose agent has just come, with the conductor's first question still open.
async fn agent_arrived(site: &Site) -> (String, Puppet, String) {
    let uuid = site.deploying().await;
    site.api.reaches(&uuid, "wait call-back").await;
    let puppet = Puppet::start().await;
    let token = puppet.arrives(&site.api, MAC, &uuid).await;
    (uuid, puppet, token)
}

#[actix_web::test]
async fn a_heartbeat_between_the_survey_and_its_consequence_does_not_lose_the_command() {
    let site = site().await;
    let (uuid, mut puppet, token) = agent_arrived(&site).await;
    let survey = puppet
        .until("the list of commands", |asked| {
            asked.path == "/v1/commands/"
        })
        .await;
    // The node's actor waits for the database; behind that change wait a heartbeat, then the answer to the survey.
    let mut lock = site.database();
    lock.batch_execute("BEGIN IMMEDIATE").unwrap();
    let api = site.api.clone();
    let path = format!("/v1/nodes/{uuid}/maintenance");
    let changed = actix_web::rt::spawn(async move { api.send("PUT", &path, json!({})).await });
    // These pauses only give each its place in the queue; were they too short, the test would see nothing, but not fail.
    tokio::time::sleep(Duration::from_millis(100)).await;
    let heartbeat = async {
        let status = puppet.heartbeats(&site.api, &uuid, &token).await;
        assert_eq!(status, 202);
    };
    let release = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        survey.answer(200, json!({"commands": []}));
        tokio::time::sleep(Duration::from_millis(200)).await;
        lock.batch_execute("COMMIT").unwrap();
    };
    tokio::join!(heartbeat, release);
    assert_eq!(changed.await.unwrap().0, 202);

    // The heartbeat made the conductor look once more; the command is to be sent while that look is under way.
    let look = puppet.next("a second look").await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    puppet.read(look);
    puppet.tells_its_steps().await;
    let asked = puppet.command("deploy.execute_deploy_step").await;
    puppet.take(asked, "SUCCEEDED", json!({}));
    puppet.command("standby.get_partition_uuids").await;
    assert_eq!(puppet.posted.len(), 2, "each once: {:#?}", puppet.posted);
    site.stop().await;
}

#[actix_web::test]
async fn heartbeats_all_the_time_neither_multiply_questions_nor_lose_commands() {
    let site = site().await;
    let (uuid, mut puppet, token) = agent_arrived(&site).await;
    puppet.tells_its_steps().await;
    let asked = puppet.command("deploy.execute_deploy_step").await;
    puppet.take(asked, "RUNNING", Value::Null);
    let api = site.api.clone();
    let (other, url) = (uuid.clone(), puppet.url.clone());
    let beating = actix_web::rt::spawn(async move {
        let path = format!("/v1/heartbeat/{other}");
        let heartbeat =
            json!({"callback_url": url, "agent_token": token, "agent_version": "13.0.0"});
        for _ in 0..100 {
            assert_eq!(api.send("POST", &path, heartbeat.clone()).await.0, 202);
        }
    });
    let mut polls = 0;
    while !beating.is_finished() {
        let asked = puppet.next("a look at the running command").await;
        polls += 1;
        puppet.read(asked);
    }
    beating.await.unwrap();
    // One look per heartbeat and one that was under way, at most; the usual ones come on top.
    assert!((1..250).contains(&polls), "{polls}");
    puppet.finish("SUCCEEDED", json!({}));
    puppet.command("standby.get_partition_uuids").await;
    assert_eq!(puppet.posted.len(), 2);
    site.stop().await;
}

#[actix_web::test]
async fn a_deadline_counts_after_a_restart_without_any_downtime() {
    let site = site().await;
    let uuid = site.deploying().await;
    site.api.reaches(&uuid, "wait call-back").await;
    let folder = site.stop().await;
    // Nobody knows for how long the conductor was away, so nothing in the row is moved.
    database(&folder)
        .batch_execute("DELETE FROM meta WHERE key = 'conductor_alive_at'")
        .unwrap();
    let site = Site::start_in(folder, |_| {}, quick_machines()).await;
    let why = site.api.ends_failed(&uuid).await;
    assert!(why.contains("No agent called within 3 s"), "{why}");
    site.stop().await;
}

#[actix_web::test]
async fn a_row_that_somebody_else_changed_is_read_again_and_counted() {
    let site = site().await;
    let uuid = site.node(Value::Null).await;
    crate::quarantine::spoil(&site.folder, &uuid, |node| {
        node["version"] = (node["version"].as_u64().unwrap() + 1).into();
        node["provision"] = json!({"state": "manageable"});
    });
    let path = format!("/v1/nodes/{uuid}/states/provision");
    let (status, _) = site
        .api
        .send("PUT", &path, json!({"target": "active"}))
        .await;
    assert_eq!(status, 503, "it was decided on an old row");
    let (status, _) = site
        .api
        .send("PUT", &path, json!({"target": "active"}))
        .await;
    assert_eq!(status, 400, "not from manageable");
    for (state, count) in [("available", 0.0), ("manageable", 1.0)] {
        let metric = format!("upbeat_nodes{{provision_state=\"{state}\"}}");
        assert_eq!(site.api.metric(&metric).await, count, "{state}");
    }
    site.stop().await;
}
