//! The nodes of the bench: most rest, some wait for an agent, as on a real site.

use futures_util::future::join_all;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::clock::Clock;
use crate::command::{Baseline, Command, CommandId, Instance, Phase, Request, StepsOf};
use crate::conductor::TokenKey;
use crate::node::steps::WorkStep;
use crate::node::work::{Work, WorkKind, WorkPhase};
use crate::node::{
    Attributes, BootMode, Node, NodeId, Object, Packed, Port, PortId, Provision, Session,
};
use crate::store::{self, Change, Save, StoreSettings};
use crate::timestamp::Timestamp;

/// What the session of every node that waits is opened with; tokens follow from it and the key.
const NONCE: &str = "bench";
/// Where agents that are never asked anything say they are.
pub const NOBODY: &str = "http://127.0.0.1:1";
/// When all agents of the bench say they were started.
pub const STARTED_AT: &str = "1700000000.0";
/// Nodes that are stored at once.
const STORED_AT_ONCE: usize = 500;
/// Nobody is due within this time.
const FAR_MS: i64 = 3_600_000;

/// The id of node number `number`.
pub fn id(number: u64) -> NodeId {
    NodeId(uuid(number))
}

/// The id of its port.
pub fn port_id(number: u64) -> PortId {
    PortId(uuid(1_000_000 + number))
}

fn uuid(number: u64) -> Uuid {
    Uuid::from_u128(0x5eed_0000_0000_4000_8000_0000_0000_0000 | u128::from(number))
}

/// The address of the port of node number `number`.
pub fn mac(number: u64) -> String {
    let [.., a, b, c, d] = number.to_be_bytes();
    format!("52:54:{a:02x}:{b:02x}:{c:02x}:{d:02x}")
}

/// The token of a node that waits.
pub fn token(key: &TokenKey, number: u64) -> String {
    key.token(id(number), NONCE)
}

fn object(value: Value) -> Object {
    match value {
        Value::Object(object) => object,
        _ => Object::new(),
    }
}

/// A node that rests, as operators describe theirs.
pub fn idle(number: u64, now: Timestamp) -> Node {
    let attributes = Attributes {
        name: Some(format!("node-{number:06}")),
        driver: "fake-hardware".to_owned(),
        driver_info: object(json!({
            "redfish_address": format!("https://10.{}.{}.{}", number >> 16 & 255, number >> 8 & 255, number & 255),
            "redfish_username": "upbeat", "redfish_password": "not-so-secret",
            "redfish_system_id": "/redfish/v1/Systems/1", "redfish_verify_ca": true,
        })),
        properties: object(json!({
            "cpu_arch": "x86_64", "cpus": 64, "memory_mb": 524_288, "local_gb": 1920, "vendor": "example",
            "capabilities": "boot_mode:uefi,secure_boot:true",
            "root_device": {"serial": format!("S4EMNX0R{number:06}")},
        })),
        extra: object(json!({
            "rack": format!("r{:04}", number / 40), "unit": number % 40, "asset": format!("A-{number:07}"),
        })),
        instance_info: object(json!({
            "image_source": "http://images.example/cloud.raw", "image_os_hash_algo": "sha256",
            "image_os_hash_value": "a".repeat(64), "image_disk_format": "raw",
        })),
        resource_class: Some("baremetal.large".to_owned()),
        ..Attributes::default()
    };
    let mut node = Node::enrolled(id(number), attributes, now);
    node.provision = Provision::Available;
    node.provision_updated_at = Some(now);
    node.ports = vec![Port::new(port_id(number), mac(number), now)].into();
    node
}

/// A node whose agent writes an image: it took the command, was heard, and can be asked at `callback_url`.
pub fn writing(number: u64, callback_url: &str, now: Timestamp) -> Node {
    let mut node = idle(number, now);
    let mut deploy = Work::begun(WorkKind::Deploy, now, BootMode::Uefi, Vec::new());
    deploy.phase = WorkPhase::InBandStep;
    deploy.steps = vec![
        WorkStep::named("deploy", "write_image", 80),
        WorkStep::named("deploy", "prepare_instance_boot", 60),
        WorkStep::named("deploy", "tear_down_agent", 40),
        WorkStep::named("deploy", "boot_instance", 20),
    ]
    .into();
    deploy.agent_steps = (&crate::demo::deploy_steps_offered()).into();
    deploy.hardware_manager_version = (&json!({"generic_hardware_manager": "1.2"})).into();
    node.provision = Provision::Working(deploy.into());
    node.power.state = Some(crate::node::PowerState::On);
    node.deadlines.liveness = Some(now.plus_ms(FAR_MS));
    node.deadlines.step = Some(now.plus_ms(2 * FAR_MS));
    let instance = Instance {
        started_at: STARTED_AT.to_owned(),
        callback_url: callback_url.to_owned(),
        certificate_sha256: None,
    };
    node.session = Some(Session {
        nonce: NONCE.to_owned(),
        confirmed: true,
        callback_url: Some(callback_url.to_owned()),
        agent_version: Some("13.0.0".to_owned()),
        certificate: None,
        instance: Some(instance.clone()),
        last_heartbeat_at: Some(now),
        last_contact_at: Some(now),
        trouble: None,
        asked_again_at: None,
        proved_alive_at: None,
    });
    node.commands_planned = 2;
    node.command = Some(Command {
        phase: Phase::Accepted {
            agent_id: uuid(2_000_000 + number).to_string(),
            at: now,
            by_list: false,
        },
        baseline: Some(Box::new(Baseline {
            instance,
            known_ids: vec![uuid(3_000_000 + number).to_string()],
        })),
        ..Command::planned(
            CommandId(2),
            Request::ExecuteStep {
                of: StepsOf::Deploy,
                interface: "deploy".to_owned(),
                step: "write_image".to_owned(),
                args: Object::new(),
            },
            now,
        )
    });
    node
}

/// A node whose machine boots its ramdisk: nobody was heard yet.
pub fn booted(number: u64, now: Timestamp) -> Node {
    let mut node = writing(number, NOBODY, now);
    node.command = None;
    node.session = None;
    node.deadlines.step = None;
    if let Provision::Working(deploy) = &mut node.provision {
        deploy.phase = WorkPhase::AwaitingAgent;
        deploy.steps.clear();
        deploy.agent_steps = Packed::default();
    }
    node
}

/// A node whose agent was heard and pauses, as a step asked: its heartbeats ask for nothing.
pub fn heard(number: u64, now: Timestamp) -> Node {
    let mut node = writing(number, NOBODY, now);
    node.command = None;
    if let Provision::Working(deploy) = &mut node.provision {
        deploy.phase = WorkPhase::Pausing {
            until: now.plus_ms(FAR_MS),
        };
    }
    node
}

/// Stores nodes number 0 to `nodes` - 1, each made by `node`, in the database at `url`.
///
/// # Errors
/// The database can't be opened or does not take them.
pub async fn fill(
    url: &str,
    nodes: u64,
    node: impl Fn(u64, Timestamp) -> Node,
) -> Result<(), String> {
    let store = store::open(&StoreSettings {
        url: url.to_owned(),
        readers: 1,
        host: "bench".to_owned(),
        queue_max: STORED_AT_ONCE,
    })
    .map_err(|error| error.to_string())?;
    let now = Clock::start().now();
    let numbers: Vec<u64> = (0..nodes).collect();
    for some in numbers.chunks(STORED_AT_ONCE) {
        let saving = some.iter().map(|number| {
            let save = Save::of(node(*number, now).into(), Change::Insert);
            store.writer.save(save)
        });
        for saved in join_all(saving).await {
            saved.map_err(|error| format!("a node could not be stored: {error:?}"))?;
        }
    }
    store.handle.close().await;
    Ok(())
}

/// Stores `nodes` nodes of which the first `waiting` are made by `node`; the others rest.
///
/// # Errors
/// As [`fill`].
pub async fn fill_some_waiting(
    url: &str,
    nodes: u64,
    waiting: u64,
    node: impl Fn(u64, Timestamp) -> Node,
) -> Result<(), String> {
    fill(url, nodes, |number, now| {
        if number < waiting {
            node(number, now)
        } else {
            idle(number, now)
        }
    })
    .await
}
