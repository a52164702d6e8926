//! Whatever JSON comes as a new node, a port or a patch: it is taken or refused, never a panic, and what is refused changes nothing.

use proptest::prelude::*;
use serde_json::{Map, Value};
use upbeat::node::{
    Attributes, Event, Limits, Node, NodeId, Now, PatchOp, PatchOperation, Port, Provision, Reply,
    attributes, ports, step,
};
use upbeat::timestamp::Timestamp;

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a-zA-Z0-9:~/ -]{0,12}".prop_map(Value::from),
        prop_oneof![
            Just("fake-hardware"),
            Just("manual-management"),
            Just("52:54:00:AA:00:01"),
            Just("6523b921-218d-4849-a3bb-3ab765c2fcdc"),
            Just("true"),
            Just("direct"),
        ]
        .prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map("[a-c]", inner, 0..3)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn any_node_field() -> impl Strategy<Value = String> {
    let names: Vec<String> = attributes::FIELDS
        .iter()
        .map(|field| field.name.to_owned())
        .chain(["uuid", "provision_state", "links", "odd", ""].map(str::to_owned))
        .collect();
    prop::sample::select(names)
}

fn any_operation() -> impl Strategy<Value = PatchOperation> {
    let op = prop_oneof![
        Just(PatchOp::Add),
        Just(PatchOp::Remove),
        Just(PatchOp::Replace)
    ];
    let below = prop::collection::vec("[a-c0-2-]", 0..3);
    (op, any_node_field(), below, any_value()).prop_map(|(op, root, below, value)| PatchOperation {
        op,
        path: std::iter::once(root).chain(below).collect(),
        value,
    })
}

fn any_object(keys: Vec<&'static str>) -> impl Strategy<Value = Map<String, Value>> {
    prop::collection::btree_map(prop::sample::select(keys), any_value(), 0..6).prop_map(|map| {
        map.into_iter()
            .map(|(key, value)| (key.to_owned(), value))
            .collect()
    })
}

fn a_node(provision: Provision) -> Node {
    let mut document = Map::new();
    document.insert("driver".to_owned(), "fake-hardware".into());
    let new = attributes::parse_new(&document, 110).unwrap();
    let mut node = Node::enrolled(NodeId::default(), new.attributes, Timestamp(0));
    node.provision = provision;
    let mut port = Map::new();
    port.insert("address".to_owned(), "52:54:00:aa:00:01".into());
    port.insert("node_uuid".to_owned(), "n".into());
    node.ports = vec![ports::new_port(&port).unwrap().port].into();
    node
}

fn is_whole(attributes: &Attributes) -> bool {
    let text = serde_json::to_string(attributes).unwrap();
    attributes.interfaces.len() == 13
        && serde_json::from_str::<Attributes>(&text).unwrap() == *attributes
}

proptest! {
    #[test]
    fn a_new_node_is_whole_or_refused(
        document in prop::collection::btree_map(any_node_field(), any_value(), 0..8),
        microversion in 1u16..=110,
    ) {
        let document = document.into_iter().collect();
        if let Ok(new) = attributes::parse_new(&document, microversion) {
            prop_assert!(is_whole(&new.attributes));
        }
    }

    #[test]
    fn a_refused_patch_changes_nothing(
        operations in prop::collection::vec(any_operation(), 0..5),
        provision in prop_oneof![
            Just(Provision::Enroll), Just(Provision::Available), Just(Provision::Active), Just(Provision::Deleting),
        ],
        reset_interfaces: bool,
        microversion in 1u16..=110,
    ) {
        let before = a_node(provision);
        let limits = Limits::default();
        let now = Now { at: Timestamp(1_000), limits: &limits };
        let event = Event::Patch { operations, reset_interfaces, microversion };
        let step = step(&before, event, now);
        if let Reply::Refused(_) = step.reply {
            prop_assert_eq!(step.node, before);
            prop_assert!(step.history.is_empty());
        } else {
            prop_assert!(is_whole(&step.node.attributes));
            prop_assert_eq!(step.node.id, before.id);
        }
        prop_assert!(step.effects.is_empty());
    }

    #[test]
    fn a_new_port_has_an_address_or_is_refused(document in any_object(vec![
        "address", "node_uuid", "node_ident", "uuid", "extra", "pxe_enabled", "local_link_connection", "physical_network",
        "name", "is_smartnic", "description", "portgroup_uuid", "odd",
    ])) {
        if let Ok(new) = ports::new_port(&document) {
            prop_assert_eq!(attributes::mac_address(&new.port.address), Some(new.port.address.clone()));
        }
    }

    #[test]
    fn a_refused_port_patch_changes_nothing(
        root in prop::sample::select(vec!["address", "extra", "name", "node_uuid", "local_link_connection", "odd"]),
        below in prop::collection::vec("[a-c0-2-]", 0..3),
        op in prop_oneof![Just(PatchOp::Add), Just(PatchOp::Remove), Just(PatchOp::Replace)],
        value in any_value(),
    ) {
        let before = a_node(Provision::Active);
        let id = before.ports[0].id;
        let path = std::iter::once(root.to_owned()).chain(below).collect();
        let operations = vec![PatchOperation { op, path, value }];
        let limits = Limits::default();
        let step = step(&before, Event::PortPatch { id, operations }, Now { at: Timestamp(1_000), limits: &limits });
        let port: &Port = &step.node.ports[0];
        if let Reply::Refused(_) = step.reply {
            prop_assert_eq!(&step.node, &before);
        }
        // The node is in use: what connects it stays.
        prop_assert_eq!(&port.address, &before.ports[0].address);
    }
}
