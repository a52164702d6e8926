//! Parts of nodes besides ports, and objects that stand for themselves.

use std::sync::Arc;

use serde_json::{Value, json};
use upbeat::catalog::{
    Allocation, AllocationState, Chassis, DeployTemplate, Kind, Record, Runbook,
};
use upbeat::node::parts::Part;
use upbeat::node::portgroups::Portgroup;
use upbeat::node::volume::{VolumeConnector, VolumeTarget};
use upbeat::node::{Node, NodeId};
use upbeat::store::{
    AllocationLink, Change, Ident, NodeFilter, PART_SORT_KEYS, Page, PartFilter, PortFilter,
    RECORD_SORT_KEYS, ReadError, RecordFilter, RecordSave, Save, SaveError, Store,
};
use upbeat::timestamp::Timestamp;
use uuid::Uuid;

use super::support::{Database, a_node, a_port, enrol, first, remove, update};

fn part<T>(number: u128, is: T) -> Part<T> {
    Part {
        id: Uuid::from_u128(0xC000_0000 + number),
        created_at: Timestamp(3_000),
        updated_at: None,
        is,
    }
}

fn group(number: u128) -> Part<Portgroup> {
    let is = Portgroup {
        address: Some(format!("52:54:00:cc:00:{number:02x}")),
        name: Some(format!("bond-{number}")),
        ..Portgroup::default()
    };
    part(number, is)
}

fn connector(number: u128, id: &str) -> Part<VolumeConnector> {
    let is = VolumeConnector {
        kind: "iqn".to_owned(),
        connector_id: id.to_owned(),
        ..VolumeConnector::default()
    };
    part(number, is)
}

fn target(number: u128) -> Part<VolumeTarget> {
    let is = VolumeTarget {
        volume_type: "iscsi".to_owned(),
        volume_id: format!("v-{number}"),
        ..VolumeTarget::default()
    };
    part(number, is)
}

/// As `update`, with the parts.
fn with_parts(node: &mut Node, change: impl FnOnce(&mut Node)) -> Save {
    Save {
        parts_changed: true,
        ..update(node, change)
    }
}

async fn stored(store: &Store, id: NodeId) -> Option<Node> {
    store.reader.node(Ident::Id(id)).await.unwrap()
}

fn duplicate(field: &'static str, value: &str) -> Result<(), SaveError> {
    Err(SaveError::Duplicate {
        field,
        value: value.to_owned(),
    })
}

pub async fn parts_come_back_with_their_node(_: &Database, store: &Store) {
    let mut node = a_node(1);
    enrol(store, std::slice::from_ref(&node)).await;
    let save = with_parts(&mut node, |node| {
        node.portgroups = vec![group(2), group(1)].into();
        node.volume_connectors = vec![connector(3, "iqn.a")].into();
        node.volume_targets = vec![target(4), target(5)].into();
        node.traits = vec!["CUSTOM_A".to_owned()].into();
        node.attributes.chassis_uuid = Some(Uuid::from_u128(7).to_string());
        let port = &mut a_port(1);
        port.portgroup_uuid = Some(group(1).id);
        node.ports = vec![port.clone()].into();
    });
    store.writer.save(save).await.unwrap();
    assert_eq!(stored(store, node.id).await.as_ref(), Some(&node));
    let save = with_parts(&mut node, |node| {
        node.portgroups[0].is.extra.insert("a".into(), json!(1));
        node.volume_targets.remove(0);
        node.portgroups.push(group(9));
    });
    store.writer.save(save).await.unwrap();
    assert_eq!(stored(store, node.id).await.as_ref(), Some(&node));
    // A save that doesn't speak of them leaves them.
    let save = update(&mut node, |node| node.last_error = Some("e".to_owned()));
    store.writer.save(save).await.unwrap();
    assert_eq!(stored(store, node.id).await.as_ref(), Some(&node));
    // Among others that have none.
    enrol(store, &[a_node(2)]).await;
    let listed = store.reader.nodes(NodeFilter::default(), first(9)).await;
    assert_eq!(listed.unwrap(), [node.clone(), a_node(2)]);
    let in_group = PortFilter {
        portgroup: Some(group(1).id),
        ..PortFilter::default()
    };
    let ports = store.reader.ports(in_group, first(9)).await.unwrap();
    assert_eq!(ports[0].port.id, a_port(1).id);
    store.writer.save(remove(&node)).await.unwrap();
    let gone = store.reader.part::<Portgroup>(Ident::Id(group(2).id)).await;
    assert_eq!(gone, Ok(None));
}

pub async fn what_waits_comes_back_with_its_parts(_: &Database, store: &Store) {
    let mut node = a_node(1);
    enrol(store, std::slice::from_ref(&node)).await;
    let save = with_parts(&mut node, |node| {
        node.portgroups = vec![group(1)].into();
        node.deadlines.look = Some(Timestamp(77));
    });
    store.writer.save(save).await.unwrap();
    let ids = store.reader.waiting().await.unwrap();
    assert_eq!(store.reader.these(ids).await.unwrap(), [node]);
}

pub async fn every_unique_value_of_parts_is_guarded(_: &Database, store: &Store) {
    let (mut one, two) = (a_node(1), a_node(2));
    enrol(store, &[one.clone(), two.clone()]).await;
    let save = with_parts(&mut one, |node| {
        node.portgroups = vec![group(1)].into();
        node.volume_connectors = vec![connector(2, "iqn.a")].into();
    });
    store.writer.save(save).await.unwrap();
    let tries = |change: fn(&mut Node)| store.writer.save(with_parts(&mut two.clone(), change));
    let same_address = tries(|node| {
        node.portgroups = vec![group(3)].into();
        node.portgroups[0].is.address = group(1).is.address;
    });
    assert_eq!(
        same_address.await,
        duplicate("address", "52:54:00:cc:00:01")
    );
    let same_name = tries(|node| {
        node.portgroups = vec![group(3)].into();
        node.portgroups[0].is.name = group(1).is.name;
    });
    assert_eq!(same_name.await, duplicate("name", "bond-1"));
    let same_id = tries(|node| node.volume_targets = vec![target(1)].into());
    assert_eq!(same_id.await, duplicate("uuid", &group(1).id.to_string()));
    let same_connector = tries(|node| node.volume_connectors = vec![connector(3, "iqn.a")].into());
    assert_eq!(
        same_connector.await,
        duplicate("connector_id", "iqn.a of type iqn")
    );
    // Another type is another connector; no address and no name clash with nothing.
    let fine = tries(|node| {
        node.volume_connectors = vec![connector(3, "iqn.a")].into();
        node.volume_connectors[0].is.kind = "ip".to_owned();
        node.portgroups = vec![part(4, Portgroup::default()), part(5, Portgroup::default())].into();
    });
    fine.await.unwrap();
}

pub async fn parts_are_listed_and_found(_: &Database, store: &Store) {
    let (mut one, mut two) = (a_node(1), a_node(2));
    two.attributes.shard = Some("s1".to_owned());
    enrol(store, &[one.clone(), two.clone()]).await;
    for (node, groups) in [
        (&mut one, vec![group(3), group(1)]),
        (&mut two, vec![group(2)]),
    ] {
        let save = with_parts(node, |node| node.portgroups = groups.into());
        store.writer.save(save).await.unwrap();
    }
    let save = with_parts(&mut one, |node| {
        node.volume_targets = vec![target(8)].into()
    });
    store.writer.save(save).await.unwrap();
    let names = async |filter: PartFilter, page: Page| -> Result<Vec<String>, ReadError> {
        let found = store.reader.parts::<Portgroup>(filter, page).await?;
        let name = |of: upbeat::store::PartOfNode<Portgroup>| of.part.is.name.unwrap();
        Ok(found.into_iter().map(name).collect())
    };
    let all = names(PartFilter::default(), first(9)).await.unwrap();
    assert_eq!(all, ["bond-3", "bond-1", "bond-2"]);
    let of_node = PartFilter {
        node: Some(two.id),
        ..PartFilter::default()
    };
    assert_eq!(names(of_node, first(9)).await.unwrap(), ["bond-2"]);
    let by_address = PartFilter {
        claim: group(1).is.address,
        ..PartFilter::default()
    };
    assert_eq!(names(by_address, first(9)).await.unwrap(), ["bond-1"]);
    let by_shard = PartFilter {
        shards: Some(vec!["s1".to_owned()]),
        ..PartFilter::default()
    };
    assert_eq!(names(by_shard, first(9)).await.unwrap(), ["bond-2"]);
    for key in PART_SORT_KEYS {
        let page = Page {
            sort_key: Some((*key).to_owned()),
            ..first(9)
        };
        assert_eq!(
            names(PartFilter::default(), page).await.unwrap().len(),
            3,
            "{key}"
        );
    }
    let second = Page {
        marker: Some(group(3).id),
        sort_key: Some("name".to_owned()),
        descending: true,
        ..first(1)
    };
    assert_eq!(
        names(PartFilter::default(), second).await.unwrap(),
        ["bond-2"]
    );
    let unknown = Page {
        marker: Some(Uuid::from_u128(1)),
        ..first(1)
    };
    let unknown = names(PartFilter::default(), unknown).await;
    assert_eq!(unknown, Err(ReadError::UnknownMarker));
    let by_name = Ident::Name("bond-2".to_owned());
    let found = store
        .reader
        .part::<Portgroup>(by_name)
        .await
        .unwrap()
        .unwrap();
    assert_eq!((found.node, found.part.id), (two.id, group(2).id));
    // A UUID of another kind is none of this kind.
    let other = store
        .reader
        .part::<VolumeConnector>(Ident::Id(group(2).id))
        .await;
    assert_eq!(other, Ok(None));
}

fn template(number: u128, name: &str) -> Record<DeployTemplate> {
    let is = DeployTemplate {
        name: name.to_owned(),
        ..DeployTemplate::default()
    };
    Record::new(Uuid::from_u128(number), is, Timestamp(number as i64))
}

async fn keep<T: Kind>(store: &Store, record: &Record<T>) -> Result<(), SaveError> {
    store.writer.save_record(RecordSave::insert(record)).await
}

async fn kept<T: Kind>(store: &Store, id: Uuid) -> Option<Record<T>> {
    store.reader.record(Ident::Id(id)).await.unwrap()
}

pub async fn objects_come_back_and_are_guarded_by_their_version(_: &Database, store: &Store) {
    let one = template(1, "CUSTOM_A");
    keep(store, &one).await.unwrap();
    assert_eq!(kept(store, one.id).await.as_ref(), Some(&one));
    let mut is = one.is.clone();
    is.name = "CUSTOM_B".to_owned();
    let two = one.with(is, Timestamp(9));
    let save = RecordSave::update(&two, 1);
    store.writer.save_record(save.clone()).await.unwrap();
    let again = store.writer.save_record(save).await;
    assert_eq!(again, Err(SaveError::VersionConflict));
    let by_name = async |name: &str| {
        let ident = Ident::Name(name.to_owned());
        store.reader.record::<DeployTemplate>(ident).await.unwrap()
    };
    assert_eq!(by_name("CUSTOM_A").await, None);
    assert_eq!(by_name("CUSTOM_B").await, Some(two.clone()));
    let old = store.writer.save_record(RecordSave::remove(&one)).await;
    assert_eq!(old, Err(SaveError::VersionConflict));
    store
        .writer
        .save_record(RecordSave::remove(&two))
        .await
        .unwrap();
    assert_eq!(kept::<DeployTemplate>(store, one.id).await, None);
}

pub async fn names_of_objects_are_unique_within_their_kind(_: &Database, store: &Store) {
    keep(store, &template(1, "CUSTOM_A")).await.unwrap();
    let same_name = keep(store, &template(2, "CUSTOM_A")).await;
    assert_eq!(same_name, duplicate("name", "CUSTOM_A"));
    let same_id = keep(store, &template(1, "CUSTOM_B")).await;
    assert_eq!(same_id, duplicate("uuid", &Uuid::from_u128(1).to_string()));
    let runbook = Runbook {
        name: "CUSTOM_A".to_owned(),
        ..Runbook::default()
    };
    keep(
        store,
        &Record::new(Uuid::from_u128(3), runbook, Timestamp(3)),
    )
    .await
    .unwrap();
    // Chassis have no name.
    for number in [4, 5] {
        let chassis = Record::new(Uuid::from_u128(number), Chassis::default(), Timestamp(1));
        keep(store, &chassis).await.unwrap();
    }
    assert_eq!(
        kept::<DeployTemplate>(store, Uuid::from_u128(3)).await,
        None
    );
}

fn wish(number: u128, change: impl FnOnce(&mut Allocation)) -> Record<Allocation> {
    let mut is = Allocation::default();
    change(&mut is);
    Record::new(Uuid::from_u128(number), is, Timestamp(number as i64))
}

pub async fn objects_are_listed_by_what_they_are(_: &Database, store: &Store) {
    let node = a_node(1).id;
    for record in [
        wish(1, |is| is.owner = Some("p".to_owned())),
        wish(2, |is| is.resource_class = Some("large".to_owned())),
        wish(3, |is| is.state = AllocationState::Active),
        wish(4, |is| is.node_uuid = Some(node)),
        wish(5, |is| is.name = Some("five".to_owned())),
    ] {
        keep(store, &record).await.unwrap();
    }
    keep(store, &template(6, "CUSTOM_A")).await.unwrap();
    let numbers = async |filter: RecordFilter, page: Page| -> Vec<u128> {
        let found = store.reader.records::<Allocation>(filter, page).await;
        found.unwrap().iter().map(|one| one.id.as_u128()).collect()
    };
    let none = RecordFilter::default;
    let some = |text: &str| Some(text.to_owned());
    for (filter, expected) in [
        (none(), vec![1, 2, 3, 4, 5]),
        (
            RecordFilter {
                owner: some("p"),
                ..none()
            },
            vec![1],
        ),
        (
            RecordFilter {
                resource_class: some("large"),
                ..none()
            },
            vec![2],
        ),
        (
            RecordFilter {
                state: some("active"),
                ..none()
            },
            vec![3],
        ),
        (
            RecordFilter {
                node: Some(node),
                ..none()
            },
            vec![4],
        ),
        (
            RecordFilter {
                names: Some(vec!["five".into(), "six".into()]),
                ..none()
            },
            vec![5],
        ),
        (
            RecordFilter {
                names: Some(vec![]),
                ..none()
            },
            vec![],
        ),
    ] {
        assert_eq!(
            numbers(filter.clone(), first(9)).await,
            expected,
            "{filter:?}"
        );
    }
    for key in RECORD_SORT_KEYS {
        let page = Page {
            sort_key: Some((*key).to_owned()),
            ..first(9)
        };
        assert_eq!(numbers(none(), page).await.len(), 5, "{key}");
    }
    let after_two = Page {
        marker: Some(Uuid::from_u128(2)),
        ..first(2)
    };
    assert_eq!(numbers(none(), after_two).await, [3, 4]);
}

pub async fn a_chassis_stays_as_long_as_a_node_names_it(_: &Database, store: &Store) {
    let chassis = Record::new(Uuid::from_u128(1), Chassis::default(), Timestamp(1));
    keep(store, &chassis).await.unwrap();
    let mut node = a_node(1);
    node.attributes.chassis_uuid = Some(chassis.id.to_string());
    enrol(store, &[node.clone(), a_node(2)]).await;
    let within = NodeFilter {
        chassis_uuid: Some(chassis.id.to_string()),
        ..NodeFilter::default()
    };
    let found = store.reader.nodes(within, first(9)).await.unwrap();
    assert_eq!(found, [node.clone()]);
    let refused = store.writer.save_record(RecordSave::remove(&chassis)).await;
    assert!(
        matches!(refused, Err(SaveError::InUse { .. })),
        "{refused:?}"
    );
    let save = update(&mut node, |node| node.attributes.chassis_uuid = None);
    store.writer.save(save).await.unwrap();
    store
        .writer
        .save_record(RecordSave::remove(&chassis))
        .await
        .unwrap();
}

pub async fn a_node_and_its_allocation_change_in_one_commit(_: &Database, store: &Store) {
    let (mut node, allocation) = (a_node(1), wish(1, |_| {}));
    enrol(store, std::slice::from_ref(&node)).await;
    keep(store, &allocation).await.unwrap();
    let take = |node: &mut Node, id: Uuid| {
        let save = update(node, |node| {
            node.allocation = Some(id);
            node.updated_at = Some(Timestamp(77));
        });
        Save {
            allocation: Some(AllocationLink::Taken(id)),
            ..save
        }
    };
    // One that is gone takes no node with it.
    let nobody = Uuid::from_u128(99);
    let refused = store.writer.save(take(&mut node.clone(), nobody)).await;
    assert_eq!(
        refused,
        Err(SaveError::Gone {
            what: "Allocation",
            id: nobody
        })
    );
    assert_eq!(stored(store, node.id).await.as_ref(), Some(&node));
    store
        .writer
        .save(take(&mut node, allocation.id))
        .await
        .unwrap();
    let taken = kept::<Allocation>(store, allocation.id).await.unwrap();
    assert_eq!((taken.version, taken.updated_at), (2, Some(Timestamp(77))));
    assert_eq!(
        (taken.is.state, taken.is.node_uuid),
        (AllocationState::Active, Some(node.id))
    );
    let save = Save {
        allocation: Some(AllocationLink::Ended(allocation.id)),
        ..update(&mut node, |node| node.allocation = None)
    };
    store.writer.save(save).await.unwrap();
    assert_eq!(kept::<Allocation>(store, allocation.id).await, None);
    // With the node goes its allocation.
    let another = wish(2, |_| {});
    keep(store, &another).await.unwrap();
    store
        .writer
        .save(take(&mut node, another.id))
        .await
        .unwrap();
    let save = Save {
        allocation: Some(AllocationLink::Ended(another.id)),
        ..remove(&node)
    };
    store.writer.save(save).await.unwrap();
    assert_eq!(kept::<Allocation>(store, another.id).await, None);
}

pub async fn shards_are_counted(_: &Database, store: &Store) {
    let mut nodes: Vec<Node> = (1..=4).map(a_node).collect();
    nodes[1].attributes.shard = Some("b".to_owned());
    nodes[2].attributes.shard = Some("a".to_owned());
    nodes[3].attributes.shard = Some("b".to_owned());
    enrol(store, &nodes).await;
    let counts = store.reader.count_by_shard().await.unwrap();
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(counts, [(None, 1), (some("a"), 1), (some("b"), 2)]);
}

/// What was written when a row still spelled out what is empty or as usual.
pub async fn rows_of_older_programs_are_read(database: &Database, store: &Store) {
    let mut node = a_node(1);
    node.ports = vec![a_port(1)].into();
    enrol(store, std::slice::from_ref(&node)).await;
    let mut raw = database.raw();
    for (table, form, spelled_out) in [
        ("nodes", 2, json!({"traits": [], "allocation": null})),
        (
            "ports",
            1,
            json!({"portgroup_uuid": null, "available_for_dynamic_portgroup": true}),
        ),
    ] {
        let body = raw
            .ask(&format!("SELECT body AS said FROM {table}"))
            .remove(0);
        let mut body: Value = serde_json::from_str(&body).unwrap();
        body["form"] = json!(form);
        let is = body["is"].as_object_mut().unwrap();
        for (key, value) in spelled_out.as_object().unwrap() {
            assert_eq!(is.insert(key.clone(), value.clone()), None, "{key}");
        }
        if let Some(attributes) = is.get_mut("attributes") {
            attributes["chassis_uuid"] = json!(null);
        }
        raw.run(&format!("UPDATE {table} SET body = '{body}'"));
    }
    drop(raw);
    assert_eq!(stored(store, node.id).await, Some(node));
}

pub async fn objects_share_a_commit_with_nodes_and_fail_alone(_: &Database, store: &Store) {
    keep(store, &template(1, "CUSTOM_A")).await.unwrap();
    let (good, same) = (template(2, "CUSTOM_B"), template(3, "CUSTOM_A"));
    let saves = futures_util::future::join4(
        keep(store, &same),
        keep(store, &good),
        store
            .writer
            .save(Save::of(Arc::new(a_node(1)), Change::Insert)),
        store
            .writer
            .save(Save::of(Arc::new(a_node(1)), Change::Insert)),
    );
    let (same_name, fine, node, same_node) = saves.await;
    assert_eq!(same_name, duplicate("name", "CUSTOM_A"));
    assert_eq!((fine, node), (Ok(()), Ok(())));
    let is_duplicate = matches!(same_node, Err(SaveError::Duplicate { .. }));
    assert!(is_duplicate, "{same_node:?}");
    assert_eq!(kept(store, good.id).await, Some(good));
}
