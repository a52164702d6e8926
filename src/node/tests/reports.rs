//! Single reports from the field about states and steps, line by line.

use super::works::clean_steps_result;
use super::*;
use crate::node::hardware::recorded::Vif;

fn provision(verb: Verb, options: ProvisionOptions) -> Event {
    Event::Provision { verb, options }
}

fn vif(id: &str, info: Value) -> Event {
    Event::Hardware(HardwareRequest::AttachVif(Vif {
        id: id.to_owned(),
        info: info.as_object().unwrap().clone(),
    }))
}

fn step_names(world: &World) -> Vec<String> {
    let steps = &world.work().steps;
    steps.iter().map(|step| step.full_name()).collect()
}

#[test]
fn an_abort_in_the_last_step_is_no_success() {
    for (step, is_at_once) in [("deploy.erase_devices", true), ("deploy.burn_in", false)] {
        let begun = |mut world: World, verb, kind: &str| {
            world.asks_steps(verb, &[step]);
            world.ramdisk_comes(kind);
            world.survey(&[]);
            world.posted(Status::Running, Value::Null);
            world
        };
        for (mut world, end) in [
            (
                begun(World::manageable(), Verb::Clean, "clean"),
                "clean failed",
            ),
            (begun(World::active(), Verb::Service, "service"), "active"),
        ] {
            let open = world.node.open_command().unwrap().clone();
            let entry = world.entry(Status::Succeeded, json!({}));
            assert_eq!(world.asks(Verb::Abort).reply, Reply::Done);
            assert_eq!(
                world.state() == end,
                is_at_once,
                "{step}: {}",
                world.state()
            );
            world.go(Event::Command {
                id: open.id,
                attempt: open.attempt,
                event: AgentEvent::Polled(entry),
            });
            assert_eq!(world.state(), end, "{step}");
            assert!(
                world.last_error().contains("aborted"),
                "{}",
                world.last_error()
            );
            let passed = |line: &String| line.ends_with(" -> service failed");
            assert_eq!(world.history.iter().any(passed), end == "active");
        }
    }
    let mut world = World::writing();
    let open = world.node.open_command().unwrap().clone();
    let entry = world.entry(Status::Succeeded, json!({}));
    world.asks(Verb::Abort);
    let late = world.go(Event::Command {
        id: open.id,
        attempt: open.attempt,
        event: AgentEvent::Polled(entry),
    });
    assert_eq!(late.outcome, Outcome::AnswerIgnored);
    assert_eq!(world.state(), "deploy failed");
}

#[test]
fn an_abort_that_was_waited_for_ends_the_service_of_a_node_in_maintenance() {
    for step in ["deploy.erase_devices", "deploy.burn_in"] {
        let mut world = World::active();
        world.asks_steps(Verb::Service, &[step]);
        world.ramdisk_comes("service");
        world.survey(&[]);
        world.posted(Status::Running, Value::Null);
        let maintenance = |on| Event::Maintenance { on, reason: None };
        if step == "deploy.burn_in" {
            world.asks(Verb::Abort);
            world.go(maintenance(true));
            world.polled(Status::Succeeded, json!({}));
        } else {
            world.go(maintenance(true));
            assert_eq!(world.asks(Verb::Abort).reply, Reply::Done);
        }
        assert_eq!(world.state(), "service failed", "{step}");
        assert!(world.last_error().contains("aborted"));
        assert_eq!(world.asked(), None, "its power is left as it is");
        world.go(maintenance(false));
        world.asks(Verb::Abort);
        assert_eq!(world.state(), "active");
    }
}

#[test]
fn what_could_not_be_cleaned_is_cleaned_before_it_is_offered() {
    type Fail = fn(&mut World);
    let before_any_step: Fail = |world| {
        let limit_ms = world.limits.clean_callback_timeout_ms;
        world.driver_says_yes();
        world.waits(limit_ms);
    };
    let in_a_step: Fail = |world| {
        world.ramdisk_comes("clean");
        world.survey(&[]);
        world.posted(Status::Failed, Value::Null);
    };
    for (fail, needs_a_look) in [(before_any_step, false), (in_a_step, true)] {
        let mut world = World::manageable();
        world.asks(Verb::Provide);
        fail(&mut world);
        assert_eq!(world.state(), "clean failed");
        assert_eq!(world.node.maintenance.is_some(), needs_a_look);
        if world.node.driver_call.is_some() {
            world.driver_says_yes();
        }
        assert!(matches!(world.asks(Verb::Provide).reply, Reply::Refused(_)));
        world.go(Event::Maintenance {
            on: false,
            reason: None,
        });
        world.asks(Verb::Manage);
        assert_eq!(world.state(), "manageable");
        assert_eq!(world.asked(), None, "its power is left as it is");
        world.asks(Verb::Provide);
        assert_eq!(world.state(), "cleaning");
        world.ramdisk_comes("clean");
        let both = ["deploy.erase_devices_metadata", "deploy.erase_devices"];
        assert_eq!(step_names(&world), both, "from the beginning");
    }
}

#[test]
fn a_rebuild_takes_the_new_config_drive_and_without_one_the_last() {
    let mut world = World::active();
    for (given, written) in [(Some("one"), "one"), (None, "one"), (Some("two"), "two")] {
        let options = ProvisionOptions {
            configdrive: given.map(str::to_owned),
            ..ProvisionOptions::default()
        };
        world.go(provision(Verb::Rebuild, options));
        assert_eq!(world.state(), "deploying");
        let info = &world.node.attributes.instance_info;
        assert_eq!(info["configdrive"], written);
        world.driver_says_yes();
        world.boots();
        world.command_runs("get_deploy_steps", steps_result());
        world.command_runs("execute_deploy_step", json!({}));
        world.finish_deploy();
        assert_eq!(world.state(), "active");
    }
}

#[test]
fn an_interface_is_detached_from_what_is_not_in_use() {
    let mut failed = World::writing();
    failed.asks(Verb::Abort);
    failed.driver_says_yes();
    for mut world in [World::available(), World::manageable(), failed] {
        assert_eq!(world.go(vif("a", json!({}))).reply, Reply::Done);
        let detach = Event::Hardware(HardwareRequest::DetachVif("a".to_owned()));
        assert_eq!(world.go(detach).reply, Reply::Done, "{}", world.state());
        assert!(world.node.hardware.vifs.is_empty());
    }
}

#[test]
fn a_port_stays_while_an_interface_is_attached_to_it() {
    let (used, free) = [1, 2].map(|n| PortId(uuid::Uuid::from_u128(n))).into();
    for mut world in [World::active(), World::available()] {
        for (id, address) in [(used, "52:54:00:aa:00:01"), (free, "52:54:00:aa:00:02")] {
            let port = Port::new(id, address.to_owned(), Timestamp(0));
            world.node.ports.push(port);
        }
        world.go(vif("a", json!({"port_uuid": used.to_string()})));
        let Reply::Refused(Refused::Conflict { text }) =
            world.go(Event::PortDelete { id: used }).reply
        else {
            panic!("nobody can reach the machine any more");
        };
        assert!(text.contains("VIF a"), "{text}");
        assert_eq!(world.go(Event::PortDelete { id: free }).reply, Reply::Done);
        world.go(Event::Maintenance {
            on: true,
            reason: None,
        });
        assert_eq!(world.go(Event::PortDelete { id: used }).reply, Reply::Done);
    }
}

#[test]
fn a_step_of_the_driver_leaves_nothing_behind_that_keeps_the_agent_out() {
    let mut world = World::manageable();
    let interfaces = &mut world.node.attributes.interfaces;
    interfaces.insert("management".to_owned(), "fake".to_owned());
    world.asks_steps(Verb::Clean, &["management.reset_bmc", "deploy.burn_in"]);
    world.ramdisk_comes("clean");
    assert_eq!(world.asked(), Some(DriverRequest::HardwareStep));
    assert_eq!(world.heartbeats(TokenMatch::Right).reply, Reply::Done);
    world.driver_says_yes();
    assert_eq!(world.current(), "deploy.burn_in");
    let is_asked = |effect: &Effect| matches!(effect, Effect::Command { .. });
    assert!(world.effects.iter().any(is_asked), "at once");
    world.survey(&[]);
    assert!(world.posts());
    world.posted(Status::Running, Value::Null);
    world.heartbeats(TokenMatch::Right);
    assert!(world.polls_now(), "each makes the conductor look");
    world.polled(Status::Succeeded, json!({}));
    world.driver_says_yes();
    assert_eq!(world.state(), "manageable");
}

#[test]
fn after_a_reboot_the_next_step_waits_for_the_agent_of_the_new_boot() {
    let mut world = World::manageable();
    world.asks_steps(Verb::Clean, &["power.reboot", "deploy.burn_in"]);
    world.ramdisk_comes("clean");
    assert_eq!(world.asked(), Some(DriverRequest::RebootToRamdisk));
    world.driver_says_yes();
    for _ in 0..6 {
        world.at += 10_000;
        let stale = world.heartbeats(TokenMatch::Wrong).reply;
        assert!(matches!(stale, Reply::Refused(_)));
        world.go(Event::DeadlineReached);
        assert_eq!(world.work().phase, WorkPhase::AwaitingAgent);
        assert_eq!(world.node.open_command(), None);
    }
    world.boots();
    world.command_runs("execute_clean_step", json!({}));
    world.driver_says_yes();
    assert_eq!(world.state(), "manageable");
}

#[test]
fn an_operator_can_enable_what_is_off_and_what_two_managers_have_is_told() {
    let mut world = World::manageable();
    world.limits.clean_step_priorities = [
        ("raid.scrub".to_owned(), 90),
        ("deploy.erase_devices".to_owned(), 0),
    ]
    .into();
    world.asks(Verb::Provide);
    world.driver_says_yes();
    world.boots();
    let mut told = clean_steps_result("clean");
    let again = json!({"interface": "deploy", "step": "erase_devices_metadata", "priority": 1});
    told["clean_steps"]["Vendor"] = json!([again]);
    world.command_runs("get_clean_steps", told);
    let both = ["deploy.erase_devices_metadata", "raid.scrub"];
    assert_eq!(step_names(&world), both);
    let said = |line: &&String| line.contains("more than one hardware manager");
    let lines: Vec<&String> = world.history.iter().filter(said).collect();
    assert!(
        matches!(lines[..], [line] if line.contains(both[0])),
        "{lines:?}"
    );
}
