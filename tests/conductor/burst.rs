//! A few hundred machines that all come at once, with less room for everything than they need.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream;
use serde_json::json;
use upbeat::clock::Clock;
use upbeat::demo::{Faults, FleetOptions, Scheme};
use upbeat::node::{Attributes, Node, NodeId, Provision};
use uuid::Uuid;

use crate::deadlines::stored;
use crate::support::api::eventually;
use crate::support::site::{Site, quick_machines, wrote_once};

const MACHINES: usize = 150;
/// Requests to agents at once.
const REQUESTS: usize = 16;

fn mac(number: usize) -> String {
    format!("52:54:00:bb:{:02x}:{:02x}", number / 256, number % 256)
}

fn id(number: usize) -> Uuid {
    Uuid::from_u128(0xb000 + number as u128)
}

/// A node with one port, ready for use.
fn available(number: usize) -> Node {
    let now = Clock::start().now();
    let info = json!({
        "image_source": "http://images.invalid/small.raw",
        "image_os_hash_algo": "sha256",
        "image_os_hash_value": "a".repeat(64),
        "image_disk_format": "raw",
    });
    let attributes = Attributes {
        driver: "fake-hardware".to_owned(),
        instance_info: info.as_object().unwrap().clone(),
        ..Attributes::default()
    };
    let mut node = Node::enrolled(NodeId(id(number)), attributes, now);
    node.provision = Provision::Available;
    let port = json!({
        "id": id(number), "created_at": now, "address": mac(number), "pxe_enabled": true,
        "extra": {}, "local_link_connection": {}, "is_smartnic": false,
    });
    node.ports = vec![serde_json::from_value(port).unwrap()].into();
    node
}

#[actix_web::test]
async fn machines_that_come_all_at_once_are_all_deployed_and_no_more_are_asked_than_may_be() {
    let folder = stored((0..MACHINES).map(available)).await;
    let site = Site::start_in(
        folder,
        |config| {
            config.agent.requests_max = REQUESTS;
            config.database.queue_max = 4;
            // Not what this is about; a machine that runs other tests too is slow.
            config.conductor.deploy_callback_timeout = 60;
        },
        FleetOptions {
            scheme: Scheme::Http,
            // The agent answers when it has them, so each takes a turn for so long.
            steps_time: Duration::from_millis(20),
            ..quick_machines()
        },
    )
    .await;
    for number in 0..MACHINES {
        site.fleet.add(mac(number), Faults::none());
    }

    let ended = Arc::new(AtomicBool::new(false));
    let (over, api) = (ended.clone(), site.api.clone());
    let watching = actix_web::rt::spawn(async move {
        let (mut under_way, mut waited) = (0.0_f64, 0.0_f64);
        while !over.load(Ordering::Relaxed) {
            under_way = under_way.max(api.metric("upbeat_agent_requests").await);
            waited = waited.max(api.metric("upbeat_agent_requests_waiting").await);
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        (under_way, waited)
    });
    stream::iter(0..MACHINES)
        .for_each_concurrent(50, async |number| {
            site.api.ask(&id(number).to_string(), "active").await;
        })
        .await;
    for number in 0..MACHINES {
        site.api.ends_active(&id(number).to_string()).await;
    }
    ended.store(true, Ordering::Relaxed);
    let (under_way, waited) = watching.await.unwrap();
    assert!((1.0..=16.0).contains(&under_way), "{under_way} at once");
    assert!(waited > 0.0, "nobody ever waited, so nothing was shown");
    for metric in ["upbeat_agent_requests", "upbeat_agent_requests_waiting"] {
        eventually("nothing under way", async || {
            (site.api.metric(metric).await == 0.0).then_some(())
        })
        .await;
    }

    let mut put_off = 0;
    for number in 0..MACHINES {
        let journal = site.fleet.journal(&mac(number));
        wrote_once(&journal);
        for beat in &journal.heartbeats {
            match beat.status {
                Some(202) => {}
                Some(503) => put_off += 1,
                other => panic!("{other:?}: {journal:#?}"),
            }
        }
    }
    println!("{put_off} heartbeats were put off and taken later");
    site.stop().await;
}
