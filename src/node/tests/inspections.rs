//! What inspection hooks make of a node.

use serde_json::{Value, json};
use uuid::Uuid;

use crate::node::inspection::{AddPorts, Findings, Hook, KeepPorts, Settings};
use crate::node::work::{Work, WorkKind, WorkPhase};
use crate::node::*;
use crate::timestamp::Timestamp;

/// What a machine's agent posts.
pub(super) fn good() -> Value {
    json!({
        "inventory": {
            "interfaces": [
                {"name": "eth0", "mac_address": "52:54:00:AA:00:01", "ipv4_address": "192.0.2.9", "client_id": "ff:00:01",
                 "lldp": [[1, "04112233aabbcc"], [2, "05457468312f31"], [5, "737730312d6431"], [5, "zz"], [9]]},
                {"name": "eth1", "mac_address": "52:54:00:aa:00:02", "ipv6_address": "fe80::1%eth1"},
                {"name": "eth2", "mac_address": "52:54:00:aa:00:03"},
                {"name": "ib0", "mac_address": "80:00:02:08:fe:80:00:00:00:00:00:00:f4:52:14:03:00:01:02:03"},
                {"name": "lo", "mac_address": "00:00:00:00:00:00", "ipv4_address": "127.0.0.1"},
            ],
            "cpu": {"architecture": "x86_64", "count": 4, "flags": ["fpu", "vmx", "aes"]},
            "memory": {"physical_mb": 4096},
            "boot": {"current_boot_mode": "uefi", "pxe_interface": "01-52-54-00-aa-00-01"},
            "bmc_address": "198.51.100.7",
            "system_vendor": {"product_name": "M1 (rev 2)", "serial_number": null},
            "bmc_password": "hunter2",
        },
        "root_disk": {"name": "/dev/sda", "size": 64_u64 << 30},
        "boot_interface": "52:54:00:aa:00:01",
    })
}

pub(super) fn inspected_node() -> Node {
    let attributes = Attributes {
        driver: "fake-hardware".to_owned(),
        extra: json!({"list": ["a"], "b": {"c": 1}})
            .as_object()
            .unwrap()
            .clone(),
        driver_info: json!({"redfish_password": "opensesame"})
            .as_object()
            .unwrap()
            .clone(),
        ..Attributes::default()
    };
    let mut node = Node::enrolled(NodeId::default(), attributes, Timestamp(0));
    let mut work = Work::begun(WorkKind::Inspect, Timestamp(0), BootMode::Uefi, Vec::new());
    work.phase = WorkPhase::AwaitingInventory;
    node.provision = Provision::Working(work.into());
    node
}

pub(super) fn inspect(node: &Node, settings: Settings, findings: Findings) -> Step {
    let limits = Limits {
        inspection: settings,
        ..Limits::default()
    };
    let now = Now {
        at: Timestamp(1_000),
        limits: &limits,
    };
    step(node, Event::Inspected(Box::new(findings)), now)
}

pub(super) fn document(data: Value) -> Findings {
    Findings {
        data: data.as_object().unwrap().clone(),
        fresh_ids: (1..=300).map(|n| PortId(Uuid::from_u128(n))).collect(),
        ..Findings::default()
    }
}

pub(super) fn with_hooks(hooks: &[Hook]) -> Settings {
    Settings {
        hooks: hooks.to_vec(),
        ..Settings::default()
    }
}

fn addresses(node: &Node) -> Vec<(&str, bool)> {
    node.ports
        .iter()
        .map(|port| (&port.address[15..], port.pxe_enabled))
        .collect()
}

#[test]
fn ports_are_made_for_the_interfaces_the_setting_names() {
    for (add_ports, made) in [
        (AddPorts::Pxe, vec![("01", true)]),
        (AddPorts::Active, vec![("01", true), ("02", false)]),
        (
            AddPorts::All,
            vec![("01", true), ("02", false), ("03", false)],
        ),
        (AddPorts::Disabled, vec![]),
    ] {
        let settings = Settings {
            add_ports,
            ..Settings::default()
        };
        let step = inspect(&inspected_node(), settings, document(good()));
        assert_eq!(addresses(&step.node), made, "{add_ports:?}");
        let data = &step.inventory.unwrap()["plugin_data"];
        assert_eq!(data["all_interfaces"].as_object().unwrap().len(), 4);
        assert_eq!(data["all_interfaces"]["eth1"]["ipv6_address"], "fe80::1");
    }
    let mut data = good();
    data["boot_interface"] = json!(null);
    data["inventory"]["boot"]["pxe_interface"] = json!(null);
    let step = inspect(&inspected_node(), Settings::default(), document(data));
    let all = [("01", true), ("02", true), ("03", true)];
    assert_eq!(addresses(&step.node), all, "where that is not known");
    assert_eq!(step.node.ports[0].extra["client-id"], "ff:00:01");
}

#[test]
fn ports_stay_as_the_setting_says_and_follow_what_was_booted_from() {
    let mut node = inspected_node();
    for (n, address) in [(1, "52:54:00:aa:00:02"), (2, "52:54:00:aa:00:99")] {
        let id = PortId(Uuid::from_u128(n << 64));
        node.ports
            .push(Port::new(id, address.to_owned(), Timestamp(0)));
    }
    for (keep_ports, kept) in [
        (
            KeepPorts::All,
            vec![("02", false), ("99", true), ("01", true)],
        ),
        (KeepPorts::Present, vec![("02", false), ("01", true)]),
        (KeepPorts::Added, vec![("01", true)]),
    ] {
        let settings = Settings {
            keep_ports,
            ..Settings::default()
        };
        let step = inspect(&node, settings, document(good()));
        assert_eq!(addresses(&step.node), kept, "{keep_ports:?}");
    }
}

#[test]
fn an_address_that_a_port_of_another_node_has_is_passed_over() {
    let findings = Findings {
        taken: vec!["52:54:00:aa:00:01".to_owned()],
        ..document(good())
    };
    let step = inspect(&inspected_node(), Settings::default(), findings);
    assert!(step.node.ports.is_empty());
    let told = |line: &HistoryLine| line.event.contains("52:54:00:aa:00:01");
    assert!(step.history.iter().any(told), "{:?}", step.history);
    assert_eq!(step.node.last_error, None);
}

#[test]
fn hooks_set_what_they_are_named_after() {
    let hooks: Vec<Hook> = Hook::ALL.iter().map(|(_, hook)| *hook).collect();
    let step = inspect(&inspected_node(), with_hooks(&hooks), document(good()));
    let properties = Value::Object(step.node.attributes.properties.clone());
    assert_eq!(
        properties,
        json!({
            "cpu_arch": "x86_64", "memory_mb": 4096, "local_gb": 63,
            "capabilities": "boot_mode:uefi,cpu_vt:true,cpu_aes:true",
        })
    );
    assert_eq!(
        Value::Object(step.node.ports[0].local_link_connection.clone()),
        json!({"switch_id": "11:22:33:aa:bb:cc", "port_id": "Eth1/1"})
    );
    let parsed = &step.inventory.unwrap()["plugin_data"]["parsed_lldp"];
    assert_eq!(
        *parsed,
        json!({"eth0": {
            "switch_chassis_id": "11:22:33:aa:bb:cc", "switch_port_id": "Eth1/1", "switch_system_name": "sw01-d1",
        }})
    );
    let step = inspect(&inspected_node(), with_hooks(&[]), document(good()));
    assert!(step.node.attributes.properties.is_empty() && step.node.ports.is_empty());
}

#[test]
fn missing_and_odd_parts_are_passed_over() {
    let hooks: Vec<Hook> = Hook::ALL.iter().map(|(_, hook)| *hook).collect();
    for change in [
        json!({"cpu": null, "memory": null, "boot": null}),
        json!({"cpu": 7, "memory": "much", "boot": [], "disks": {}}),
        json!({"cpu": {"architecture": 5, "flags": {"vmx": 1}}, "memory": {"physical_mb": -1}}),
        json!({"cpu": {"architecture": "x".repeat(300)}, "memory": {"physical_mb": 0}}),
    ] {
        let mut data = good();
        for (key, value) in change.as_object().unwrap() {
            data["inventory"][key] = value.clone();
        }
        data["root_disk"] = json!({"size": 0});
        data["boot_interface"] = json!(["eth0"]);
        data["lldp_raw"] = json!({"eth0": [[1, "0"], 5, ["a", "b"], [1, null]], "eth1": "x"});
        let step = inspect(&inspected_node(), with_hooks(&hooks), document(data));
        assert_eq!(step.node.last_error, None, "{change}");
        let properties = &step.node.attributes.properties;
        for name in ["cpu_arch", "memory_mb", "local_gb"] {
            assert_eq!(properties.get(name), None, "{change}");
        }
        assert!(
            step.node
                .ports
                .iter()
                .all(|port| port.local_link_connection.is_empty())
        );
    }
}

/// As many as there may be, each with a name as long as it may be; switches are heard on no more than 64.
#[test]
fn a_machine_with_many_interfaces_is_taken_over_within_limits() {
    let interfaces: Vec<Value> = (0..256)
        .map(|n| {
            json!({
                "name": format!("eth{n}"), "mac_address": format!("52:54:00:aa:01:{n:02x}"), "lldp": [[5, "73"]],
            })
        })
        .collect();
    let mut data = good();
    data["inventory"]["interfaces"] = json!(interfaces);
    data["inventory"]["interfaces"][0]["name"] = json!("e".repeat(65));
    let settings = Settings {
        add_ports: AddPorts::All,
        ..with_hooks(&[Hook::ParseLldp, Hook::LocalLinkConnection, Hook::Ports])
    };
    let step = inspect(&inspected_node(), settings, document(data));
    assert_eq!(step.node.last_error, None);
    assert_eq!(step.node.ports.len(), 255, "one has no name");
    let parsed = &step.inventory.unwrap()["plugin_data"]["parsed_lldp"];
    assert_eq!(parsed.as_object().unwrap().len(), 64);
}

#[test]
fn what_an_operator_said_goes_before_what_was_found() {
    let hooks = with_hooks(&[Hook::Ports, Hook::RootDevice, Hook::LocalLinkConnection]);
    let mut node = inspected_node();
    let hints = json!({"serial": "s"});
    let properties = &mut node.attributes.properties;
    properties.insert("root_device".to_owned(), hints);
    let id = PortId(Uuid::from_u128(9 << 64));
    let mut port = Port::new(id, "52:54:00:aa:00:01".to_owned(), Timestamp(0));
    let switch = json!("00:00:00:00:00:09");
    port.local_link_connection
        .insert("switch_id".to_owned(), switch.clone());
    node.ports.push(port);
    let step = inspect(&node, hooks, document(good()));
    assert_eq!(step.node.attributes.properties.get("local_gb"), None);
    let connection = &step.node.ports[0].local_link_connection;
    assert_eq!(connection["switch_id"], switch);
    assert_eq!(connection["port_id"], "Eth1/1");
}

/// A switch that calls itself `sw1` and not by a MAC address is not entered: nobody could find it by that.
#[test]
fn a_switch_without_a_mac_address_is_not_entered() {
    let mut data = good();
    data["inventory"]["interfaces"][0]["lldp"] = json!([[1, "07737731"], [2, "05457468312f31"]]);
    let hooks = with_hooks(&[Hook::Ports, Hook::LocalLinkConnection, Hook::ParseLldp]);
    let step = inspect(&inspected_node(), hooks, document(data));
    assert!(step.node.ports[0].local_link_connection.is_empty());
    let parsed = &step.inventory.unwrap()["plugin_data"]["parsed_lldp"];
    assert_eq!(parsed["eth0"]["switch_chassis_id"], "sw1");
}
