//! What the benches share: nodes, a configuration, and a line about the machine.

#![allow(dead_code, reason = "each bench uses a part of it")]

pub mod agent;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use upbeat::bench::site;
pub use upbeat::bench::site::mac;
use upbeat::config::Config;
use upbeat::node::work::{Work, WorkKind, WorkPhase};
use upbeat::node::{Attributes, BootMode, Limits, Node, NodeId, Now, Port, Provision, Session};
use upbeat::serve::Running;
use upbeat::store::{self, StoreSettings};
use upbeat::timestamp::Timestamp;

/// Where agents of the benches would be, if anybody called them.
pub const CALLBACK_URL: &str = "http://127.0.0.1:1";

/// Prints what the numbers below it were measured on.
pub fn print_machine() {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let model = std::fs::read_to_string("/proc/cpuinfo")
        .ok()
        .and_then(|text| {
            let line = text.lines().find(|line| line.starts_with("model name"))?;
            Some(line.split_once(':')?.1.trim().to_owned())
        })
        .unwrap_or_else(|| "unknown processor".to_owned());
    let build = if cfg!(debug_assertions) {
        "unoptimised build, so the numbers mean nothing"
    } else {
        "optimised build"
    };
    println!("machine: {cores} cores, {model}; {build}");
}

/// The HTTP client of the benches needs to be told which implementation of TLS there is, though it uses none.
pub fn choose_tls() {
    // Fails only if one was chosen before.
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// An HTTP client that uses no connection the conductor may be about to close.
pub fn client() -> reqwest::Client {
    reqwest::Client::builder()
        .pool_idle_timeout(Duration::from_secs(2))
        .build()
        .expect("an HTTP client")
}

/// The id of node number `number`.
pub fn id(number: u64) -> uuid::Uuid {
    site::id(number).0
}

/// A node with one port, ready for use.
pub fn available(number: u64, now: Timestamp) -> Node {
    let info = json!({
        "image_source": "http://images.example/cloud.raw",
        "image_os_hash_algo": "sha256",
        "image_os_hash_value": "a".repeat(64),
        "image_disk_format": "raw",
    });
    let attributes = Attributes {
        name: Some(format!("node-{number:05}")),
        driver: "manual-management".to_owned(),
        instance_info: info.as_object().cloned().unwrap_or_default(),
        ..Attributes::default()
    };
    let mut node = Node::enrolled(NodeId(id(number)), attributes, now);
    node.provision = Provision::Available;
    node.ports = vec![Port::new(site::port_id(number), mac(number), now)].into();
    node
}

/// A node as sites have them: described, with credentials and one port.
pub fn described(number: u64, now: Timestamp) -> Node {
    let mut node = available(number, now);
    let object = |value: Value| value.as_object().cloned().unwrap_or_default();
    node.attributes.driver_info = object(json!({
        "redfish_address": format!("https://10.1.{}.{}", number / 250, number % 250),
        "redfish_username": "upbeat", "redfish_password": "not-so-secret",
        "redfish_system_id": "/redfish/v1/Systems/1", "redfish_verify_ca": true,
    }));
    node.attributes.properties = object(json!({
        "cpu_arch": "x86_64", "cpus": 64, "memory_mb": 524_288, "local_gb": 1920,
        "vendor": "example", "capabilities": "boot_mode:uefi,secure_boot:true",
        "root_device": {"serial": format!("S4EMNX0R{number:06}")},
    }));
    node.attributes.extra = object(json!({
        "rack": format!("r{:03}", number / 40), "unit": number % 40, "asset": format!("A-{number:07}"),
    }));
    node.attributes.resource_class = Some("baremetal.large".to_owned());
    node
}

/// A node in `wait call-back` whose agent has an hour to be heard.
pub fn waiting(number: u64, now: Timestamp) -> Node {
    let mut node = available(number, now);
    let mut deploy = Work::begun(WorkKind::Deploy, now, BootMode::Bios, Vec::new());
    deploy.phase = WorkPhase::AwaitingAgent;
    node.provision = Provision::Working(deploy.into());
    node.deadlines.liveness = Some(now.plus_ms(3_600_000));
    node
}

/// A node in `wait call-back` with an agent that was heard and has nothing to do at the moment.
pub fn heard(number: u64, nonce: &str, now: Timestamp) -> Node {
    let mut node = waiting(number, now);
    node.session = Some(Session {
        nonce: nonce.to_owned(),
        confirmed: true,
        callback_url: Some(CALLBACK_URL.to_owned()),
        agent_version: Some("13.0.0".to_owned()),
        certificate: None,
        instance: None,
        last_heartbeat_at: Some(now),
        last_contact_at: Some(now),
        trouble: None,
        asked_again_at: None,
        proved_alive_at: None,
    });
    node
}

/// The present moment at `at`, with the usual limits.
pub fn moment(at: Timestamp, limits: &Limits) -> Now<'_> {
    Now { at, limits }
}

/// A configuration whose files are in `folder`, listening on any free port of loopback.
pub fn config(folder: &Path) -> Config {
    let mut config = Config::default();
    config.database.url = format!("sqlite://{}", folder.join("upbeat.db").display());
    config.api.listen = ([127, 0, 0, 1], 0).into();
    config.agent.require_tls = false;
    // Nobody waits for a turn.
    config.conductor.max_concurrent_deploy = 0;
    config.conductor.max_concurrent_clean = 0;
    config.conductor.max_concurrent_per_image_host = 0;
    config.agent.callback_networks = vec!["127.0.0.0/8".parse().expect("a network")];
    config
}

/// Stores nodes number 0 to `nodes` - 1, each made by `node`, in a new database at `url`.
pub async fn fill(url: &str, nodes: u64, node: impl Fn(u64, Timestamp) -> Node) {
    let filled = site::fill(url, nodes, node);
    filled.await.expect("nodes are stored");
}

/// The middle one and the one that 99 of 100 don't exceed.
pub fn percentiles(mut all: Vec<Duration>) -> (Duration, Duration) {
    all.sort_unstable();
    let at = |percent: usize| all[(all.len() - 1) * percent / 100];
    (at(50), at(99))
}

/// Median, 99th of a hundred, and the most.
pub fn spread(mut all: Vec<Duration>) -> String {
    all.sort_unstable();
    let most = all.last().copied().unwrap_or_default();
    if all.is_empty() {
        return "nothing was measured".to_owned();
    }
    let (median, slow) = percentiles(all);
    format!("{median:.1?} median, {slow:.1?} for 99 %, {most:.1?} at most")
}

/// Answers by status, with how long each took.
#[derive(Default)]
pub struct Answers(Mutex<BTreeMap<u16, Vec<Duration>>>);

impl Answers {
    /// One more; status 0 for none at all.
    pub fn add(&self, status: u16, took: Duration) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.entry(status).or_default().push(took);
    }

    /// All there are; begins anew.
    pub fn take(&self) -> BTreeMap<u16, Vec<Duration>> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// All there are, in words; begins anew.
    pub fn summary(&self) -> String {
        let all = self.take();
        let each = all
            .into_iter()
            .map(|(status, took)| format!("{} answered {status} ({})", took.len(), spread(took)));
        each.collect::<Vec<_>>().join("; ")
    }
}

/// Resident memory of this process in MB: now, and at most.
pub fn resident_mb() -> (u64, u64) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let of = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name));
        let kb = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
        kb.unwrap_or(0) / 1024
    };
    (of("VmRSS:"), of("VmHWM:"))
}

/// The first number on the command line.
pub fn number_argument() -> Option<u64> {
    std::env::args().skip(1).find_map(|text| text.parse().ok())
}

/// Log lines are made as in a real conductor, and thrown away.
pub fn log_to_nowhere() {
    tracing_subscriber::fmt()
        .with_max_level(tracing::Level::INFO)
        .with_writer(std::io::sink)
        .init();
}

/// Notes in the database at `url` that its conductor was last alive at `at`.
pub async fn note_alive_at(url: &str, at: Timestamp) {
    let store = store::open(&StoreSettings {
        url: url.to_owned(),
        readers: 1,
        host: "bench".to_owned(),
        queue_max: 10,
    })
    .expect("a database");
    let text = at.0.to_string();
    let noted = store.writer.set_meta("conductor_alive_at", &text);
    noted.await.expect("a note");
    store.handle.close().await;
}

/// Longest that anything may take.
pub const PATIENCE: Duration = Duration::from_secs(300);

/// A conductor's API as benches look at it.
#[derive(Clone)]
pub struct Api {
    /// `http://address:port`
    pub url: String,
    client: reqwest::Client,
}

impl Api {
    /// That of `running`.
    pub fn new(running: &Running) -> Api {
        Api {
            url: format!("http://{}", running.address),
            client: client(),
        }
    }

    /// All metrics.
    pub async fn text(&self) -> String {
        let url = format!("{}/metrics", self.url);
        let answer = self.client.get(url).send().await.expect("metrics");
        answer.text().await.expect("text")
    }

    /// One metric; 0 if there is none of this name with these labels.
    pub async fn metric(&self, name: &str) -> f64 {
        metric_in(&self.text().await, name)
    }

    /// Waits until a metric is as wished.
    pub async fn until(&self, name: &str, wished: impl Fn(f64) -> bool) {
        let began = Instant::now();
        loop {
            let value = self.metric(name).await;
            if wished(value) {
                return;
            }
            assert!(began.elapsed() < PATIENCE, "{name} stays at {value}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// A histogram's buckets in short.
    pub async fn buckets(&self, name: &str) -> String {
        let text = self.text().await;
        let mut found = Vec::new();
        for line in text
            .lines()
            .filter(|line| line.starts_with(&format!("{name}_bucket")))
        {
            let bound = line.split("le=\"").nth(1);
            let bound = bound.and_then(|rest| rest.split('"').next());
            if let (Some(bound), Some(count)) = (bound, line.rsplit(' ').next()) {
                found.push(format!("{count} within {bound} s"));
            }
        }
        found.join(", ")
    }
}

/// One metric of all; 0 if there is none of this name with these labels.
pub fn metric_in(text: &str, name: &str) -> f64 {
    text.lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))
        .map_or(0.0, |value| value.parse().expect("a number"))
}
