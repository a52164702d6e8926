//! Allocations over a restart: rows that wait are all there is to remember.

use serde_json::{Value, json};
use tempfile::TempDir;
use upbeat::catalog::{Allocation, Record};
use upbeat::clock::Clock;
use upbeat::demo::FleetOptions;
use upbeat::node::{Attributes, Node, NodeId, PowerState, Provision};
use upbeat::store::{self, Change, RecordSave, Save, StoreSettings};
use uuid::Uuid;

use crate::support::api::eventually;
use crate::support::site::Site;

fn node(number: u128, provision: Provision) -> Node {
    let attributes = Attributes {
        driver: "fake-hardware".to_owned(),
        resource_class: Some("large".to_owned()),
        ..Attributes::default()
    };
    let mut node = Node::enrolled(
        NodeId(Uuid::from_u128(number)),
        attributes,
        Clock::start().now(),
    );
    node.provision = provision;
    node.power.state = Some(PowerState::Off);
    node
}

fn wish(number: u128, backfill: Option<&Node>, class: &str) -> Record<Allocation> {
    let is = Allocation {
        resource_class: Some(class.to_owned()),
        backfill: backfill.map(|node| node.id),
        ..Allocation::default()
    };
    Record::new(Uuid::from_u128(number), is, Clock::start().now())
}

#[actix_web::test]
async fn what_was_being_allocated_is_taken_up_after_a_start() {
    let folder: TempDir = tempfile::tempdir().unwrap();
    let store = store::open(&StoreSettings {
        url: format!("sqlite://{}", folder.path().join("upbeat.db").display()),
        readers: 1,
        host: "before".to_owned(),
        queue_max: 100,
    })
    .unwrap();
    let free = node(1, Provision::Available);
    let mut used = node(2, Provision::Active);
    used.attributes.instance_uuid = Some(Uuid::from_u128(12).to_string());
    for node in [&free, &used] {
        let save = Save::of(node.clone().into(), Change::Insert);
        store.writer.save(save).await.unwrap();
    }
    for record in [
        wish(11, None, "large"),
        wish(12, Some(&used), "large"),
        wish(13, None, "small"),
    ] {
        let save = RecordSave::insert(&record);
        store.writer.save_record(save).await.unwrap();
    }
    store.handle.close().await;

    let site = Site::start_in(folder, |_| {}, FleetOptions::default()).await;
    for (number, state, node) in [
        (11, "active", json!(free.id)),
        (12, "active", json!(used.id)),
        (13, "error", Value::Null),
    ] {
        let path = format!("/v1/allocations/{}", Uuid::from_u128(number));
        let allocation = eventually("the allocation settled", async || {
            let now = site.api.expect(200, "GET", &path, Value::Null).await;
            (now["state"] != "allocating").then_some(now)
        })
        .await;
        assert_eq!(allocation["state"], state, "{allocation}");
        assert_eq!(allocation["node_uuid"], node, "{allocation}");
    }
    let taken = site.api.node(&free.id.to_string()).await;
    assert_eq!(taken["allocation_uuid"], json!(Uuid::from_u128(11)));
    site.stop().await;
}
