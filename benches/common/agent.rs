//! An agent as the benches play it: what a real one with a certificate sends, on a connection it keeps.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use serde_json::{Value, json};
use upbeat::node::steps::core_steps;
use upbeat::node::work::WorkPhase;
use upbeat::node::{Heartbeat, Node, NodeId, Provision, Session, TokenMatch};
use upbeat::timestamp::Timestamp;

/// What a ramdisk makes for itself.
pub const CERTIFICATE: &str = include_str!("../../tests/fixtures/tls/p384-sha512.pem");
/// Where the agent would be, if anybody called it.
pub const CALLBACK_URL: &str = "https://127.0.0.1:9999";
/// What the node's session is made from.
pub const NONCE: &str = "bench-nonce-of-22-chrs";

const VERSION: &str = "13.0.0";

/// A node as sites have them, in a deploy that pauses for an hour because a step asks for it. Its agent was heard and has told its
/// steps; there is nothing to ask of it.
pub fn node(number: u64, now: Timestamp) -> Node {
    let until = now.plus_ms(3_600_000);
    let mut node = waiting_for(number, WorkPhase::Pausing { until }, now);
    node.deadlines.look = Some(until);
    if let Provision::Working(work) = &mut node.provision {
        work.steps = core_steps().into();
        work.agent_steps = (&steps_of_an_agent()).into();
    }
    node
}

/// The same, before its agent's first heartbeat.
pub fn looked_up(number: u64, now: Timestamp) -> Node {
    let mut node = waiting_for(number, WorkPhase::AwaitingAgent, now);
    node.session = Some(Session::opened(NONCE.to_owned(), now));
    node
}

fn waiting_for(number: u64, phase: WorkPhase, now: Timestamp) -> Node {
    let mut node = super::heard(number, NONCE, now);
    node.attributes = super::described(number, now).attributes;
    if let Some(session) = &mut node.session {
        session.callback_url = Some(CALLBACK_URL.to_owned());
        session.certificate = Some(CERTIFICATE.to_owned());
    }
    if let Provision::Working(work) = &mut node.provision {
        work.phase = phase;
    }
    node
}

/// As a real one told them.
fn steps_of_an_agent() -> Value {
    const RECORDING: &str = include_str!("../../tests/fixtures/wire/deploy-raw.jsonl");
    let told = RECORDING.lines().find_map(|line| {
        let exchange: Value = serde_json::from_str(line).expect("JSON lines");
        let steps = exchange.pointer("/response/commands/0/command_result/deploy_steps");
        steps.cloned()
    });
    told.expect("the agent was asked for its steps")
}

/// Its heartbeat as the core sees it.
pub fn heartbeat(token: TokenMatch) -> Heartbeat {
    Heartbeat {
        callback_url: CALLBACK_URL.to_owned(),
        agent_version: Some(VERSION.to_owned()),
        certificate: Some(CERTIFICATE.to_owned()),
        token,
    }
}

/// The body of its heartbeat.
pub fn body(token: &str) -> String {
    json!({
        "callback_url": CALLBACK_URL,
        "agent_token": token,
        "agent_version": VERSION,
        "agent_verify_ca": CERTIFICATE,
    })
    .to_string()
}

/// Its heartbeat as it travels.
pub fn request(node: NodeId, token: &str) -> Vec<u8> {
    let body = body(token);
    format!(
        "POST /v1/heartbeat/{node} HTTP/1.1\r\n\
         Host: upbeat.example:6385\r\n\
         User-Agent: python-requests/2.32.5\r\n\
         Accept-Encoding: gzip, deflate\r\n\
         Accept: application/json\r\n\
         Connection: keep-alive\r\n\
         X-OpenStack-Ironic-API-Version: 1.68\r\n\
         Content-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// One connection to the API, one request at a time.
pub struct Line {
    stream: TcpStream,
    answer: [u8; 4096],
}

impl Line {
    /// Connects.
    pub fn to(address: SocketAddr) -> Line {
        let stream = TcpStream::connect(address).expect("the API listens");
        stream.set_nodelay(true).expect("a TCP connection");
        stream
            .set_read_timeout(Some(super::PATIENCE))
            .expect("a timeout");
        let answer = [0; 4096];
        Line { stream, answer }
    }

    /// Sends `request` and reads its answer, which is `202` and has no body.
    pub fn accepted(&mut self, request: &[u8]) {
        let Line { stream, answer } = self;
        stream.write_all(request).expect("the request is sent");
        let mut length = 0;
        while !answer[..length].ends_with(b"\r\n\r\n") {
            let read = stream.read(&mut answer[length..]).expect("an answer");
            assert_ne!(read, 0, "the connection was closed");
            length += read;
        }
        let answer = &answer[..length];
        assert!(
            answer.starts_with(b"HTTP/1.1 202 "),
            "{}",
            String::from_utf8_lossy(answer)
        );
    }
}
