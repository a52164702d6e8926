//! A site with 10,000 machines after an outage: all agents call within one second, twice. First each looks itself up and sends its
//! first heartbeat; the conductor then asks every one of them for its steps and has it write its image. Then, with all images being
//! written, each sends a heartbeat once more. In the end every node must be `active`.
//!
//! Claims: every call is answered (202, or 503 with `Retry-After`), none hangs; those that were told to come again are taken when
//! they do, after the 5 to 10 s in which a real agent does; the conductor asks no more agents at once than it may; each agent is
//! sent each command once; no node fails.
//!
//! The agents, in a process of their own on the same cores, have at most 2,000 calls under way.
//!
//! `cargo bench --bench burst`, or `cargo bench --bench burst -- 1000` for another number of machines

mod common;

use std::collections::HashMap;
use std::convert::Infallible;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// All agents call within this time.
const WITHIN: Duration = Duration::from_secs(1);
/// Most calls of agents under way.
const CALLS_MAX: usize = 2_000;
/// Addresses the agents share; more than the conductor keeps connections for.
const ADDRESSES: usize = 1_000;
/// A call that is not answered by then hangs.
const ANSWERED_WITHIN: Duration = Duration::from_secs(60);
/// Set for the process that plays the agents: the API's address.
const AGENTS_OF: &str = "UPBEAT_BENCH_AGENTS_OF";

fn main() {
    common::choose_tls();
    let nodes = common::number_argument().unwrap_or(10_000);
    match std::env::var(AGENTS_OF) {
        Ok(api) => tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .expect("threads")
            .block_on(agents(api, nodes)),
        Err(_) => conductor(nodes),
    }
}

fn conductor(nodes: u64) {
    common::print_machine();
    common::log_to_nowhere();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut config = common::config(folder.path());
    // Nobody is there to see whether a machine goes off by itself, so each is waited for as long.
    config.conductor.soft_power_off_wait = 30;
    actix_web::rt::System::new().block_on(async {
        common::fill(&config.database.url, nodes, common::waiting).await;
        let running = upbeat::serve::start(&config, None)
            .await
            .expect("the conductor starts");
        let api = common::Api::new(&running);
        let program = std::env::current_exe().expect("this program");
        let site = std::process::Command::new(program)
            .arg(nodes.to_string())
            .env(AGENTS_OF, &api.url)
            .stdin(Stdio::null())
            .spawn();
        let mut site = Ended(site.expect("a process"));
        let most = Arc::new(Mutex::new([0.0; 3]));
        let watching = actix_web::rt::spawn(watch(api.clone(), most.clone()));
        let ended = tokio::task::spawn_blocking(move || site.0.wait()).await;
        let ended = ended.expect("no panic").expect("the agents' end");
        assert!(ended.success(), "the agents failed");
        watching.abort();
        api.until(ACTIVE, |active| active == nodes as f64).await;
        let [requests, waiting, lag] = *most.lock().unwrap_or_else(PoisonError::into_inner);
        println!("conductor: at most {requests} requests to agents at once (and {waiting} that waited), threads {lag:.3} s late");
        let failed = api.metric("upbeat_nodes{provision_state=\"deploy failed\"}").await;
        let lost = "upbeat_unknown_outcomes_total{command=\"deploy.execute_deploy_step\"}";
        println!(
            "{} active, {failed} failed, {} of {} writes without a clear answer",
            api.metric(ACTIVE).await,
            api.metric(lost).await,
            api.metric("upbeat_dispatches_total{command=\"deploy.execute_deploy_step\"}").await,
        );
        let (now, most) = common::resident_mb();
        println!("conductor: {now} MB resident, {most} MB at most");
        running.stop().await;
    });
}

/// The agents' process; it does not outlive the bench.
struct Ended(std::process::Child);

impl Drop for Ended {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
    }
}

const ACTIVE: &str = "upbeat_nodes{provision_state=\"active\"}";

/// Keeps the most of what is limited, and of what should be little.
async fn watch(api: common::Api, most: Arc<Mutex<[f64; 3]>>) {
    let names = [
        "upbeat_agent_requests",
        "upbeat_agent_requests_waiting",
        "upbeat_arbiter_lag_seconds",
    ];
    loop {
        let text = api.text().await;
        for (index, name) in names.into_iter().enumerate() {
            let value = common::metric_in(&text, name);
            let mut most = most.lock().unwrap_or_else(PoisonError::into_inner);
            most[index] = f64::max(most[index], value);
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// All agents, and what they share.
struct Site {
    api: String,
    client: reqwest::Client,
    calls: Semaphore,
    agents: Vec<Agent>,
    by_token: Mutex<HashMap<String, usize>>,
    are_written: AtomicBool,
    connections: AtomicUsize,
    connections_most: AtomicUsize,
}

#[derive(Default)]
struct Agent {
    number: u64,
    callback_url: String,
    /// As told by the lookup: the node's UUID and the token.
    identity: Mutex<(String, String)>,
    commands: Mutex<Vec<Value>>,
}

async fn agents(api: String, nodes: u64) {
    let (listeners, urls) = listen().await;
    let agents = (0..nodes)
        .map(|number| Agent {
            number,
            callback_url: urls[number as usize % urls.len()].clone(),
            ..Agent::default()
        })
        .collect();
    let site = Arc::new(Site {
        api,
        client: common::client(),
        calls: Semaphore::new(CALLS_MAX),
        agents,
        by_token: Mutex::default(),
        are_written: AtomicBool::new(false),
        connections: AtomicUsize::new(0),
        connections_most: AtomicUsize::new(0),
    });
    for listener in listeners {
        tokio::spawn(serve(site.clone(), listener));
    }
    let began = Instant::now();
    site.all_call("first lookup and heartbeat", true).await;
    site.until_all_have("deploy.execute_deploy_step").await;
    println!(
        "all {nodes} write their images {:.1?} after the first call",
        began.elapsed()
    );
    site.all_call("heartbeat while writing", false).await;
    site.are_written.store(true, Ordering::Relaxed);
    let began = Instant::now();
    site.until_all_have("standby.power_off").await;
    println!(
        "all {nodes} were told to power off {:.1?} after the writes ended",
        began.elapsed()
    );
    site.check_commands();
    println!(
        "each agent was sent each command once; at most {} connections of the conductor at once",
        site.connections_most.load(Ordering::Relaxed)
    );
}

/// Places where the agents listen, each of which serves several.
async fn listen() -> (Vec<TcpListener>, Vec<String>) {
    let mut listeners = Vec::new();
    let mut urls = Vec::new();
    for _ in 0..ADDRESSES {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        urls.push(format!(
            "http://{}",
            listener.local_addr().expect("its address")
        ));
        listeners.push(listener);
    }
    (listeners, urls)
}

impl Site {
    /// Has every agent call within a second, as often as it takes to be heard.
    async fn all_call(self: &Arc<Self>, what: &str, with_lookup: bool) {
        let answers = [Arc::<common::Answers>::default(), Arc::default()];
        let began = Instant::now();
        let mut calling = JoinSet::new();
        for index in 0..self.agents.len() {
            let (site, [lookups, heartbeats]) = (self.clone(), answers.clone());
            calling.spawn(async move {
                let agent = &site.agents[index];
                let at = began + WITHIN.mul_f64(index as f64 / site.agents.len() as f64);
                tokio::time::sleep_until(at.into()).await;
                if with_lookup {
                    site.look_up(index, agent, &lookups).await;
                }
                site.heartbeat(agent, &heartbeats).await;
            });
        }
        while let Some(called) = calling.join_next().await {
            called.expect("an agent");
        }
        println!(
            "{what}, {} agents within {WITHIN:?}: all were heard after {:.1?}",
            self.agents.len(),
            began.elapsed()
        );
        let [lookups, heartbeats] = answers;
        if with_lookup {
            println!("  lookups: {}", lookups.summary());
        }
        println!("  heartbeats: {}", heartbeats.summary());
    }

    async fn look_up(&self, index: usize, agent: &Agent, answers: &common::Answers) {
        let address = common::mac(agent.number);
        let url = format!("{}/v1/lookup?addresses={address}", self.api);
        let found = self
            .call(agent, || self.client.get(&url), 200, answers)
            .await;
        let found: Value = serde_json::from_slice(&found).expect("JSON");
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        let token = text(&found["config"]["agent_token"]);
        self.by_token
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(token.clone(), index);
        *agent
            .identity
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = (text(&found["node"]["uuid"]), token);
    }

    async fn heartbeat(&self, agent: &Agent, answers: &common::Answers) {
        let (node, token) = agent
            .identity
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let url = format!("{}/v1/heartbeat/{node}", self.api);
        let body = json!({
            "callback_url": agent.callback_url,
            "agent_version": "13.0.0",
            "agent_token": token,
        })
        .to_string();
        let request = || self.client.post(&url).body(body.clone());
        self.call(agent, request, 202, answers).await;
    }

    /// Calls until the answer is `wanted`, as a real agent does: the next try comes 5 to 10 s after one that failed.
    async fn call(
        &self,
        agent: &Agent,
        request: impl Fn() -> reqwest::RequestBuilder,
        wanted: u16,
        answers: &common::Answers,
    ) -> Bytes {
        loop {
            let from = Instant::now();
            let turn = self.calls.acquire().await.expect("nobody closes it");
            let answer = request()
                .header("X-OpenStack-Ironic-API-Version", "1.68")
                .timeout(ANSWERED_WITHIN)
                .send()
                .await;
            let (status, says_when, body) = match answer {
                Ok(answer) => (
                    answer.status().as_u16(),
                    answer.headers().contains_key("retry-after"),
                    answer.bytes().await.unwrap_or_default(),
                ),
                Err(error) => {
                    assert!(!error.is_timeout(), "a call hangs: {error:?}");
                    (0, false, Bytes::new())
                }
            };
            drop(turn);
            answers.add(status, from.elapsed());
            if status == wanted {
                return body;
            }
            // A connection that is lost is tried again as well.
            assert!(
                status == 0 || status == 503 && says_when,
                "{status}: {body:?}"
            );
            tokio::time::sleep(Duration::from_millis(5_000 + agent.number * 7_919 % 5_000)).await;
        }
    }

    async fn until_all_have(&self, command: &str) {
        let began = Instant::now();
        loop {
            let have = self
                .agents
                .iter()
                .filter(|agent| agent.count(command) > 0)
                .count();
            if have == self.agents.len() {
                return;
            }
            assert!(
                began.elapsed() < common::PATIENCE,
                "only {have} were sent {command}"
            );
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    fn check_commands(&self) {
        for agent in &self.agents {
            for command in [
                "deploy.get_deploy_steps",
                "deploy.execute_deploy_step",
                "standby.power_off",
            ] {
                assert_eq!(
                    agent.count(command),
                    1,
                    "{command} on agent {}",
                    agent.number
                );
            }
        }
    }

    /// What the agent that `token` belongs to answers.
    fn answer(&self, method: &str, path: &str, query: &str, body: &[u8]) -> (u16, Value) {
        if path == "/v1/status" {
            return (200, json!({"started_at": 1.5, "version": "13.0.0"}));
        }
        let token = url::form_urlencoded::parse(query.as_bytes())
            .find_map(|(key, value)| (key == "agent_token").then(|| value.into_owned()))
            .unwrap_or_default();
        let by_token = self.by_token.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(index) = by_token.get(&token).copied() else {
            return (401, json!({"faultstring": "Invalid agent token."}));
        };
        drop(by_token);
        let agent = &self.agents[index];
        let mut commands = agent
            .commands
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if self.are_written.load(Ordering::Relaxed) {
            for command in commands.iter_mut() {
                if command["command_status"] == "RUNNING" {
                    command["command_status"] = "SUCCEEDED".into();
                    command["command_result"] = json!({"deploy_result": {"result": "written"}});
                }
            }
        }
        if method == "POST" {
            let entry = taken(
                commands.len(),
                &serde_json::from_slice(body).unwrap_or_default(),
            );
            commands.push(entry.clone());
            return (200, entry);
        }
        match path.trim_start_matches("/v1/commands/") {
            "" => (200, json!({"commands": *commands})),
            id => match commands.iter().find(|command| command["id"] == id) {
                Some(command) => (200, command.clone()),
                None => (404, json!({"faultstring": "no such command"})),
            },
        }
    }
}

/// The entry of a command that an agent has just taken.
fn taken(number: usize, body: &Value) -> Value {
    let name = body["name"].as_str().unwrap_or_default();
    let (status, result) = match name {
        "deploy.get_deploy_steps" => (
            "SUCCEEDED",
            json!({"deploy_steps": {}, "hardware_manager_version": {"manager": "1"}}),
        ),
        "deploy.execute_deploy_step" => ("RUNNING", Value::Null),
        _ => ("SUCCEEDED", json!({})),
    };
    json!({
        "id": format!("00000000-0000-4000-8000-{number:012}"),
        "command_name": name.split_once('.').map_or(name, |(_, short)| short),
        "command_params": {},
        "command_status": status,
        "command_error": null,
        "command_result": result,
        "full_name": name,
    })
}

impl Agent {
    fn count(&self, full_name: &str) -> usize {
        let commands = self.commands.lock().unwrap_or_else(PoisonError::into_inner);
        commands
            .iter()
            .filter(|command| command["full_name"] == full_name)
            .count()
    }
}

async fn serve(site: Arc<Site>, listener: TcpListener) {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            continue;
        };
        let site = site.clone();
        tokio::spawn(async move {
            let open = site.connections.fetch_add(1, Ordering::Relaxed) + 1;
            site.connections_most.fetch_max(open, Ordering::Relaxed);
            let served = site.clone();
            let service = service_fn(move |request| answer(served.clone(), request));
            // A conductor that hangs up is no error here.
            let _ = http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await;
            site.connections.fetch_sub(1, Ordering::Relaxed);
        });
    }
}

async fn answer(
    site: Arc<Site>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (head, body) = request.into_parts();
    let body = body
        .collect()
        .await
        .map(|body| body.to_bytes())
        .unwrap_or_default();
    let (status, answer) = site.answer(
        head.method.as_str(),
        head.uri.path(),
        head.uri.query().unwrap_or_default(),
        &body,
    );
    Ok(Response::builder()
        .status(status)
        .header("content-type", "application/json")
        .body(Full::new(Bytes::from(answer.to_string())))
        .expect("a plain answer"))
}
