//! Recorded messages of ironic-python-agent 13.0.0: what it says is understood, and what Upbeat says to it has every key and
//! every JSON type that it was sent before.

use std::path::Path;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use serde_json::{Map, Value, json};
use upbeat::agent::{command_body, wire};
use upbeat::command::{Command, CommandId, Request, Status, StepsOf};
use upbeat::node::steps::{agent_steps, by_wish_and_priority, core_steps};
use upbeat::node::work::{Work, WorkKind, WorkPhase};
use upbeat::node::{Attributes, BootMode, Node, Port, Power, PowerState, Provision, Session};
use upbeat::timestamp::Timestamp;

/// The exchanges of one recording.
fn recording(name: &str) -> Vec<Value> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/wire");
    let text = std::fs::read_to_string(folder.join(format!("{name}.jsonl"))).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

const ALL: [&str; 10] = [
    "agent-commands",
    "agent-image-failures",
    "agent-poisoned-list",
    "clean",
    "deploy-bad-checksum",
    "deploy-configdrive",
    "deploy-extra-step",
    "deploy-qcow2",
    "deploy-raw",
    "deploy-tls",
];

fn all_exchanges() -> Vec<Value> {
    ALL.iter().flat_map(|name| recording(name)).collect()
}

#[test]
fn every_answer_of_the_agent_is_understood() {
    let (mut commands, mut lists, mut faults, mut statuses) = (0, 0, 0, 0);
    for exchange in all_exchanges() {
        let path = exchange["path"].as_str().unwrap();
        let answer = &exchange["response"];
        if exchange["to"] != "agent" || ["/", "/v1/", "/v1/commands"].contains(&path) {
            continue;
        }
        if exchange["status"] != 200 {
            assert!(wire::fault(answer).is_some(), "{exchange}");
            faults += 1;
        } else if path == "/v1/status" {
            assert!(wire::started_at(answer).unwrap().parse::<f64>().unwrap() > 0.0);
            statuses += 1;
        } else if exchange["method"] == "GET" && path == "/v1/commands/" {
            for (entry, listed) in wire::entries(answer)
                .unwrap()
                .iter()
                .zip(answer["commands"].as_array().unwrap())
            {
                assert_read(entry, listed);
            }
            lists += 1;
        } else {
            assert_read(&wire::entry(answer).unwrap(), answer);
            commands += 1;
        }
    }
    println!("{commands} commands, {lists} lists, {faults} faults, {statuses} statuses");
    assert!(commands > 40 && lists > 20 && faults > 15 && statuses > 0);
}

fn assert_read(entry: &upbeat::command::Entry, sent: &Value) {
    assert_eq!(entry.id, sent["id"]);
    assert_eq!(entry.command_name, sent["command_name"]);
    // All of the result but the step it echoes: that is what was sent, config drive and all.
    let mut result = sent["command_result"].clone();
    if let Some(result) = result.as_object_mut() {
        result.retain(|key, _| !["deploy_step", "clean_step", "service_step"].contains(&&**key));
    }
    assert_eq!(entry.result, result);
    let word = match entry.status {
        Status::Running => "RUNNING",
        Status::Succeeded => "SUCCEEDED",
        Status::Failed => "FAILED",
        Status::VersionMismatch => "CLEAN_VERSION_MISMATCH",
        Status::Other(ref word) => panic!("{word} in {sent}"),
    };
    assert_eq!(word, sent["command_status"]);
    let has_error = matches!(entry.status, Status::Failed | Status::VersionMismatch);
    assert_eq!(has_error, !entry.error_kind.is_empty(), "{sent}");
    assert_eq!(has_error, !entry.error_message.is_empty(), "{sent}");
}

#[test]
fn the_agents_errors_keep_their_class_and_their_explanation() {
    let kinds: Vec<String> = recording("agent-image-failures")
        .iter()
        .filter(|exchange| exchange["to"] == "agent")
        .map(|exchange| wire::entry(&exchange["response"]).unwrap().error_kind)
        .collect();
    assert_eq!(
        kinds[..6],
        [
            "ImageChecksumError",
            "ImageDownloadFatalError",
            "CommandExecutionError",
            "InvalidImage",
            "DeploymentError",
            "InvalidCommandParamsError",
        ]
    );
}

#[test]
fn an_echoed_operation_is_found_in_a_recorded_success() {
    let mut found = 0;
    for exchange in recording("deploy-raw") {
        let Some(listed) = exchange["response"]["commands"].as_array() else {
            continue;
        };
        for command in listed {
            if command["command_result"]["deploy_step"].is_object() {
                let mut command = command.clone();
                assert_eq!(wire::entry(&command).unwrap().operation, None);
                command["command_result"]["deploy_step"]["upbeat_operation_id"] = json!("node/4");
                let read = wire::entry(&command).unwrap();
                assert_eq!(read.operation.as_deref(), Some("node/4"));
                found += 1;
            }
        }
    }
    assert!(found > 0);
}

#[test]
fn heartbeats_and_lookups_bring_what_the_conductor_needs() {
    let (mut heartbeats, mut lookups, mut certificates) = (0, 0, 0);
    for exchange in all_exchanges() {
        if exchange["to"] != "conductor" {
            continue;
        }
        let path = exchange["path"].as_str().unwrap();
        if path.starts_with("/v1/heartbeat/") {
            heartbeats += 1;
            let body = exchange["request"].as_object().unwrap();
            for key in ["callback_url", "agent_token", "agent_version"] {
                assert!(body.get(key).is_some_and(Value::is_string), "{exchange}");
            }
            let known = [
                "callback_url",
                "agent_token",
                "agent_version",
                "agent_verify_ca",
            ];
            assert!(
                body.keys().all(|key| known.contains(&key.as_str())),
                "{exchange}"
            );
            if let Some(pem) = body.get("agent_verify_ca") {
                certificates += 1;
                CertificateDer::from_pem_slice(pem.as_str().unwrap().as_bytes()).unwrap();
            }
            assert_eq!(exchange["api_version"], "1.68");
        } else if path == "/v1/lookup" {
            lookups += 1;
            assert!(exchange["query"]["addresses"].is_string());
            assert_eq!(exchange["api_version"], "1.62");
        }
    }
    assert!(heartbeats > 10 && lookups > 10 && certificates > 0);
}

/// A deploy that was recorded, as a node of ours.
struct Recorded {
    node: Node,
    posts: Vec<Value>,
}

fn recorded_deploy(name: &str) -> Recorded {
    let posts: Vec<Value> = recording(name)
        .into_iter()
        .filter(|exchange| exchange["to"] == "agent" && exchange["method"] == "POST")
        .collect();
    let sent = &posts[0]["request"]["params"];
    let mut instance_info = object(&sent["node"]["instance_info"]);
    for added in ["image_url", "image_type", "configdrive"] {
        instance_info.remove(added);
    }
    let config_drive = &posts[1]["request"]["params"]["step"]["args"]["configdrive"];
    if !config_drive.is_null() {
        instance_info.insert("configdrive".to_owned(), config_drive.clone());
    }
    let attributes = Attributes {
        name: sent["node"]["name"].as_str().map(str::to_owned),
        driver: sent["node"]["driver"].as_str().unwrap().to_owned(),
        properties: object(&sent["node"]["properties"]),
        instance_info,
        ..Attributes::default()
    };
    let at = Timestamp(1_796_066_135_235);
    let mut node = Node::enrolled(
        sent["node"]["uuid"].as_str().unwrap().parse().unwrap(),
        attributes,
        at,
    );
    node.updated_at = Some(at);
    node.provision_updated_at = Some(at);
    node.power = Power {
        state: Some(PowerState::On),
        target: None,
    };
    node.session = Some(Session {
        nonce: "nonce-of-the-session".to_owned(),
        confirmed: true,
        callback_url: Some("http://127.0.0.1:26801".to_owned()),
        agent_version: Some("13.0.0".to_owned()),
        certificate: None,
        instance: None,
        last_heartbeat_at: Some(at),
        last_contact_at: Some(at),
        trouble: None,
        asked_again_at: None,
        proved_alive_at: None,
    });
    let ports = sent["ports"].as_array().unwrap().iter().map(port);
    *node.ports = ports.collect();
    let mut work = Work::begun(WorkKind::Deploy, at, BootMode::Bios, Vec::new());
    work.phase = WorkPhase::ReadingSteps;
    node.provision = Provision::Working(work.into());
    Recorded { node, posts }
}

fn port(sent: &Value) -> Port {
    Port::new(
        serde_json::from_value(sent["uuid"].clone()).unwrap(),
        sent["address"].as_str().unwrap().to_owned(),
        Timestamp(0),
    )
}

/// The node once the agent has told its steps, carrying out the first one.
fn with_steps(mut node: Node, told: &Value) -> Node {
    let Provision::Working(deploy) = &mut node.provision else {
        panic!("not deploying");
    };
    deploy.phase = WorkPhase::InBandStep;
    deploy.steps = by_wish_and_priority(
        core_steps(),
        &[],
        &agent_steps(StepsOf::Deploy, told).unwrap(),
        &[],
    )
    .unwrap()
    .into();
    deploy.agent_steps = (&told["deploy_steps"]).into();
    deploy.hardware_manager_version = (&told["hardware_manager_version"]).into();
    node
}

fn object(value: &Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

fn command(number: u64, request: Request) -> Command {
    Command::planned(CommandId(number), request, Timestamp(0))
}

fn write_image() -> Request {
    Request::ExecuteStep {
        of: StepsOf::Deploy,
        interface: "deploy".to_owned(),
        step: "write_image".to_owned(),
        args: Map::new(),
    }
}

/// Where Upbeat deliberately sends less, or something else, than was recorded.
const EXCEPTIONS: &[(&str, &str)] = &[
    (
        "/params/node/reservation",
        "nodes are not locked, so nobody's name stands there",
    ),
    (
        "/params/node/driver_internal_info/last_power_state_change",
        "this time is not kept; the agent does not read it",
    ),
    (
        "/params/node/driver_internal_info/agent_cached_deploy_steps_refreshed",
        "steps are read anew in every deploy, so their age is of no interest",
    ),
    (
        "/params/node/instance_info/configdrive",
        "the config drive reaches Upbeat as text, finished, not as a document",
    ),
];

/// Before the agent has told its steps, no step is being carried out.
const EXCEPTION_BEFORE_STEPS: &str = "/params/node/deploy_step";

#[test]
fn what_upbeat_sends_has_every_key_and_type_that_the_agent_was_sent() {
    let mut all_missing = Vec::new();
    for name in ["deploy-raw", "deploy-qcow2", "deploy-configdrive"] {
        let Recorded { node, posts } = recorded_deploy(name);
        let names: Vec<&str> = posts
            .iter()
            .map(|post| post["request"]["name"].as_str().unwrap())
            .collect();
        assert_eq!(
            names,
            [
                "deploy.get_deploy_steps",
                "deploy.execute_deploy_step",
                "standby.get_partition_uuids",
                "standby.power_off"
            ]
        );
        let ready = with_steps(node.clone(), &posts[0]["response"]["command_result"]);
        let ours = [
            command_body(
                &node,
                &command(
                    1,
                    Request::GetSteps {
                        of: StepsOf::Deploy,
                    },
                ),
            ),
            command_body(&ready, &command(2, write_image())),
            command_body(&ready, &command(3, Request::GetPartitionUuids)),
            command_body(&ready, &command(4, Request::PowerOff)),
        ];
        for (index, (ours, post)) in ours.iter().zip(&posts).enumerate() {
            let ours = ours.as_ref().unwrap();
            assert_eq!(ours["name"], post["request"]["name"]);
            let mut missing = Vec::new();
            compare(&post["request"], ours, "", &mut missing);
            all_missing.extend(missing.clone());
            missing.retain(|path| {
                let is_excepted = EXCEPTIONS
                    .iter()
                    .any(|(excepted, _)| path.starts_with(excepted));
                let is_early = index == 0 && path.starts_with(EXCEPTION_BEFORE_STEPS);
                !is_excepted && !is_early
            });
            assert!(missing.is_empty(), "{name}, {}: {missing:#?}", ours["name"]);
        }
        // The parts that decide what happens to the disk are not only alike but the same.
        let (ours, sent) = (ours[1].as_ref().unwrap(), &posts[1]["request"]);
        for path in [
            "/params/step/args",
            "/params/deploy_version",
            "/params/node/properties",
        ] {
            assert_eq!(ours.pointer(path), sent.pointer(path), "{name} {path}");
        }
        for path in [
            "/params/step/interface",
            "/params/step/step",
            "/params/node/uuid",
        ] {
            assert_eq!(ours.pointer(path), sent.pointer(path), "{name} {path}");
        }
        assert_eq!(
            ours["params"]["step"]["upbeat_operation_id"],
            json!(format!("{}/2", ready.id))
        );
        assert_eq!(ours["params"]["step"]["priority"], 80);
    }
    for (excepted, reason) in EXCEPTIONS {
        let is_needed = all_missing.iter().any(|path| path.starts_with(excepted));
        assert!(is_needed, "{excepted} is no exception any more ({reason})");
    }
}

/// Collects the paths at which `ours` lacks a key of `sent` or has another type. A null in `sent` says nothing of the type.
fn compare(sent: &Value, ours: &Value, path: &str, missing: &mut Vec<String>) {
    match (sent, ours) {
        (Value::Null, _)
        | (Value::Bool(_), Value::Bool(_))
        | (Value::Number(_), Value::Number(_))
        | (Value::String(_), Value::String(_)) => {}
        (Value::Object(sent), Value::Object(ours)) => {
            for (key, value) in sent {
                let path = format!("{path}/{key}");
                match ours.get(key) {
                    Some(ours) => compare(value, ours, &path, missing),
                    None => missing.push(format!("{path}: missing")),
                }
            }
        }
        (Value::Array(sent), Value::Array(ours)) => {
            for (index, value) in sent.iter().enumerate() {
                let is_like = |ours: &&Value| {
                    let mut differences = Vec::new();
                    compare(value, ours, "", &mut differences);
                    differences.is_empty()
                };
                if !ours.iter().any(|ours| is_like(&ours)) {
                    missing.push(format!("{path}/{index}: nothing like it"));
                }
            }
        }
        _ => missing.push(format!("{path}: another type")),
    }
}

#[test]
fn the_boot_loader_command_has_its_four_parameters() {
    let Recorded { node, .. } = recorded_deploy("deploy-raw");
    let request = Request::InstallBootloader {
        root_uuid: Some("0x1ab0fee1".to_owned()),
        efi_system_part_uuid: None,
        prep_boot_part_uuid: None,
        target_boot_mode: "uefi".to_owned(),
    };
    assert_eq!(
        command_body(&node, &command(1, request)).unwrap(),
        json!({"name": "image.install_bootloader", "params": {
            "root_uuid": "0x1ab0fee1",
            "efi_system_part_uuid": null,
            "prep_boot_part_uuid": null,
            "target_boot_mode": "uefi",
        }})
    );
}

/// A wrong parameter to a synchronous command breaks the agent's list of commands for the rest of its life.
#[test]
fn commands_without_parameters_are_sent_none() {
    let Recorded { node, .. } = recorded_deploy("deploy-raw");
    for request in [Request::GetPartitionUuids, Request::Sync, Request::PowerOff] {
        let body = command_body(&node, &command(1, request)).unwrap();
        assert_eq!(body["params"], json!({}));
    }
}

#[test]
fn the_user_can_add_arguments_to_write_image_but_not_choose_the_image() {
    let Recorded { node, posts } = recorded_deploy("deploy-configdrive");
    let ready = with_steps(node, &posts[0]["response"]["command_result"]);
    let args = object(
        &json!({"image_info": {"urls": ["http://evil.example"]}, "configdrive": "evil", "own": 1}),
    );
    let request = Request::ExecuteStep {
        of: StepsOf::Deploy,
        interface: "deploy".to_owned(),
        step: "write_image".to_owned(),
        args,
    };
    let body = command_body(&ready, &command(1, request)).unwrap();
    let sent = &posts[1]["request"]["params"]["step"]["args"];
    assert_eq!(
        body["params"]["step"]["args"]["image_info"],
        sent["image_info"]
    );
    assert_eq!(
        body["params"]["step"]["args"]["configdrive"],
        sent["configdrive"]
    );
    assert_eq!(body["params"]["step"]["args"]["own"], 1);
}

#[test]
fn a_step_of_the_users_travels_as_given() {
    let Recorded { node, posts } = recorded_deploy("deploy-raw");
    let ready = with_steps(node, &posts[0]["response"]["command_result"]);
    let request = Request::ExecuteStep {
        of: StepsOf::Deploy,
        interface: "raid".to_owned(),
        step: "apply_configuration".to_owned(),
        args: object(&json!({"raid_config": {"logical_disks": []}})),
    };
    let body = command_body(&ready, &command(1, request)).unwrap();
    assert_eq!(
        body["params"]["step"]["args"],
        json!({"raid_config": {"logical_disks": []}})
    );
}

#[test]
fn secrets_stay_here_and_the_config_drive_travels_with_steps_only() {
    let Recorded { mut node, posts } = recorded_deploy("deploy-configdrive");
    let of = &mut node.attributes;
    of.driver_info = object(&json!({"ipmi_password": "geheim-1", "nested": {"token": "geheim-2"}}));
    of.extra = object(&json!({"note": "password=geheim-3"}));
    of.instance_info
        .insert("image_pull_secret".to_owned(), json!("geheim-4"));
    node.ports[0].extra = object(&json!({"secret": "geheim-5"}));
    let config_drive = node.attributes.instance_info["configdrive"]
        .as_str()
        .unwrap()
        .to_owned();
    let ready = with_steps(node.clone(), &posts[0]["response"]["command_result"]);

    let reading = command_body(
        &node,
        &command(
            1,
            Request::GetSteps {
                of: StepsOf::Deploy,
            },
        ),
    )
    .unwrap();
    let writing = command_body(&ready, &command(2, write_image())).unwrap();
    for body in [&reading, &writing] {
        let text = body.to_string();
        assert!(!text.contains("geheim"), "{text}");
        assert!(!text.contains("nonce-of-the-session"));
        let info = &body["params"]["node"]["driver_internal_info"];
        assert_eq!(info["agent_secret_token"], "******");
    }
    assert!(!reading.to_string().contains(&config_drive));
    let plain = [
        "/params/node/instance_info/configdrive",
        "/params/step/args/configdrive",
        "/params/step/args/image_info/configdrive",
    ];
    for path in plain {
        assert_eq!(writing.pointer(path), Some(&json!(config_drive)), "{path}");
    }
}

#[test]
fn what_cannot_be_sent_is_told() {
    let Recorded { mut node, .. } = recorded_deploy("deploy-raw");
    node.attributes
        .instance_info
        .insert("configdrive".to_owned(), json!({"user_data": "geheim"}));
    let problem = command_body(&node, &command(1, write_image())).unwrap_err();
    assert!(
        problem.contains("configdrive") && !problem.contains("geheim"),
        "{problem}"
    );
    node.attributes.instance_info = object(&json!({"image_source": "file:///x"}));
    let problem = command_body(&node, &command(1, write_image())).unwrap_err();
    assert!(
        problem.contains("image_source") && problem.contains("checksum"),
        "{problem}"
    );
}
