//! The rules about changes of a node's attributes: what depends on its state, its driver and the version of the API.

use serde_json::{Value, json};

use super::super::attributes::parse_new;
use super::super::update::{Patched, patch, too_new};
use super::*;
use PatchOp::{Add, Remove};

const INSTANCE: &str = "6523b921-218d-4849-a3bb-3ab765c2fcdc";

fn a_node(provision: Provision, document: Value) -> Node {
    let mut whole = json!({"driver": "fake-hardware"});
    for (key, value) in document.as_object().unwrap() {
        whole[key] = value.clone();
    }
    let new = parse_new(whole.as_object().unwrap(), 110).unwrap();
    let mut node = Node::enrolled(NodeId::default(), new.attributes, Timestamp(0));
    node.provision = provision;
    node
}

fn in_maintenance(mut node: Node) -> Node {
    node.maintenance = Some(Maintenance::default().into());
    node
}

fn operations(list: &[(PatchOp, &str, Value)]) -> Vec<PatchOperation> {
    list.iter()
        .map(|(op, path, value)| PatchOperation {
            op: *op,
            path: path.split('/').map(str::to_owned).collect(),
            value: value.clone(),
        })
        .collect()
}

fn apply(node: &Node, list: &[(PatchOp, &str, Value)]) -> Result<Patched, Refused> {
    patch(node, &operations(list), false, 110)
}

fn set(node: &Node, field: &str, value: Value) -> Result<Attributes, Refused> {
    apply(node, &[(Add, field, value)]).map(|patched| patched.attributes)
}

fn refused<T: std::fmt::Debug>(of: Result<T, Refused>) -> &'static str {
    of.expect_err("refused").name()
}

#[test]
fn a_patch_without_operations_is_none() {
    // In no state, and whatever it would be refused for otherwise.
    for provision in [Provision::Enroll, Provision::Deleting] {
        let node = a_node(provision, json!({"name": "n"}));
        let patched = patch(&node, &[], false, 1).unwrap();
        assert_eq!(patched.attributes, *node.attributes);
        assert_eq!(patched.maintenance, None);
    }
}

#[test]
fn maintenance_lets_an_instance_be_removed_and_nothing_else() {
    let of = in_maintenance(a_node(
        Provision::Deleting,
        json!({"instance_uuid": INSTANCE}),
    ));
    assert!(apply(&of, &[(Remove, "instance_uuid", Value::Null)]).is_ok());
    for list in [
        vec![(Add, "extra/a", json!(1))],
        vec![(Remove, "extra", Value::Null)],
        vec![(Add, "instance_uuid", Value::Null)],
        vec![
            (Remove, "instance_uuid", Value::Null),
            (Remove, "extra", Value::Null),
        ],
    ] {
        assert_eq!(refused(apply(&of, &list)), "busy", "{list:?}");
    }
    let mut of = of;
    of.maintenance = None;
    let alone = apply(&of, &[(Remove, "instance_uuid", Value::Null)]);
    assert_eq!(refused(alone), "busy");
}

#[test]
fn fields_and_their_removal_have_a_first_version() {
    let node = a_node(Provision::Enroll, json!({}));
    let name = operations(&[(Add, "extra/name", json!(1)), (Add, "name", json!("n"))]);
    assert_eq!(too_new(&name, 4), Some(("name", 5)));
    assert_eq!(too_new(&name, 5), None);
    assert_eq!(refused(patch(&node, &name, false, 4)), "bad_value");
    assert!(patch(&node, &name, false, 5).is_ok());

    let chassis = |op| operations(&[(op, "chassis_uuid", Value::Null)]);
    assert_eq!(
        refused(patch(&node, &chassis(Remove), false, 24)),
        "bad_value"
    );
    assert!(patch(&node, &chassis(Remove), false, 25).is_ok());
    assert!(patch(&node, &chassis(Remove), false, 110).is_ok());
    assert!(patch(&node, &chassis(Add), false, 24).is_ok());
    let other = operations(&[(Remove, "instance_uuid", Value::Null)]);
    assert!(patch(&node, &other, false, 24).is_ok());
}

#[test]
fn interfaces_are_those_of_the_driver() {
    // As a version with other interfaces might have stored it.
    let mut node = a_node(Provision::Enroll, json!({}));
    node.attributes
        .interfaces
        .insert("boot".to_owned(), "ilo-ipxe".to_owned());
    assert_eq!(
        refused(set(&node, "boot_interface", json!("ilo-pxe"))),
        "bad_value"
    );
    let boot = |of: Result<Attributes, Refused>| of.unwrap().interfaces["boot"].clone();
    assert_eq!(boot(set(&node, "boot_interface", json!("fake"))), "fake");
    let removed = (Remove, "boot_interface", Value::Null);
    let patched = apply(&node, std::slice::from_ref(&removed)).unwrap();
    assert_eq!(patched.attributes.interfaces["boot"], "fake");

    // The default is that of the driver that is set at the same time.
    let driver = (Add, "driver", json!("manual-management"));
    let list = operations(&[driver.clone(), removed]);
    let patched = patch(&node, &list, true, 110).unwrap();
    assert_eq!(patched.attributes.interfaces["boot"], "pxe");
    assert_eq!(patched.attributes.interfaces["power"], "manual");
    // What is named is not reset behind the operator's back.
    let list = operations(&[driver, (Add, "boot_interface", json!("fake"))]);
    assert_eq!(refused(patch(&node, &list, true, 110)), "bad_value");
    // A driver can only be exchanged.
    let gone = apply(&node, &[(Remove, "driver", Value::Null)]).unwrap_err();
    assert!(gone.to_string().contains("set another one"), "{gone}");
    // And a reset without a new driver has no meaning.
    let list = operations(&[(Add, "name", json!("n"))]);
    assert_eq!(refused(patch(&node, &list, true, 110)), "bad_value");
}

#[test]
fn interfaces_stay_while_the_machine_is_in_use() {
    let older = |provision| {
        let mut node = a_node(provision, json!({}));
        node.attributes
            .interfaces
            .insert("boot".to_owned(), "ipxe".to_owned());
        node
    };
    let change = |node: &Node| set(node, "boot_interface", json!("fake"));
    for (provision, may) in [
        (Provision::Enroll, true),
        (Provision::Manageable, true),
        (Provision::Available, true),
        (Provision::Active, false),
        (Provision::DeployFailed, false),
    ] {
        let node = older(provision);
        let why = change(&node).err().map(|why| why.name());
        assert_eq!(why, (!may).then_some("conflict"));
        assert!(change(&in_maintenance(node)).is_ok());
    }
    // A new driver brings its own.
    let list = operations(&[(Add, "driver", json!("manual-management"))]);
    assert!(patch(&older(Provision::Active), &list, true, 110).is_ok());
    let node = a_node(Provision::Active, json!({}));
    assert!(set(&node, "extra/a", json!(1)).is_ok());
}

#[test]
fn a_resource_class_stays_while_the_machine_is_in_use() {
    let class = |provision| a_node(provision, json!({"resource_class": "large"}));
    let change = |node: &Node| set(node, "resource_class", json!("small"));
    assert_eq!(refused(change(&class(Provision::Active))), "conflict");
    assert_eq!(refused(change(&class(Provision::DeployFailed))), "conflict");
    assert!(change(&class(Provision::Available)).is_ok());
    assert!(set(&class(Provision::Active), "resource_class", json!("large")).is_ok());
    assert!(
        change(&a_node(Provision::Active, json!({}))).is_ok(),
        "the first one"
    );
}

#[test]
fn an_instance_is_not_replaced_by_another() {
    let node = a_node(Provision::Active, json!({"instance_uuid": INSTANCE}));
    let change = |uuid: &str| set(&node, "instance_uuid", json!(uuid));
    assert!(change(INSTANCE).is_ok());
    let other = INSTANCE.replace('6', "7");
    assert_eq!(refused(change(&other)), "conflict");
    let free = a_node(Provision::Active, json!({}));
    assert!(set(&free, "instance_uuid", json!(other)).is_ok());
}

#[test]
fn only_what_is_in_use_can_be_protected() {
    let protect = |node: &Node| set(node, "protected", json!(true));
    assert!(protect(&a_node(Provision::Active, json!({}))).is_ok());
    for provision in [Provision::Available, Provision::DeployFailed] {
        assert_eq!(refused(protect(&a_node(provision, json!({})))), "conflict");
    }
    // One that was protected before it failed stays so, with its reason, whatever else is changed.
    let mut node = a_node(Provision::Active, json!({}));
    node.attributes.protected = true;
    node.attributes.protected_reason = Some("the only one".to_owned());
    let other = |node: &Node| set(node, "extra/a", json!(1));
    assert_eq!(
        other(&node).unwrap().protected_reason.as_deref(),
        Some("the only one")
    );
    assert!(set(&node, "protected_reason", json!("precious")).is_ok());
    node.provision = Provision::DeployFailed;
    assert!(other(&node).is_ok());
    let reason = set(&node, "protected_reason", json!("precious"));
    assert_eq!(refused(reason), "conflict");
    let unprotected = set(&node, "protected", json!(false)).unwrap();
    assert_eq!(unprotected.protected_reason, None);
    // A reason alone protects nothing.
    let free = a_node(Provision::Active, json!({}));
    assert_eq!(
        refused(set(&free, "protected_reason", json!("r"))),
        "bad_value"
    );
}

#[test]
fn what_is_offered_can_not_be_retired() {
    let retire = |node: &Node| set(node, "retired", json!(true));
    for (provision, may) in [
        (Provision::Available, false),
        (Provision::Manageable, true),
        (Provision::Active, true),
    ] {
        assert_eq!(retire(&a_node(provision, json!({}))).is_ok(), may);
    }
    let mut node = a_node(
        Provision::Manageable,
        json!({"retired": true, "retired_reason": "old"}),
    );
    let reason = |of: Result<Attributes, Refused>| of.unwrap().retired_reason;
    assert_eq!(
        reason(set(&node, "extra/a", json!(1))).as_deref(),
        Some("old")
    );
    assert_eq!(
        reason(set(&node, "retired_reason", json!("slow"))).as_deref(),
        Some("slow")
    );
    assert_eq!(reason(set(&node, "retired", json!(false))), None);
    // One that was retired before stays so.
    node.provision = Provision::Available;
    assert!(set(&node, "extra/a", json!(1)).is_ok());
    let free = a_node(Provision::Manageable, json!({}));
    assert_eq!(
        refused(set(&free, "retired_reason", json!("r"))),
        "bad_value"
    );
}

#[test]
fn a_node_is_no_part_of_itself() {
    let node = a_node(Provision::Enroll, json!({}));
    let itself = json!(node.id.to_string());
    assert_eq!(refused(set(&node, "parent_node", itself)), "bad_value");
    let parent = set(&node, "parent_node", json!(INSTANCE))
        .unwrap()
        .parent_node;
    assert_eq!(parent.as_deref(), Some(INSTANCE));
}

#[test]
fn texts_uuids_and_names_have_their_limits() {
    let node = a_node(Provision::Enroll, json!({}));
    for (field, characters_max) in [("resource_class", 80), ("name", 255), ("owner", 255)] {
        assert!(set(&node, field, json!("x".repeat(characters_max))).is_ok());
        let longer = set(&node, field, json!("x".repeat(characters_max + 1)));
        assert!(longer.unwrap_err().to_string().starts_with(field));
    }
    assert!(!values::is_name(&"x".repeat(256)));
    for odd in [
        "urn:uuid:6523b921-218d-4849-a3bb-3ab765c2fcdc",
        "{6523b921-218d-4849-a3bb-3ab765c2fcdc}",
    ] {
        assert_eq!(
            refused(set(&node, "instance_uuid", json!(odd))),
            "bad_value"
        );
    }
    assert_eq!(refused(set(&node, "owner", json!("a\0b"))), "bad_value");
}

#[test]
fn maintenance_is_told_only_when_it_changes() {
    let node = a_node(Provision::Enroll, json!({}));
    let told = |node: &Node, on: bool| {
        apply(node, &[(Add, "maintenance", json!(on))])
            .unwrap()
            .maintenance
    };
    assert_eq!((told(&node, true), told(&node, false)), (Some(true), None));
    let node = in_maintenance(node);
    assert_eq!((told(&node, true), told(&node, false)), (None, Some(false)));
}

#[test]
fn lists_are_changed_at_an_index_inside_of_them() {
    let node = a_node(
        Provision::Enroll,
        json!({"extra": {"l": [1, 2], "n": null, "o": {"a": {}}}}),
    );
    let list = |op, path: &str, value: Value| {
        apply(&node, &[(op, path, value)]).map(|patched| Value::Object(patched.attributes.extra))
    };
    for (op, path, after) in [
        (Add, "extra/l/0", json!([9, 1, 2])),
        (Add, "extra/l/1", json!([1, 9, 2])),
        (Add, "extra/l/2", json!([1, 2, 9])),
        (Add, "extra/l/-", json!([1, 2, 9])),
        (PatchOp::Replace, "extra/l/1", json!([1, 9])),
        (Remove, "extra/l/0", json!([2])),
        (Remove, "extra/l/1", json!([1])),
    ] {
        assert_eq!(list(op, path, json!(9)).unwrap()["l"], after, "{path}");
    }
    for (op, path) in [
        (Add, "extra/l/3"),
        (Add, "extra/l/x"),
        (Add, "extra/l/+1"),
        (PatchOp::Replace, "extra/l/2"),
        (PatchOp::Replace, "extra/l/-"),
        (Remove, "extra/l/2"),
        (Remove, "extra/l/-"),
        (Remove, "extra/n/a"),
        (PatchOp::Replace, "extra/n/a"),
        (PatchOp::Replace, "extra/o/b"),
        (Remove, "extra/o/b"),
    ] {
        assert_eq!(refused(list(op, path, json!(9))), "bad_value", "{path}");
    }
    assert_eq!(
        list(Add, "extra/n/a", json!(9)).unwrap()["n"],
        json!({"a": 9})
    );
    assert_eq!(list(Remove, "extra/o/a", json!(9)).unwrap()["o"], json!({}));
}

#[test]
fn a_path_leads_through_lists_too() {
    let node = a_node(
        Provision::Enroll,
        json!({"extra": {"disks": [{"size": 1}, {"size": 2}, 3]}}),
    );
    let change = |path: &str| {
        apply(&node, &[(Add, path, json!(9))])
            .map(|patched| Value::Object(patched.attributes.extra))
    };
    let disks = change("extra/disks/1/size").unwrap()["disks"].clone();
    assert_eq!(disks, json!([{"size": 1}, {"size": 9}, 3]));
    for nowhere in [
        "extra/disks/2/size",
        "extra/disks/3/size",
        "extra/disks/-/size",
    ] {
        assert_eq!(refused(change(nowhere)), "bad_value", "{nowhere}");
    }
}
