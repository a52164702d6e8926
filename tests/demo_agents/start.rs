//! Boot, look-up, token, certificate, heartbeats, power.

use std::time::Duration;

use base64::Engine as _;
use serde_json::{Value, json};
use upbeat::demo::fleet::Curve;
use upbeat::demo::{Faults, FleetOptions};

use crate::lab::*;
use crate::stub_api::{self, StubApi};

#[tokio::test]
async fn the_agent_looks_up_and_heartbeats_with_the_versions_and_fields_of_the_real_one() {
    let lab = Lab::new(Faults::none()).await;
    let journal = lab.boot().await;

    let lookup = &lab.api.requests("/v1/lookup")[0];
    assert_eq!(lookup.version.as_deref(), Some("1.62"));
    assert_eq!(
        lookup.query,
        format!("addresses={}", MAC.replace(':', "%3A"))
    );

    let heartbeat = &lab.api.requests("/v1/heartbeat/")[0];
    assert_eq!(heartbeat.version.as_deref(), Some("1.68"));
    assert_eq!(heartbeat.path, format!("/v1/heartbeat/{}", stub_api::NODE));
    let keys: Vec<&str> = heartbeat
        .body
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    assert_eq!(
        keys,
        [
            "agent_token",
            "agent_verify_ca",
            "agent_version",
            "callback_url"
        ]
    );
    assert_eq!(heartbeat.body["agent_token"], TOKEN);
    assert_eq!(heartbeat.body["agent_version"], "13.0.0");
    let callback_url = heartbeat.body["callback_url"].as_str().unwrap();
    assert!(
        callback_url.starts_with("https://127.0.0.1:"),
        "{callback_url}"
    );
    assert_eq!(journal.callback_url.as_deref(), Some(callback_url));
}

#[tokio::test]
async fn the_agent_serves_the_certificate_that_it_announced() {
    for curve in [Curve::P256, Curve::P384] {
        let lab = Lab::with(
            Faults::none(),
            FleetOptions { curve, ..quick() },
            StubApi::start().await,
        );
        lab.boot().await;
        let announced = lab.api.requests("/v1/heartbeat/")[0].body["agent_verify_ca"]
            .as_str()
            .unwrap()
            .to_owned();
        let base64: String = announced
            .lines()
            .filter(|line| !line.starts_with("---"))
            .map(str::trim)
            .collect();
        let announced = base64::engine::general_purpose::STANDARD
            .decode(base64)
            .unwrap();
        let answer = lab.client.get(lab.url("/v1/status")).send().await.unwrap();
        let served = answer
            .extensions()
            .get::<reqwest::tls::TlsInfo>()
            .unwrap()
            .peer_certificate()
            .unwrap()
            .to_vec();
        assert_eq!(served, announced);
    }
}

#[tokio::test]
async fn an_old_api_gets_an_old_agent_without_token_and_tls() {
    let api = StubApi::start().await;
    api.set(|behaviour| behaviour.version = json!({"nothing": "here"}));
    let lab = Lab::with(Faults::none(), quick(), api);
    lab.boot().await;
    assert_eq!(
        lab.api.requests("/v1/lookup")[0].version.as_deref(),
        Some("1.31")
    );
    let heartbeat = &lab.api.requests("/v1/heartbeat/")[0];
    assert_eq!(heartbeat.version.as_deref(), Some("1.31"));
    assert_eq!(heartbeat.body, json!({"callback_url": lab.url("")}));
    assert!(lab.url("").starts_with("http://"));
}

#[tokio::test]
async fn a_short_token_is_ignored_and_the_agent_cannot_be_commanded() {
    let api = StubApi::start().await;
    api.set(|behaviour| behaviour.token = json!("x".repeat(31)));
    let lab = Lab::with(Faults::none(), quick(), api);
    lab.boot().await;
    assert_eq!(
        lab.api.requests("/v1/heartbeat/")[0].body["agent_token"],
        Value::Null
    );
    assert_eq!(lab.get("/v1/commands/").await.unwrap().0, 401);
}

#[tokio::test]
async fn a_masked_token_is_the_end_of_the_agent() {
    let api = StubApi::start().await;
    api.set(|behaviour| behaviour.token = json!("******"));
    let lab = Lab::with(Faults::none(), quick(), api);
    lab.fleet.power(MAC, true);
    lab.wait(|journal| journal.token_was_masked).await;
    let later = lab
        .fleet
        .wait_for(MAC, Duration::from_millis(300), |journal| {
            !journal.heartbeats.is_empty()
                || journal.agent_starts > 1
                || journal.callback_url.is_some()
        });
    assert!(
        later.await.is_err(),
        "it neither heartbeats nor serves nor starts again"
    );
    assert!(lab.fleet.is_on(MAC));
}

#[tokio::test]
async fn a_lookup_is_repeated_until_it_is_answered() {
    let api = StubApi::start().await;
    api.set(|behaviour| behaviour.lookup_statuses = [404, 409, 500, 503].into());
    let lab = Lab::with(Faults::none(), quick(), api);
    let journal = lab.boot().await;
    assert_eq!(journal.lookups_sent, 5);
    assert_eq!(journal.agent_starts, 1);
}

#[tokio::test]
async fn an_agent_that_finds_no_node_for_long_exits_and_is_started_again() {
    let api = StubApi::start().await;
    api.set(|behaviour| behaviour.lookup_statuses = std::iter::repeat_n(404, 10_000).collect());
    let lab = Lab::with(
        Faults::none(),
        FleetOptions {
            pace: 0.001,
            ..quick()
        },
        api,
    );
    lab.fleet.power(MAC, true);
    let journal = lab.wait(|journal| journal.agent_starts > 1).await;
    assert!(journal.lookups_sent > 3);
}

#[tokio::test]
async fn a_refused_heartbeat_is_repeated_for_ever() {
    let api = StubApi::start().await;
    api.set(|behaviour| behaviour.heartbeat_statuses = [409, 400, 404, 503].into());
    let lab = Lab::with(Faults::none(), quick(), api);
    let journal = lab.boot().await;
    let statuses: Vec<_> = journal
        .heartbeats
        .iter()
        .map(|heartbeat| heartbeat.status.unwrap())
        .collect();
    assert_eq!(statuses, [409, 400, 404, 503, 202]);
}

#[tokio::test]
async fn power_off_ends_the_machine_and_the_instance_boots_next() {
    let lab = Lab::new(Faults::none()).await;
    lab.boot().await;
    lab.write_image(true).await.unwrap();
    let (status, command) = lab
        .post("standby.power_off", json!({}), false)
        .await
        .unwrap();
    assert_eq!(
        (status, &command["command_status"]),
        (200, &json!("RUNNING"))
    );
    lab.wait(|_| !lab.fleet.is_on(MAC)).await;
    assert!(lab.get("/v1/status").await.unwrap_err().is_connect());

    lab.fleet.power(MAC, false);
    lab.fleet.power(MAC, true);
    let journal = lab.fleet.journal(MAC);
    assert_eq!(journal.power_ons, 2);
    lab.wait(|journal| journal.instance_boots == 1).await;
    assert_eq!(lab.fleet.journal(MAC).agent_starts, 1);
    lab.fleet.power(MAC, true);
    assert_eq!(
        lab.fleet.journal(MAC).power_ons,
        2,
        "switching on what is on does nothing"
    );
    lab.fleet.power(MAC, false);
    lab.fleet.power(MAC, true);
    lab.wait(|journal| journal.agent_starts == 2).await;
}

#[tokio::test]
async fn a_stopped_fleet_is_off_and_its_journals_stay() {
    let lab = Lab::new(Faults::none()).await;
    lab.boot().await;
    lab.fleet.stop().await;
    assert!(!lab.fleet.is_on(MAC));
    assert_eq!(lab.fleet.journal(MAC).power_ons, 1);
    assert!(lab.get("/v1/status").await.unwrap_err().is_connect());
}
