//! The conductor against the real ironic-python-agent, beside deploys: cleaning, inspection, rescue and service.
//!
//! As for `real_agent.rs`, `tests/real_agent/setup` comes first; without it each test here prints `SKIPPED` and why, or fails if
//! `UPBEAT_REQUIRE_REAL_AGENT=1`.

#[expect(
    dead_code,
    reason = "shared with another test, which needs other parts"
)]
mod real_agent_support;

use real_agent_support::conductor::Conductor;
use real_agent_support::machine::Machine;
use real_agent_support::real_agent_is_here;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

/// With these options the agent inspects its machine before it looks itself up, as with the kernel parameter
/// `ipa-inspection-collectors`.
const INSPECTS: [&str; 2] = ["--set", "inspection_collectors=default,logs"];

/// On the way to `available` the disk is erased: first what says where things are, then the things.
#[tokio::test]
async fn automated_cleaning_leaves_nothing_on_the_disk() {
    if !real_agent_is_here("automated_cleaning_leaves_nothing_on_the_disk") {
        return;
    }
    let machine = Machine::used();
    let conductor = Conductor::start(false).await;
    let fields = json!({"automated_clean": true});
    let node = conductor.manageable_node_for(&machine, fields).await;
    assert_eq!(machine.partition_tables(), [true, true]);
    assert!(machine.has_leftover());

    conductor.ask(&node, json!({"target": "provide"})).await;
    conductor.reaches(&node, &["clean wait"]).await;
    let agent = machine.boot(&conductor.url);
    let node = conductor
        .reaches(&node, &["available", "clean failed"])
        .await;
    assert_eq!(node["provision_state"], "available", "{node}");
    assert_eq!(node["last_error"], Value::Null);
    assert_eq!(node["power_state"], "power off");
    assert_eq!(machine.partition_tables(), [false, false]);
    assert!(!machine.has_leftover());
    drop(agent);
}

/// Only the step that was asked for: the partition table goes, what the disk held stays.
#[tokio::test]
async fn manual_cleaning_carries_out_the_step_that_was_asked_for() {
    if !real_agent_is_here("manual_cleaning_carries_out_the_step_that_was_asked_for") {
        return;
    }
    let machine = Machine::used();
    let conductor = Conductor::start(false).await;
    let node = conductor.manageable_node_for(&machine, json!({})).await;

    asks_for_clean_step(&conductor, &node, "erase_devices_metadata").await;
    let agent = machine.boot(&conductor.url);
    let node = conductor
        .reaches(&node, &["manageable", "clean failed"])
        .await;
    assert_eq!(node["provision_state"], "manageable", "{node}");
    assert_eq!(machine.partition_tables(), [false, false]);
    assert!(machine.has_leftover(), "more than the metadata was erased");
    drop(agent);
}

/// A step no agent offers is told with those it does offer, and the disk is as it was.
#[tokio::test]
async fn a_step_the_agent_does_not_know_is_explained() {
    if !real_agent_is_here("a_step_the_agent_does_not_know_is_explained") {
        return;
    }
    let machine = Machine::used();
    let conductor = Conductor::start(false).await;
    let node = conductor.manageable_node_for(&machine, json!({})).await;
    asks_for_clean_step(&conductor, &node, "polish_the_case").await;
    let agent = machine.boot(&conductor.url);
    let node = conductor.reaches(&node, &["clean failed"]).await;
    let error = node["last_error"].as_str().expect("a last_error");
    println!("last_error: {error}");
    assert!(error.contains("polish_the_case"), "{error}");
    assert_eq!(machine.partition_tables(), [true, true]);
    assert!(machine.has_leftover());
    drop(agent);
}

/// Inspected twice: once an agent was told whose machine it is in, and the port it makes lets the second one find its node.
#[tokio::test]
async fn inspection_makes_the_port_by_which_the_machine_is_found() {
    if !real_agent_is_here("inspection_makes_the_port_by_which_the_machine_is_found") {
        return;
    }
    let machine = Machine::new();
    let conductor = Conductor::start(false).await;
    let node = conductor
        .manageable_node(&machine, json!({"properties": {}}))
        .await;
    let ports = format!("/v1/nodes/{node}/ports");
    let inventory = format!("/v1/nodes/{node}/inventory");
    assert_eq!(conductor.get(&ports).await["ports"], json!([]));
    let (status, _) = conductor.send(Method::GET, &inventory, None).await;
    assert_eq!(status, StatusCode::NOT_FOUND);

    conductor.ask(&node, json!({"target": "inspect"})).await;
    conductor.reaches(&node, &["inspect wait"]).await;
    let url = format!(
        "inspection_callback_url={}/v1/continue_inspection?node_uuid={node}",
        conductor.url
    );
    let first = machine.boot_with(&conductor.url, &["--set", &url]);
    let found = inspected(&conductor, &node).await;
    drop(first);
    assert_eq!(found["properties"]["cpu_arch"], "x86_64");
    let made = conductor.get(&ports).await["ports"].clone();
    assert_eq!(made[0]["address"], machine.mac, "{made}");
    assert_eq!(made.as_array().map(Vec::len), Some(1), "{made}");
    let stored = conductor.get(&inventory).await;
    assert_eq!(stored["inventory"]["interfaces"][0]["name"], "nic0");
    assert_eq!(stored["inventory"]["memory"]["physical_mb"], 2048);
    let nic = &stored["plugin_data"]["valid_interfaces"]["nic0"];
    assert_eq!(nic["pxe_enabled"], true, "{nic}");

    conductor.ask(&node, json!({"target": "inspect"})).await;
    conductor.reaches(&node, &["inspect wait"]).await;
    let second = machine.boot_with(&conductor.url, &INSPECTS);
    inspected(&conductor, &node).await;
    drop(second);
    assert_eq!(conductor.get(&ports).await["ports"], made);
    let again = conductor.get(&inventory).await;
    assert_eq!(again["plugin_data"]["logs"], Value::Null);
}

/// Asks for a manual cleaning by one step, which waits for an agent then.
async fn asks_for_clean_step(conductor: &Conductor, node: &str, step: &str) {
    let steps = json!([{"interface": "deploy", "step": step}]);
    let verb = json!({"target": "clean", "clean_steps": steps});
    conductor.ask(node, verb).await;
    conductor.reaches(node, &["clean wait"]).await;
}

async fn inspected(conductor: &Conductor, node: &str) -> Value {
    let states = ["manageable", "inspect failed"];
    let node = conductor.reaches(node, &states).await;
    assert_eq!(node["provision_state"], "manageable", "{node}");
    assert_eq!(node["last_error"], Value::Null);
    assert_ne!(node["inspection_finished_at"], Value::Null);
    node
}

/// An agent that inspects although nobody asked is told so, goes on with its lookup, and nothing is stored of what it said.
#[tokio::test]
async fn findings_nobody_asked_for_change_nothing() {
    if !real_agent_is_here("findings_nobody_asked_for_change_nothing") {
        return;
    }
    let machine = Machine::used();
    let conductor = Conductor::start(false).await;
    let node = conductor.manageable_node_for(&machine, json!({})).await;
    asks_for_clean_step(&conductor, &node, "erase_devices_metadata").await;
    let agent = machine.boot_with(&conductor.url, &INSPECTS);
    conductor.reaches(&node, &["manageable"]).await;
    assert!(agent.log().contains("Failed to perform inspection"));
    let inventory = format!("/v1/nodes/{node}/inventory");
    let (status, _) = conductor.send(Method::GET, &inventory, None).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
}

/// A node in use, on a machine that has something on its disk.
async fn node_in_use(conductor: &Conductor, machine: &Machine) -> String {
    let node = conductor.manageable_node_for(machine, json!({})).await;
    conductor.ask(&node, json!({"target": "adopt"})).await;
    conductor.reaches(&node, &["active"]).await;
    node
}

/// The agent sets the password and ends, and the machine goes on without it.
#[tokio::test]
async fn rescue_sets_the_password_and_lets_the_agent_go() {
    if !real_agent_is_here("rescue_sets_the_password_and_lets_the_agent_go") {
        return;
    }
    let machine = Machine::used();
    let conductor = Conductor::start(false).await;
    let node = node_in_use(&conductor, &machine).await;

    let password = "correct horse battery staple";
    let verb = json!({"target": "rescue", "rescue_password": password});
    conductor.ask(&node, verb).await;
    conductor.reaches(&node, &["rescue wait"]).await;
    let mut agent = machine.boot(&conductor.url);
    let rescued = conductor.reaches(&node, &["rescue", "rescue failed"]).await;
    assert_eq!(rescued["provision_state"], "rescue", "{rescued}");
    assert_eq!(rescued["last_error"], Value::Null);
    assert_eq!(rescued["power_state"], "power on");
    let hash = machine.file("rescue-password").expect("a password");
    assert!(sha_crypt::sha512_check(password, &hash).is_ok(), "{hash}");
    assert_eq!(agent.ended().await, Some(0), "it ended by itself");
    let log = conductor.log();
    assert!(!log.contains(password) && !log.contains(&hash));

    conductor.ask(&node, json!({"target": "unrescue"})).await;
    let back = conductor.reaches(&node, &["active"]).await;
    assert_eq!(back["last_error"], Value::Null);
    assert_eq!(machine.partition_tables(), [true, true]);
    assert!(machine.has_leftover());
}

/// A step on a machine in use, with an argument; then the machine goes back into use.
#[tokio::test]
async fn service_carries_out_a_step_with_its_arguments() {
    if !real_agent_is_here("service_carries_out_a_step_with_its_arguments") {
        return;
    }
    let machine = Machine::used();
    let conductor = Conductor::start(false).await;
    let node = node_in_use(&conductor, &machine).await;

    let step = json!({"interface": "deploy", "step": "leave_note", "args": {"text": "serviced"}});
    let verb = json!({"target": "service", "service_steps": [step]});
    conductor.ask(&node, verb).await;
    conductor.reaches(&node, &["service wait"]).await;
    let agent = machine.boot(&conductor.url);
    let node = conductor
        .reaches(&node, &["active", "service failed"])
        .await;
    assert_eq!(node["provision_state"], "active", "{node}");
    assert_eq!(node["last_error"], Value::Null);
    assert_eq!(machine.file("note").as_deref(), Some("serviced"));
    assert_eq!(machine.partition_tables(), [true, true]);
    assert!(machine.has_leftover());
    drop(agent);
}
