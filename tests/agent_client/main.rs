//! The agent client against small servers: each way an answer can come, or not come, and what it counts as.

mod recorded;
mod scenarios;
mod server;
mod thread;
mod tls;

use std::time::Duration;

use serde_json::{Value, json};
use upbeat::agent::{AgentClient, CallbackRules, Settings, Target, TlsMinVersion};
use upbeat::command::{PostAnswer, Refusal, Status, Unreadable};

use server::{Play, Server, answer, chunked, half};

const TOKEN: &str = "token-that-must-not-be-shown";

/// Settings for loopback, with short limits.
fn settings() -> Settings {
    Settings {
        connect_timeout: Duration::from_millis(500),
        command_timeout: Duration::from_secs(2),
        response_bytes_max: 100_000,
        ca_file: None,
        tls_min_version: TlsMinVersion::V1_2,
        callback: CallbackRules {
            networks: vec!["127.0.0.0/8".parse().unwrap()],
            require_tls: false,
            allow_host_names: false,
        },
    }
}

fn client() -> AgentClient {
    AgentClient::new(settings()).unwrap()
}

fn target(port: u16) -> Target {
    Target {
        callback_url: format!("http://127.0.0.1:{port}"),
        certificate: None,
        token: TOKEN.to_owned(),
    }
}

fn command() -> Value {
    json!({"name": "standby.sync", "params": {}})
}

fn running() -> String {
    json!({"id": "a-1", "command_name": "sync", "command_status": "RUNNING", "command_error": null, "command_result": null})
        .to_string()
}

fn fault(text: &str) -> String {
    json!({"faultcode": "Client", "faultstring": text}).to_string()
}

async fn post_answered_by(play: Play) -> PostAnswer {
    let server = Server::plain(&[play]).await;
    let answer = client().post(&target(server.port), false, &command()).await;
    assert!(!format!("{answer:?}").contains(TOKEN), "{answer:?}");
    answer
}

async fn poll_answered_by(play: Play) -> Unreadable {
    let server = Server::plain(&[play]).await;
    let why = client()
        .poll(&target(server.port), "a-1")
        .await
        .unwrap_err();
    assert!(!format!("{why:?} {why}").contains(TOKEN), "{why:?}");
    why
}

fn is_unknown(answer: &PostAnswer) -> bool {
    matches!(answer, PostAnswer::Unknown { .. })
}

fn is_never_sent(answer: &PostAnswer) -> bool {
    matches!(answer, PostAnswer::NeverSent { .. })
}

#[tokio::test]
async fn a_command_object_means_accepted() {
    for bytes in [answer(200, &running()), chunked(200, &running())] {
        match post_answered_by(Play::Answer(bytes)).await {
            PostAnswer::Accepted(entry) => {
                assert_eq!((entry.id.as_str(), entry.status), ("a-1", Status::Running));
            }
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn a_whole_answer_in_the_agents_format_refuses() {
    let busy = "Agent is busy: executing command write_image";
    for (status, text, refusal) in [
        (
            409,
            busy,
            Refusal::Busy {
                text: busy.to_owned(),
            },
        ),
        (
            500,
            "Command execution failed: agent is busy",
            Refusal::Busy {
                text: "Command execution failed: agent is busy".to_owned(),
            },
        ),
        (
            401,
            "401 Unauthorized: Token invalid.",
            Refusal::Unauthorized,
        ),
        (
            400,
            "Invalid command: Unknown command: x",
            Refusal::Invalid {
                status: 400,
                text: "Invalid command: Unknown command: x".to_owned(),
            },
        ),
        (
            404,
            "Not found: Extension with id x not found.",
            Refusal::Invalid {
                status: 404,
                text: "Not found: Extension with id x not found.".to_owned(),
            },
        ),
    ] {
        let got = post_answered_by(Play::Answer(answer(status, &fault(text)))).await;
        assert_eq!(got, PostAnswer::Refused(refusal));
    }
}

#[tokio::test]
async fn anything_that_is_no_proof_leaves_a_command_unknown() {
    let whole = running();
    let cut = &whole[..whole.len() / 2];
    let page = "<html><body>Bad Gateway</body></html>";
    for (what, play) in [
        (
            "500 of a broken list",
            Play::Answer(answer(
                500,
                &fault("Object of type TypeError is not JSON serializable"),
            )),
        ),
        ("503", Play::Answer(answer(503, &fault("try later")))),
        ("page of a proxy", Play::Answer(answer(502, page))),
        ("409 that is no agent's", Play::Answer(answer(409, page))),
        ("401 that is no agent's", Play::Answer(answer(401, page))),
        ("400 without a text", Play::Answer(answer(400, "{}"))),
        ("success without a command", Play::Answer(answer(200, "{}"))),
        ("success with a page", Play::Answer(answer(200, page))),
        ("success with nothing", Play::Answer(answer(202, ""))),
        ("cut-off body", Play::AnswerAndClose(half(200, &whole))),
        ("cut-off JSON", Play::AnswerAndClose(answer(200, cut))),
        ("reset in the body", Play::AnswerAndReset(half(200, cut))),
        (
            "cut-off refusal",
            Play::AnswerAndClose(half(409, &fault("Agent is busy"))),
        ),
        (
            "closed in the head",
            Play::AnswerAndClose(b"HTTP/1.1 200 O".to_vec()),
        ),
        ("closed without a word", Play::AnswerAndClose(Vec::new())),
        ("reset without a word", Play::AnswerAndReset(Vec::new())),
        ("not HTTP", Play::AnswerAndClose(b"SSH-2.0-x\r\n".to_vec())),
        ("silence", Play::Silence),
        ("too large", Play::Answer(answer(200, &" ".repeat(100_001)))),
        (
            "too large in chunks",
            Play::Answer(chunked(200, &" ".repeat(100_001))),
        ),
    ] {
        let got = post_answered_by(play).await;
        assert!(is_unknown(&got), "{what}: {got:?}");
    }
}

#[tokio::test]
async fn a_refused_port_means_never_sent() {
    let free = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let got = client().post(&target(port), false, &command()).await;
    assert!(is_never_sent(&got), "{got:?}");
    assert!(
        format!("{got:?}").contains("tcp connect error: Connection refused"),
        "{got:?}"
    );
    assert!(!format!("{got:?}").contains(TOKEN));
    let why = client().survey(&target(port)).await.unwrap_err();
    assert_eq!(why, Unreadable::NobodyListens);
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let other = Server::plain(&[Play::Answer(answer(200, &running()))]).await;
    for status in [301, 307, 308] {
        let to_other = format!(
            "HTTP/1.1 {status} X\r\nLocation: http://127.0.0.1:{}/v1/commands/\r\nContent-Length: 0\r\n\r\n",
            other.port
        );
        let got = post_answered_by(Play::Answer(to_other.clone().into_bytes())).await;
        assert!(is_unknown(&got), "{got:?}");
        let why = poll_answered_by(Play::Answer(to_other.into_bytes())).await;
        assert!(matches!(why, Unreadable::Garbage { .. }), "{why:?}");
    }
    assert_eq!(other.seen.connections(), 0);
}

#[tokio::test]
async fn a_command_travels_once_on_a_connection_of_its_own() {
    let server = Server::plain(&[
        Play::Answer(answer(200, r#"{"started_at": 1.5, "version": "13.0.0"}"#)),
        Play::Answer(answer(200, r#"{"commands": []}"#)),
        Play::AnswerAndClose(Vec::new()),
        Play::Answer(answer(200, &running())),
    ])
    .await;
    let (client, target) = (client(), target(server.port));
    let (instance, entries) = client.survey(&target).await.unwrap();
    assert_eq!(instance.started_at, "1.5");
    assert_eq!(instance.callback_url, target.callback_url);
    assert_eq!(instance.certificate_sha256, None);
    assert_eq!(entries, []);
    assert_eq!(server.seen.connections(), 1, "both reads share one");

    assert!(is_unknown(&client.post(&target, true, &command()).await));
    assert_eq!(server.seen.connections(), 2);
    assert!(matches!(
        client.post(&target, false, &command()).await,
        PostAnswer::Accepted(_)
    ));
    assert_eq!(server.seen.connections(), 3);
    // Even the connection of a command that was answered well is not used again.
    client.post(&target, false, &command()).await;
    assert_eq!(server.seen.connections(), 4);

    let requests = server.seen.requests();
    assert_eq!(requests.len(), 5, "nothing was repeated: {requests:#?}");
    let first_lines: Vec<&str> = requests.iter().filter_map(|r| r.lines().next()).collect();
    assert_eq!(
        first_lines,
        [
            "GET /v1/status HTTP/1.1".to_owned(),
            format!("GET /v1/commands/?agent_token={TOKEN} HTTP/1.1"),
            format!("POST /v1/commands/?wait=true&agent_token={TOKEN} HTTP/1.1"),
            format!("POST /v1/commands/?wait=false&agent_token={TOKEN} HTTP/1.1"),
            format!("POST /v1/commands/?wait=false&agent_token={TOKEN} HTTP/1.1"),
        ]
    );
    assert!(requests[3].ends_with(&command().to_string()));
}

/// The agent closes idle connections after 10 s.
#[tokio::test]
async fn an_idle_connection_is_closed_before_the_agent_would() {
    let server = Server::plain(&[Play::Answer(answer(200, &running()))]).await;
    let client = client();
    client.poll(&target(server.port), "a-1").await.unwrap();
    tokio::time::timeout(Duration::from_secs(9), server.seen.closed.notified())
        .await
        .unwrap();
    let idle = server.seen.idle_before_close.lock().unwrap()[0];
    assert!(idle < Duration::from_secs(8), "{idle:?}");
}

#[tokio::test]
async fn reads_that_fail_say_why() {
    let not_found = fault("Not found: Command Result with id a-1 not found.");
    let poisoned = fault("Object of type TypeError is not JSON serializable");
    assert_eq!(
        poll_answered_by(Play::Answer(answer(
            401,
            &fault("401 Unauthorized: Token invalid.")
        )))
        .await,
        Unreadable::Unauthorized
    );
    assert_eq!(
        poll_answered_by(Play::Answer(answer(404, &not_found))).await,
        Unreadable::NotFound
    );
    assert_eq!(
        poll_answered_by(Play::Answer(answer(500, &poisoned))).await,
        Unreadable::Poisoned
    );
    for (what, play, word) in [
        (
            "another 500",
            Play::Answer(answer(500, &fault("boom"))),
            "boom",
        ),
        (
            "page of a proxy",
            Play::Answer(answer(404, "<html>")),
            "404",
        ),
        ("not JSON", Play::Answer(answer(200, "<html>")), "JSON"),
        (
            "another document",
            Play::Answer(answer(200, "{}")),
            "without",
        ),
        (
            "too large",
            Play::Answer(answer(200, &" ".repeat(100_001))),
            "larger than 100000",
        ),
        (
            "too large in chunks",
            Play::Answer(chunked(200, &" ".repeat(100_001))),
            "larger than 100000",
        ),
    ] {
        match poll_answered_by(play).await {
            Unreadable::Garbage { why } => assert!(why.contains(word), "{what}: {why}"),
            other => panic!("{what}: {other:?}"),
        }
    }
    for (what, play) in [
        ("cut-off body", Play::AnswerAndClose(half(200, &running()))),
        ("closed", Play::AnswerAndClose(Vec::new())),
        ("reset", Play::AnswerAndReset(Vec::new())),
        ("silence", Play::Silence),
    ] {
        let why = poll_answered_by(play).await;
        assert!(
            matches!(why, Unreadable::Unreachable { .. }),
            "{what}: {why:?}"
        );
    }
}

#[tokio::test]
async fn a_broken_list_is_told_from_a_missing_one() {
    let status = Play::Answer(answer(200, r#"{"started_at": 1, "version": "13.0.0"}"#));
    let poisoned = fault("Object of type TypeError is not JSON serializable");
    for (body, expected) in [
        ((500, poisoned), Unreadable::Poisoned),
        ((401, fault("Token invalid")), Unreadable::Unauthorized),
    ] {
        let server = Server::plain(&[status.clone(), Play::Answer(answer(body.0, &body.1))]).await;
        assert_eq!(
            client().survey(&target(server.port)).await.unwrap_err(),
            expected
        );
    }
    let server = Server::plain(&[Play::Answer(answer(404, &fault("Not found")))]).await;
    let why = client().survey(&target(server.port)).await.unwrap_err();
    assert!(matches!(why, Unreadable::Garbage { .. }), "{why:?}");
}

#[tokio::test]
async fn an_id_that_is_no_id_is_never_put_into_a_path() {
    let server = Server::plain(&[Play::Answer(answer(200, &running()))]).await;
    for id in ["", "../status", "a?wait=true", "a b", "ü"] {
        let why = client().poll(&target(server.port), id).await.unwrap_err();
        assert!(matches!(why, Unreadable::Garbage { .. }), "{id:?}: {why:?}");
    }
    assert_eq!(server.seen.connections(), 0);
}

#[tokio::test]
async fn addresses_outside_the_allowed_networks_are_not_called() {
    let server = Server::plain(&[Play::Answer(answer(200, &running()))]).await;
    let mut elsewhere = settings();
    elsewhere.callback.networks = vec!["10.0.0.0/8".parse().unwrap()];
    let mut tls_only = settings();
    tls_only.callback.require_tls = true;
    for (settings, word) in [(elsewhere, "callback_networks"), (tls_only, "require_tls")] {
        let client = AgentClient::new(settings).unwrap();
        let got = client.post(&target(server.port), false, &command()).await;
        assert!(is_never_sent(&got), "{got:?}");
        assert!(format!("{got:?}").contains(word), "{got:?}");
        assert!(client.survey(&target(server.port)).await.is_err());
    }
    assert_eq!(server.seen.connections(), 0);
}

#[tokio::test]
async fn what_a_host_name_resolves_to_is_checked_too() {
    let server = Server::plain(&[Play::Answer(answer(200, &running()))]).await;
    let by_name = Target {
        callback_url: format!("http://localhost:{}", server.port),
        ..target(0)
    };
    let mut names = settings();
    names.callback.allow_host_names = true;
    let got = AgentClient::new(names.clone())
        .unwrap()
        .post(&by_name, false, &command())
        .await;
    assert!(matches!(got, PostAnswer::Accepted(_)), "{got:?}");
    assert_eq!(server.seen.connections(), 1);

    names.callback.networks = vec!["10.0.0.0/8".parse().unwrap()];
    let got = AgentClient::new(names)
        .unwrap()
        .post(&by_name, false, &command())
        .await;
    assert!(is_never_sent(&got), "{got:?}");
    assert!(format!("{got:?}").contains("callback_networks"), "{got:?}");
    assert_eq!(server.seen.connections(), 1);
}
