//! The smallest conductor that can hold the demo: it enrols, deploys one image and forgets everything.
//!
//! It stands in for the real one so that the demo's own doings (enrolling, following, judging, reporting) can be tested
//! by themselves. It trusts everybody and stores nothing.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use upbeat::demo::{ConductorSettings, RunningConductor, StartConductor};
use upbeat::driver::Switch;

const TOKEN: &str = "tiny-token-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx";

/// What the conductor does wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flaw {
    None,
    /// Sends a command again when its reply was lost, without asking the agent, once the agent is free.
    SendsTwice,
}

pub struct TinyConductor(pub Flaw);

struct Node {
    name: String,
    macs: Vec<String>,
    state: &'static str,
    last_error: Option<String>,
    last_heartbeat: Instant,
    is_deploying: bool,
}

struct Shared {
    settings: ConductorSettings,
    flaw: Flaw,
    client: reqwest::Client,
    nodes: Mutex<BTreeMap<String, Node>>,
}

impl StartConductor for TinyConductor {
    async fn start(&self, settings: ConductorSettings) -> Result<RunningConductor, String> {
        assert!(settings.state_dir.is_dir());
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder()
            .tls_danger_accept_invalid_certs(true)
            .pool_max_idle_per_host(0)
            .timeout(Duration::from_secs(10))
            .build()
            .unwrap();
        let listener = TcpListener::bind(settings.listen)
            .await
            .map_err(|error| error.to_string())?;
        let api_url = format!("http://{}", listener.local_addr().unwrap());
        let shared = Arc::new(Shared {
            settings,
            flaw: self.0,
            client,
            nodes: Mutex::default(),
        });
        let server = tokio::spawn(async move {
            loop {
                let Ok((stream, _)) = listener.accept().await else {
                    return;
                };
                let shared = shared.clone();
                tokio::spawn(async move {
                    let service = service_fn(move |request| answer(shared.clone(), request));
                    let _ = http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), service)
                        .await;
                });
            }
        });
        Ok(RunningConductor {
            api_url,
            stop: Box::new(move || Box::pin(async move { server.abort() })),
        })
    }
}

async fn answer(
    shared: Arc<Shared>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (head, body) = request.into_parts();
    let body = body
        .collect()
        .await
        .map(|body| body.to_bytes())
        .unwrap_or_default();
    let body: Value = serde_json::from_slice(&body).unwrap_or(Value::Null);
    let path: Vec<&str> = head.uri.path().split('/').skip(1).collect();
    let query: BTreeMap<String, String> =
        url::form_urlencoded::parse(head.uri.query().unwrap_or_default().as_bytes())
            .into_owned()
            .collect();
    let (status, reply) = match (head.method.clone(), path.as_slice()) {
        (Method::GET, [""]) => (200, json!({"default_version": {"version": "1.115"}})),
        (Method::POST, ["v1", "nodes"]) => (201, shared.create(&body)),
        (Method::POST, ["v1", "ports"]) => (201, shared.add_port(&body)),
        (Method::GET, ["v1", "nodes"]) => (200, shared.list(&query)),
        (Method::GET, ["v1", "nodes", uuid]) => (200, show(uuid, &shared.nodes()[*uuid])),
        (Method::PUT, ["v1", "nodes", uuid, "states", "provision"]) => {
            shared.provision(uuid, &body)
        }
        (Method::GET, ["v1", "lookup"]) => shared.lookup(&query["addresses"]),
        (Method::POST, ["v1", "heartbeat", uuid]) => shared.clone().heartbeat(uuid, &body),
        _ => (404, Value::Null),
    };
    let text = if reply.is_null() {
        String::new()
    } else {
        reply.to_string()
    };
    Ok(Response::builder()
        .status(status)
        .body(Full::new(Bytes::from(text)))
        .unwrap())
}

fn show(uuid: &str, node: &Node) -> Value {
    json!({
        "uuid": uuid, "name": node.name, "provision_state": node.state, "target_provision_state": null,
        "last_error": node.last_error,
    })
}

impl Shared {
    fn nodes(&self) -> MutexGuard<'_, BTreeMap<String, Node>> {
        self.nodes.lock().unwrap()
    }

    fn create(&self, body: &Value) -> Value {
        assert_eq!(body["driver"], "fake-hardware");
        assert_eq!(
            body["instance_info"]["image_os_hash_value"]
                .as_str()
                .unwrap()
                .len(),
            64
        );
        let uuid = uuid::Uuid::new_v4().to_string();
        let node = Node {
            name: body["name"].as_str().unwrap().to_owned(),
            macs: Vec::new(),
            state: "enroll",
            last_error: None,
            last_heartbeat: Instant::now(),
            is_deploying: false,
        };
        let shown = show(&uuid, &node);
        self.nodes().insert(uuid, node);
        shown
    }

    fn add_port(&self, body: &Value) -> Value {
        let mut nodes = self.nodes();
        let node = nodes.get_mut(body["node_uuid"].as_str().unwrap()).unwrap();
        node.macs.push(body["address"].as_str().unwrap().to_owned());
        json!({"uuid": "port"})
    }

    fn list(&self, query: &BTreeMap<String, String>) -> Value {
        let after = query.get("marker").map(String::as_str).unwrap_or_default();
        let limit = query["limit"].parse().unwrap();
        let nodes = self.nodes();
        let page: Vec<Value> = nodes
            .iter()
            .filter(|(uuid, _)| uuid.as_str() > after)
            .take(limit)
            .map(|(uuid, node)| show(uuid, node))
            .collect();
        json!({"nodes": page})
    }

    fn provision(&self, uuid: &str, body: &Value) -> (u16, Value) {
        let mut nodes = self.nodes();
        let node = nodes.get_mut(uuid).unwrap();
        (node.state, node.is_deploying) = match (body["target"].as_str().unwrap(), node.state) {
            ("manage", "enroll") => ("manageable", false),
            ("provide", "manageable") => ("available", false),
            ("active", "available") => ("wait call-back", false),
            _ => return (400, Value::Null),
        };
        if node.state == "wait call-back" {
            let macs = node.macs.clone();
            (self.settings.power_hook)(uuid, &macs, Switch::Off);
            (self.settings.power_hook)(uuid, &macs, Switch::OnToRamdisk);
        }
        (202, Value::Null)
    }

    fn lookup(&self, mac: &str) -> (u16, Value) {
        let nodes = self.nodes();
        let found = nodes.iter().find(|(_, node)| {
            node.state == "wait call-back" && node.macs.iter().any(|own| own == mac)
        });
        let Some((uuid, _)) = found else {
            return (404, Value::Null);
        };
        let config = json!({"heartbeat_timeout": self.settings.heartbeat_timeout.as_secs_f64(), "agent_token": TOKEN});
        (
            200,
            json!({"node": {"uuid": uuid, "properties": {}, "instance_info": {}}, "config": config}),
        )
    }

    fn heartbeat(self: Arc<Self>, uuid: &str, body: &Value) -> (u16, Value) {
        let mut nodes = self.nodes();
        let node = nodes.get_mut(uuid).unwrap();
        node.last_heartbeat = Instant::now();
        if !std::mem::replace(&mut node.is_deploying, true) {
            let deploy = self.clone().deploy(
                uuid.to_owned(),
                body["callback_url"].as_str().unwrap().to_owned(),
            );
            tokio::spawn(deploy);
        }
        (202, Value::Null)
    }

    async fn deploy(self: Arc<Self>, uuid: String, agent: String) {
        let result = self.write_image(&uuid, &agent).await;
        let macs = self.nodes()[&uuid].macs.clone();
        if result.is_ok() {
            let _ = self.post(&agent, "standby.power_off", json!({})).await;
        }
        (self.settings.power_hook)(&uuid, &macs, Switch::Off);
        let mut nodes = self.nodes();
        let node = nodes.get_mut(&uuid).unwrap();
        node.last_error = result.as_ref().err().cloned();
        node.state = if result.is_ok() {
            "active"
        } else {
            "deploy failed"
        };
        if result.is_ok() {
            (self.settings.power_hook)(&uuid, &macs, Switch::On);
        }
    }

    async fn write_image(&self, uuid: &str, agent: &str) -> Result<(), String> {
        let node = json!({"uuid": uuid, "properties": {}, "instance_info": {}});
        let steps = self
            .post(
                agent,
                "deploy.get_deploy_steps",
                json!({"node": node, "ports": []}),
            )
            .await?;
        assert_eq!(steps["command_status"], "SUCCEEDED");
        let image_info = json!({"id": "i", "urls": ["http://i"], "checksum": "0".repeat(64), "disk_format": "raw"});
        let step = json!({"interface": "deploy", "step": "write_image", "args": {"image_info": image_info}});
        let params = json!({"step": step, "node": node, "ports": []});
        let sent = self
            .post(agent, "deploy.execute_deploy_step", params.clone())
            .await;
        let mut sends_again = sent.is_err() && self.flaw == Flaw::SendsTwice;
        loop {
            tokio::time::sleep(self.settings.command_poll_interval).await;
            let silent_for = self.nodes()[uuid].last_heartbeat.elapsed();
            if silent_for > self.settings.silence_timeout {
                return Err(format!(
                    "the agent went silent {} s ago",
                    silent_for.as_secs()
                ));
            }
            let url = format!("{agent}/v1/commands/?agent_token={TOKEN}");
            let Ok(answer) = self.client.get(url).send().await else {
                continue;
            };
            let list: Value = answer.json().await.map_err(|error| error.to_string())?;
            // Nothing listed: the command did not arrive.
            let last = list["commands"]
                .as_array()
                .unwrap()
                .last()
                .cloned()
                .unwrap_or_default();
            if last["command_name"] != "execute_deploy_step" {
                let _ = self
                    .post(agent, "deploy.execute_deploy_step", params.clone())
                    .await;
                continue;
            }
            if last["command_status"] == "SUCCEEDED" {
                if !std::mem::take(&mut sends_again) {
                    return Ok(());
                }
                self.post(agent, "deploy.execute_deploy_step", params.clone())
                    .await?;
            }
        }
    }

    async fn post(&self, agent: &str, name: &str, params: Value) -> Result<Value, String> {
        let url = format!("{agent}/v1/commands/?wait=false&agent_token={TOKEN}");
        let body = json!({"name": name, "params": params});
        let answer = self
            .client
            .post(url)
            .json(&body)
            .send()
            .await
            .map_err(|error| error.to_string())?;
        answer.json().await.map_err(|error| error.to_string())
    }
}
