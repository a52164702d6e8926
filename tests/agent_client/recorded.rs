//! What a real agent answered, served again: every recorded answer must count as what it is.

use serde_json::{Value, json};
use upbeat::command::{PostAnswer, Refusal, Unreadable};

use super::server::{Play, Server, answer};
use super::{client, target};

const RECORDINGS: [&str; 3] = [
    include_str!("../fixtures/wire/agent-commands.jsonl"),
    include_str!("../fixtures/wire/agent-poisoned-list.jsonl"),
    include_str!("../fixtures/wire/agent-image-failures.jsonl"),
];

#[tokio::test]
async fn every_recorded_answer_counts_as_what_it_is() {
    let (mut commands, mut reads) = (0, 0);
    for exchange in RECORDINGS.iter().flat_map(|file| file.lines()) {
        let exchange: Value = serde_json::from_str(exchange).unwrap();
        let path = exchange["path"].as_str().unwrap();
        if exchange["to"] != "agent" || !path.starts_with("/v1/commands") {
            continue;
        }
        let status = u16::try_from(exchange["status"].as_u64().unwrap()).unwrap();
        let body = match &exchange["response"] {
            Value::String(page) => page.clone(),
            document => document.to_string(),
        };
        let recorded = Play::Answer(answer(status, &body));
        let is_list = exchange["method"] == "GET" && path == "/v1/commands/";
        let server = if is_list {
            let started = json!({"started_at": 1}).to_string();
            Server::plain(&[Play::Answer(answer(200, &started)), recorded]).await
        } else {
            Server::plain(&[recorded]).await
        };
        let target = target(server.port);
        match exchange["method"].as_str().unwrap() {
            "POST" => {
                commands += 1;
                let got = client().post(&target, false, &exchange["request"]).await;
                let fits = match status {
                    200 => {
                        matches!(&got, PostAnswer::Accepted(entry) if entry.id == exchange["response"]["id"])
                    }
                    401 => got == PostAnswer::Refused(Refusal::Unauthorized),
                    409 => {
                        matches!(&got, PostAnswer::Refused(Refusal::Busy { text }) if text.contains("execute_deploy_step"))
                    }
                    400 | 404 => {
                        matches!(&got, PostAnswer::Refused(Refusal::Invalid { status: told, .. }) if *told == status)
                    }
                    _ => matches!(got, PostAnswer::Unknown { .. }),
                };
                assert!(fits, "{exchange}: {got:?}");
            }
            "GET" if is_list => {
                reads += 1;
                let got = client().survey(&target).await;
                let fits = match status {
                    200 => got.is_ok_and(|(_, entries)| {
                        entries.len() == exchange["response"]["commands"].as_array().unwrap().len()
                    }),
                    401 => got == Err(Unreadable::Unauthorized),
                    500 => got == Err(Unreadable::Poisoned),
                    _ => false,
                };
                assert!(fits, "{exchange}");
            }
            "GET" if path != "/v1/commands" => {
                reads += 1;
                let got = client()
                    .poll(&target, path.rsplit('/').next().unwrap())
                    .await;
                let fits = match status {
                    200 => got.is_ok_and(|entry| entry.id == exchange["response"]["id"]),
                    404 => got == Err(Unreadable::NotFound),
                    _ => false,
                };
                assert!(fits, "{exchange}");
            }
            _ => {}
        }
    }
    assert!(
        commands > 30 && reads > 10,
        "{commands} commands, {reads} reads"
    );
}
