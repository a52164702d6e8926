//! Lists and look-ups.

use upbeat::node::{Maintenance, Node, Power, PowerState, Provision, ProvisionState};
use upbeat::store::{
    Ident, NODE_SORT_KEYS, NodeFilter, PORT_SORT_KEYS, Page, PortFilter, ReadError, Store,
};
use upbeat::timestamp::Timestamp;
use uuid::Uuid;

use super::support::{Database, a_node, a_port, enrol, first};

fn some(text: &str) -> Option<String> {
    Some(text.to_owned())
}

/// Seven nodes that differ in everything lists know.
fn a_site() -> Vec<Node> {
    let mut nodes: Vec<Node> = (1..=7).map(a_node).collect();
    let [one, two, three, four, five, six, _] = &mut nodes[..] else {
        unreachable!()
    };
    one.attributes.description = some("Rack 100%_A \\ TÜR");
    one.attributes.shard = some("s1");
    one.attributes.owner = some("p1");
    two.provision = Provision::Available;
    two.attributes.lessee = some("p1");
    two.attributes.shard = some("s2");
    two.power = Power {
        state: Some(PowerState::On),
        target: None,
    };
    three.maintenance = Some(
        Maintenance {
            reason: None,
            fault: some("power failure"),
        }
        .into(),
    );
    three.attributes.instance_uuid = some("i-3");
    three.attributes.instance_name = some("web");
    three.updated_at = Some(Timestamp(5));
    four.attributes.driver = "manual-management".to_owned();
    four.attributes.resource_class = some("large");
    four.attributes.description = some("rack 100 a");
    five.attributes.conductor_group = "eu".to_owned();
    five.attributes.retired = true;
    five.attributes.name = None;
    five.updated_at = Some(Timestamp(3));
    six.attributes.parent_node = Some(a_node(1).id.to_string());
    nodes
}

pub async fn filters_find_what_they_name(_: &Database, store: &Store) {
    let site = a_site();
    enrol(store, &site).await;
    let all = NodeFilter {
        include_children: true,
        ..NodeFilter::default()
    };
    let cases: Vec<(&str, NodeFilter, &[usize])> = vec![
        ("nothing", NodeFilter::default(), &[1, 2, 3, 4, 5, 7]),
        ("children too", all.clone(), &[1, 2, 3, 4, 5, 6, 7]),
        (
            "children of one",
            NodeFilter {
                parent_node: Some(a_node(1).id.to_string()),
                ..NodeFilter::default()
            },
            &[6],
        ),
        (
            "state",
            NodeFilter {
                provision_state: Some(ProvisionState::Available),
                ..all.clone()
            },
            &[2],
        ),
        (
            "maintenance",
            NodeFilter {
                maintenance: Some(true),
                ..all.clone()
            },
            &[3],
        ),
        (
            "no maintenance",
            NodeFilter {
                maintenance: Some(false),
                ..NodeFilter::default()
            },
            &[1, 2, 4, 5, 7],
        ),
        (
            "associated",
            NodeFilter {
                associated: Some(true),
                ..all.clone()
            },
            &[3],
        ),
        (
            "not associated",
            NodeFilter {
                associated: Some(false),
                ..NodeFilter::default()
            },
            &[1, 2, 4, 5, 7],
        ),
        (
            "instance uuid",
            NodeFilter {
                instance_uuid: some("i-3"),
                ..all.clone()
            },
            &[3],
        ),
        (
            "instance name",
            NodeFilter {
                instance_name: some("web"),
                ..all.clone()
            },
            &[3],
        ),
        (
            "driver",
            NodeFilter {
                driver: some("manual-management"),
                ..all.clone()
            },
            &[4],
        ),
        (
            "resource class",
            NodeFilter {
                resource_class: some("large"),
                ..all.clone()
            },
            &[4],
        ),
        (
            "conductor group",
            NodeFilter {
                conductor_group: some("eu"),
                ..all.clone()
            },
            &[5],
        ),
        (
            "no conductor group",
            NodeFilter {
                conductor_group: some(""),
                ..NodeFilter::default()
            },
            &[1, 2, 3, 4, 7],
        ),
        (
            "owner",
            NodeFilter {
                owner: some("p1"),
                ..all.clone()
            },
            &[1],
        ),
        (
            "lessee",
            NodeFilter {
                lessee: some("p1"),
                ..all.clone()
            },
            &[2],
        ),
        (
            "project",
            NodeFilter {
                project: some("p1"),
                ..all.clone()
            },
            &[1, 2],
        ),
        (
            "project in maintenance",
            NodeFilter {
                project: some("p1"),
                maintenance: Some(true),
                ..all.clone()
            },
            &[],
        ),
        (
            "fault",
            NodeFilter {
                fault: some("power failure"),
                ..all.clone()
            },
            &[3],
        ),
        (
            "retired",
            NodeFilter {
                retired: Some(true),
                ..all.clone()
            },
            &[5],
        ),
        (
            "shards",
            NodeFilter {
                shards: Some(vec!["s1".to_owned(), "s2".to_owned(), "s3".to_owned()]),
                ..all.clone()
            },
            &[1, 2],
        ),
        (
            "no shard named",
            NodeFilter {
                shards: Some(Vec::new()),
                ..all.clone()
            },
            &[],
        ),
        (
            "sharded",
            NodeFilter {
                sharded: Some(true),
                ..all.clone()
            },
            &[1, 2],
        ),
        (
            "not sharded",
            NodeFilter {
                sharded: Some(false),
                ..NodeFilter::default()
            },
            &[3, 4, 5, 7],
        ),
        (
            "word in any case",
            NodeFilter {
                description_contains: some("RACK"),
                ..all.clone()
            },
            &[1, 4],
        ),
        (
            "letters beyond ASCII in any case",
            NodeFilter {
                description_contains: some("tür"),
                ..all.clone()
            },
            &[1],
        ),
        (
            "wildcards mean themselves",
            NodeFilter {
                description_contains: some("0%_a \\"),
                ..all.clone()
            },
            &[1],
        ),
        (
            "quotes do no harm",
            NodeFilter {
                description_contains: some("' OR 1=1 --"),
                ..all.clone()
            },
            &[],
        ),
    ];
    for (what, filter, expected) in cases {
        let found = store.reader.nodes(filter, first(100)).await.unwrap();
        let expected: Vec<&Node> = expected.iter().map(|number| &site[number - 1]).collect();
        assert_eq!(found.iter().collect::<Vec<_>>(), expected, "{what}");
    }
}

/// Follows a list by pages of two.
async fn follow(store: &Store, sort_key: Option<&str>, descending: bool) -> Vec<Node> {
    let filter = NodeFilter {
        include_children: true,
        ..NodeFilter::default()
    };
    let mut found: Vec<Node> = Vec::new();
    loop {
        let page = Page {
            limit: 2,
            marker: found.last().map(|node| node.id.0),
            sort_key: sort_key.map(str::to_owned),
            descending,
        };
        let more = store.reader.nodes(filter.clone(), page).await.unwrap();
        if more.is_empty() {
            return found;
        }
        assert!(more.len() <= 2);
        found.extend(more);
    }
}

pub async fn pages_follow_each_other_in_every_order(_: &Database, store: &Store) {
    let mut site = a_site();
    // Creation is not the order of UUIDs.
    site.rotate_left(3);
    for node in &mut site {
        node.ports = vec![a_port(u32::try_from(node.created_at.0).unwrap())].into();
    }
    enrol(store, &site).await;
    type Key = fn(&Node) -> String;
    let keys: [(Option<&str>, Key); 11] = [
        (None, |_| String::new()),
        (Some("uuid"), |node| node.id.to_string()),
        (Some("name"), |node| {
            node.attributes.name.clone().unwrap_or_default()
        }),
        (Some("provision_state"), |node| {
            node.provision_state().name().to_owned()
        }),
        (Some("power_state"), |node| {
            node.power.state.map_or("", PowerState::name).to_owned()
        }),
        (Some("driver"), |node| node.attributes.driver.clone()),
        (Some("instance_uuid"), |node| {
            node.attributes.instance_uuid.clone().unwrap_or_default()
        }),
        (Some("resource_class"), |node| {
            node.attributes.resource_class.clone().unwrap_or_default()
        }),
        (Some("maintenance"), |node| {
            node.maintenance.is_some().to_string()
        }),
        (Some("created_at"), |node| {
            format!("{:09}", node.created_at.0)
        }),
        (Some("updated_at"), |node| {
            format!("{:09}", node.updated_at.map_or(0, |at| at.0))
        }),
    ];
    assert_eq!(keys.len(), NODE_SORT_KEYS.len() + 1);
    for (key, value) in keys {
        assert!(key.is_none_or(|key| NODE_SORT_KEYS.contains(&key)));
        // A stable sort: equal ones stay in the order of creation.
        let mut expected = site.clone();
        expected.sort_by_key(value);
        assert_eq!(follow(store, key, false).await, expected, "{key:?}");
        expected.reverse();
        assert_eq!(
            follow(store, key, true).await,
            expected,
            "{key:?} backwards"
        );
    }
    let page = Page {
        marker: Some(Uuid::from_u128(1)),
        ..first(1)
    };
    let read = store.reader.nodes(NodeFilter::default(), page).await;
    assert_eq!(read, Err(ReadError::UnknownMarker));
    let read = store.reader.nodes(NodeFilter::default(), first(0)).await;
    assert_eq!(read, Ok(Vec::new()));
    let read = store
        .reader
        .nodes(NodeFilter::default(), first(usize::MAX))
        .await;
    assert_eq!(read.unwrap().len(), 6);
    let page = Page {
        sort_key: some("body"),
        ..first(1)
    };
    let read = store.reader.nodes(NodeFilter::default(), page).await;
    assert!(matches!(read, Err(ReadError::Unavailable(_))), "{read:?}");
}

pub async fn ports_are_listed_and_found(_: &Database, store: &Store) {
    let mut nodes = vec![a_node(1), a_node(2)];
    nodes[0].attributes.shard = some("s1");
    nodes[0].ports = vec![a_port(4), a_port(2)].into();
    nodes[0].ports[0].name = some("eth0");
    nodes[1].ports = vec![a_port(3)].into();
    nodes[1].ports[0].description = some("Uplink");
    nodes[1].ports[0].updated_at = Some(Timestamp(4));
    enrol(store, &nodes).await;
    let ids = |ports: Result<Vec<upbeat::store::PortOfNode>, ReadError>| -> Vec<(u32, u128)> {
        ports
            .unwrap()
            .into_iter()
            .map(|found| {
                let node = if found.node == a_node(1).id { 1 } else { 2 };
                (node, found.port.id.0.as_u128() - 0xB000_0000)
            })
            .collect()
    };
    let reader = &store.reader;
    let none = PortFilter::default();
    let listed = ids(reader.ports(none.clone(), first(10)).await);
    assert_eq!(listed, [(1, 4), (1, 2), (2, 3)]);
    let cases = [
        (
            PortFilter {
                node: Some(a_node(2).id),
                ..none.clone()
            },
            vec![(2, 3)],
        ),
        (
            PortFilter {
                address: Some(a_port(2).address.to_uppercase()),
                ..none.clone()
            },
            vec![(1, 2)],
        ),
        (
            PortFilter {
                shards: Some(vec!["s1".to_owned()]),
                ..none.clone()
            },
            vec![(1, 4), (1, 2)],
        ),
        (
            PortFilter {
                description_contains: some("uPL"),
                ..none.clone()
            },
            vec![(2, 3)],
        ),
    ];
    for (filter, expected) in cases {
        assert_eq!(ids(reader.ports(filter, first(10)).await), expected);
    }
    let orders = [
        ("uuid", [2, 3, 4]),
        ("address", [2, 3, 4]),
        ("name", [2, 3, 4]),
        ("created_at", [2, 3, 4]),
        ("updated_at", [4, 2, 3]),
    ];
    assert_eq!(orders.len(), PORT_SORT_KEYS.len());
    for (key, mut expected) in orders {
        for descending in [false, true] {
            let mut found = Vec::new();
            let mut marker = None;
            loop {
                let page = Page {
                    limit: 1,
                    marker,
                    sort_key: some(key),
                    descending,
                };
                let Some((_, id)) = ids(reader.ports(none.clone(), page).await).pop() else {
                    break;
                };
                found.push(id);
                marker = Some(Uuid::from_u128(0xB000_0000 + id));
            }
            assert_eq!(found, expected, "{key}");
            expected.reverse();
        }
    }
    let page = Page {
        marker: Some(a_node(1).id.0),
        ..first(1)
    };
    assert_eq!(
        reader.ports(none, page).await,
        Err(ReadError::UnknownMarker)
    );
    let port = reader.port(Ident::Id(a_port(4).id)).await.unwrap().unwrap();
    assert_eq!((port.node, &port.port), (a_node(1).id, &nodes[0].ports[0]));
    let named = reader.port(Ident::Name("eth0".to_owned())).await;
    assert_eq!(named, Ok(Some(port)));
    let unknown = reader.port(Ident::Id(a_port(9).id)).await;
    assert_eq!(unknown, Ok(None));
}

pub async fn nodes_are_found_by_mac(_: &Database, store: &Store) {
    let mut nodes = vec![a_node(2), a_node(1), a_node(3)];
    nodes[0].ports = vec![a_port(1), a_port(2)].into();
    nodes[1].ports = vec![a_port(3)].into();
    enrol(store, &nodes).await;
    let find = async |macs: &[u32]| {
        let macs = macs.iter().map(|number| a_port(*number).address).collect();
        store.reader.nodes_by_addresses(macs).await.unwrap()
    };
    assert_eq!(find(&[1, 2]).await, [a_node(2).id]);
    assert_eq!(find(&[3, 9, 2]).await, [a_node(2).id, a_node(1).id]);
    assert_eq!(find(&[9]).await, []);
    assert_eq!(find(&[]).await, []);
    let upper = vec!["52:54:00:00:00:0A".to_owned()];
    nodes[2].ports = vec![a_port(10)].into();
    let save = super::support::update(&mut a_node(3), |node| node.ports = vec![a_port(10)].into());
    store.writer.save(save).await.unwrap();
    assert_eq!(
        store.reader.nodes_by_addresses(upper).await,
        Ok(vec![a_node(3).id])
    );
}

pub async fn states_are_counted(_: &Database, store: &Store) {
    assert_eq!(store.reader.count_by_state().await, Ok(vec![]));
    enrol(store, &a_site()).await;
    let mut counts = store.reader.count_by_state().await.unwrap();
    counts.sort();
    assert_eq!(
        counts,
        [(ProvisionState::Enroll, 6), (ProvisionState::Available, 1)]
    );
}
