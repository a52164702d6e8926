//! What operators ask of a machine from outside: boot device, modes, media, console, RAID, virtual interfaces, and power.

use serde_json::json;

use super::super::attributes::parse_new;
use super::super::hardware::boot;
use super::super::hardware::recorded::{BootDevice, Media, Vif};
use super::super::hardware::vendor::VendorRequest;
use super::*;

fn world_with(document: Value) -> World {
    let mut world = World::new();
    world.node.attributes = parse_new(document.as_object().unwrap(), 110)
        .unwrap()
        .attributes
        .into();
    world
}

pub(super) fn fake() -> World {
    world_with(json!({"driver": "fake-hardware"}))
}

/// A machine nothing can be done to but by a person.
pub(super) fn manual() -> World {
    world_with(json!({"driver": "manual-management"}))
}

fn boot_from(device: &str, persistent: bool) -> HardwareRequest {
    HardwareRequest::BootDevice(BootDevice {
        device: device.to_owned(),
        persistent,
    })
}

fn insert(device_type: &str, image_url: &str) -> HardwareRequest {
    HardwareRequest::InsertMedia {
        device_type: device_type.to_owned(),
        media: Media {
            image_url: image_url.to_owned(),
            download_source: None,
        },
    }
}

fn vif(id: &str, info: Value) -> HardwareRequest {
    HardwareRequest::AttachVif(Vif {
        id: id.to_owned(),
        info: info.as_object().unwrap().clone(),
    })
}

impl World {
    pub(super) fn wants(&mut self, request: HardwareRequest) -> Step {
        self.go(Event::Hardware(request))
    }

    fn power(&mut self, change: PowerRequest) -> Step {
        self.go(Event::power(change))
    }

    fn drives(&self) -> Vec<&str> {
        self.node
            .hardware
            .media
            .keys()
            .map(String::as_str)
            .collect()
    }
}

pub(super) fn refusal(step: &Step) -> &'static str {
    match &step.reply {
        Reply::Refused(why) => why.name(),
        other => panic!("not refused: {other:?}"),
    }
}

#[test]
fn a_boot_device_is_set_and_a_failure_puts_back_what_was() {
    let mut world = fake();
    world.wants(boot_from("pxe", false));
    assert_eq!(
        world.node.driver_call.map(|call| call.request),
        Some(DriverRequest::SetBootDevice)
    );
    world.driver_says_yes();
    assert_eq!(world.node.hardware.undo, None);
    world.wants(boot_from("disk", true));
    assert!(boot::boot_device(&world.node).unwrap().persistent);
    world.driver(Err("the BMC is away".to_owned()));
    assert_eq!(boot::boot_device(&world.node).unwrap().device, "pxe");
    assert!(
        world
            .last_error()
            .contains("set boot device failed: the BMC is away")
    );
    let step = world.wants(boot_from("floppy", true));
    assert_eq!(refusal(&step), "bad_value");
    assert!(step.reply != Reply::Done);
}

#[test]
fn a_person_is_asked_to_set_what_no_driver_can() {
    let mut world = manual();
    let step = world.wants(boot_from("pxe", true));
    assert!(step.effects.is_empty());
    assert_eq!(boot::boot_device(&world.node), None);
    assert!(world.history.iter().any(|line| line.contains("by hand")));
    for request in [
        boot_from("cdrom", false),
        HardwareRequest::BootMode(BootMode::Bios),
        HardwareRequest::SecureBoot(true),
        HardwareRequest::InjectNmi,
        HardwareRequest::Console(true),
        insert("cdrom", "http://images.example/a.iso"),
        HardwareRequest::EjectMedia(Vec::new()),
    ] {
        let step = world.wants(request.clone());
        assert!(
            ["unsupported", "bad_value"].contains(&refusal(&step)),
            "{request:?}"
        );
    }
    let target = HardwareRequest::TargetRaid(Object::new());
    assert_eq!(refusal(&world.wants(target)), "not_found");
}

#[test]
fn modes_are_shown_when_the_driver_took_them_and_as_they_were_when_not() {
    let mut world = fake();
    world.node.last_error = Some("old".to_owned());
    world.wants(HardwareRequest::BootMode(BootMode::Bios));
    assert_eq!(world.node.last_error, None);
    world.driver_says_yes();
    assert_eq!(world.node.attributes.boot_mode.as_deref(), Some("bios"));
    world.wants(HardwareRequest::SecureBoot(true));
    world.driver(Err("no".to_owned()));
    assert_eq!(world.node.attributes.secure_boot, None);
    assert!(world.last_error().contains("secure boot"));
}

#[test]
fn the_machine_is_left_alone_while_something_else_is_done_to_it() {
    let mut world = fake();
    world.wants(boot_from("pxe", false));
    for request in [
        boot_from("disk", true),
        HardwareRequest::InjectNmi,
        HardwareRequest::TargetRaid(Object::new()),
        vif("a", json!({})),
        HardwareRequest::Vendor(VendorRequest::Noted("first_method")),
    ] {
        assert_eq!(refusal(&world.wants(request)), "busy");
    }
    assert_eq!(refusal(&world.power(PowerRequest::Reboot)), "busy");
    world.driver_says_yes();
    world.asks(Verb::Manage);
    assert_eq!(refusal(&world.wants(boot_from("pxe", false))), "busy");
    // Not for want of a free driver alone.
    world.node.driver_call = None;
    assert_eq!(refusal(&world.wants(boot_from("pxe", false))), "busy");
}

#[test]
fn an_answer_about_the_machine_is_no_answer_to_a_flow() {
    let mut world = World::agent_arrived();
    let mut attributes = fake().node.attributes;
    attributes.instance_info = world.node.attributes.instance_info.clone();
    world.node.attributes = attributes;
    assert_eq!(world.state(), "wait call-back");
    world.wants(boot_from("disk", true));
    world.driver(Err("no".to_owned()));
    assert_eq!(world.state(), "wait call-back");
    world.wants(boot_from("disk", true));
    world.at += world.limits.driver_limit_ms;
    world.go(Event::DeadlineReached);
    assert_eq!(world.state(), "wait call-back");
    assert!(world.last_error().contains("did not answer"));
}

#[test]
fn media_come_and_go_by_drive() {
    let mut world = fake();
    for drive in ["cdrom", "disk", "floppy"] {
        world.wants(insert(drive, "https://images.example/a.iso"));
        world.driver_says_yes();
    }
    world.wants(HardwareRequest::EjectMedia(vec!["disk".to_owned()]));
    world.driver_says_yes();
    assert_eq!(world.drives(), ["cdrom", "floppy"]);
    // Nothing in there, nothing to do.
    let step = world.wants(HardwareRequest::EjectMedia(vec!["disk".to_owned()]));
    assert!(step.effects.is_empty() && step.reply == Reply::Done);
    world.wants(HardwareRequest::EjectMedia(Vec::new()));
    world.driver(Err("stuck".to_owned()));
    assert_eq!(world.drives(), ["cdrom", "floppy"]);
    world.wants(HardwareRequest::EjectMedia(Vec::new()));
    world.driver_says_yes();
    assert!(world.drives().is_empty());
}

#[test]
fn media_come_from_other_hosts_by_four_schemes() {
    let mut world = fake();
    for url in [
        "http://h/a.iso",
        "https://h/a.iso",
        "nfs://h/share/a.iso",
        "cifs://h/share/a.iso",
    ] {
        assert_eq!(
            world.wants(insert("cdrom", url)).reply,
            Reply::Done,
            "{url}"
        );
        world.driver_says_yes();
    }
    for url in [
        "file:///etc/shadow",
        "FILE://h/x",
        "/etc/shadow",
        "ftp://h/a.iso",
        "data:,x",
        "javascript:1",
        "http://",
        "http://h/a b.iso",
        "http://h/a\n.iso",
        "",
    ] {
        assert_eq!(
            refusal(&world.wants(insert("cdrom", url))),
            "bad_value",
            "{url}"
        );
    }
    let step = world.wants(insert("tape", "http://h/a.iso"));
    assert_eq!(refusal(&step), "bad_value");
    let step = world.wants(HardwareRequest::EjectMedia(vec!["tape".to_owned()]));
    assert_eq!(refusal(&step), "bad_value");
}

#[test]
fn a_console_is_switched_only_when_it_is_not_so_already() {
    let mut world = fake();
    world.wants(HardwareRequest::Console(true));
    world.driver_says_yes();
    assert!(world.node.hardware.console_enabled);
    assert!(
        world
            .wants(HardwareRequest::Console(true))
            .effects
            .is_empty()
    );
    world.wants(HardwareRequest::Console(false));
    world.driver(Err("no".to_owned()));
    assert!(world.node.hardware.console_enabled);
}

#[test]
fn virtual_interfaces_are_attached_once_and_detached_once() {
    let mut world = fake();
    world.wants(vif("a", json!({})));
    world.wants(vif("b", json!({"vif_info": 1})));
    assert_eq!(refusal(&world.wants(vif("a", json!({})))), "conflict");
    let port = json!({"port_uuid": "6523b921-218d-4849-a3bb-3ab765c2fcdc"});
    assert_eq!(refusal(&world.wants(vif("c", port))), "bad_value");
    world.wants(HardwareRequest::DetachVif("a".to_owned()));
    let step = world.wants(HardwareRequest::DetachVif("a".to_owned()));
    assert_eq!(refusal(&step), "bad_value");
    assert_eq!(world.node.hardware.vifs.len(), 1);
}

#[test]
fn the_next_instance_does_not_find_the_interfaces_of_the_last_one() {
    let mut world = World::active();
    world.wants(vif("a", json!({})));
    assert_eq!(world.node.hardware.vifs.len(), 1);
    world.asks(Verb::Deleted);
    world.driver_says_yes();
    assert!(world.node.hardware.vifs.is_empty());
}

#[test]
fn a_raid_is_wished_for_and_the_wish_taken_back() {
    let mut world = fake();
    let target = json!({"logical_disks": [{"size_gb": 100, "raid_level": "1"}]});
    let target = target.as_object().unwrap();
    world.wants(HardwareRequest::TargetRaid(target.clone()));
    assert_eq!(&world.node.hardware.target_raid_config, target);
    let mut bad = target.clone();
    bad.insert("x".to_owned(), json!(1));
    let step = world.wants(HardwareRequest::TargetRaid(bad));
    assert_eq!(refusal(&step), "bad_value");
    world.wants(HardwareRequest::TargetRaid(Object::new()));
    assert!(world.node.hardware.is_default());
}

#[test]
fn a_restart_asks_again_for_what_shall_be_but_injects_nothing_twice() {
    let mut world = fake();
    world.wants(boot_from("pxe", false));
    let step = world.go(Event::Resumed { down_for_ms: 0 });
    assert_eq!(step.effects.len(), 1);
    world.driver_says_yes();
    world.wants(HardwareRequest::InjectNmi);
    let step = world.go(Event::Resumed { down_for_ms: 0 });
    assert!(step.effects.is_empty());
    assert_eq!(world.node.driver_call, None);
    assert!(world.last_error().contains("Nobody knows"));
}

#[test]
fn soft_power_is_refused_at_once_where_the_driver_has_none() {
    let mut world = manual();
    for change in [PowerRequest::SoftOff, PowerRequest::SoftReboot] {
        assert_eq!(refusal(&world.power(change)), "unsupported");
    }
    let mut world = fake();
    world.node.power.state = Some(PowerState::On);
    world.power(PowerRequest::SoftOff);
    assert_eq!(world.node.power.target, Some(PowerState::Off));
    assert_eq!(
        world.node.deadlines.driver,
        Some(Timestamp(world.at + 600_000))
    );
    // A restart of the conductor does not make the operating system any faster.
    world.go(Event::Resumed { down_for_ms: 0 });
    assert_eq!(
        world.node.deadlines.driver,
        Some(Timestamp(world.at + 600_000))
    );
    world.driver_says_yes();
    assert_eq!(world.node.power.state, Some(PowerState::Off));
    world.power(PowerRequest::SoftReboot);
    world.driver_says_yes();
    assert_eq!(world.node.power.state, Some(PowerState::On));
}

#[test]
fn a_power_change_may_take_as_long_as_was_said() {
    let mut world = fake();
    world.go(Event::Power {
        change: PowerRequest::Set(PowerState::On),
        limit_ms: Some(5_000),
    });
    assert_eq!(
        world.node.deadlines.driver,
        Some(Timestamp(world.at + 5_000))
    );
    world.at += 5_000;
    world.go(Event::DeadlineReached);
    assert!(world.last_error().contains("power on failed"));
    assert_eq!(world.node.power.target, None);
}

#[test]
fn a_node_that_must_not_go_off_does_not_even_softly() {
    let mut world = fake();
    world.node.attributes.disable_power_off = true;
    for change in [PowerRequest::SoftOff, PowerRequest::Set(PowerState::Off)] {
        assert_eq!(refusal(&world.power(change)), "bad_value");
    }
    assert_eq!(world.power(PowerRequest::Reboot).reply, Reply::Done);
}

#[test]
fn flows_leave_a_trace_of_the_boot_device() {
    let mut world = World::agent_arrived();
    let device = world.node.hardware.boot_device.clone().unwrap();
    assert_eq!((device.device.as_str(), device.persistent), ("pxe", false));
    world = World::active();
    let device = world.node.hardware.boot_device.clone().unwrap();
    assert_eq!((device.device.as_str(), device.persistent), ("disk", true));
}

#[test]
fn a_machine_whose_agent_does_not_come_can_be_booted_again() {
    let mut world = World::available();
    world.asks(Verb::Active);
    world.driver_says_yes();
    assert_eq!(world.state(), "wait call-back");
    let busy = world.power(PowerRequest::Set(PowerState::Off));
    assert_eq!(refusal(&busy), "busy");
    for change in [PowerRequest::Reboot, PowerRequest::Set(PowerState::On)] {
        // Somebody's token does not outlive the boot.
        let fresh_nonce = "stale".to_owned();
        world.go(Event::Lookup { fresh_nonce });
        world.at += 60_000;
        world.power(change);
        assert_eq!(world.node.session, None);
        let asked = world.node.driver_call.map(|call| call.request);
        assert_eq!(asked, Some(DriverRequest::RebootToRamdisk));
        world.driver_says_yes();
        assert_eq!(world.state(), "wait call-back");
    }
    world.boots();
    world.command_runs("get_deploy_steps", steps_result());
    // From now on somebody works on it.
    let busy = world.power(PowerRequest::Reboot);
    assert_eq!(refusal(&busy), "busy");
}

#[test]
fn whoever_holds_the_work_may_switch_the_machine() {
    let mut world = World::new();
    world.asks(Verb::Manage);
    world.driver_says_yes();
    let steps = ["power.hold", "deploy.burn_in"].map(|name| {
        let (interface, step) = name.split_once('.').unwrap();
        super::super::steps::WorkStep::named(interface, step, 0)
    });
    world.go(Event::Provision {
        verb: Verb::Clean,
        options: ProvisionOptions {
            steps: steps.to_vec(),
            ..ProvisionOptions::default()
        },
    });
    world.driver_says_yes();
    world.boots();
    let known = json!({"clean_steps": {"Generic": [
        {"interface": "deploy", "step": "burn_in", "priority": 0},
    ]}});
    world.command_runs("get_clean_steps", known);
    assert_eq!(world.state(), "clean hold");
    for change in [PowerRequest::Set(PowerState::Off), PowerRequest::Reboot] {
        assert_eq!(world.power(change).reply, Reply::Done);
        assert_eq!(refusal(&world.asks(Verb::Unhold)), "busy");
        world.driver(Err("no".to_owned()));
        assert_eq!(world.state(), "clean hold");
        assert!(world.last_error().contains("failed: no"));
    }
    world.power(PowerRequest::Reboot);
    world.driver_says_yes();
    assert_eq!(world.asks(Verb::Unhold).reply, Reply::Done);
    // Its agent is gone with that, so another one is booted.
    let asked = world.node.driver_call.map(|call| call.request);
    assert_eq!(asked, Some(DriverRequest::RebootToRamdisk));
    world.driver_says_yes();
    world.boots();
    world.command_runs("execute_clean_step", json!({}));
}
