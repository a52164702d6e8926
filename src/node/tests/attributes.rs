//! What operators may set on a node: the values of a new node's document and of patches, field by field.

use serde_json::{Value, json};

use super::super::attributes::{FIELDS, checked, field_named, parse_new};
use super::super::update::patch;
use super::*;

fn parse(mut document: Value) -> Result<Attributes, Refused> {
    document["driver"] = json!("fake-hardware");
    parse_new(document.as_object().unwrap(), 110).map(|new| new.attributes)
}

fn problem(of: Result<Attributes, Refused>) -> String {
    of.expect_err("refused").to_string()
}

fn a_node(document: Value) -> Node {
    Node::enrolled(
        NodeId::default(),
        parse(document).expect("taken"),
        Timestamp(0),
    )
}

/// The attributes after `(op, path, value)`s.
fn patched(node: &Node, list: &[(PatchOp, &str, Value)]) -> Result<Attributes, Refused> {
    let operations: Vec<PatchOperation> = list
        .iter()
        .map(|(op, path, value)| PatchOperation {
            op: *op,
            path: path.split('/').map(str::to_owned).collect(),
            value: value.clone(),
        })
        .collect();
    patch(node, &operations, false, 110).map(|patched| patched.attributes)
}

#[test]
fn a_boot_mode_is_one_of_two() {
    for mode in ["bios", "uefi"] {
        let attributes = parse(json!({"boot_mode": mode})).unwrap();
        assert_eq!(attributes.boot_mode.as_deref(), Some(mode));
    }
    assert!(problem(parse(json!({"boot_mode": "floppy"}))).contains("bios or uefi"));
}

#[test]
fn network_data_is_lists_of_objects_under_three_names() {
    let good = json!({"links": [{"id": "l"}], "networks": [], "services": [{}]});
    let attributes = parse(json!({"network_data": good})).unwrap();
    assert_eq!(Value::Object(attributes.network_data), good);
    for (bad, field) in [
        (json!({"routes": []}), "network_data/routes"),
        (json!({"links": {}}), "network_data/links"),
        (json!({"links": [{}, 1]}), "network_data/links"),
    ] {
        assert!(problem(parse(json!({"network_data": bad}))).starts_with(field));
    }
}

#[test]
fn sizes_are_whole_numbers_or_not_known() {
    for good in [json!(0), json!(8), json!("8"), json!(""), json!(null)] {
        for name in ["cpus", "local_gb", "memory_mb"] {
            assert!(parse(json!({"properties": {name: good}})).is_ok(), "{good}");
        }
    }
    for bad in [json!(-1), json!(1.5), json!("-1"), json!("x"), json!([])] {
        let text = problem(parse(json!({"properties": {"memory_mb": bad}})));
        assert!(text.starts_with("properties/memory_mb"), "{text}");
    }
}

#[test]
fn who_names_an_unknown_driver_is_told_which_there_are() {
    let document = json!({"driver": "ipmi"});
    let text = parse_new(document.as_object().unwrap(), 110)
        .unwrap_err()
        .to_string();
    assert!(text.contains("fake-hardware, manual-management"), "{text}");
    let text = parse_new(&Object::new(), 110).unwrap_err().to_string();
    assert!(text.contains("fake-hardware, manual-management"), "{text}");
}

#[test]
fn a_patch_reaches_into_every_object() {
    let node = a_node(json!({}));
    let objects = [
        ("driver_info/address", json!("192.0.2.9")),
        ("properties/cpus", json!(4)),
        ("extra/rack", json!("r1")),
        ("instance_info/image_source", json!("http://i/x")),
        ("network_data/links", json!([])),
    ];
    for (path, value) in objects {
        let attributes = patched(&node, &[(PatchOp::Add, path, value.clone())]).expect(path);
        let (root, key) = path.split_once('/').unwrap();
        let whole = serde_json::to_value(&attributes).unwrap();
        assert_eq!(whole[root], json!({key: value}));
    }
}

#[test]
fn an_instance_takes_its_name_from_the_image_settings_once() {
    let named = |attributes: Result<Attributes, Refused>| attributes.unwrap().instance_name;
    let web = || (PatchOp::Add, "instance_info/display_name", json!("web"));
    let remove = || (PatchOp::Remove, "instance_name", Value::Null);
    // shown for the first time
    let node = a_node(json!({}));
    assert_eq!(named(patched(&node, &[web()])).as_deref(), Some("web"));
    // one that is there stays
    let node = a_node(json!({"instance_name": "db"}));
    assert_eq!(named(patched(&node, &[web()])).as_deref(), Some("db"));
    // one that is removed stays away, also when the other is set at the same time and with every later patch
    assert_eq!(named(patched(&node, &[web(), remove()])), None);
    let mut node = a_node(json!({"instance_info": {"display_name": "web"}}));
    assert_eq!(node.attributes.instance_name.as_deref(), Some("web"));
    node.attributes = patched(&node, &[remove()]).unwrap().into();
    assert_eq!(node.attributes.instance_name, None);
    let other = (PatchOp::Add, "extra/a", json!(1));
    assert_eq!(named(patched(&node, &[other])), None);
    // and one that is too long is none
    let long = (
        PatchOp::Add,
        "instance_info/display_name",
        json!("x".repeat(256)),
    );
    assert_eq!(named(patched(&a_node(json!({})), &[long])), None);
    let longest = (
        PatchOp::Add,
        "instance_info/display_name",
        json!("x".repeat(255)),
    );
    assert_eq!(
        named(patched(&a_node(json!({})), &[longest])),
        Some("x".repeat(255))
    );
}

#[test]
fn null_is_the_empty_value_where_there_is_one() {
    for field in FIELDS {
        let empty = match field.name {
            "driver_info" | "properties" | "extra" | "instance_info" | "network_data" => {
                Some(json!({}))
            }
            "conductor_group" => Some(json!("")),
            _ if field.nullable => Some(Value::Null),
            _ => None,
        };
        assert_eq!(checked(field, &Value::Null).ok(), empty, "{}", field.name);
    }
    assert_eq!(field_named("nothing"), None);
}
