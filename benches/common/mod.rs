//! What the benches share: nodes, a configuration, and a line about the machine.

#![allow(dead_code, reason = "each bench uses a part of it")]

use std::path::Path;
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::json;
use upbeat::clock::Clock;
use upbeat::config::Config;
use upbeat::node::deploy::{Deploy, DeployPhase};
use upbeat::node::{
    Attributes, BootMode, Limits, Node, NodeId, Now, Port, PortId, Provision, Session,
};
use upbeat::store::{self, Change, Save, StoreSettings};
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

/// A stable id for node or port number `number`.
pub fn id(number: u64) -> uuid::Uuid {
    uuid::Uuid::from_u128(0x5eed_0000_0000_4000_8000_0000_0000_0000 | u128::from(number))
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
    node.ports = vec![Port {
        id: PortId(id(1_000_000 + number)),
        created_at: now,
        updated_at: None,
        address: format!(
            "52:54:{:02x}:{:02x}:{:02x}:{:02x}",
            number >> 24 & 0xff,
            number >> 16 & 0xff,
            number >> 8 & 0xff,
            number & 0xff
        ),
        name: None,
        pxe_enabled: true,
        extra: Default::default(),
        local_link_connection: Default::default(),
        physical_network: None,
        is_smartnic: false,
        description: None,
        vendor: None,
        category: None,
    }];
    node
}

/// A node in `wait call-back` whose agent has an hour to be heard.
pub fn waiting(number: u64, now: Timestamp) -> Node {
    let mut node = available(number, now);
    let mut deploy = Deploy::begun(now, BootMode::Bios, Vec::new());
    deploy.phase = DeployPhase::AwaitingAgent;
    node.provision = Provision::Deploying(Box::new(deploy));
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
    config.agent.callback_networks = vec!["127.0.0.0/8".parse().expect("a network")];
    config
}

/// Stores nodes number 0 to `nodes` - 1, each made by `node`, in a new database at `url`.
pub async fn fill(url: &str, nodes: u64, node: impl Fn(u64, Timestamp) -> Node) {
    let store = store::open(&StoreSettings {
        url: url.to_owned(),
        readers: 1,
        host: "bench".to_owned(),
        queue_max: 1_000,
    })
    .expect("a database");
    let now = Clock::start().now();
    let numbers: Vec<u64> = (0..nodes).collect();
    for some in numbers.chunks(500) {
        let saving = some.iter().map(|number| {
            store.writer.save(Save {
                node: node(*number, now).into(),
                change: Change::Insert,
                ports_changed: true,
                history: Vec::new(),
            })
        });
        for saved in join_all(saving).await {
            saved.expect("a node is stored");
        }
    }
    store.handle.close().await;
}

/// The middle one and the one that 99 of 100 don't exceed.
pub fn percentiles(mut all: Vec<Duration>) -> (Duration, Duration) {
    all.sort_unstable();
    let at = |percent: usize| all[(all.len() - 1) * percent / 100];
    (at(50), at(99))
}
