//! Steps that are carried out on a machine from outside: what is offered, refused, and recorded.

use super::super::attributes::parse_new;
use super::super::hardware::bios;
use super::super::hardware::steps::*;
use super::super::steps::WorkStep;
use super::*;

fn node(document: Value) -> Node {
    let new = parse_new(document.as_object().unwrap(), 110).unwrap();
    let mut node = Node::enrolled(NodeId::default(), new.attributes, Timestamp(0));
    node.power.state = Some(PowerState::Off);
    node
}

fn fake() -> Node {
    node(json!({"driver": "fake-hardware"}))
}

/// Carries out a step as an engine does.
fn carry_out(node: &mut Node, kind: StepsOf, name: &str, args: Value) -> Result<(), String> {
    let (interface, step) = name.split_once('.').unwrap();
    let step = hardware_step(&node.attributes, kind, interface, step).expect(name);
    let args = args.as_object().unwrap();
    prepare(node, step, args)?;
    record(node, step, args, Timestamp(1_000));
    Ok(())
}

#[test]
fn only_what_the_interfaces_can_do_is_offered() {
    let names = |node: &Node, kind| -> Vec<String> {
        hardware_steps(&node.attributes, kind)
            .iter()
            .map(|step| format!("{}.{}", step.interface, step.step))
            .collect()
    };
    let all = names(&fake(), StepsOf::Clean);
    assert!(all.contains(&"raid.create_configuration".to_owned()));
    assert!(!all.contains(&"raid.apply_configuration".to_owned()));
    assert!(names(&fake(), StepsOf::Deploy).contains(&"raid.apply_configuration".to_owned()));
    let plain = node(json!({
        "driver": "fake-hardware", "bios_interface": "no-bios", "raid_interface": "agent",
        "firmware_interface": "no-firmware", "management_interface": "noop",
    }));
    assert_eq!(names(&plain, StepsOf::Clean), Vec::<String>::new());
    let manual = node(json!({"driver": "manual-management"}));
    for kind in [StepsOf::Clean, StepsOf::Deploy, StepsOf::Service] {
        assert_eq!(names(&manual, kind), Vec::<String>::new());
    }
}

#[test]
fn bios_settings_change_and_come_back() {
    let mut node = fake();
    let settings = json!({"settings": [
        {"name": "NumLock", "value": "Off"}, {"name": "LogicalProc", "value": "Enabled"}
    ]});
    carry_out(
        &mut node,
        StepsOf::Clean,
        "bios.apply_configuration",
        settings,
    )
    .unwrap();
    let changed: Vec<(&str, &str)> = bios::settings(&node)
        .iter()
        .filter(|of| of.change.is_some())
        .map(|of| (of.setting.name, of.change.unwrap().value.as_str()))
        .collect();
    assert_eq!(changed, [("NumLock", "Off")]);
    carry_out(&mut node, StepsOf::Service, "bios.factory_reset", json!({})).unwrap();
    assert_eq!(node.hardware, fake().hardware);
}

#[test]
fn firmware_has_the_version_that_was_flashed() {
    let mut node = fake();
    let settings =
        json!({"settings": [{"component": "bmc", "url": "https://f.example/bmc-2.1.bin"}]});
    carry_out(&mut node, StepsOf::Service, "firmware.update", settings).unwrap();
    assert_eq!(node.hardware.firmware_changes["bmc"].version, "bmc-2.1");
}

#[test]
fn a_raid_is_made_of_what_was_asked_for_and_deleted() {
    let mut node = fake();
    let create = "raid.create_configuration";
    assert!(carry_out(&mut node, StepsOf::Clean, create, json!({})).is_err());
    let target = json!({"logical_disks": [
        {"size_gb": 10, "raid_level": "1", "is_root_volume": true},
        {"size_gb": "MAX", "raid_level": "0", "volume_name": "data"},
    ]});
    node.hardware.target_raid_config = target.as_object().unwrap().clone();
    carry_out(&mut node, StepsOf::Clean, create, json!({})).unwrap();
    let made = Value::Object(node.hardware.raid_config.clone());
    assert_eq!(made["logical_disks"][0]["volume_name"], "volume-0");
    assert_eq!(made["logical_disks"][1]["volume_name"], "data");
    assert_eq!(made["last_updated"], "1970-01-01T00:00:01.000000");

    // What is there is added to, unless it is to be deleted first.
    carry_out(&mut node, StepsOf::Clean, create, json!({})).unwrap();
    let made = Value::Object(node.hardware.raid_config.clone());
    assert_eq!(made["logical_disks"].as_array().unwrap().len(), 4);

    let only_data = json!({"create_root_volume": false, "delete_existing": true});
    carry_out(&mut node, StepsOf::Clean, create, only_data).unwrap();
    let made = Value::Object(node.hardware.raid_config.clone());
    assert_eq!(made["logical_disks"].as_array().unwrap().len(), 1);

    let other = json!({"raid_config": {"logical_disks": [{"size_gb": 5, "raid_level": "5"}]}});
    carry_out(
        &mut node,
        StepsOf::Deploy,
        "raid.apply_configuration",
        other,
    )
    .unwrap();
    let made = Value::Object(node.hardware.raid_config.clone());
    assert_eq!(made["logical_disks"].as_array().unwrap().len(), 1);
    assert_eq!(made["logical_disks"][0]["raid_level"], "5");

    carry_out(
        &mut node,
        StepsOf::Clean,
        "raid.delete_configuration",
        json!({}),
    )
    .unwrap();
    assert!(node.hardware.raid_config.is_empty());
}

#[test]
fn arguments_that_make_no_sense_are_refused_before_anything_runs() {
    for (kind, name, args, word) in [
        (
            StepsOf::Clean,
            "bios.factory_reset",
            json!({"x": 1}),
            "\"x\"",
        ),
        (
            StepsOf::Clean,
            "bios.apply_configuration",
            json!({}),
            "settings",
        ),
        (
            StepsOf::Clean,
            "bios.apply_configuration",
            json!({"settings": null}),
            "settings",
        ),
        (
            StepsOf::Clean,
            "firmware.update",
            json!({"settings": {}}),
            "list",
        ),
        (
            StepsOf::Clean,
            "raid.create_configuration",
            json!({"delete_existing": "yes"}),
            "delete_existing",
        ),
        (
            StepsOf::Deploy,
            "raid.apply_configuration",
            json!({"raid_config": {}}),
            "raid_config",
        ),
        (
            StepsOf::Deploy,
            "raid.apply_configuration",
            json!({"raid_config": {"logical_disks": [{}]}}),
            "size_gb",
        ),
        (
            StepsOf::Service,
            "vendor.log_passthru",
            json!({"message": 1}),
            "message",
        ),
    ] {
        let told = carry_out(&mut fake(), kind, name, args.clone()).unwrap_err();
        assert!(told.contains(word) && told.contains(name), "{args}: {told}");
    }
}

#[test]
fn steps_are_described_with_their_arguments() {
    let attributes = fake().attributes;
    let step = hardware_step(&attributes, StepsOf::Clean, "firmware", "update").unwrap();
    let told = step.described();
    assert_eq!(told["priority"], 0);
    assert_eq!(told["requires_ramdisk"], false);
    assert_eq!(told["argsinfo"]["settings"]["required"], true);
    let step = hardware_step(&attributes, StepsOf::Clean, "bios", "factory_reset").unwrap();
    assert_eq!(step.described()["argsinfo"], Value::Null);
}

/// A world whose machine has these interfaces, about to be cleaned by these steps.
fn cleaning(interfaces: Value, steps: Vec<WorkStep>) -> World {
    let mut world = World::new();
    world.asks(Verb::Manage);
    world.driver_says_yes();
    let mut document = json!({"driver": "fake-hardware"});
    for (kind, chosen) in interfaces.as_object().unwrap() {
        document[kind] = chosen.clone();
    }
    world.node.attributes = node(document).attributes;
    let target = json!({"logical_disks": [{"size_gb": 10, "raid_level": "1"}]});
    world.node.hardware.target_raid_config = target.as_object().unwrap().clone();
    world.go(Event::Provision {
        verb: Verb::Clean,
        options: ProvisionOptions {
            steps,
            ..ProvisionOptions::default()
        },
    });
    world
}

fn wanted(interface: &str, step: &str, args: Value) -> WorkStep {
    WorkStep {
        args: args.as_object().unwrap().clone(),
        ..WorkStep::named(interface, step, 0)
    }
}

#[test]
fn a_cleaning_of_the_drivers_own_steps_leaves_its_traces_in_the_row() {
    let settings = json!({"settings": [{"name": "NumLock", "value": "Off"}]});
    let flash = json!({"settings": [{"component": "bios", "url": "http://f.example/bios-2.bin"}]});
    let steps = vec![
        wanted("raid", "create_configuration", json!({})),
        wanted("bios", "apply_configuration", settings),
        wanted("firmware", "update", flash),
    ];
    let mut world = cleaning(json!({}), steps);
    for _ in 0..20 {
        if world.node.driver_call.is_none() {
            break;
        }
        world.driver_says_yes();
    }
    assert_eq!(world.state(), "manageable", "{}", world.last_error());
    let hardware = &world.node.hardware;
    assert_eq!(hardware.bios_changes["NumLock"].value, "Off");
    assert_eq!(hardware.firmware_changes["bios"].version, "bios-2");
    assert_eq!(hardware.raid_config["logical_disks"][0]["size_gb"], 10);
}

#[test]
fn a_raid_that_the_agent_made_is_in_the_row() {
    let steps = vec![wanted("raid", "create_configuration", json!({}))];
    let mut world = cleaning(json!({"raid_interface": "agent"}), steps);
    world.driver_says_yes();
    world.boots();
    let known = json!({"clean_steps": {"Generic": [
        {"interface": "raid", "step": "create_configuration", "priority": 0},
    ]}});
    world.command_runs("get_clean_steps", known);
    let made = json!({"clean_result": {"logical_disks": [{"size_gb": 10, "raid_level": "1"}]}});
    world.command_runs("execute_clean_step", made);
    assert_eq!(
        world.node.hardware.raid_config["logical_disks"][0]["raid_level"],
        "1"
    );
}

#[test]
fn the_power_of_a_machine_that_is_cleaned_is_left_alone() {
    let mut world = cleaning(
        json!({"raid_interface": "agent"}),
        vec![wanted("raid", "create_configuration", json!({}))],
    );
    for state in ["cleaning", "clean wait"] {
        assert_eq!(world.state(), state);
        let step = world.go(Event::power(PowerRequest::Reboot));
        let Reply::Refused(Refused::BadValue { problem, .. }) = step.reply else {
            panic!("{:?}", step.reply);
        };
        assert!(problem.contains(state), "{problem}");
        if state == "cleaning" {
            world.driver_says_yes();
        }
    }
}

#[test]
fn a_custom_agent_needs_no_image() {
    let mut world = World::available();
    world.node.attributes.instance_info = Object::new();
    let step = world.asks(Verb::Active);
    assert!(matches!(
        step.reply,
        Reply::Refused(Refused::BadValue { .. })
    ));
    let custom = node(json!({"driver": "fake-hardware", "deploy_interface": "custom-agent"}));
    world.node.attributes = custom.attributes;
    assert_eq!(world.asks(Verb::Active).reply, Reply::Done);
    world.driver_says_yes();
    world.boots();
    world.command_runs("get_deploy_steps", json!({"deploy_steps": {}}));
    let work = world.node.work().unwrap();
    assert!(work.steps.iter().all(|step| step.step != "write_image"));
    // An image that is named is checked all the same.
    world = World::available();
    world.node.attributes = node(json!({
        "driver": "fake-hardware", "deploy_interface": "custom-agent",
        "instance_info": {"image_source": "file:///etc/shadow"},
    }))
    .attributes;
    let step = world.asks(Verb::Active);
    assert!(matches!(step.reply, Reply::Refused(_)));
}
