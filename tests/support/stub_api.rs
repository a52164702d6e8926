//! The three answers an agent needs, from a server that records who asked for them.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::AbortHandle;

pub const NODE: &str = "11111111-2222-4333-8444-555555555555";
pub const TOKEN: &str = "stub-token-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx";

/// What the stub answers.
pub struct Behaviour {
    /// `GET /`.
    pub version: Value,
    pub token: Value,
    /// Seconds.
    pub heartbeat_timeout: Value,
    /// Statuses of the next look-ups; 200 when used up.
    pub lookup_statuses: VecDeque<u16>,
    /// Statuses of the next deliveries of inspection data; 404 when used up, as for a node nobody inspects.
    pub inspection_statuses: VecDeque<u16>,
    /// Statuses of the next heartbeats; 202 when used up.
    pub heartbeat_statuses: VecDeque<u16>,
}

/// One request.
#[derive(Debug, Clone)]
pub struct Seen {
    pub path: String,
    pub query: String,
    pub version: Option<String>,
    pub body: Value,
}

struct Shared {
    behaviour: Behaviour,
    seen: Vec<Seen>,
}

pub struct StubApi {
    pub url: String,
    shared: Arc<Mutex<Shared>>,
    server: AbortHandle,
}

impl StubApi {
    pub async fn start() -> Self {
        let behaviour = Behaviour {
            version: json!({"default_version": {"id": "v1", "version": "1.115", "min_version": "1.1"}, "versions": []}),
            token: json!(TOKEN),
            heartbeat_timeout: json!(300),
            lookup_statuses: VecDeque::new(),
            inspection_statuses: VecDeque::new(),
            heartbeat_statuses: VecDeque::new(),
        };
        let shared = Arc::new(Mutex::new(Shared {
            behaviour,
            seen: Vec::new(),
        }));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let server = tokio::spawn(serve(listener, shared.clone())).abort_handle();
        Self {
            url,
            shared,
            server,
        }
    }

    pub fn set(&self, change: impl FnOnce(&mut Behaviour)) {
        change(&mut self.shared.lock().unwrap().behaviour);
    }

    /// The requests whose path begins like this, oldest first.
    pub fn requests(&self, path: &str) -> Vec<Seen> {
        self.shared
            .lock()
            .unwrap()
            .seen
            .iter()
            .filter(|seen| seen.path.starts_with(path))
            .cloned()
            .collect()
    }
}

impl Drop for StubApi {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn serve(listener: TcpListener, shared: Arc<Mutex<Shared>>) {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            return;
        };
        let shared = shared.clone();
        tokio::spawn(async move {
            let service = service_fn(move |request| answer(shared.clone(), request));
            // An agent that is switched off in mid-request is no failure of the test.
            let _ = http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

async fn answer(
    shared: Arc<Mutex<Shared>>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (head, body) = request.into_parts();
    let body = body
        .collect()
        .await
        .map(|body| body.to_bytes())
        .unwrap_or_default();
    let path = head.uri.path().to_owned();
    let mut shared = shared.lock().unwrap();
    shared.seen.push(Seen {
        path: path.clone(),
        query: head.uri.query().unwrap_or_default().to_owned(),
        version: head
            .headers
            .get("X-OpenStack-Ironic-API-Version")
            .map(|version| version.to_str().unwrap().to_owned()),
        body: serde_json::from_slice(&body).unwrap_or(Value::Null),
    });
    let behaviour = &mut shared.behaviour;
    let (status, body) = match path.as_str() {
        "/" => (200, behaviour.version.clone()),
        "/v1/lookup" => match behaviour.lookup_statuses.pop_front() {
            None | Some(200) => (200, lookup(behaviour)),
            Some(status) => (status, Value::Null),
        },
        "/v1/continue_inspection" => match behaviour.inspection_statuses.pop_front() {
            Some(202) => (202, json!({"uuid": NODE})),
            other => (other.unwrap_or(404), Value::Null),
        },
        path if path.starts_with("/v1/heartbeat/") => (
            behaviour.heartbeat_statuses.pop_front().unwrap_or(202),
            Value::Null,
        ),
        _ => (404, Value::Null),
    };
    let text = if body.is_null() {
        String::new()
    } else {
        body.to_string()
    };
    Ok(Response::builder()
        .status(status)
        .body(Full::new(Bytes::from(text)))
        .unwrap())
}

fn lookup(behaviour: &Behaviour) -> Value {
    json!({
        "node": {"uuid": NODE, "properties": {}, "instance_info": {}, "driver_internal_info": {}},
        "config": {
            "heartbeat_timeout": behaviour.heartbeat_timeout,
            "agent_token": behaviour.token,
            "agent_token_required": true,
        },
    })
}
