//! The kinds of work besides deploys, line by line: cleaning, inspection, rescue, service, holds and what ends each badly.

use super::*;
use crate::node::event::RunbookSteps;
use crate::node::inspection::Findings;
use crate::node::steps::WorkStep;

pub(super) fn clean_steps_result(kind: &str) -> Value {
    json!({
        format!("{kind}_steps"): {"Generic": [
            {"interface": "deploy", "step": "erase_devices", "priority": 10, "abortable": true},
            {"interface": "deploy", "step": "erase_devices_metadata", "priority": 99, "abortable": true},
            {"interface": "raid", "step": "scrub", "priority": 0, "reboot_requested": true},
            {"interface": "deploy", "step": "burn_in", "priority": 0, "abortable": false},
        ]},
        "hardware_manager_version": {"Generic": "1"},
    })
}

fn steps(names: &[&str]) -> Vec<WorkStep> {
    names
        .iter()
        .map(|name| {
            let (interface, step) = name.split_once('.').unwrap();
            WorkStep::named(interface, step, 0)
        })
        .collect()
}

impl World {
    pub(super) fn manageable() -> World {
        let mut world = World::new();
        world.asks(Verb::Manage);
        world.driver_says_yes();
        world.limits.automated_clean = true;
        world
    }

    pub(super) fn asks_steps(&mut self, verb: Verb, names: &[&str]) -> crate::node::Step {
        self.go(Event::Provision {
            verb,
            options: ProvisionOptions {
                steps: steps(names),
                ..ProvisionOptions::default()
            },
        })
    }

    /// The ramdisk has come up and told its steps.
    pub(super) fn ramdisk_comes(&mut self, kind: &str) {
        self.driver_says_yes();
        self.boots();
        self.command_runs(&format!("get_{kind}_steps"), clean_steps_result(kind));
    }

    pub(super) fn current(&self) -> String {
        let work = self.node.work().expect("work is in progress");
        work.current_step()
            .map(WorkStep::full_name)
            .unwrap_or_default()
    }

    pub(super) fn work(&self) -> &Work {
        self.node.work().expect("work is in progress")
    }

    pub(super) fn asked(&self) -> Option<DriverRequest> {
        self.node.driver_call.map(|call| call.request)
    }
}

#[test]
fn what_has_a_priority_is_cleaned_on_the_way_to_available() {
    let mut world = World::manageable();
    world.asks(Verb::Provide);
    assert_eq!(world.state(), "cleaning");
    let target = world.node.target_provision_state().unwrap();
    assert_eq!(target.name(), "available");
    world.ramdisk_comes("clean");
    assert_eq!(world.state(), "clean wait");
    assert_eq!(world.current(), "deploy.erase_devices_metadata");
    world.command_runs("execute_clean_step", json!({}));
    assert_eq!(world.current(), "deploy.erase_devices");
    world.command_runs("execute_clean_step", json!({}));
    assert_eq!(world.state(), "cleaning");
    assert_eq!(world.asked(), Some(DriverRequest::PowerOff));
    world.driver_says_yes();
    assert_eq!(world.state(), "available");
    assert_eq!(world.node.session, None);
    assert_eq!(world.node.deadlines, Deadlines::default());
}

#[test]
fn a_node_can_have_its_own_mind_about_cleaning() {
    let mut world = World::manageable();
    world.node.attributes.automated_clean = Some(false);
    world.asks(Verb::Provide);
    assert_eq!(world.state(), "available");
    assert!(
        world
            .history
            .iter()
            .any(|line| line == "manageable -> cleaning")
    );
    assert!(
        world
            .history
            .iter()
            .any(|line| line.contains("nothing was cleaned"))
    );
}

#[test]
fn what_is_retired_is_not_offered_again() {
    let mut world = World::active();
    world.limits.automated_clean = true;
    world.node.attributes.retired = true;
    world.asks(Verb::Deleted);
    world.driver_says_yes();
    assert!(
        world.node.attributes.instance_info.is_empty(),
        "before it is cleaned"
    );
    world.ramdisk_comes("clean");
    world.command_runs("execute_clean_step", json!({}));
    world.command_runs("execute_clean_step", json!({}));
    world.driver_says_yes();
    assert_eq!(world.state(), "manageable");
}

#[test]
fn a_manual_cleaning_takes_the_steps_in_their_order_and_goes_back() {
    let mut world = World::manageable();
    world.asks_steps(
        Verb::Clean,
        &["deploy.burn_in", "raid.scrub", "deploy.erase_devices"],
    );
    let target = world.node.target_provision_state().unwrap();
    assert_eq!(target.name(), "manageable");
    world.ramdisk_comes("clean");
    assert_eq!(world.current(), "deploy.burn_in");
    world.command_runs("execute_clean_step", json!({}));
    assert_eq!(world.current(), "raid.scrub");
    world.command_runs("execute_clean_step", json!({}));
    // It asked for a reboot.
    assert_eq!(world.asked(), Some(DriverRequest::RebootToRamdisk));
    assert_eq!(
        world.node.session, None,
        "the next boot gets a token of its own"
    );
    world.driver_says_yes();
    world.boots();
    assert_eq!(world.current(), "deploy.erase_devices");
    world.command_runs("execute_clean_step", json!({}));
    world.driver_says_yes();
    assert_eq!(world.state(), "manageable");
}

#[test]
fn a_step_nobody_has_fails_a_cleaning_without_maintenance_and_a_failing_step_with_it() {
    let mut world = World::manageable();
    world.asks_steps(Verb::Clean, &["bios.turbo"]);
    world.ramdisk_comes("clean");
    assert_eq!(world.state(), "clean failed");
    assert!(
        world.last_error().contains("clean step bios.turbo"),
        "{}",
        world.last_error()
    );
    assert_eq!(world.node.maintenance, None);
    assert_eq!(
        world.asked(),
        Some(DriverRequest::PowerOff),
        "no step had begun"
    );

    let mut world = World::manageable();
    world.asks(Verb::Provide);
    world.ramdisk_comes("clean");
    world.survey(&[]);
    let entry = Entry {
        error_kind: "BlockDeviceEraseError".to_owned(),
        error_message: "sda is frozen".to_owned(),
        ..world.entry(Status::Failed, Value::Null)
    };
    world.agent_says(AgentEvent::Posted(PostAnswer::Accepted(entry)));
    assert_eq!(world.state(), "clean failed");
    for part in [
        "Clean step deploy.erase_devices_metadata failed: sda is frozen",
        "manage and provide it again",
    ] {
        assert!(world.last_error().contains(part), "{}", world.last_error());
    }
    let maintenance = world.node.maintenance.clone().unwrap();
    assert_eq!(maintenance.fault.as_deref(), Some("clean failure"));
    assert_eq!(maintenance.reason, world.node.last_error);
    assert_eq!(world.asked(), None, "it is left on for somebody to look at");
    world.go(Event::Maintenance {
        on: false,
        reason: None,
    });
    world.asks(Verb::Manage);
    assert_eq!(world.state(), "manageable");
}

#[test]
fn an_abort_is_told_apart_from_a_failure() {
    let mut world = World::manageable();
    world.asks(Verb::Provide);
    world.ramdisk_comes("clean");
    world.asks(Verb::Abort);
    assert_eq!(world.state(), "clean failed");
    assert!(world.last_error().contains("aborted"));
    assert_eq!(world.node.maintenance, None, "nobody has to look");
}

#[test]
fn a_step_that_must_not_be_interrupted_is_waited_for() {
    let mut world = World::manageable();
    world.asks_steps(Verb::Clean, &["deploy.burn_in", "deploy.erase_devices"]);
    world.ramdisk_comes("clean");
    world.survey(&[]);
    world.posted(Status::Running, Value::Null);
    assert_eq!(world.asks(Verb::Abort).reply, Reply::Done);
    assert_eq!(world.state(), "clean wait");
    world.polled(Status::Succeeded, json!({}));
    assert_eq!(world.state(), "clean failed");
    assert!(world.last_error().contains("aborted"));
}

#[test]
fn an_erase_is_begun_anew_when_its_agent_is_lost_and_a_burn_in_is_not() {
    for (step, state) in [
        ("deploy.erase_devices", "cleaning"),
        ("deploy.burn_in", "clean failed"),
    ] {
        let mut world = World::manageable();
        world.asks_steps(Verb::Clean, &[step]);
        world.ramdisk_comes("clean");
        world.survey(&[]);
        world.posted(Status::Running, Value::Null);
        world.boots += 1;
        world.agent_says(AgentEvent::PollFailed(Unreadable::NotFound));
        world.survey(&[]);
        assert_eq!(world.state(), state, "{step}: {}", world.last_error());
    }
}

#[test]
fn another_hardware_manager_in_a_cleaning_means_reading_the_steps_again() {
    let mut world = World::manageable();
    world.asks(Verb::Provide);
    world.ramdisk_comes("clean");
    for _ in 0..2 {
        world.survey(&[]);
        world.posted(Status::VersionMismatch, Value::Null);
        assert_eq!(world.state(), "clean wait");
        world.command_runs("get_clean_steps", clean_steps_result("clean"));
    }
    world.survey(&[]);
    world.posted(Status::VersionMismatch, Value::Null);
    assert_eq!(world.state(), "clean failed", "not for ever");
}

#[test]
fn a_hold_lasts_until_somebody_ends_it() {
    let mut world = World::manageable();
    world.asks_steps(
        Verb::Clean,
        &["deploy.erase_devices", "power.hold", "deploy.burn_in"],
    );
    world.ramdisk_comes("clean");
    world.command_runs("execute_clean_step", json!({}));
    assert_eq!(world.state(), "clean hold");
    assert_eq!(world.node.next_deadline(), None);
    world.at += 1_000_000_000;
    world.heartbeats(TokenMatch::Right);
    assert_eq!(world.state(), "clean hold");
    let refused = world
        .go(Event::Lookup {
            fresh_nonce: "n".to_owned(),
        })
        .reply;
    assert_eq!(refused, Reply::Refused(Refused::LookupNotAllowed));
    world.asks(Verb::Unhold);
    assert_eq!(world.state(), "clean wait");
    assert_eq!(world.current(), "deploy.burn_in");
    assert!(world.node.next_deadline().is_some());
}

#[test]
fn a_pause_lasts_as_long_as_it_says_or_until_the_agent_calls() {
    let mut world = World::manageable();
    let mut wanted = steps(&["power.wait", "power.wait", "deploy.burn_in"]);
    wanted[0].args.insert("seconds".to_owned(), json!(90));
    world.go(Event::Provision {
        verb: Verb::Clean,
        options: ProvisionOptions {
            steps: wanted,
            ..ProvisionOptions::default()
        },
    });
    world.ramdisk_comes("clean");
    assert!(matches!(world.work().phase, WorkPhase::Pausing { .. }));
    world.waits(89_000);
    assert!(matches!(world.work().phase, WorkPhase::Pausing { .. }));
    world.waits(1_000);
    assert_eq!(world.work().phase, WorkPhase::AwaitingAgent);
    world.heartbeats(TokenMatch::Right);
    assert_eq!(world.current(), "deploy.burn_in");
    assert_eq!(world.work().phase, WorkPhase::InBandStep);
}

#[test]
fn steps_of_the_driver_need_no_ramdisk() {
    let mut world = World::manageable();
    world
        .node
        .attributes
        .interfaces
        .insert("management".to_owned(), "fake".to_owned());
    world.asks_steps(Verb::Clean, &["management.reset_bmc", "power.power_off"]);
    assert_eq!(world.asked(), Some(DriverRequest::HardwareStep));
    assert_eq!(world.current(), "management.reset_bmc");
    world.driver_says_yes();
    assert_eq!(world.asked(), Some(DriverRequest::PowerOff));
    world.driver_says_yes();
    assert_eq!(world.state(), "manageable");
    assert!(
        !world
            .history
            .iter()
            .any(|line| line.contains("get_clean_steps"))
    );
}

#[test]
fn a_step_does_not_power_off_what_must_stay_on() {
    let mut world = World::manageable();
    world.node.attributes.disable_power_off = true;
    world.asks_steps(Verb::Clean, &["power.power_off"]);
    assert_eq!(world.state(), "clean failed");
    assert!(
        world.last_error().contains("disable_power_off"),
        "{}",
        world.last_error()
    );
    assert_eq!(world.asked(), None);
}

#[test]
fn what_needs_the_ramdisk_is_refused_without_it() {
    let mut world = World::manageable();
    world.go(Event::Provision {
        verb: Verb::Clean,
        options: ProvisionOptions {
            steps: steps(&["deploy.erase_devices"]),
            disable_ramdisk: true,
            ..ProvisionOptions::default()
        },
    });
    assert_eq!(world.state(), "clean failed");
    assert!(
        world.last_error().contains("disable_ramdisk"),
        "{}",
        world.last_error()
    );
}

#[test]
fn a_runbook_is_for_nodes_with_one_of_its_traits() {
    let runbook = || RunbookSteps {
        name: "CUSTOM_BURN".to_owned(),
        traits: vec!["CUSTOM_BURN".to_owned()],
        steps: steps(&["deploy.burn_in"]),
        disable_ramdisk: false,
    };
    let event = || Event::Provision {
        verb: Verb::Clean,
        options: ProvisionOptions {
            runbook: Some(runbook()),
            ..ProvisionOptions::default()
        },
    };
    let mut world = World::manageable();
    let Reply::Refused(why) = world.go(event()).reply else {
        panic!("the node has no such trait");
    };
    assert!(why.to_string().contains("CUSTOM_BURN"), "{why}");
    world.node.traits = vec!["CUSTOM_BURN".to_owned()].into();
    assert_eq!(world.go(event()).reply, Reply::Done);
    world.ramdisk_comes("clean");
    assert_eq!(world.current(), "deploy.burn_in");
}

#[test]
fn a_service_ends_where_it_began() {
    let mut world = World::active();
    world.asks_steps(Verb::Service, &["deploy.burn_in"]);
    assert_eq!(world.state(), "servicing");
    world.ramdisk_comes("service");
    assert_eq!(world.state(), "service wait");
    world.command_runs("execute_service_step", json!({}));
    assert_eq!(world.state(), "servicing");
    assert_eq!(world.asked(), Some(DriverRequest::RebootToInstance));
    world.driver_says_yes();
    assert_eq!(world.state(), "active");
    assert!(!world.node.attributes.instance_info.is_empty());
}

#[test]
fn an_aborted_service_ends_in_use() {
    let mut world = World::active();
    world.asks_steps(Verb::Service, &["deploy.erase_devices"]);
    world.ramdisk_comes("service");
    world.asks(Verb::Abort);
    assert_eq!(world.state(), "active");
    assert!(world.last_error().contains("aborted"));
    assert_eq!(world.asked(), Some(DriverRequest::RebootToInstance));
    world.driver_says_yes();
    assert!(world.last_error().contains("aborted"), "still told");
}

#[test]
fn a_failed_service_needs_a_person_before_it_can_be_left() {
    let mut world = World::active();
    world.asks_steps(Verb::Service, &["deploy.burn_in"]);
    world.ramdisk_comes("service");
    world.survey(&[]);
    world.posted(Status::Failed, Value::Null);
    assert_eq!(world.state(), "service failed");
    let fault = world.node.maintenance.clone().and_then(|on| on.fault);
    assert_eq!(fault.as_deref(), Some("service failure"));
    assert!(matches!(
        world.asks(Verb::Abort).reply,
        Reply::Refused(Refused::InMaintenance { .. })
    ));
    world.go(Event::Maintenance {
        on: false,
        reason: None,
    });
    world.asks(Verb::Abort);
    assert_eq!(world.state(), "active");
}

fn rescue(hash: Option<&str>) -> Event {
    Event::Provision {
        verb: Verb::Rescue,
        options: ProvisionOptions {
            rescue_password_hash: hash.map(str::to_owned),
            ..ProvisionOptions::default()
        },
    }
}

#[test]
fn a_machine_is_rescued_and_comes_back() {
    let mut world = World::active();
    assert!(matches!(
        world.go(rescue(None)).reply,
        Reply::Refused(Refused::BadValue { .. })
    ));
    world.go(rescue(Some("$6$a$b")));
    assert_eq!(world.state(), "rescuing");
    world.driver_says_yes();
    assert_eq!(world.state(), "rescue wait");
    world.boots();
    world.command_runs("finalize_rescue", Value::Null);
    assert_eq!(world.state(), "rescue");
    assert_eq!(world.node.session, None);
    assert_eq!(world.asked(), None, "the ramdisk stays on");
    world.asks(Verb::Unrescue);
    assert_eq!(world.state(), "unrescuing");
    assert_eq!(world.asked(), Some(DriverRequest::RebootToInstance));
    world.driver_says_yes();
    assert_eq!(world.state(), "active");
}

#[test]
fn a_lost_answer_to_the_rescue_is_told_by_the_agent_that_left() {
    let mut world = World::active();
    world.go(rescue(Some("$6$a$b")));
    world.driver_says_yes();
    world.boots();
    world.survey(&[]);
    let why = "the connection broke".to_owned();
    world.agent_says(AgentEvent::Posted(PostAnswer::Unknown { why }));
    world.agent_says(AgentEvent::SurveyFailed(gone()));
    assert_eq!(
        world.state(),
        "rescuing",
        "a network that fails proves nothing"
    );
    world.agent_says(AgentEvent::SurveyFailed(Unreadable::NobodyListens));
    assert_eq!(world.state(), "rescue");
}

#[test]
fn a_stray_lookup_does_not_undo_a_rescue_that_can_not_be_begun_anew() {
    for (driver, state) in [
        ("manual-management", "rescue"),
        ("fake-hardware", "rescuing"),
    ] {
        let mut world = World::active();
        world.node.attributes.driver = driver.to_owned();
        world.go(rescue(Some("$6$a$b")));
        world.driver_says_yes();
        world.boots();
        world.survey(&[]);
        world.at += 5_000;
        world.go(Event::Lookup {
            fresh_nonce: "stray".to_owned(),
        });
        world.at += 60_000;
        let why = "no answer in time".to_owned();
        world.agent_says(AgentEvent::Posted(PostAnswer::Unknown { why }));
        world.agent_says(AgentEvent::SurveyFailed(Unreadable::NobodyListens));
        assert_eq!(world.state(), state, "{driver}: {}", world.last_error());
    }
}

fn findings(data: Value) -> Event {
    Event::Inspected(Box::new(Findings {
        data: data.as_object().unwrap().clone(),
        fresh_ids: (1..=3).map(|n| PortId(uuid::Uuid::from_u128(n))).collect(),
        ..Findings::default()
    }))
}

fn good_findings() -> Value {
    json!({
        "inventory": {
            "interfaces": [
                {"name": "eth0", "mac_address": "52:54:00:AA:00:01", "has_carrier": true},
                {"name": "eth1", "mac_address": "52:54:00:aa:00:02"},
            ],
            "cpu": {"architecture": "x86_64", "count": 4},
            "memory": {"physical_mb": 4096},
        },
        "boot_interface": "52:54:00:aa:00:01",
        "error": null,
        "logs": "aGVsbG8=",
    })
}

#[test]
fn an_inspection_makes_ports_and_keeps_what_was_found() {
    let mut world = World::manageable();
    let refused = world.go(findings(good_findings())).reply;
    assert_eq!(refused, Reply::Refused(Refused::NotInspecting));
    world.asks(Verb::Inspect);
    assert_eq!(world.state(), "inspecting");
    assert!(world.node.inspection.started_at.is_some());
    world.driver_says_yes();
    assert_eq!(world.state(), "inspect wait");
    let step = world.go(findings(good_findings()));
    let kept = step.inventory.expect("it is stored");
    assert_eq!(kept["inventory"]["memory"]["physical_mb"], 4096);
    assert_eq!(
        kept["plugin_data"]["all_interfaces"]["eth0"]["pxe_enabled"],
        true
    );
    assert_eq!(kept["plugin_data"].get("logs"), None);
    assert_eq!(world.node.attributes.properties["cpu_arch"], "x86_64");
    let ports: Vec<(&str, bool)> = world
        .node
        .ports
        .iter()
        .map(|port| (port.address.as_str(), port.pxe_enabled))
        .collect();
    assert_eq!(ports, [("52:54:00:aa:00:01", true)]);
    assert_eq!(world.state(), "inspecting");
    world.driver_says_yes();
    assert_eq!(world.state(), "manageable");
    assert!(world.node.inspection.finished_at.is_some());
}

#[test]
fn an_inspection_fails_with_the_words_of_the_ramdisk_or_when_nothing_comes() {
    let mut data = good_findings();
    data["error"] = json!("no disks");
    for (event, said) in [
        (Some(findings(data)), "no disks"),
        (
            Some(findings(json!({"inventory": {"interfaces": []}}))),
            "no network interface",
        ),
        (None, "inspect_wait_timeout"),
    ] {
        let mut world = World::manageable();
        world.asks(Verb::Inspect);
        world.driver_says_yes();
        match event {
            Some(event) => {
                world.go(event);
            }
            None => {
                let limit_ms = world.limits.inspect_wait_timeout_ms;
                world.waits(limit_ms);
            }
        }
        assert_eq!(world.state(), "inspect failed");
        assert!(world.last_error().contains(said), "{}", world.last_error());
        assert_eq!(world.node.inspection.finished_at, None);
    }
}

#[test]
fn a_machine_in_use_is_adopted_without_being_touched() {
    let mut world = World::manageable();
    world.asks(Verb::Adopt);
    assert_eq!(world.state(), "adopting");
    world.driver(Err("no such BMC".to_owned()));
    assert_eq!(world.state(), "adopt failed");
    assert!(world.last_error().contains("no such BMC"));
    world.asks(Verb::Adopt);
    assert_eq!(world.asked(), Some(DriverRequest::Verify));
    world.driver_says_yes();
    assert_eq!(world.state(), "active");
    assert_eq!(world.node.last_error, None);
}

#[test]
fn an_operator_can_leave_the_long_erase_out() {
    let mut world = World::manageable();
    world.limits.clean_step_priorities = [("deploy.erase_devices".to_owned(), 0)].into();
    world.asks(Verb::Provide);
    world.ramdisk_comes("clean");
    let steps = &world.work().steps;
    let names: Vec<String> = steps.iter().map(WorkStep::full_name).collect();
    assert_eq!(names, ["deploy.erase_devices_metadata"]);
}

#[test]
fn a_ramdisk_or_an_iso_is_only_booted() {
    let mut world = World::available();
    world
        .node
        .attributes
        .interfaces
        .insert("deploy".to_owned(), "ramdisk".to_owned());
    assert!(matches!(
        world.asks(Verb::Active).reply,
        Reply::Refused(Refused::BadValue { .. })
    ));
    let info = &mut world.node.attributes.instance_info;
    info.insert(
        "boot_iso".to_owned(),
        json!("http://images.example/live.iso"),
    );
    assert_eq!(world.asks(Verb::Active).reply, Reply::Done);
    assert_eq!(world.state(), "deploying");
    world.driver_says_yes();
    assert_eq!(world.state(), "active");
    assert_eq!(world.node.deadlines, Deadlines::default());
}

#[test]
fn a_list_of_steps_that_can_not_be_read_cleans_nothing_and_says_so() {
    let mut world = World::manageable();
    world.asks(Verb::Provide);
    world.driver_says_yes();
    world.boots();
    let odd = json!({"clean_steps": {"G": [{"interface": "deploy", "step": "erase_devices", "priority": "10"}]}});
    world.command_runs("get_clean_steps", odd);
    assert_eq!(world.state(), "clean failed");
    assert!(
        world.last_error().contains("a step of G: priority"),
        "{}",
        world.last_error()
    );

    let mut world = World::manageable();
    world.asks(Verb::Provide);
    world.driver_says_yes();
    world.boots();
    world.command_runs("get_clean_steps", json!({"clean_steps": {}}));
    world.driver_says_yes();
    assert_eq!(world.state(), "available");
    assert!(
        world
            .history
            .iter()
            .any(|line| line.starts_with("nothing was cleaned"))
    );
}

#[test]
fn what_an_agent_repeats_of_its_secrets_is_told_nowhere() {
    let mut world = World::writing();
    let attributes = &mut world.node.attributes;
    attributes
        .driver_info
        .insert("redfish_password".to_owned(), json!("hunter22"));
    let entry = Entry {
        error_kind: "ImageDownloadError".to_owned(),
        error_message: "http://us:er9@images.example/a: 401, BMC hunter22".to_owned(),
        ..world.entry(Status::Failed, Value::Null)
    };
    let step = world.agent_says(AgentEvent::Polled(entry));
    let told = format!("{:?} {:?}", step.node, step.history);
    assert!(world.last_error().contains("401"), "{}", world.last_error());
    assert!(!world.last_error().contains("hunter22") && !told.contains("er9@"));
    let command = format!("{:?}", step.node.command);
    assert!(!command.contains("hunter22"), "{command}");
}

#[test]
fn what_is_no_image_and_no_config_drive_is_said_before_anything_is_booted() {
    for (key, value, said) in [
        ("image_source", Value::Null, "image_source is missing"),
        ("configdrive", json!(["x"]), "configdrive must be text"),
        (
            "configdrive",
            json!("file:///etc/passwd"),
            "configdrive must be text",
        ),
    ] {
        let mut world = World::available();
        let info = &mut world.node.attributes.instance_info;
        info.insert(key.to_owned(), value);
        let Reply::Refused(why) = world.asks(Verb::Active).reply else {
            panic!("{key} was taken");
        };
        assert!(why.to_string().contains(said), "{why}");
    }
}

#[test]
fn an_inventory_that_clients_could_not_read_is_kept_without_its_odd_parts() {
    let mut world = World::manageable();
    world.asks(Verb::Inspect);
    world.driver_says_yes();
    let mut data = good_findings();
    data["inventory"]["memory"] = json!(5);
    data["inventory"]["disks"] = json!("y");
    let step = world.go(findings(data));
    let kept = step.inventory.expect("it is stored");
    assert_eq!(kept["inventory"].get("memory"), None);
    assert_eq!(kept["inventory"].get("disks"), None);
    assert_eq!(kept["inventory"]["cpu"]["count"], 4);
    let said = "memory, disks had another form";
    assert!(world.history.iter().any(|line| line.contains(said)));
}
