//! What operators may set on a port: the document of a new one and patches, field by field.

use serde_json::{Value, json};

use super::super::ports::{NewPort, new_port, patch_port, patch_too_new};
use super::*;

const MAC: &str = "52:54:00:aa:00:03";
const OTHER_MAC: &str = "52:54:00:aa:00:04";
const NODE: &str = "6523b921-218d-4849-a3bb-3ab765c2fcdc";

/// A port of [`NODE`] with what `more` says.
fn read(more: Value) -> Result<NewPort, Refused> {
    let mut document = json!({"address": MAC, "node_uuid": NODE});
    for (key, value) in more.as_object().unwrap() {
        document[key] = value.clone();
    }
    new_port(document.as_object().unwrap())
}

fn port(more: Value) -> Port {
    read(more).unwrap().port
}

fn problem(of: Result<impl std::fmt::Debug, Refused>) -> String {
    of.expect_err("refused").to_string()
}

fn a_node(provision: Provision, port: Port) -> Node {
    let id = NODE.parse().unwrap();
    let mut node = Node::enrolled(id, Attributes::default(), Timestamp(0));
    node.provision = provision;
    node.ports = vec![port].into();
    node
}

fn patched(node: &Node, op: PatchOp, path: &str, value: Value) -> Result<Port, Refused> {
    let operation = PatchOperation {
        op,
        path: path.split('/').map(str::to_owned).collect(),
        value,
    };
    patch_port(node, node.ports[0].id, &[operation])
}

#[test]
fn every_field_is_kept_as_it_was_given() {
    let new = read(json!({
        "uuid": "6523b921-218d-4849-a3bb-3ab765c2fcdd", "name": "p1", "pxe_enabled": false, "is_smartnic": true,
        "extra": {"a": 1}, "local_link_connection": {"port_id": "1", "hostname": "h"}, "physical_network": "net",
        "description": "d", "vendor": "v", "category": "c", "portgroup_uuid": null,
    }))
    .unwrap();
    let id = new.id.unwrap().to_string();
    assert_eq!(id, "6523b921-218d-4849-a3bb-3ab765c2fcdd");
    assert_eq!(
        new.port,
        Port {
            id: PortId::default(),
            created_at: Timestamp(0),
            updated_at: None,
            address: MAC.to_owned(),
            name: Some("p1".to_owned()),
            pxe_enabled: false,
            extra: json!({"a": 1}).as_object().unwrap().clone(),
            local_link_connection: json!({"port_id": "1", "hostname": "h"})
                .as_object()
                .unwrap()
                .clone(),
            physical_network: Some("net".to_owned()),
            is_smartnic: true,
            description: Some("d".to_owned()),
            vendor: Some("v".to_owned()),
            category: Some("c".to_owned()),
            portgroup_uuid: None,
            available_for_dynamic_portgroup: true,
        }
    );
}

#[test]
fn what_is_not_said_or_null_has_its_default() {
    let plain = port(json!({}));
    assert!(plain.pxe_enabled && !plain.is_smartnic);
    let null = port(json!({
        "name": null, "pxe_enabled": null, "is_smartnic": null, "extra": null, "local_link_connection": null,
        "physical_network": null, "description": null, "vendor": null, "category": null,
    }));
    assert_eq!(null, plain);
}

#[test]
fn texts_have_a_greatest_length() {
    for (field, characters_max) in [
        ("physical_network", 64),
        ("description", 255),
        ("vendor", 32),
        ("category", 80),
        ("name", 255),
    ] {
        assert!(read(json!({field: "x".repeat(characters_max)})).is_ok());
        let text = problem(read(json!({field: "x".repeat(characters_max + 1)})));
        assert!(text.starts_with(field), "{text}");
    }
    assert!(problem(read(json!({"name": "a b"}))).starts_with("name"));
}

#[test]
fn a_node_is_named_by_uuid_or_name_once() {
    for (name, is_right) in [("by-name", true), (NODE, true), ("a b", false)] {
        let document = json!({"address": MAC, "node_ident": name});
        let read = new_port(document.as_object().unwrap());
        assert_eq!(read.is_ok(), is_right, "{name}");
    }
}

#[test]
fn what_the_conductor_sets_is_told_apart_from_what_is_unknown() {
    for name in ["created_at", "updated_at", "internal_info", "links"] {
        assert!(problem(read(json!({name: null}))).contains("can't be changed"));
    }
    assert!(problem(read(json!({"colour": null}))).contains("not a field"));
    assert!(problem(read(json!({"portgroup_uuid": "group"}))).contains("UUID"));
    let node = a_node(Provision::Enroll, port(json!({})));
    let uuid = patched(&node, PatchOp::Add, "uuid", json!(NODE));
    assert!(problem(uuid).contains("can't be changed"));
}

#[test]
fn a_switch_port_is_described_in_one_of_three_ways() {
    for good in [
        json!({}),
        json!({"switch_id": MAC, "port_id": "1"}),
        json!({"switch_id": MAC, "port_id": "1", "switch_info": "rack 4", "network_type": "managed"}),
        json!({"port_id": "1", "hostname": "h"}),
        json!({"network_type": "unmanaged"}),
        json!({"switch_id": "0x0123456789abcdef", "port_id": "1"}),
        json!({"switch_id": "01:23:45:67:89:ab:cd:ef", "port_id": "1"}),
    ] {
        assert!(
            read(json!({"local_link_connection": good})).is_ok(),
            "{good}"
        );
    }
    let whole = "local_link_connection:";
    let switch = "local_link_connection/switch_id:";
    for (bad, field) in [
        (json!({"switch_id": MAC}), whole),
        (json!({"port_id": "1"}), whole),
        (json!({"hostname": "h"}), whole),
        (json!({"switch_id": MAC, "hostname": "h"}), whole),
        (json!({"network_type": "managed"}), whole),
        (json!({"switch_info": "x"}), whole),
        (json!({"switch_id": "x", "port_id": "1"}), switch),
        (
            json!({"switch_id": "0x0123456789abcde", "port_id": "1"}),
            switch,
        ),
        (
            json!({"switch_id": "0x0123456789abcdeg", "port_id": "1"}),
            switch,
        ),
        (
            json!({"switch_id": "01:23:45:67:89:ab:cd", "port_id": "1"}),
            switch,
        ),
        (
            json!({"switch_id": "01:23:45:67:89:ab:cd:e", "port_id": "1"}),
            switch,
        ),
        (
            json!({"switch_id": "01:23:45:67:89:ab:cd:eg", "port_id": "1"}),
            switch,
        ),
        (
            json!({"network_type": "wild"}),
            "local_link_connection/network_type:",
        ),
        (
            json!({"switch_id": MAC, "port_id": 1}),
            "local_link_connection/port_id:",
        ),
        (json!({"colour": "red"}), "local_link_connection/colour:"),
    ] {
        let text = problem(read(json!({"local_link_connection": bad})));
        assert!(text.starts_with(field), "{bad}: {text}");
    }
}

#[test]
fn a_patch_reaches_into_the_two_objects_and_removes_fields() {
    let link = json!({"switch_id": MAC, "port_id": "1"});
    let of = port(json!({"extra": {"a": 1}, "local_link_connection": link, "vendor": "v"}));
    let node = a_node(Provision::Enroll, of);
    let new = patched(&node, PatchOp::Add, "extra/b", json!(2)).unwrap();
    assert_eq!(Value::Object(new.extra), json!({"a": 1, "b": 2}));
    let new = patched(
        &node,
        PatchOp::Replace,
        "local_link_connection/port_id",
        json!("2"),
    )
    .unwrap();
    assert_eq!(new.local_link_connection["port_id"], "2");
    let broken = patched(
        &node,
        PatchOp::Remove,
        "local_link_connection/port_id",
        Value::Null,
    );
    assert!(problem(broken).starts_with("local_link_connection"));
    let new = patched(
        &node,
        PatchOp::Remove,
        "vendor",
        json!("left out of account"),
    )
    .unwrap();
    assert_eq!(new.vendor, None);
}

#[test]
fn the_node_of_a_port_may_be_named_again_and_nothing_else() {
    let node = a_node(Provision::Active, port(json!({})));
    let same = patched(&node, PatchOp::Replace, "node_uuid", json!(NODE)).unwrap();
    assert_eq!(same, node.ports[0]);
    let other = json!("6523b921-218d-4849-a3bb-3ab765c2fcdd");
    for (op, path, value) in [
        (PatchOp::Replace, "node_uuid", other),
        (PatchOp::Remove, "node_uuid", json!(NODE)),
        (PatchOp::Replace, "node_uuid/x", json!(NODE)),
    ] {
        assert!(problem(patched(&node, op, path, value)).contains("can't be moved"));
    }
}

#[test]
fn nothing_that_connects_a_machine_in_use_changes() {
    let connects = [
        ("address", json!(OTHER_MAC)),
        (
            "local_link_connection",
            json!({"network_type": "unmanaged"}),
        ),
        ("physical_network", json!("net")),
        ("pxe_enabled", json!(false)),
        ("is_smartnic", json!(true)),
    ];
    for (field, value) in connects {
        let change = |node: &Node| patched(node, PatchOp::Add, field, value.clone());
        for (provision, may) in [
            (Provision::Enroll, true),
            (Provision::Manageable, true),
            (Provision::Available, false),
            (Provision::Active, false),
        ] {
            let mut node = a_node(provision, port(json!({})));
            let refused = change(&node).err().map(|why| why.name());
            assert_eq!(refused, (!may).then_some("conflict"), "{field}");
            node.maintenance = Some(Maintenance::default().into());
            assert!(change(&node).is_ok(), "{field} in maintenance");
        }
    }
    let node = a_node(Provision::Active, port(json!({})));
    for field in ["name", "description", "vendor", "category"] {
        assert!(
            patched(&node, PatchOp::Add, field, json!("x")).is_ok(),
            "{field}"
        );
    }
}

#[test]
fn only_the_fields_of_a_patch_can_be_too_new() {
    let operation = |path: &[&str]| PatchOperation {
        op: PatchOp::Add,
        path: path.iter().map(|&part| part.to_owned()).collect(),
        value: Value::Null,
    };
    let young = [operation(&["extra", "category"]), operation(&["category"])];
    assert_eq!(patch_too_new(&young, 101), None);
    assert_eq!(patch_too_new(&young, 100), Some(("category", 101)));
    assert_eq!(patch_too_new(&young[..1], 100), None);
    assert_eq!(
        patch_too_new(&[operation(&["name", "x"])], 87),
        Some(("name", 88))
    );
}
