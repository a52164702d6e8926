//! More at once than the conductor can do: who is told to come again does not lose its deadline by it.

use diesel::connection::SimpleConnection as _;
use serde_json::Value;
use upbeat::demo::FleetOptions;

use crate::support::api::eventually;
use crate::support::puppet::Puppet;
use crate::support::site::{MAC, Site};

const OTHER_MAC: &str = "52:54:00:00:0f:02";

#[actix_web::test]
async fn an_agent_that_was_told_to_come_again_has_the_time_for_it() {
    let site = Site::start(
        |config| {
            config.api.max_requests = 1;
            config.agent.require_tls = false;
        },
        FleetOptions::default(),
    )
    .await;
    let uuid = site.deploying().await;
    site.api.reaches(&uuid, "wait call-back").await;
    let other = site.api.available_node(OTHER_MAC, Value::Null).await;
    site.api.ask(&other, "active").await;
    site.api.reaches(&other, "wait call-back").await;
    let puppet = Puppet::start().await;
    let token = puppet.looks_up(&site.api, MAC).await;

    // The other's lookup has to be stored first, and takes the only place meanwhile.
    let mut lock = site.database();
    lock.batch_execute("BEGIN IMMEDIATE").unwrap();
    let api = site.api.clone();
    let looked_up = actix_web::rt::spawn(async move {
        let path = format!("/v1/lookup?addresses={OTHER_MAC}");
        loop {
            // The one below may have the place at this moment.
            match api.send("GET", &path, Value::Null).await.0 {
                503 => {}
                status => return status,
            }
        }
    });
    // One that would be refused, were there a place: so it takes none for longer than that.
    eventually("all places taken", async || {
        (puppet.heartbeats(&site.api, &uuid, "wrong").await == 503).then_some(())
    })
    .await;
    assert_eq!(puppet.heartbeats(&site.api, &uuid, &token).await, 503);
    // Users have places of their own, and so has whoever looks after the server.
    site.api.expect(200, "GET", "/v1/nodes", Value::Null).await;
    site.api
        .expect(200, "GET", "/health/ready", Value::Null)
        .await;
    lock.batch_execute("COMMIT").unwrap();
    assert_eq!(looked_up.await.unwrap(), 200);

    eventually("the deadline that is put off", async || {
        let history = site.api.history(&uuid).await;
        history.contains("told agents to come again").then_some(())
    })
    .await;
    let node = site.api.node(&uuid).await;
    assert_eq!(node["provision_state"], "wait call-back");
    assert_eq!(puppet.heartbeats(&site.api, &uuid, &token).await, 202);
    site.stop().await;
}
