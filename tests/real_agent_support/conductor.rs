//! `upbeat serve` in a temporary folder, and the part of its API the tests use.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::machine::{Agent, Machine};
use super::{eventually, free_port, tail};

/// The API version the tests speak: the lowest that has all they need.
const API_VERSION: &str = "1.115";
const VERSION_HEADER: &str = "X-OpenStack-Ironic-API-Version";

/// A running conductor; ended when dropped.
pub struct Conductor {
    pub url: String,
    pub port: u16,
    process: Child,
    config: PathBuf,
    log: PathBuf,
    driver: &'static str,
    client: reqwest::Client,
    _folder: TempDir,
}

/// Settings a test may choose, in seconds.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    pub require_tls: bool,
    /// Agents report every 0.3 to 0.6 of it.
    pub heartbeat_timeout: u32,
    pub deploy_callback_timeout: u32,
    /// Longest time for one request to the agent.
    pub command_timeout: u32,
    /// Hardware type of the nodes.
    pub driver: &'static str,
    /// An agent that lost its token gets a new one, where the driver can't switch power.
    pub reissue_lost_token: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            require_tls: false,
            heartbeat_timeout: 10,
            deploy_callback_timeout: 1800,
            command_timeout: 60,
            driver: "fake-hardware",
            reissue_lost_token: false,
        }
    }
}

/// How a deploy ended, and the agent that did it (if one was booted).
pub struct Deploy {
    pub node: Value,
    pub agent: Option<Agent>,
}

impl Conductor {
    /// Starts the binary and waits until it is ready.
    ///
    /// `require_tls`: refuse agents that do not serve HTTPS.
    pub async fn start(require_tls: bool) -> Conductor {
        let settings = Settings {
            require_tls,
            ..Settings::default()
        };
        Conductor::start_with(settings).await
    }

    /// The same, with other settings.
    pub async fn start_with(settings: Settings) -> Conductor {
        // Already there if another test of this process was first.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let folder = tempfile::tempdir().expect("a temporary folder");
        let port = free_port();
        let Settings {
            require_tls,
            heartbeat_timeout,
            deploy_callback_timeout,
            command_timeout,
            driver,
            reissue_lost_token,
        } = settings;
        // A pretended power supply never reports that a machine went off by
        // itself, so there is no use in waiting for that.
        let settings = format!(
            "[api]\n\
             listen = \"127.0.0.1:{port}\"\n\
             [database]\n\
             url = \"sqlite://{}/upbeat.db\"\n\
             [conductor]\n\
             soft_power_off_wait = 2\n\
             automated_clean = false\n\
             deploy_callback_timeout = {deploy_callback_timeout}\n\
             [agent]\n\
             heartbeat_timeout = {heartbeat_timeout}\n\
             command_timeout = {command_timeout}\n\
             connect_timeout = 1\n\
             require_tls = {require_tls}\n\
             reissue_lost_token = {reissue_lost_token}\n\
             callback_networks = [\"127.0.0.0/8\"]\n",
            folder.path().display()
        );
        let config = folder.path().join("upbeat.toml");
        std::fs::write(&config, settings).expect("the configuration is written");

        let log = folder.path().join("upbeat.log");
        // A connection for each request: one that was kept may be closed, or its conductor killed, just when it is used again.
        let client = reqwest::Client::builder().pool_max_idle_per_host(0);
        let mut conductor = Conductor {
            url: format!("http://127.0.0.1:{port}"),
            port,
            process: run(&config, &log),
            config,
            log,
            driver,
            client: client.build().expect("a plain client"),
            _folder: folder,
        };
        conductor.wait_until_ready().await;
        conductor
    }

    /// Ends it as by `kill -9`.
    pub fn kill(&mut self) {
        self.process.kill().expect("a running child");
        self.process.wait().expect("a child of this test");
    }

    /// Starts it again after [`Conductor::kill`]: same port, same database.
    pub async fn start_again(&mut self) {
        self.process = run(&self.config, &self.log);
        self.wait_until_ready().await;
    }

    async fn wait_until_ready(&mut self) {
        let ready = format!("{}/health/ready", self.url);
        let (client, process) = (&self.client, &mut self.process);
        eventually("upbeat serve to get ready", async || {
            let ended = process.try_wait().expect("a child of this test");
            assert_eq!(ended, None, "upbeat serve ended instead of getting ready");
            let status = client.get(&ready).send().await.ok()?.status();
            (status == StatusCode::OK).then_some(())
        })
        .await;
    }

    /// One request. `None` as body sends none.
    pub async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> (StatusCode, Value) {
        let mut request = self
            .client
            .request(method, format!("{}{path}", self.url))
            .header(VERSION_HEADER, API_VERSION);
        if let Some(body) = body {
            request = request.json(&body);
        }
        let answer = request.send().await.expect("the conductor answers");
        let status = answer.status();
        let text = answer.text().await.expect("a whole answer");
        (status, serde_json::from_str(&text).unwrap_or(Value::Null))
    }

    async fn expect(&self, wanted: StatusCode, method: Method, path: &str, body: Value) -> Value {
        let what = format!("{method} {path}");
        let body = Some(body).filter(|body| !body.is_null());
        let (status, answer) = self.send(method, path, body).await;
        assert_eq!(status, wanted, "{what}: {answer}");
        answer
    }

    /// A node with one port, enrolled and made available; answers its UUID.
    pub async fn node_for(&self, machine: &Machine, instance_info: Value) -> String {
        let extra = json!({"instance_info": instance_info});
        let uuid = self.manageable_node_for(machine, extra).await;
        self.ask(&uuid, json!({"target": "provide"})).await;
        self.reaches(&uuid, &["available"]).await;
        uuid
    }

    /// A node with one port, enrolled and made manageable, with more fields; answers its UUID.
    pub async fn manageable_node_for(&self, machine: &Machine, fields: Value) -> String {
        let uuid = self.manageable_node(machine, fields).await;
        let port = json!({"node_uuid": uuid, "address": machine.mac});
        self.expect(StatusCode::CREATED, Method::POST, "/v1/ports", port)
            .await;
        uuid
    }

    /// The same without a port.
    pub async fn manageable_node(&self, machine: &Machine, fields: Value) -> String {
        let mut node = json!({"driver": self.driver, "properties": machine.properties()});
        for (field, value) in fields.as_object().expect("fields of a node") {
            node[field] = value.clone();
        }
        let node = self
            .expect(StatusCode::CREATED, Method::POST, "/v1/nodes", node)
            .await;
        let uuid = node["uuid"].as_str().expect("a node has a UUID").to_owned();
        self.ask(&uuid, json!({"target": "manage"})).await;
        self.reaches(&uuid, &["manageable"]).await;
        uuid
    }

    /// What is at a path.
    pub async fn get(&self, path: &str) -> Value {
        self.expect(StatusCode::OK, Method::GET, path, Value::Null)
            .await
    }

    pub async fn node(&self, uuid: &str) -> Value {
        let path = format!("/v1/nodes/{uuid}");
        self.expect(StatusCode::OK, Method::GET, &path, Value::Null)
            .await
    }

    /// What has happened to the node, in the conductor's words.
    pub async fn history(&self, uuid: &str) -> Vec<String> {
        let path = format!("/v1/nodes/{uuid}/history");
        let answer = self.expect(StatusCode::OK, Method::GET, &path, Value::Null);
        let entries = answer.await["history"].as_array().cloned();
        let entries = entries.expect("a history");
        let texts = entries.iter().filter_map(|entry| entry["event"].as_str());
        texts.map(str::to_owned).collect()
    }

    /// Sends a provision verb.
    pub async fn ask(&self, uuid: &str, verb: Value) {
        let path = format!("/v1/nodes/{uuid}/states/provision");
        self.expect(StatusCode::ACCEPTED, Method::PUT, &path, verb)
            .await;
    }

    /// Replaces the whole instance_info of a node.
    pub async fn set_instance_info(&self, uuid: &str, instance_info: Value) {
        let patch = json!([{"op": "replace", "path": "/instance_info", "value": instance_info}]);
        let path = format!("/v1/nodes/{uuid}");
        self.expect(StatusCode::OK, Method::PATCH, &path, patch)
            .await;
    }

    /// Waits until the node is in one of the provision states.
    pub async fn reaches(&self, uuid: &str, states: &[&str]) -> Value {
        let mut last = Value::Null;
        eventually(&format!("node {uuid} to be {states:?}"), async || {
            let node = self.node(uuid).await;
            let state = &node["provision_state"];
            if *state != last {
                println!("{uuid}: {state} {}", node["last_error"]);
                last = state.clone();
            }
            let there = states.iter().any(|wanted| state == *wanted);
            there.then_some(node)
        })
        .await
    }

    /// Everything the conductor has logged so far.
    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).expect("the log is text")
    }

    /// Deploys the node on this machine and waits for the end, good or bad.
    pub async fn deploy(
        &self,
        uuid: &str,
        machine: &Machine,
        configdrive: Option<String>,
    ) -> Deploy {
        let mut verb = json!({"target": "active"});
        if let Some(configdrive) = configdrive {
            verb["configdrive"] = configdrive.into();
        }
        self.ask(uuid, verb).await;
        let node = self
            .reaches(uuid, &["wait call-back", "deploy failed"])
            .await;
        if node["provision_state"] == "deploy failed" {
            return Deploy { node, agent: None };
        }
        let agent = machine.boot(&self.url);
        let node = self.reaches(uuid, &["active", "deploy failed"]).await;
        Deploy {
            node,
            agent: Some(agent),
        }
    }
}

fn run(config: &Path, log: &Path) -> Child {
    let output = std::fs::File::options().create(true).append(true).open(log);
    let output = output.expect("the log is made");
    Command::new(env!("CARGO_BIN_EXE_upbeat"))
        .args(["serve", "--config"])
        .arg(config)
        .stdin(Stdio::null())
        .stdout(output.try_clone().expect("one log for both streams"))
        .stderr(output)
        .spawn()
        .expect("the built binary starts")
}

impl Deploy {
    /// The deploy has worked, and the conductor has powered the machine off
    /// through its agent.
    pub async fn worked(mut self) {
        assert_eq!(self.node["provision_state"], "active", "{}", self.node);
        assert_eq!(self.node["last_error"], Value::Null);
        let agent = self
            .agent
            .as_mut()
            .expect("only an agent can write an image");
        agent.was_powered_off().await;
    }

    /// The deploy has failed; answers last_error. The machine goes down.
    pub fn failed(self) -> String {
        assert_eq!(
            self.node["provision_state"], "deploy failed",
            "{}",
            self.node
        );
        let error = self.node["last_error"].as_str();
        error.expect("a failed deploy has a last_error").to_owned()
    }
}

impl Drop for Conductor {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        if std::thread::panicking() {
            println!(
                "--- end of the conductor's log\n{}",
                tail(&self.log, |_| true)
            );
        }
    }
}
