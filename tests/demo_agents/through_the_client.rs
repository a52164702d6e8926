//! The agents as the conductor's own client sees them.

use serde_json::{Value, json};
use upbeat::agent::{AgentClient, CallbackRules, Settings, Target, TlsMinVersion};
use upbeat::command::{PostAnswer, Refusal, Unreadable};
use upbeat::demo::fleet::Curve;
use upbeat::demo::{Faults, FleetOptions, WriteWhenLost};

use crate::lab::*;
use crate::stub_api::StubApi;

fn agent_client() -> AgentClient {
    let settings = Settings {
        connect_timeout: LIMIT,
        command_timeout: LIMIT,
        response_bytes_max: 1 << 20,
        ca_file: None,
        tls_min_version: TlsMinVersion::V1_3,
        callback: CallbackRules {
            networks: vec!["127.0.0.0/8".parse().unwrap()],
            require_tls: true,
            allow_host_names: false,
        },
    };
    AgentClient::new(settings).unwrap()
}

fn target(lab: &Lab) -> Target {
    let heartbeat = lab.api.requests("/v1/heartbeat/").pop().unwrap().body;
    Target {
        callback_url: heartbeat["callback_url"].as_str().unwrap().to_owned(),
        certificate: heartbeat["agent_verify_ca"].as_str().map(str::to_owned),
        token: TOKEN.to_owned(),
    }
}

fn a_write() -> Value {
    json!({"name": "deploy.execute_deploy_step", "params": write_image()})
}

#[tokio::test]
async fn the_pinned_certificate_is_accepted_on_both_curves() {
    for curve in [Curve::P256, Curve::P384] {
        let options = FleetOptions { curve, ..quick() };
        let lab = Lab::with(slow(), options, StubApi::start().await);
        lab.boot().await;
        let (client, target) = (agent_client(), target(&lab));
        let (instance, entries) = client.survey(&target).await.unwrap();
        assert_eq!(instance.callback_url, target.callback_url);
        assert!(entries.is_empty());
        let PostAnswer::Accepted(entry) = client.post(&target, false, &a_write()).await else {
            panic!("accepted")
        };
        assert_eq!(client.poll(&target, &entry.id).await.unwrap(), entry);
        let again = client.post(&target, false, &a_write()).await;
        assert!(
            matches!(again, PostAnswer::Refused(Refusal::Busy { .. })),
            "{again:?}"
        );
    }
}

#[tokio::test]
async fn a_lost_reply_leaves_doubt_and_a_refused_connection_does_not() {
    let lab = Lab::new(slow().loses_first_reply(WriteWhenLost::StillRunning)).await;
    lab.boot().await;
    let (client, target) = (agent_client(), target(&lab));
    let lost = client.post(&target, false, &a_write()).await;
    assert!(matches!(lost, PostAnswer::Unknown { .. }), "{lost:?}");
    assert_eq!(client.survey(&target).await.unwrap().1.len(), 1);
    lab.fleet.stop().await;
    let refused = client.post(&target, false, &a_write()).await;
    assert!(
        matches!(refused, PostAnswer::NeverSent { .. }),
        "{refused:?}"
    );
}

#[tokio::test]
async fn an_agent_that_restarted_is_somebody_else() {
    let lab = Lab::new(Faults::none().restarts_during_write()).await;
    lab.boot().await;
    let (client, target) = (agent_client(), target(&lab));
    client.post(&target, false, &a_write()).await;
    lab.wait(|journal| journal.agent_starts == 2 && journal.heartbeats.len() == 2)
        .await;
    assert_eq!(
        client.survey(&target).await.unwrap_err(),
        Unreadable::CertificateMismatch
    );
}
