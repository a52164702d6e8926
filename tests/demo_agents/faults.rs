//! What goes wrong when it is told to.

use std::time::Duration;

use serde_json::{Value, json};
use upbeat::demo::{Answer, BadAnswer, Faults, Times, WriteError, WriteWhenLost};

use crate::lab::*;

#[tokio::test]
async fn forced_heartbeats_can_be_dropped() {
    let lab = Lab::new(Faults::none().drops_forced_heartbeats()).await;
    lab.boot().await;
    lab.write_image(true).await.unwrap();
    let more = lab
        .fleet
        .wait_for(MAC, Duration::from_millis(300), |journal| {
            journal.heartbeats.len() > 1
        });
    assert!(more.await.is_err());
}

#[tokio::test]
async fn a_lost_reply_leaves_the_command_running() {
    let lab = Lab::new(slow().loses_first_reply(WriteWhenLost::StillRunning)).await;
    lab.boot().await;
    lab.write_image(false)
        .await
        .expect_err("the connection closes without an answer");
    let list = lab.list().await;
    assert_eq!(
        (list.len(), &list[0]["command_status"]),
        (1, &json!("RUNNING"))
    );
    assert_eq!(lab.write_image(false).await.unwrap().0, 409);
    assert_eq!(lab.fleet.journal(MAC).writes_started.len(), 1);
}

#[tokio::test]
async fn a_reply_can_be_lost_after_the_command_has_finished() {
    let lab = Lab::new(Faults::none().loses_first_reply(WriteWhenLost::AlreadyFinished)).await;
    lab.boot().await;
    lab.write_image(false)
        .await
        .expect_err("the connection closes without an answer");
    assert_eq!(lab.list().await[0]["command_status"], "SUCCEEDED");
}

#[tokio::test]
async fn a_command_can_be_lost_on_its_way_once() {
    let lab = Lab::new(Faults::none().never_receives_first_post()).await;
    lab.boot().await;
    lab.write_image(false)
        .await
        .expect_err("the connection closes without an answer");
    assert_eq!(lab.list().await, Vec::<Value>::new());
    assert_eq!(lab.fleet.journal(MAC).writes_started.len(), 0);
    assert_eq!(
        lab.write_image(true).await.unwrap().1["command_status"],
        "SUCCEEDED"
    );
}

#[tokio::test]
async fn answers_can_be_damaged_once() {
    for how in [
        BadAnswer::Garbage,
        BadAnswer::TruncatedBody,
        BadAnswer::BadGateway,
    ] {
        let lab = Lab::new(
            slow()
                .bad_answer_once(Answer::ToExecuteStep, how)
                .bad_answer_once(Answer::ToCommandList, how),
        );
        let lab = lab.await;
        lab.boot().await;
        lab.write_image(false).await.expect_err("no JSON");
        let url = lab.url(&format!("/v1/commands/?agent_token={TOKEN}"));
        let bad = lab
            .client
            .get(url)
            .send()
            .await
            .expect("the headers arrive");
        assert_eq!(
            bad.status(),
            if how == BadAnswer::BadGateway {
                502
            } else {
                200
            }
        );
        assert_eq!(
            bad.bytes().await.is_err(),
            how == BadAnswer::TruncatedBody,
            "{how:?}"
        );
        assert_eq!(
            lab.list().await[0]["command_status"],
            "RUNNING",
            "the command was accepted all the same"
        );
    }
}

#[tokio::test]
async fn a_failed_write_names_the_agents_error() {
    for (error, kind, code) in [
        (WriteError::Checksum, "ImageChecksumError", 500),
        (WriteError::Download, "ImageDownloadError", 500),
        (WriteError::NotFound, "ImageDownloadFatalError", 500),
        (WriteError::DiskFull, "ImageWriteError", 500),
        (WriteError::NoDevice, "DeviceNotFound", 404),
    ] {
        let lab = Lab::new(Faults::none().write_fails(error, Times::Once)).await;
        lab.boot().await;
        let (_, command) = lab.write_image(true).await.unwrap();
        assert_eq!(command["command_status"], "FAILED");
        assert_eq!(
            (
                &command["command_error"]["type"],
                &command["command_error"]["code"]
            ),
            (&json!(kind), &json!(code))
        );
        assert_eq!(command["command_result"], Value::Null);
        assert_eq!(
            lab.write_image(true).await.unwrap().1["command_status"],
            "SUCCEEDED",
            "the second one works"
        );
    }
}

#[tokio::test]
async fn a_machine_that_dies_is_silent_until_its_power_is_cycled() {
    let lab = Lab::new(Faults::none().dies_during_write()).await;
    lab.api
        .set(|behaviour| behaviour.heartbeat_timeout = json!(0.2));
    lab.boot().await;
    let running = lab.write_image(true);
    let silent = tokio::time::timeout(Duration::from_millis(400), running).await;
    assert!(
        silent.is_err(),
        "an open connection stays open without an answer"
    );
    let status = lab
        .client
        .get(lab.url("/v1/status"))
        .timeout(Duration::from_millis(200))
        .send()
        .await;
    assert!(
        status.unwrap_err().is_timeout(),
        "a new one is not answered either"
    );
    let heartbeats = lab.fleet.journal(MAC).heartbeats.len();
    let more = lab
        .fleet
        .wait_for(MAC, Duration::from_millis(400), |journal| {
            journal.heartbeats.len() > heartbeats
        });
    assert!(more.await.is_err(), "nor does it heartbeat");

    lab.fleet.power(MAC, false);
    lab.fleet.power(MAC, true);
    lab.wait(|journal| journal.agent_starts == 2 && journal.heartbeats.len() > heartbeats)
        .await;
    assert_eq!(
        lab.write_image(true).await.unwrap().1["command_status"],
        "SUCCEEDED"
    );
}

#[tokio::test]
async fn a_write_can_hang_while_the_agent_heartbeats() {
    let lab = Lab::new(Faults::none().hangs_during_write()).await;
    lab.api
        .set(|behaviour| behaviour.heartbeat_timeout = json!(0.2));
    lab.boot().await;
    lab.write_image(false).await.unwrap();
    let before = lab.fleet.journal(MAC).heartbeats.len();
    lab.wait(|journal| journal.heartbeats.len() > before + 5)
        .await;
    assert_eq!(lab.list().await[0]["command_status"], "RUNNING");
}

#[tokio::test]
async fn an_agent_that_restarts_has_forgotten_everything() {
    let lab = Lab::new(Faults::none().restarts_during_write()).await;
    lab.boot().await;
    let (_, before) = lab.get("/v1/status").await.unwrap();
    let certificate = |lab: &Lab| {
        lab.api.requests("/v1/heartbeat/").last().unwrap().body["agent_verify_ca"].clone()
    };
    let old_certificate = certificate(&lab);
    let old_url = lab.url("");
    lab.write_image(true)
        .await
        .expect_err("the connection breaks");
    let journal = lab
        .wait(|journal| journal.agent_starts == 2 && journal.heartbeats.len() == 2)
        .await;
    assert_eq!(journal.power_ons, 1);
    let (_, after) = lab.get("/v1/status").await.unwrap();
    assert_ne!(before["started_at"], after["started_at"]);
    assert_ne!(old_certificate, certificate(&lab));
    assert_eq!(old_url, lab.url(""), "the address stays");
    assert_eq!(lab.list().await, Vec::<Value>::new());
}

#[tokio::test]
async fn a_port_can_refuse_connections_while_heartbeats_flow() {
    let lab = Lab::new(Faults::none().refuses_connections(Duration::from_millis(400))).await;
    lab.boot().await;
    assert!(lab.get("/v1/status").await.unwrap_err().is_connect());
    let opened = async {
        while lab.get("/v1/status").await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LIMIT, opened)
        .await
        .expect("it opens later");
}
