//! An agent whose every answer the test gives itself: for moments that no simulated machine can hold still.

use std::convert::Infallible;

use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use super::api::{Api, LIMIT};

/// A request of the conductor that waits for its answer.
pub struct Asked {
    pub method: String,
    pub path: String,
    pub body: Value,
    reply: oneshot::Sender<(u16, Value)>,
}

impl Asked {
    /// `deploy.get_deploy_steps` and the like; empty unless it is a command.
    pub fn command(&self) -> &str {
        self.body["name"].as_str().unwrap_or_default()
    }

    pub fn answer(self, status: u16, body: Value) {
        // The conductor may have given up waiting.
        let _ = self.reply.send((status, body));
    }

    /// Returns when the conductor has closed the connection without waiting for the answer.
    pub async fn is_given_up(&mut self) {
        tokio::time::timeout(LIMIT, self.reply.closed())
            .await
            .expect("the conductor gives the request up");
    }
}

/// The agent. It goes away when dropped.
pub struct Puppet {
    pub url: String,
    /// Bodies of the commands taken so far.
    pub posted: Vec<Value>,
    listed: Vec<Value>,
    asked: mpsc::UnboundedReceiver<Asked>,
    _tasks: JoinSet<()>,
}

impl Puppet {
    pub async fn start() -> Puppet {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (sender, asked) = mpsc::unbounded_channel();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let sender = sender.clone();
                let service = service_fn(move |request| ask(sender.clone(), request));
                connections.spawn(async move {
                    // A conductor that hangs up is no error here.
                    let _ = http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), service)
                        .await;
                });
            }
        });
        Puppet {
            url,
            posted: Vec::new(),
            listed: Vec::new(),
            asked,
            _tasks: tasks,
        }
    }

    /// Looks the node up and sends the first heartbeat; answers the token.
    pub async fn arrives(&self, api: &Api, mac: &str, uuid: &str) -> String {
        let token = self.looks_up(api, mac).await;
        let status = self.heartbeats(api, uuid, &token).await;
        assert_eq!(status, 202);
        token
    }

    pub async fn looks_up(&self, api: &Api, mac: &str) -> String {
        let path = format!("/v1/lookup?addresses={mac}");
        let found = api.expect(200, "GET", &path, Value::Null).await;
        found["config"]["agent_token"].as_str().unwrap().to_owned()
    }

    /// One heartbeat; answers the status.
    pub async fn heartbeats(&self, api: &Api, uuid: &str, token: &str) -> u16 {
        let heartbeat =
            json!({"callback_url": self.url, "agent_token": token, "agent_version": "13.0.0"});
        api.send("POST", &format!("/v1/heartbeat/{uuid}"), heartbeat)
            .await
            .0
    }

    /// The next request, whatever it is.
    pub async fn next(&mut self, what: &str) -> Asked {
        match tokio::time::timeout(LIMIT, self.asked.recv()).await {
            Ok(asked) => asked.expect("the server lives as long as the puppet"),
            Err(_) => panic!("the conductor never asked: {what}"),
        }
    }

    /// Answers all reading requests until `wanted` comes, which is left to the test.
    pub async fn until(&mut self, what: &str, wanted: impl Fn(&Asked) -> bool) -> Asked {
        let limit = tokio::time::Instant::now() + LIMIT;
        loop {
            assert!(
                tokio::time::Instant::now() < limit,
                "the conductor never asked: {what}"
            );
            let asked = self.next(what).await;
            if wanted(&asked) {
                return asked;
            }
            self.read(asked);
        }
    }

    /// Answers what was asked as an agent does that has done nothing but what [`Puppet::take`] took.
    pub fn read(&self, asked: Asked) {
        assert_eq!(asked.method, "GET", "{} {}", asked.path, asked.body);
        match asked.path.as_str() {
            "/v1/status" => asked.answer(200, json!({"started_at": 1.5, "version": "13.0.0"})),
            "/v1/commands/" => asked.answer(200, json!({"commands": self.listed})),
            one => {
                let id = one.trim_start_matches("/v1/commands/");
                let found = self.listed.iter().find(|entry| entry["id"] == id);
                match found.cloned() {
                    Some(entry) => asked.answer(200, entry),
                    None => asked.answer(404, json!({"faultstring": "no such command"})),
                }
            }
        }
    }

    /// Waits for a command, answering all else.
    pub async fn command(&mut self, name: &str) -> Asked {
        let asked = self.until(name, |asked| asked.method == "POST").await;
        assert_eq!(asked.command(), name);
        asked
    }

    /// Takes a command: it is listed with this status and result from now on, and the conductor is told so.
    pub fn take(&mut self, asked: Asked, status: &str, result: Value) {
        let entry = self.keep(&asked, status, result);
        asked.answer(200, entry);
    }

    /// Takes a command without telling.
    pub fn keep(&mut self, asked: &Asked, status: &str, result: Value) -> Value {
        let name = asked.command().split_once('.').unwrap().1;
        let entry = json!({
            "id": format!("00000000-0000-4000-8000-{:012}", self.listed.len() + 1),
            "command_name": name, "command_params": {}, "command_status": status,
            "command_error": null, "command_result": result,
        });
        self.posted.push(asked.body.clone());
        self.listed.push(entry.clone());
        entry
    }

    /// Works on a command that somebody else has given it.
    pub fn begins(&mut self, command: &str) {
        let name = command.split_once('.').unwrap().1;
        self.listed.push(json!({
            "id": format!("00000000-0000-4000-8000-{:012}", self.listed.len() + 1),
            "command_name": name, "command_params": {}, "command_status": "RUNNING",
            "command_error": null, "command_result": null,
        }));
    }

    /// Says that the command it began last has come to its end.
    pub fn finish(&mut self, status: &str, result: Value) {
        let entry = self.listed.last_mut().unwrap();
        entry["command_status"] = status.into();
        entry["command_result"] = result;
    }

    /// Takes `deploy.get_deploy_steps` as an agent that has none of its own.
    pub async fn tells_its_steps(&mut self) {
        let asked = self.command("deploy.get_deploy_steps").await;
        let result = json!({"deploy_steps": {}, "hardware_manager_version": {"manager": "1"}});
        self.take(asked, "SUCCEEDED", result);
    }
}

async fn ask(
    sender: mpsc::UnboundedSender<Asked>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let method = request.method().to_string();
    let path = request.uri().path().to_owned();
    let body = match request.into_body().collect().await {
        Ok(body) => serde_json::from_slice(&body.to_bytes()).unwrap_or(Value::Null),
        Err(_) => Value::Null,
    };
    let (reply, answer) = oneshot::channel();
    let asked = Asked {
        method,
        path,
        body,
        reply,
    };
    // Once the puppet is gone nothing is answered any more.
    let _ = sender.send(asked);
    let (status, body) = match answer.await {
        Ok(answer) => answer,
        Err(_) => std::future::pending().await,
    };
    Ok(Response::builder()
        .status(status)
        .header("content-type", "application/json")
        .body(Full::new(Bytes::from(body.to_string())))
        .unwrap())
}
