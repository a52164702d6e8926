//! What belongs to a node besides its ports: who may have, change and lose it; traits; and allocations.

use serde_json::{Value, json};
use uuid::Uuid;

use crate::node::allocation::{AllocationChange, Demand};
use crate::node::parts::{Part, PartChange, PartKind, read_new};
use crate::node::portgroups::Portgroup;
use crate::node::traits::TraitChange;
use crate::node::volume::{VolumeConnector, VolumeTarget};
use crate::node::*;
use crate::timestamp::Timestamp;

fn a_node(provision: Provision) -> Node {
    let attributes = Attributes {
        driver: "fake-hardware".to_owned(),
        resource_class: Some("large".to_owned()),
        ..Attributes::default()
    };
    let mut node = Node::enrolled(NodeId::default(), attributes, Timestamp(0));
    node.provision = provision;
    node.power.state = Some(PowerState::Off);
    node
}

/// The event's step; what it makes of the node is kept.
fn go(node: &mut Node, event: Event) -> Step {
    let limits = Limits::default();
    let now = Now {
        at: Timestamp(1_000),
        limits: &limits,
    };
    let step = step(node, event, now);
    if let Reply::Refused(_) = step.reply {
        assert_eq!(step.node, *node, "a refusal changes nothing");
    } else {
        let has_changed = step.node != *node;
        assert_eq!(step.node.version, node.version + u64::from(has_changed));
    }
    *node = step.node.clone();
    step
}

/// The word for the refusal, or `done`.
fn told(node: &mut Node, event: Event) -> &'static str {
    match go(node, event).reply {
        Reply::Refused(why) => why.name(),
        _ => "done",
    }
}

fn add<T: PartKind>(node: &mut Node, number: u128, mut document: Value) -> &'static str {
    document["node_uuid"] = json!(node.id.to_string());
    let new = read_new::<T>(document.as_object().unwrap()).unwrap();
    let part = Part {
        id: Uuid::from_u128(number),
        created_at: Timestamp(1),
        updated_at: None,
        is: new.is,
    };
    told(node, T::event(PartChange::Create(Box::new(part))))
}

fn change<T: PartKind>(node: &mut Node, number: u128, path: &str, value: Value) -> &'static str {
    let operations = vec![PatchOperation {
        op: PatchOp::Add,
        path: path.split('/').map(str::to_owned).collect(),
        value,
    }];
    let id = Uuid::from_u128(number);
    told(node, T::event(PartChange::Patch { id, operations }))
}

fn drop<T: PartKind>(node: &mut Node, number: u128) -> &'static str {
    let id = Uuid::from_u128(number);
    told(node, T::event(PartChange::Delete { id }))
}

fn port(number: u128, group: Option<u128>, pxe_enabled: bool) -> Event {
    let document = json!({
        "address": format!("52:54:00:00:00:{number:02x}"), "pxe_enabled": pxe_enabled,
        "portgroup_uuid": group.map(|group| Uuid::from_u128(group).to_string()),
        "node_uuid": NodeId::default().to_string(),
    });
    let mut port = ports::new_port(document.as_object().unwrap()).unwrap().port;
    port.id = PortId(Uuid::from_u128(number));
    Event::PortCreate(Box::new(port))
}

#[test]
fn a_new_part_names_its_node_and_only_known_fields() {
    let read = |document: Value| read_new::<Portgroup>(document.as_object().unwrap());
    let fine = read(json!({"node_uuid": "n-1", "uuid": Uuid::nil(), "address": null})).unwrap();
    assert_eq!((fine.node.as_str(), fine.id), ("n-1", Some(Uuid::nil())));
    assert_eq!(fine.is.mode, "active-backup");
    assert!(fine.is.standalone_ports_supported);
    for document in [
        json!({}),
        json!({"node_uuid": "a b"}),
        json!({"node_uuid": "n", "uuid": "x"}),
        json!({"node_uuid": "n", "address": "x"}),
        json!({"node_uuid": "n", "internal_info": {}}),
    ] {
        assert_eq!(read(document).unwrap_err().name(), "bad_value");
    }
}

#[test]
fn a_port_group_is_rewired_only_while_nobody_relies_on_it() {
    let mut node = a_node(Provision::Active);
    assert_eq!(
        add::<Portgroup>(&mut node, 1, json!({"name": "bond"})),
        "done"
    );
    assert_eq!(add::<Portgroup>(&mut node, 1, json!({})), "conflict");
    for (path, value) in [
        ("address", json!("52:54:00:aa:00:01")),
        ("mode", json!("802.3ad")),
        ("properties/miimon", json!(100)),
        ("standalone_ports_supported", json!(false)),
        ("physical_network", json!("net")),
    ] {
        let result = change::<Portgroup>(&mut node, 1, path, value.clone());
        assert_eq!(result, "conflict", "{path}");
        for provision in [Provision::Enroll, Provision::Manageable] {
            let mut free = Node {
                provision,
                ..node.clone()
            };
            assert_eq!(
                change::<Portgroup>(&mut free, 1, path, value.clone()),
                "done"
            );
        }
        let mut maintained = node.clone();
        maintained.maintenance = Some(Maintenance::default().into());
        assert_eq!(change::<Portgroup>(&mut maintained, 1, path, value), "done");
    }
    assert_eq!(
        change::<Portgroup>(&mut node, 1, "name", json!("other")),
        "done"
    );
    assert_eq!(node.portgroups[0].updated_at, Some(Timestamp(1_000)));
    let version = node.version;
    assert_eq!(
        change::<Portgroup>(&mut node, 1, "name", json!("other")),
        "done"
    );
    assert_eq!(node.version, version, "nothing has changed");
    assert_eq!(
        change::<Portgroup>(&mut node, 2, "name", json!("x")),
        "not_found"
    );
    let own = json!(node.id.to_string());
    assert_eq!(change::<Portgroup>(&mut node, 1, "node_uuid", own), "done");
    let other = json!(Uuid::from_u128(5));
    assert_eq!(
        change::<Portgroup>(&mut node, 1, "node_uuid", other),
        "bad_value"
    );
}

#[test]
fn a_port_group_with_ports_stays() {
    let mut node = a_node(Provision::Enroll);
    add::<Portgroup>(&mut node, 1, json!({}));
    assert_eq!(told(&mut node, port(7, Some(1), true)), "done");
    assert_eq!(drop::<Portgroup>(&mut node, 1), "in_use");
    let id = PortId(Uuid::from_u128(7));
    assert_eq!(told(&mut node, Event::PortDelete { id }), "done");
    assert_eq!(drop::<Portgroup>(&mut node, 1), "done");
    assert_eq!(drop::<Portgroup>(&mut node, 1), "not_found");
}

#[test]
fn a_port_is_in_a_group_of_its_own_node_that_fits_it() {
    let mut node = a_node(Provision::Enroll);
    assert_eq!(told(&mut node, port(7, Some(1), true)), "bad_value");
    add::<Portgroup>(&mut node, 1, json!({"standalone_ports_supported": false}));
    assert_eq!(told(&mut node, port(7, Some(1), true)), "conflict");
    assert_eq!(told(&mut node, port(7, Some(1), false)), "done");
    let patch = |path: &str, value: Value| Event::PortPatch {
        id: PortId(Uuid::from_u128(7)),
        operations: vec![PatchOperation {
            op: PatchOp::Add,
            path: vec![path.to_owned()],
            value,
        }],
    };
    assert_eq!(
        told(&mut node, patch("pxe_enabled", json!(true))),
        "conflict"
    );
    let nowhere = json!(Uuid::from_u128(9));
    assert_eq!(
        told(&mut node, patch("portgroup_uuid", nowhere)),
        "bad_value"
    );
    let mut used = Node {
        provision: Provision::Active,
        ..node.clone()
    };
    let out = || patch("portgroup_uuid", Value::Null);
    assert_eq!(told(&mut used, out()), "conflict", "the node is in use");
    assert_eq!(told(&mut node, out()), "done");
    assert_eq!(node.ports[0].portgroup_uuid, None);
}

#[test]
fn volumes_change_only_while_the_machine_is_off() {
    let connector = json!({"type": "iqn", "connector_id": "iqn.a"});
    let target = json!({"volume_type": "iscsi", "volume_id": "v", "boot_index": "0"});
    for power in [Some(PowerState::On), None, Some(PowerState::Off)] {
        let mut node = a_node(Provision::Available);
        node.power.state = power;
        let expected = match power {
            Some(PowerState::Off) => "done",
            _ => "unsupported",
        };
        assert_eq!(
            add::<VolumeConnector>(&mut node, 1, connector.clone()),
            "done"
        );
        assert_eq!(add::<VolumeTarget>(&mut node, 2, target.clone()), "done");
        let a = json!(1);
        assert_eq!(
            change::<VolumeConnector>(&mut node, 1, "extra/a", a.clone()),
            expected
        );
        assert_eq!(change::<VolumeTarget>(&mut node, 2, "extra/a", a), expected);
        assert_eq!(drop::<VolumeConnector>(&mut node, 1), expected);
        assert_eq!(drop::<VolumeTarget>(&mut node, 2), expected);
    }
}

#[test]
fn one_volume_is_booted_from() {
    let target = json!({"volume_type": "iscsi", "volume_id": "v", "boot_index": 0});
    let mut node = a_node(Provision::Available);
    assert_eq!(add::<VolumeTarget>(&mut node, 1, target.clone()), "done");
    assert_eq!(
        add::<VolumeTarget>(&mut node, 2, target.clone()),
        "conflict"
    );
    let mut other = target;
    other["boot_index"] = json!(1);
    assert_eq!(add::<VolumeTarget>(&mut node, 2, other), "done");
    assert_eq!(
        change::<VolumeTarget>(&mut node, 2, "boot_index", json!(0)),
        "conflict"
    );
    assert_eq!(
        change::<VolumeTarget>(&mut node, 1, "boot_index", json!(0)),
        "done"
    );
}

#[test]
fn traits_are_set_added_and_removed() {
    let mut node = a_node(Provision::Active);
    let name = |name: &str| name.to_owned();
    let set = TraitChange::Set(vec![name("HW_A"), name("CUSTOM_A"), name("HW_A")]);
    assert_eq!(told(&mut node, Event::Traits(set)), "done");
    assert_eq!(node.traits, ["CUSTOM_A", "HW_A"]);
    let add = |trait_name: &str| Event::Traits(TraitChange::Add(name(trait_name)));
    assert_eq!(told(&mut node, add("CUSTOM_B")), "done");
    assert_eq!(told(&mut node, add("custom")), "bad_value");
    let version = node.version;
    assert_eq!(told(&mut node, add("CUSTOM_B")), "done");
    assert_eq!(node.version, version, "it was there");
    let remove = || Event::Traits(TraitChange::Remove(name("CUSTOM_B")));
    assert_eq!(told(&mut node, remove()), "done");
    assert_eq!(told(&mut node, remove()), "not_found");
    assert_eq!(told(&mut node, Event::Traits(TraitChange::Clear)), "done");
    assert!(node.traits.is_empty());
}

fn demand(number: u128) -> Demand {
    Demand {
        id: Uuid::from_u128(number),
        resource_class: "large".to_owned(),
        ..Demand::default()
    }
}

fn take(demand: Demand) -> Event {
    Event::Allocation(AllocationChange::Take(demand))
}

fn release(number: u128) -> Event {
    Event::Allocation(AllocationChange::Release(Uuid::from_u128(number)))
}

#[test]
fn a_node_is_taken_once() {
    let mut node = a_node(Provision::Available);
    node.traits = vec!["CUSTOM_A".to_owned()].into();
    let wish = Demand {
        traits: vec!["CUSTOM_A".to_owned()],
        ..demand(5)
    };
    assert_eq!(told(&mut node, take(wish.clone())), "done");
    assert_eq!(node.allocation, Some(wish.id));
    assert_eq!(node.attributes.instance_uuid, Some(wish.id.to_string()));
    assert_eq!(node.attributes.instance_info["traits"], json!(["CUSTOM_A"]));
    assert_eq!(told(&mut node, take(demand(6))), "conflict");
    let version = node.version;
    assert_eq!(told(&mut node, take(wish)), "done", "asked again");
    assert_eq!(node.version, version);
    assert_eq!(told(&mut node, release(6)), "not_found");
    assert_eq!(told(&mut node, release(5)), "done");
    assert_eq!(
        (node.allocation, &node.attributes.instance_uuid),
        (None, &None)
    );
    assert!(node.attributes.instance_info.get("traits").is_none());
}

#[test]
fn only_a_node_at_rest_is_taken_and_only_one_in_use_is_backfilled() {
    for change in [
        |node: &mut Node| node.provision = Provision::Manageable,
        |node: &mut Node| node.maintenance = Some(Maintenance::default().into()),
        |node: &mut Node| node.power.state = None,
        |node: &mut Node| node.attributes.resource_class = None,
        |node: &mut Node| node.attributes.instance_uuid = Some("x".to_owned()),
    ] {
        let mut node = a_node(Provision::Available);
        change(&mut node);
        assert_eq!(told(&mut node, take(demand(5))), "conflict");
    }
    let backfill = Demand {
        is_backfill: true,
        ..demand(5)
    };
    let mut active = a_node(Provision::Active);
    active.attributes.instance_uuid = Some(Uuid::from_u128(5).to_string());
    assert_eq!(told(&mut active.clone(), take(demand(5))), "conflict");
    assert_eq!(told(&mut active, take(backfill.clone())), "done");
    active.allocation = None;
    active.attributes.instance_uuid = Some("another".to_owned());
    assert_eq!(told(&mut active, take(backfill)), "conflict");
}

#[test]
fn an_allocation_is_ended_with_the_instance_but_not_under_its_feet() {
    let taken = |provision| {
        let mut node = a_node(Provision::Available);
        assert_eq!(told(&mut node, take(demand(5))), "done");
        node.provision = provision;
        node
    };
    let remove = || Event::Patch {
        operations: vec![PatchOperation {
            op: PatchOp::Remove,
            path: vec!["instance_uuid".to_owned()],
            value: Value::Null,
        }],
        reset_interfaces: false,
        microversion: 115,
    };
    let mut active = taken(Provision::Active);
    assert_eq!(told(&mut active, release(5)), "conflict");
    assert_eq!(told(&mut active, remove()), "conflict");
    let mut deleting = taken(Provision::Deleting);
    assert_eq!(told(&mut deleting, release(5)), "busy");
    active.maintenance = Some(Maintenance::default().into());
    assert_eq!(told(&mut active.clone(), release(5)), "done");
    assert_eq!(told(&mut active, remove()), "done");
    assert_eq!(active.allocation, None, "it ends with the instance");
    let mut free = taken(Provision::Available);
    assert_eq!(told(&mut free, remove()), "done");
    assert_eq!(free.allocation, None);
}

#[test]
fn the_history_tells_the_state_and_how_long_the_one_before_lasted() {
    let mut node = a_node(Provision::Enroll);
    let step = go(
        &mut node,
        Event::Provision {
            verb: Verb::Manage,
            options: ProvisionOptions::default(),
        },
    );
    let line = step
        .history
        .iter()
        .find(|line| line.event_type == "provisioning")
        .unwrap();
    assert_eq!(line.state, Some(ProvisionState::Verifying));
    assert_eq!(line.target, Some(ProvisionState::Manageable));
    assert_eq!(line.lasted_ms, Some(1_000));
}
