//! Documents of every kind, good and bad; and the choice of nodes.

use serde_json::{Value, json};

use super::allocation::choose;
use super::*;
use crate::node::allocation::Demand;
use crate::node::{Attributes, Maintenance, Node, PatchOp, Power, PowerState, Provision};

fn read<T: Kind>(document: Value) -> Result<T, Refused> {
    read_at(document, 115)
}

fn read_at<T: Kind>(document: Value, microversion: u16) -> Result<T, Refused> {
    read_new(document.as_object().unwrap(), microversion).map(|(_, is)| is)
}

#[track_caller]
fn refuses<T: Kind>(document: Value, field: &str) {
    match read::<T>(document.clone()) {
        Err(Refused::BadValue { field: named, .. }) => assert_eq!(named, field, "{document}"),
        other => panic!("{document}: {other:?}"),
    }
}

fn operation(op: PatchOp, path: &str, value: Value) -> PatchOperation {
    PatchOperation {
        op,
        path: path.split('/').map(str::to_owned).collect(),
        value,
    }
}

#[test]
fn every_record_comes_back_as_it_was_written() {
    let template: DeployTemplate = read(json!({
        "name": "CUSTOM_A", "steps": [{"interface": "bios", "step": "s", "priority": "5", "args": {"a": 1}}],
    }))
    .unwrap();
    let record = Record::new(Uuid::from_u128(1), template, Timestamp(5));
    let text = serde_json::to_string(&record).unwrap();
    assert_eq!(
        serde_json::from_str::<Record<DeployTemplate>>(&text).unwrap(),
        record
    );
    assert_eq!(record.is.steps[0].priority, 5);
    let next = record.with(record.is.clone(), Timestamp(6));
    assert_eq!((next.version, next.updated_at), (2, Some(Timestamp(6))));
    // What older rows don't say has its default.
    let old: Allocation = serde_json::from_value(json!({"state": "active"})).unwrap();
    assert_eq!(old.candidate_nodes, Vec::<String>::new());
}

#[test]
fn a_template_is_named_like_a_trait_and_has_steps() {
    let step = json!({"interface": "deploy", "step": "s", "priority": 1});
    let with = |name: &str, steps: Value| json!({"name": name, "steps": steps});
    assert!(read::<DeployTemplate>(with("HW_CPU_A", json!([step]))).is_ok());
    refuses::<DeployTemplate>(with("gold", json!([step])), "name");
    refuses::<DeployTemplate>(json!({"steps": [step]}), "name");
    refuses::<DeployTemplate>(with("CUSTOM_A", json!([])), "steps");
    refuses::<DeployTemplate>(json!({"name": "CUSTOM_A"}), "steps");
    refuses::<DeployTemplate>(with("CUSTOM_A", json!([step, step])), "steps/1");
    for (key, value) in [
        ("interface", json!("network")),
        ("step", json!("")),
        ("priority", json!(-1)),
        ("priority", json!("x")),
        ("args", json!([])),
        ("order", json!(1)),
    ] {
        let mut wrong = step.clone();
        wrong[key] = value;
        refuses::<DeployTemplate>(with("CUSTOM_A", json!([wrong])), &format!("steps/0/{key}"));
    }
    let less = json!({"interface": "deploy", "step": "s"});
    refuses::<DeployTemplate>(with("CUSTOM_A", json!([less])), "steps/0/priority");
}

#[test]
fn one_step_of_a_template_can_be_patched() {
    let step = json!({"interface": "deploy", "step": "s", "priority": 1});
    let old: DeployTemplate = read(json!({"name": "CUSTOM_A", "steps": [step]})).unwrap();
    let new = json!({"interface": "raid", "step": "t", "priority": 2, "args": {}});
    let patch = [operation(PatchOp::Replace, "steps/0", new.clone())];
    let patched = patched(&old, &patch, 115).unwrap();
    assert_eq!(
        serde_json::to_value(&patched.steps).unwrap()[0]["step"],
        "t"
    );
    let wrong = [operation(PatchOp::Remove, "steps/0", Value::Null)];
    assert!(super::patched(&old, &wrong, 115).is_err(), "none is left");
}

#[test]
fn a_runbook_is_free_in_its_name_from_1_112_on() {
    let steps = json!([{"interface": "bios", "step": "s", "order": 1}]);
    let document = |name: &str| json!({"name": name, "steps": steps});
    assert!(read_at::<Runbook>(document("yearly service"), 112).is_ok());
    assert!(read_at::<Runbook>(document("yearly service"), 111).is_err());
    let old = read_at::<Runbook>(document("CUSTOM_YEARLY"), 111).unwrap();
    assert_eq!(old.traits_of_nodes(), ["CUSTOM_YEARLY"]);
    let mut public = document("CUSTOM_A");
    public["public"] = json!("True");
    assert!(read::<Runbook>(public.clone()).unwrap().public);
    public["owner"] = json!("p");
    refuses::<Runbook>(public, "public");
    // An older client may patch what a younger one has named.
    let free = read_at::<Runbook>(document("yearly service"), 112).unwrap();
    let patch = [operation(PatchOp::Add, "extra/a", json!(1))];
    assert!(patched(&free, &patch, 92).is_ok());
    refuses::<Runbook>(document("6523b921-218d-4849-a3bb-3ab765c2fcdc"), "name");
}

#[test]
fn a_rule_has_known_conditions_and_at_least_one_action() {
    let action = json!({"op": "set-attribute", "args": {"path": "/extra/a", "value": 1}});
    let rule: InspectionRule = read(json!({
        "conditions": [{"op": "!eq", "args": ["a", "b"]}, {"op": "! is-empty", "args": {"value": "a"}, "loop": [1]}],
        "actions": [action], "priority": "7", "sensitive": "true",
    }))
    .unwrap();
    assert_eq!(
        (rule.priority, rule.sensitive, rule.conditions.len()),
        (7, true, 2)
    );
    let none: InspectionRule = read(json!({"conditions": null, "actions": [action]})).unwrap();
    assert!(none.conditions.is_empty());
    refuses::<InspectionRule>(json!({}), "actions");
    refuses::<InspectionRule>(json!({"actions": []}), "actions");
    refuses::<InspectionRule>(
        json!({"actions": [{"op": "explode", "args": {}}]}),
        "actions/0/op",
    );
    refuses::<InspectionRule>(json!({"actions": [{"op": "fail"}]}), "actions/0/args");
    refuses::<InspectionRule>(
        json!({"actions": [action], "conditions": [{"op": "like", "args": []}]}),
        "conditions/0/op",
    );
    refuses::<InspectionRule>(json!({"actions": [action], "phase": "early"}), "phase");
    refuses::<InspectionRule>(json!({"actions": [action], "priority": 10_000}), "priority");
    let patch = [operation(PatchOp::Replace, "sensitive", json!(false))];
    assert!(patched(&rule, &patch, 115).is_err());
}

#[test]
fn an_allocation_can_be_renamed_but_not_made_another() {
    let allocation: Allocation = read(json!({
        "name": "a", "resource_class": "large", "traits": ["CUSTOM_B", "CUSTOM_A"], "candidate_nodes": ["n-1"],
    }))
    .unwrap();
    assert_eq!(allocation.traits, ["CUSTOM_A", "CUSTOM_B"]);
    refuses::<Allocation>(json!({"resource_class": ""}), "resource_class");
    refuses::<Allocation>(json!({"traits": ["x"]}), "traits");
    refuses::<Allocation>(json!({"candidate_nodes": ["a b"]}), "candidate_nodes");
    refuses::<Allocation>(json!({"state": "active"}), "state");
    let name = [operation(PatchOp::Replace, "name", json!("b"))];
    assert_eq!(
        patched(&allocation, &name, 115).unwrap().name.as_deref(),
        Some("b")
    );
    let class = [operation(
        PatchOp::Replace,
        "resource_class",
        json!("small"),
    )];
    assert!(patched(&allocation, &class, 115).is_err());
}

fn node(number: u128, change: impl FnOnce(&mut Node)) -> Node {
    let attributes = Attributes {
        name: Some(format!("n-{number}")),
        resource_class: Some("large".to_owned()),
        ..Attributes::default()
    };
    let mut node = Node::enrolled(NodeId(Uuid::from_u128(number)), attributes, Timestamp(0));
    node.provision = Provision::Available;
    node.power = Power {
        state: Some(PowerState::Off),
        target: None,
    };
    change(&mut node);
    node
}

fn wish(change: impl FnOnce(&mut Allocation)) -> Record<Allocation> {
    let mut is = Allocation {
        resource_class: Some("large".to_owned()),
        ..Allocation::default()
    };
    change(&mut is);
    Record::new(Uuid::from_u128(0xA0), is, Timestamp(0))
}

#[test]
fn the_namesake_comes_first_and_everybody_that_fits_comes() {
    let nodes = [node(1, |_| {}), node(2, |_| {}), node(3, |_| {})];
    let chosen = choose(&wish(|_| {}), &nodes).unwrap();
    assert_eq!(chosen.len(), 3);
    for n in 1..=3 {
        let named = wish(|is| is.name = Some(format!("n-{n}")));
        assert_eq!(choose(&named, &nodes).unwrap()[0], nodes[n - 1].id);
    }
}

#[test]
fn each_node_that_does_not_fit_is_told_with_its_reason() {
    let nodes = [
        node(1, |node| node.attributes.resource_class = None),
        node(2, |node| {
            node.attributes.resource_class = Some("small".to_owned())
        }),
        node(3, |node| node.provision = Provision::Active),
        node(4, |node| {
            node.maintenance = Some(Maintenance::default().into())
        }),
        node(5, |node| {
            node.attributes.instance_uuid = Some("i-5".to_owned())
        }),
        node(6, |node| node.power.state = None),
        node(7, |_| {}),
        node(8, |node| node.traits = vec!["CUSTOM_A".to_owned()].into()),
    ];
    let picky = wish(|is| {
        is.traits = vec!["CUSTOM_A".to_owned()];
        is.owner = Some("p".to_owned());
    });
    let why = choose(&picky, &nodes).unwrap_err();
    for words in [
        "resource class large",
        "n-1 (00000000-0000-0000-0000-000000000001): it has no resource class",
        "its resource class is small",
        "instance i-5",
        "it lacks the traits CUSTOM_A",
        "it is not for project p",
    ] {
        assert!(why.contains(words), "{words}: {why}");
    }
    let modest = wish(|_| {});
    let why = choose(&modest, &nodes[..6]).unwrap_err();
    for words in [
        "its state is \"active\"",
        "n-4 (00000000-0000-0000-0000-000000000004): it is in maintenance",
        "power state is not known",
    ] {
        assert!(why.contains(words), "{words}: {why}");
    }
    assert_eq!(choose(&modest, &nodes).unwrap().len(), 2);
    let why = choose(&modest, &[]).unwrap_err();
    assert!(why.contains("large") && why.contains("no node"), "{why}");
}

#[test]
fn only_so_many_reasons_are_told() {
    let demand = Demand {
        resource_class: "large".to_owned(),
        ..Demand::default()
    };
    let reasons: Vec<String> = (0..500).map(|n| format!("n-{n}: no")).collect();
    let text = allocation::none_fits(&demand, &reasons);
    assert!(
        text.contains("n-9: no; and 490 more") && !text.contains("n-10:"),
        "{text}"
    );
}
