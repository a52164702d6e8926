//! What inspection rules ask and do, line by line, and what they may not do.

use serde_json::{Value, json};
use uuid::Uuid;

use super::inspections::{document, good, inspect, inspected_node};
use crate::node::inspection::rules::{Rule, check_action, check_condition};
use crate::node::inspection::{Findings, Settings};
use crate::node::*;
use crate::timestamp::Timestamp;

/// A rule with these conditions and actions; as its creation, this checks its form.
fn rule(conditions: Value, actions: Value) -> Rule {
    let objects = |list: Value| -> Vec<Object> {
        let items = list.as_array().unwrap().iter();
        items
            .map(|item| item.as_object().unwrap().clone())
            .collect()
    };
    let rule = Rule {
        id: Uuid::from_u128(7),
        conditions: objects(conditions),
        actions: objects(actions),
        ..Rule::default()
    };
    for condition in &rule.conditions {
        check_condition("c", condition).unwrap();
    }
    for action in &rule.actions {
        check_action("a", action).unwrap();
    }
    rule
}

fn apply(rules: Vec<Rule>) -> Step {
    let mut node = inspected_node();
    let id = PortId(Uuid::from_u128(3 << 64));
    node.ports
        .push(Port::new(id, "52:54:00:aa:00:03".to_owned(), Timestamp(0)));
    node.traits = vec!["CUSTOM_OLD".to_owned()].into();
    let findings = Findings {
        rules,
        ..document(good())
    };
    inspect(&node, Settings::default(), findings)
}

/// Whether a rule with this condition takes its action.
fn holds(condition: Value) -> bool {
    let action = json!([{"op": "set-attribute", "args": ["/extra/it_holds", true]}]);
    let step = apply(vec![rule(json!([condition]), action)]);
    assert_eq!(step.node.last_error, None, "{condition}");
    step.node.attributes.extra.contains_key("it_holds")
}

#[test]
fn conditions_ask_what_they_are_named_after() {
    let product = "{inventory[system_vendor][product_name]}";
    let memory = "{inventory[memory][physical_mb]}";
    for (op, args) in [
        ("eq", json!({"values": [product, "M1 (rev 2)"]})),
        ("eq", json!([memory, 4096])),
        ("eq", json!([[memory, "4096"]])),
        ("eq", json!({"values": [memory, 4096, 4096.0]})),
        (
            "eq",
            json!({"values": [true, "{node.extra[b][c]}"], "force_strings": true}),
        ),
        ("gt", json!({"values": [memory, 1024]})),
        ("gt", json!({"values": [9, "8.5", 8]})),
        ("lt", json!({"values": ["a", "b"]})),
        ("lt", json!({"values": [1, 2, 1]})),
        ("is-empty", json!({"value": "{node.properties[nothing]}"})),
        ("is-empty", json!({"value": []})),
        (
            "is-none",
            json!({"value": "{inventory[system_vendor][serial_number]}"}),
        ),
        (
            "is-none",
            json!({"value": "{inventory[system_vendor][nothing]}"}),
        ),
        ("is-true", json!({"value": "Yes"})),
        ("is-true", json!({"value": 0})),
        ("is-false", json!({"value": null})),
        (
            "in-net",
            json!({"address": "{inventory[bmc_address]}", "subnet": "198.51.100.0/24"}),
        ),
        (
            "in-net",
            json!({"address": "2001:db8::1/64", "subnet": "2001:db8::/32"}),
        ),
        ("in-net", json!(["198.51.101.7", "198.51.100.0/24"])),
        ("matches", json!({"value": product, "regex": "M\\d{1}.*"})),
        ("matches", json!({"value": product, "regex": "M1"})),
        ("contains", json!({"value": product, "regex": "rev [12]"})),
        ("contains", json!({"value": product, "regex": "^rev"})),
        (
            "one-of",
            json!({"value": "{inventory[cpu][count]}", "values": [2, 4]}),
        ),
        ("one-of", json!({"value": "x", "values": ["y"]})),
    ] {
        let expected = match (op, args.to_string().as_str()) {
            ("eq", text) => !text.contains("force_strings"),
            ("lt", text) => text.contains('b'),
            ("is-empty", text) => text.contains("[]"),
            ("is-none", text) => text.contains("serial"),
            ("is-true", text) => text.contains("Yes"),
            ("in-net", text) => !text.contains("101.7"),
            ("matches", text) => text.contains(".*"),
            ("contains", text) => text.contains("[12]"),
            ("one-of", text) => text.contains('4'),
            _ => true,
        };
        assert_eq!(
            holds(json!({"op": op, "args": args})),
            expected,
            "{op} {args}"
        );
        let turned = json!({"op": format!("! {op}"), "args": args});
        assert_eq!(holds(turned), !expected, "! {op} {args}");
    }
}

#[test]
fn a_loop_asks_for_each_item() {
    let of = |multiple: &str, items: Value| {
        let args = json!({"values": ["{item[a]}", "{inventory[cpu][count]}"]});
        holds(json!({"op": "eq", "args": args, "loop": items, "multiple": multiple}))
    };
    let (yes, no) = (json!({"a": 4}), json!({"a": 5}));
    for (items, any, all, last) in [
        (json!([yes, no]), true, false, false),
        (json!([no, yes]), true, false, true),
        (json!([yes, yes]), true, true, true),
        (json!([no]), false, false, false),
        (yes.clone(), true, true, true),
    ] {
        let held = ["any", "first", "all", "last"].map(|multiple| of(multiple, items.clone()));
        assert_eq!(held, [any, any, all, last], "{items}");
    }
}

#[test]
fn actions_do_what_they_are_named_after() {
    let count = "{inventory[cpu][count]}";
    let step = apply(vec![rule(
        json!([]),
        json!([
            {"op": "set-attribute", "args": {"path": "/properties/cpus", "value": count}},
            {"op": "set-attribute", "args": {"path": "description", "value": "{{{node.uuid}}} has {inventory[cpu][count]}"}},
            {"op": "set-attribute", "args": ["extra.deep.er", {"is {node.driver}": [count]}]},
            {"op": "extend-attribute", "args": {"path": "/extra/list", "value": "a", "unique": true}},
            {"op": "extend-attribute", "args": {"path": "/extra/list", "value": "b"}},
            {"op": "extend-attribute", "args": {"path": "/extra/new", "value": 1}},
            {"op": "del-attribute", "args": ["/extra/b/c"]},
            {"op": "set-capability", "args": {"name": "profile", "value": "{item}"}, "loop": ["small", "large"]},
            {"op": "add-trait", "args": {"name": "CUSTOM_{inventory[cpu][count]}_CPUS"}},
            {"op": "remove-trait", "args": ["CUSTOM_OLD"]},
            {"op": "remove-trait", "args": ["CUSTOM_NEVER_THERE"]},
            {"op": "set-plugin-data", "args": {"path": "a.b", "value": "{inventory[interfaces][1][name]}"}},
            {"op": "extend-plugin-data", "args": {"path": "a.c", "value": 1}},
            {"op": "unset-plugin-data", "args": {"path": "root_disk.size"}},
            {"op": "unset-plugin-data", "args": {"path": "not.there"}},
            {"op": "set-port-attribute", "args": ["52:54:00:AA:00:03", "/extra/from", "{node.name}"]},
            {"op": "extend-port-attribute", "args": [Uuid::from_u128(3 << 64), "/extra/tags", "x"]},
            {"op": "set-port-attribute", "args": [Uuid::from_u128(3 << 64), "physical_network", "net-1"]},
            {"op": "del-port-attribute", "args": ["52:54:00:aa:00:01", "/extra/client-id"]},
            {"op": "set-plugin-data", "args": {"path": "a.d", "value": ["{node.protected}", "{node.maintenance}", "{node.network_data}", "{node.conductor_group}"]}},
            {"op": "log", "args": {"msg": "{node.driver_info[redfish_password]} {inventory[bmc_password]}", "level": "error"}},
        ]),
    )]);
    let node = &step.node;
    assert_eq!(node.last_error, None);
    assert_eq!(node.attributes.properties["cpus"], 4);
    assert_eq!(node.attributes.properties["capabilities"], "profile:large");
    let nil = Uuid::nil();
    let description = format!("{{{nil}}} has 4");
    assert_eq!(node.attributes.description, Some(description));
    assert_eq!(
        Value::Object(node.attributes.extra.clone()),
        json!({"list": ["a", "b"], "b": {}, "new": [1], "deep": {"er": {"is fake-hardware": [4]}}})
    );
    assert_eq!(node.traits, ["CUSTOM_4_CPUS"]);
    let data = &step.inventory.as_ref().unwrap()["plugin_data"];
    assert_eq!(
        data["a"],
        json!({"b": "eth1", "c": [1], "d": [false, false, {}, ""]})
    );
    assert_eq!(data["root_disk"], json!({"name": "/dev/sda"}));
    let port = node
        .ports
        .iter()
        .find(|port| port.address.ends_with("03"))
        .unwrap();
    assert_eq!(
        Value::Object(port.extra.clone()),
        json!({"from": null, "tags": ["x"]})
    );
    assert_eq!(port.physical_network.as_deref(), Some("net-1"));
    assert_eq!(port.updated_at, Some(Timestamp(1_000)));
    let made = node
        .ports
        .iter()
        .find(|port| port.address.ends_with("01"))
        .unwrap();
    assert!(made.extra.is_empty());
    let logged = |line: &&HistoryLine| line.severity == Severity::Error;
    let line = step.history.iter().find(logged).expect("it is logged");
    assert_eq!(line.event, "****** ******");
}

#[test]
fn rules_go_by_priority_and_then_by_age() {
    let sets = |priority, value: &str| Rule {
        priority,
        ..rule(
            json!([]),
            json!([{"op": "set-attribute", "args": ["/extra/last", value]}]),
        )
    };
    let step = apply(vec![sets(1, "old"), sets(5, "first"), sets(1, "young")]);
    assert_eq!(step.node.attributes.extra["last"], "young");
}

#[test]
fn a_rule_that_can_not_be_carried_out_ends_the_inspection_and_changes_nothing() {
    let id = Uuid::from_u128(7).to_string();
    for (condition, action, said) in [
        (
            json!(null),
            json!(["fail", ["no {inventory[cpu][count]} cpus"]]),
            "no 4 cpus",
        ),
        (
            json!(null),
            json!(["set-attribute", ["/provision_state", "active"]]),
            "provision_state",
        ),
        (
            json!(null),
            json!(["set-attribute", ["/uuid", "x"]]),
            "uuid",
        ),
        (
            json!(null),
            json!(["set-attribute", ["/driver_internal_info/a", 1]]),
            "driver_internal_info",
        ),
        (
            json!(null),
            json!(["set-attribute", ["/name/x", 1]]),
            "no parts",
        ),
        (
            json!(null),
            json!(["set-attribute", ["/properties/cpus", "many"]]),
            "properties/cpus",
        ),
        (json!(null), json!(["set-attribute", ["//", 1]]), "path"),
        (
            json!(null),
            json!(["set-attribute", [5, 1]]),
            "path must be",
        ),
        (
            json!(null),
            json!(["extend-attribute", ["/extra/b", 1]]),
            "no list",
        ),
        (
            json!(null),
            json!(["del-attribute", ["/extra/nothing"]]),
            "extra/nothing",
        ),
        (
            json!(null),
            json!(["set-port-attribute", ["zz", "/extra/a", 1]]),
            "port_id",
        ),
        (
            json!(null),
            json!(["set-port-attribute", ["52:54:00:aa:00:03", "/uuid", 1]]),
            "uuid",
        ),
        (json!(null), json!(["add-trait", ["gold"]]), "gold"),
        (
            json!(null),
            json!(["set-capability", ["a:b", "c"]]),
            "commas",
        ),
        (
            json!(null),
            json!(["set-plugin-data", ["root_disk.size.x", 1]]),
            "no parts",
        ),
        (
            json!(["in-net", ["{inventory[nothing]}", "192.0.2.0/24"]]),
            json!(["log", ["x"]]),
            "address",
        ),
        (
            json!(["in-net", ["192.0.2.1", "everywhere"]]),
            json!(["log", ["x"]]),
            "subnet",
        ),
        (
            json!(["gt", [null, 4]]),
            json!(["log", ["x"]]),
            "nothing and a number",
        ),
        (
            json!(["lt", [["many", 4]]]),
            json!(["log", ["x"]]),
            "a text and a number",
        ),
    ] {
        let item = |pair: &Value| match pair {
            Value::Null => json!([]),
            pair => json!([{"op": pair[0], "args": pair[1]}]),
        };
        let failing = rule(item(&condition), item(&action));
        let before = rule(
            json!([]),
            json!([{"op": "set-attribute", "args": ["/extra/x", 1]}]),
        );
        let step = apply(vec![
            Rule {
                priority: 9,
                ..before.clone()
            },
            failing.clone(),
        ]);
        let error = step.node.last_error.clone().unwrap_or_default();
        assert!(
            error.contains(said) && error.contains(&id),
            "{said}: {error}"
        );
        assert_eq!(step.node.provision_state().name(), "inspect failed");
        assert_eq!(
            step.node.attributes,
            inspected_node().attributes,
            "{action}"
        );
        assert_eq!((step.node.ports.len(), step.inventory.is_none()), (1, true));
        let hidden = apply(vec![Rule {
            sensitive: true,
            ..failing
        }]);
        let error = hidden.node.last_error.unwrap_or_default();
        assert!(
            error.contains(&id) && error.contains("sensitive"),
            "{error}"
        );
        assert!(!error.contains(said), "{error}");
    }
}

#[test]
fn only_a_sensitive_rule_sees_secrets() {
    let action = json!([
        {"op": "set-attribute", "args": ["/extra/a", "{node.driver_info[redfish_password]}"]},
        {"op": "set-attribute", "args": ["/extra/b", "{inventory[bmc_password]}/{node.driver_info}"]},
    ]);
    let open = rule(json!([]), action);
    let sensitive = Rule {
        sensitive: true,
        ..open.clone()
    };
    let extra = &apply(vec![open]).node.attributes.extra;
    assert_eq!(extra["a"], "******");
    assert_eq!(extra["b"], "******/{\"redfish_password\":\"******\"}");
    let extra = &apply(vec![sensitive]).node.attributes.extra;
    assert_eq!(extra["a"], "opensesame");
    assert_eq!(extra["b"], "hunter2/{\"redfish_password\":\"opensesame\"}");
    let logs = rule(
        json!([]),
        json!([{"op": "log", "args": ["{inventory[bmc_password]}"]}]),
    );
    let step = apply(vec![Rule {
        sensitive: true,
        ..logs
    }]);
    let history = format!("{:?}", step.history);
    assert!(history.contains("sensitive") && !history.contains("hunter2"));
}

#[test]
fn what_names_nothing_stays_and_is_told() {
    let texts = [
        "{inventory[x]}",
        "{inventory",
        "}",
        "{}",
        "{node.}",
        "{item}",
        "{root[a]}",
        "{inventory[cpu}",
    ];
    for text in texts {
        let step = apply(vec![rule(
            json!([]),
            json!([{"op": "set-attribute", "args": ["/extra/x", text]}]),
        )]);
        assert_eq!(step.node.attributes.extra["x"], text);
        let told = |line: &HistoryLine| line.event.contains(text);
        assert!(step.history.iter().any(told), "{text}");
    }
}

/// Rules can't make a node grow without end.
#[test]
fn values_that_double_themselves_come_to_an_end() {
    let doubling =
        json!({"op": "set-plugin-data", "args": ["a", ["{plugin_data}", "{plugin_data}"]]});
    let step = apply(vec![rule(json!([]), json!(vec![doubling; 40]))]);
    let error = step.node.last_error.unwrap_or_default();
    assert!(error.contains("longer than 65536 bytes"), "{error}");
}

#[test]
fn a_form_that_makes_no_sense_is_refused_when_the_rule_is_written() {
    for (condition, field) in [
        (json!({"op": "eq"}), "c/args"),
        (json!({"op": "le", "args": [1, 2]}), "c/op"),
        (json!({"op": "!!eq", "args": [1, 2]}), "c/op"),
        (json!({"op": 5, "args": []}), "c/op"),
        (json!({"op": "is-none", "args": {}}), "c/args"),
        (
            json!({"op": "is-none", "args": {"value": 1, "odd": 1}}),
            "c/args",
        ),
        (json!({"op": "is-none", "args": [1, 2]}), "c/args"),
        (json!({"op": "is-none", "args": "x"}), "c/args"),
        (json!({"op": "is-none", "args": [1], "loop": "x"}), "c/loop"),
        (
            json!({"op": "is-none", "args": [1], "multiple": "some"}),
            "c/multiple",
        ),
        (json!({"op": "is-none", "args": [1], "odd": 1}), "c/odd"),
        (json!({"op": "matches", "args": ["x", "("]}), "c/args/regex"),
        (
            json!({"op": "matches", "args": ["x", "(?=y)"]}),
            "c/args/regex",
        ),
        (
            json!({"op": "matches", "args": ["x", "a{1000}{1000}{1000}"]}),
            "c/args/regex",
        ),
    ] {
        match check_condition("c", condition.as_object().unwrap()) {
            Err(Refused::BadValue { field: named, .. }) => assert_eq!(named, field),
            other => panic!("{condition}: {other:?}"),
        }
    }
    for (action, field) in [
        (
            json!({"op": "api-call", "args": {"url": "http://x"}}),
            "a/op",
        ),
        (json!({"op": "!fail", "args": ["x"]}), "a/op"),
        (
            json!({"op": "fail", "args": ["x"], "multiple": "any"}),
            "a/multiple",
        ),
        (
            json!({"op": "log", "args": {"msg": "x", "level": "loud"}}),
            "a/args/level",
        ),
        (
            json!({"op": "fail", "args": ["x"], "loop": vec![1; 1001]}),
            "a/loop",
        ),
    ] {
        match check_action("a", action.as_object().unwrap()) {
            Err(Refused::BadValue { field: named, .. }) => assert_eq!(named, field),
            other => panic!("{action}: {other:?}"),
        }
    }
}
