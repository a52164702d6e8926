//! No findings whatever upset a node, with no inspection rules whatever.

use proptest::prelude::*;
use serde_json::{Value, json};
use uuid::Uuid;

use super::inspections::{good, inspect, inspected_node, with_hooks};
use crate::node::inspection::rules::Rule;
use crate::node::inspection::{Findings, Hook};
use crate::node::*;

/// JSON with the words that hooks look for, in places where they may or may not belong.
fn any_json() -> impl Strategy<Value = Value> {
    let word = prop_oneof![
        Just("name"),
        Just("mac_address"),
        Just("ipv4_address"),
        Just("client_id"),
        Just("lldp"),
        Just("cpu"),
        Just("architecture"),
        Just("flags"),
        Just("memory"),
        Just("physical_mb"),
        Just("boot"),
        Just("pxe_interface"),
        Just("size"),
        Just("eth0"),
        Just("op"),
        Just("args"),
        Just("value"),
        Just("path"),
    ];
    let text = prop_oneof![
        word.clone().prop_map(str::to_owned),
        Just("52:54:00:aa:00:01".to_owned()),
        Just("01-52-54-00-aa-00-01".to_owned()),
        Just("04112233aabbcc".to_owned()),
        Just("/extra/a/b".to_owned()),
        Just("plugin_data.a.0".to_owned()),
        Just("{inventory[interfaces][0][name]} {item}".to_owned()),
        ".{0,20}",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        text.prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 60, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(word.clone().prop_map(str::to_owned), inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// The good document with one part of it replaced by something else.
fn any_findings() -> impl Strategy<Value = Value> {
    let place = prop_oneof![
        Just(""),
        Just("/inventory"),
        Just("/inventory/interfaces"),
        Just("/inventory/interfaces/0"),
        Just("/inventory/interfaces/0/lldp"),
        Just("/inventory/interfaces/1/mac_address"),
        Just("/inventory/cpu"),
        Just("/inventory/boot"),
        Just("/inventory/boot/pxe_interface"),
        Just("/inventory/memory"),
        Just("/root_disk"),
        Just("/boot_interface"),
        Just("/error"),
        Just("/lldp_raw"),
        Just("/plugin_data"),
    ];
    (place, any_json()).prop_map(|(place, value)| {
        let mut data = good();
        match data.pointer_mut(place) {
            Some(part) if !place.is_empty() => *part = value,
            _ if place.is_empty() => data = json!({"inventory": value}),
            _ => data[&place[1..]] = value,
        }
        data
    })
}

fn any_rule() -> impl Strategy<Value = Rule> {
    let operation = (0..26_usize, any_json(), any_json()).prop_map(|(number, args, items)| {
        let ops = [
            "eq",
            "lt",
            "gt",
            "is-empty",
            "in-net",
            "matches",
            "contains",
            "one-of",
            "is-none",
            "is-true",
            "is-false",
            "fail",
            "log",
            "set-attribute",
            "extend-attribute",
            "del-attribute",
            "set-port-attribute",
            "extend-port-attribute",
            "del-port-attribute",
            "set-capability",
            "unset-capability",
            "add-trait",
            "remove-trait",
            "set-plugin-data",
            "extend-plugin-data",
            "unset-plugin-data",
        ];
        let document = json!({"op": ops[number], "args": args, "loop": items});
        document.as_object().unwrap().clone()
    });
    let operations = prop::collection::vec(operation, 0..3).boxed();
    (operations.clone(), operations, any::<bool>()).prop_map(|(conditions, actions, sensitive)| {
        Rule {
            sensitive,
            conditions,
            actions,
            ..Rule::default()
        }
    })
}

proptest! {
    /// Whatever is posted, and whatever rules there are: no panic, the node stays one that can be stored and read again, and it goes
    /// on its way to one of two ends.
    #[test]
    fn no_findings_upset_a_node(data in any_findings(), rules in prop::collection::vec(any_rule(), 0..3)) {
        let Value::Object(data) = data else { return Ok(()); };
        let _ = inspection::check(&data);
        let fresh_ids = (0..inspection::interfaces_in(&data)).map(|n| PortId(Uuid::from_u128(n as u128))).collect();
        let hooks: Vec<Hook> = Hook::ALL.iter().map(|(_, hook)| *hook).collect();
        let findings = Findings { data, fresh_ids, taken: Vec::new(), rules };
        let step = inspect(&inspected_node(), with_hooks(&hooks), findings);
        let state = step.node.provision_state().name();
        prop_assert!(state == "inspecting" || state == "inspect failed", "{}", state);
        prop_assert_eq!(state == "inspect failed", step.node.last_error.is_some());
        prop_assert_eq!(state == "inspect failed", step.inventory.is_none());
        let stored = serde_json::to_string(&step.node).unwrap();
        prop_assert!(stored.len() < 200_000, "a row of {} bytes", stored.len());
        let read: Node = serde_json::from_str(&stored).unwrap();
        prop_assert_eq!(&read.attributes, &step.node.attributes);
    }
}
