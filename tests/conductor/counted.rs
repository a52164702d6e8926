//! What is counted of a deploy that does not go smoothly.

use serde_json::{Value, json};

use crate::crossing::site;
use crate::support::api::eventually;
use crate::support::puppet::Puppet;
use crate::support::site::MAC;

#[actix_web::test]
async fn dispatches_busy_answers_and_lost_ones_are_counted_as_they_came() {
    let site = site().await;
    let uuid = site.deploying().await;
    site.api.reaches(&uuid, "wait call-back").await;
    let mut puppet = Puppet::start().await;
    puppet.arrives(&site.api, MAC, &uuid).await;
    // The first command is taken, and what the conductor hears of it makes no sense.
    let asked = puppet.command("deploy.get_deploy_steps").await;
    let result = json!({"deploy_steps": {}, "hardware_manager_version": {"manager": "1"}});
    puppet.keep(&asked, "SUCCEEDED", result);
    asked.answer(502, Value::Null);
    // The second finds the agent busy, once.
    let asked = puppet.command("deploy.execute_deploy_step").await;
    asked.answer(
        409,
        json!({"faultcode": "Client", "faultstring": "Agent is busy: executing command", "code": 409}),
    );
    let asked = puppet.command("deploy.execute_deploy_step").await;
    puppet.take(asked, "RUNNING", Value::Null);
    let step = "command=\"deploy.execute_deploy_step\"";
    let first = "command=\"deploy.get_deploy_steps\"";
    for (metric, count) in [
        (format!("upbeat_dispatches_total{{{first}}}"), 1.0),
        (format!("upbeat_dispatches_total{{{step}}}"), 2.0),
        ("upbeat_busy_answers_total".to_owned(), 1.0),
        (format!("upbeat_unknown_outcomes_total{{{first}}}"), 1.0),
        (
            format!("upbeat_unknown_resolutions_total{{{first},resolution=\"found\"}}"),
            1.0,
        ),
        ("upbeat_commands_unknown".to_owned(), 0.0),
    ] {
        assert_eq!(site.api.metric(&metric).await, count, "{metric}");
    }
    site.stop().await;
}

#[actix_web::test]
async fn a_deadline_that_fired_is_counted_with_its_lateness() {
    let site = site().await;
    let uuid = site.deploying().await;
    site.api.ends_failed(&uuid).await;
    let counted = "upbeat_deadline_lateness_seconds_count{deadline=\"liveness\"}";
    // The row is there to be read a moment before it is counted.
    eventually("it counted", async || {
        (site.api.metric(counted).await == 1.0).then_some(())
    })
    .await;
    let late = "upbeat_deadline_lateness_seconds_sum{deadline=\"liveness\"}";
    let late = site.api.metric(late).await;
    assert!((0.0..30.0).contains(&late), "{late}");
    site.stop().await;
}

#[actix_web::test]
async fn nodes_that_come_back_after_a_restart_are_counted_until_all_are_back() {
    let site = site().await;
    assert_eq!(site.api.metric("upbeat_recovery_nodes").await, 0.0);
    assert!(site.api.metric("upbeat_recovery_seconds").await > 0.0);
    let uuid = site.deploying().await;
    site.api.reaches(&uuid, "wait call-back").await;
    let folder = site.stop().await;
    let machines = crate::support::site::quick_machines();
    let site = crate::support::site::Site::start_in(folder, |_| {}, machines).await;
    eventually("the node back", async || {
        (site.api.metric("upbeat_recovery_seconds").await > 0.0).then_some(())
    })
    .await;
    assert_eq!(site.api.metric("upbeat_recovery_nodes").await, 1.0);
    assert_eq!(site.api.metric("upbeat_recovery_nodes_left").await, 0.0);
    site.stop().await;
}
