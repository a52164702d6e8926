//! Queues for turns: to deploy, and to read from an image host.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use serde_json::{Value, json};
use upbeat::demo::{Faults, FleetOptions, Journal};

use crate::quarantine::{
    OTHER_MAC, cannot_call_its_driver, fragile_site_with, is_quarantined, leaves_maintenance, spoil,
};
use crate::support::api::{Api, eventually};
use crate::support::puppet::Puppet;
use crate::support::site::{MAC, Site, quick_machines, wrote_once};

fn mac(number: usize) -> String {
    format!("52:54:00:bc:00:{number:02x}")
}

/// So many nodes in `available`, with the machines at [`mac`].
async fn available(site: &Site, nodes: usize) -> Vec<String> {
    let mut uuids = Vec::new();
    for number in 0..nodes {
        uuids.push(site.api.available_node(&mac(number), Value::Null).await);
    }
    uuids
}

async fn waiting(api: &Api, uuid: &str) -> Value {
    let path = format!("/v1/nodes/{uuid}/commands");
    let mut answer = api.expect(200, "GET", &path, Value::Null).await;
    answer["waiting"].take()
}

/// Waits until the node stands at this place, of so many.
async fn stands_at(api: &Api, uuid: &str, place: usize, of: usize) -> String {
    eventually(&format!("{place} of {of}"), async || {
        let waiting = waiting(api, uuid).await;
        let queue = &waiting["queue"];
        (queue["place"] == place && queue["of"] == of)
            .then(|| waiting["for"].as_str().unwrap().to_owned())
    })
    .await
}

async fn turns(api: &Api, queue: &str) -> (f64, f64) {
    let of = |name: &str| format!("{name}{{queue=\"{queue}\"}}");
    (
        api.metric(&of("upbeat_turns")).await,
        api.metric(&of("upbeat_turns_waiting")).await,
    )
}

/// How many of these times overlap at most.
fn at_once(times: &[(Instant, Instant)]) -> usize {
    let at = |moment: Instant| {
        times
            .iter()
            .filter(|(begin, end)| *begin <= moment && moment < *end)
            .count()
    };
    times.iter().map(|(begin, _)| at(*begin)).max().unwrap_or(0)
}

/// When the machine wrote.
fn written(journal: &Journal) -> (Instant, Instant) {
    let write = journal
        .commands_named("deploy.execute_deploy_step")
        .next()
        .unwrap();
    (write.received_at, write.finished_at.unwrap())
}

/// From the agent's first command to the order to power off.
fn worked(journal: &Journal) -> (Instant, Instant) {
    let first = journal.commands.first().unwrap();
    let last = journal.commands.last().unwrap();
    assert_eq!(last.name, "standby.power_off");
    (first.received_at, last.received_at)
}

#[actix_web::test]
async fn of_five_deploys_asked_at_once_two_are_at_work_and_all_become_active() {
    const NODES: usize = 5;
    let limited = |config: &mut upbeat::config::Config| config.conductor.max_concurrent_deploy = 2;
    let site = Site::start(limited, quick_machines()).await;
    let uuids = available(&site, NODES).await;
    for number in 0..NODES {
        site.fleet.add(mac(number), Faults::none());
    }
    join_all(uuids.iter().map(|uuid| site.api.ask(uuid, "active"))).await;
    for uuid in &uuids {
        site.api.ends_active(uuid).await;
    }
    let journals: Vec<Journal> = (0..NODES)
        .map(|number| site.fleet.journal(&mac(number)))
        .collect();
    journals.iter().for_each(wrote_once);
    let times: Vec<_> = journals.iter().map(worked).collect();
    assert_eq!(at_once(&times), 2, "{times:?}");
    assert_eq!(turns(&site.api, "deploy").await, (0.0, 0.0));
    site.stop().await;
}

#[actix_web::test]
async fn places_are_told_and_move_up_whoever_leaves_and_however() {
    // The machines never get as far as to call.
    let machines = FleetOptions {
        boot_delay: Duration::from_secs(3_600),
        ..quick_machines()
    };
    let site = Site::start(
        |config| {
            config.conductor.max_concurrent_deploy = 2;
            config.conductor.deploy_callback_timeout = 600;
            config.api.busy_wait = 0;
        },
        machines,
    )
    .await;
    let api = &site.api;
    let uuids = available(&site, 7).await;
    for number in 0..uuids.len() {
        site.fleet.add(mac(number), Faults::none());
    }
    for uuid in &uuids {
        api.ask(uuid, "active").await;
    }
    for uuid in &uuids[..2] {
        api.reaches(uuid, "wait call-back").await;
        assert_eq!(waiting(api, uuid).await["queue"], Value::Null);
    }
    for (place, uuid) in uuids[2..].iter().enumerate() {
        let what = stands_at(api, uuid, place + 1, 5).await;
        assert_eq!(
            what,
            format!(
                "a turn to deploy: place {} of 5; at most 2 nodes are deployed at once (conductor.max_concurrent_deploy)",
                place + 1
            )
        );
        assert_eq!(api.node(uuid).await["provision_state"], "deploying");
    }
    assert_eq!(turns(api, "deploy").await, (2.0, 5.0));

    // Whoever wants something else of a node that waits is told what it waits for and what ends that.
    let path = format!("/v1/nodes/{}/states/power", uuids[6]);
    let wish = json!({"target": "power on"});
    let (status, answer) = api.send("PUT", &path, wish).await;
    let text = answer.to_string();
    assert_eq!(status, 409, "{text}");
    for words in ["place 5 of 5", "abort", "deleted"] {
        assert!(text.contains(words), "{text}");
    }

    // Out of the queue by an abort, by giving the node up, and for as long as somebody works on it.
    api.ask(&uuids[3], "abort").await;
    let why = api.ends_failed(&uuids[3]).await;
    assert!(why.contains("while waiting for a turn to deploy"), "{why}");
    assert_eq!(site.fleet.journal(&mac(3)).power_ons, 0);
    api.ask(&uuids[4], "deleted").await;
    api.reaches(&uuids[4], "available").await;
    let maintenance = format!("/v1/nodes/{}/maintenance", uuids[2]);
    api.expect(202, "PUT", &maintenance, json!({})).await;
    stands_at(api, &uuids[5], 1, 2).await;
    stands_at(api, &uuids[6], 2, 2).await;
    let what = waiting(api, &uuids[2]).await;
    let what = what["for"].as_str().unwrap();
    assert!(what.contains("the end of the maintenance"), "{what}");

    // A turn comes back by an abort; it is not for the one in maintenance.
    api.ask(&uuids[0], "abort").await;
    api.reaches(&uuids[5], "wait call-back").await;
    leaves_maintenance(&site, &uuids[2]).await;
    stands_at(api, &uuids[2], 1, 2).await;
    stands_at(api, &uuids[6], 2, 2).await;

    // By the end of an instance that is not there yet, and by the end of the node.
    api.ask(&uuids[1], "deleted").await;
    api.reaches(&uuids[2], "wait call-back").await;
    let maintenance = format!("/v1/nodes/{}/maintenance", uuids[5]);
    api.expect(202, "PUT", &maintenance, json!({})).await;
    let path = format!("/v1/nodes/{}", uuids[5]);
    api.expect(204, "DELETE", &path, Value::Null).await;
    api.reaches(&uuids[6], "wait call-back").await;
    assert_eq!(turns(api, "deploy").await, (2.0, 0.0));
    site.stop().await;
}

#[actix_web::test]
async fn machines_that_read_from_one_host_do_so_in_turn_and_others_are_not_held_up() {
    let site = Site::start(
        |config| {
            config.conductor.max_concurrent_per_image_host = 1;
            config.conductor.deploy_callback_timeout = 60;
            config.agent.require_tls = false;
        },
        FleetOptions::default(),
    )
    .await;
    let api = &site.api;
    let elsewhere = json!({"instance_info": {
        "image_source": "http://elsewhere.invalid/small.raw",
        "image_os_hash_algo": "sha256",
        "image_os_hash_value": "a".repeat(64),
        "image_disk_format": "raw",
    }});
    let changes = [Value::Null, Value::Null, elsewhere];
    let mut machines = Vec::new();
    for (number, changes) in changes.into_iter().enumerate() {
        let uuid = api.available_node(&mac(number), changes).await;
        api.ask(&uuid, "active").await;
        api.reaches(&uuid, "wait call-back").await;
        let mut puppet = Puppet::start().await;
        let token = puppet.arrives(api, &mac(number), &uuid).await;
        puppet.tells_its_steps().await;
        if number != 1 {
            let asked = puppet.command("deploy.execute_deploy_step").await;
            puppet.take(asked, "RUNNING", Value::Null);
        }
        machines.push((uuid, puppet, token));
    }
    assert_eq!(turns(api, "image_host").await, (2.0, 1.0));

    // The second is there, lives, and is sent nothing.
    let (uuid, puppet, token) = &machines[1];
    let what = stands_at(api, uuid, 1, 1).await;
    assert_eq!(
        what,
        "a turn to read the image from images.invalid:80: place 1 of 1; at most 1 machines read from one host at once (conductor.max_concurrent_per_image_host)"
    );
    let node = api.node(uuid).await;
    assert_eq!(node["provision_state"], "wait call-back");
    assert_eq!(puppet.heartbeats(api, uuid, token).await, 202);
    let path = format!("/v1/nodes/{uuid}/commands");
    let told = api.expect(200, "GET", &path, Value::Null).await;
    assert_eq!(told["commands"].as_array().unwrap().len(), 1, "{told}");

    // The first has written; then it is the second's turn.
    machines[0].1.finish("SUCCEEDED", json!({}));
    let (uuid, puppet, token) = &machines[0];
    puppet.heartbeats(api, uuid, token).await;
    let (first, rest) = machines.split_at_mut(1);
    let next = first[0].1.command("standby.get_partition_uuids");
    let second = rest[0].1.command("deploy.execute_deploy_step");
    futures_util::future::join(next, second).await;
    assert_eq!(turns(api, "image_host").await, (2.0, 0.0));
    site.stop().await;
}

#[actix_web::test]
async fn with_real_machines_never_more_write_at_once_than_may() {
    const NODES: usize = 5;
    let limited =
        |config: &mut upbeat::config::Config| config.conductor.max_concurrent_per_image_host = 2;
    let site = Site::start(limited, quick_machines()).await;
    let uuids = available(&site, NODES).await;
    for number in 0..NODES {
        site.fleet.add(mac(number), Faults::none());
    }
    join_all(uuids.iter().map(|uuid| site.api.ask(uuid, "active"))).await;
    for uuid in &uuids {
        site.api.ends_active(uuid).await;
    }
    let journals = (0..NODES).map(|number| site.fleet.journal(&mac(number)));
    let times: Vec<_> = journals.map(|journal| written(&journal)).collect();
    assert_eq!(at_once(&times), 2, "{times:?}");
    site.stop().await;
}

#[actix_web::test]
async fn a_node_that_is_given_up_on_gives_its_turn_back() {
    let (site, _) = fragile_site_with(1_000, |config| {
        config.conductor.max_concurrent_deploy = 1;
    })
    .await;
    let other = site.api.available_node(OTHER_MAC, Value::Null).await;
    let uuid = site.deploying().await;
    site.api.ask(&other, "active").await;
    is_quarantined(&site, &uuid, "fragile driver").await;
    site.api.ends_active(&other).await;
    assert_eq!(turns(&site.api, "deploy").await, (0.0, 0.0));
    site.stop().await;
}

#[actix_web::test]
async fn an_actor_that_panics_when_its_turn_comes_has_not_lost_it() {
    let (site, _) = fragile_site_with(2, |config| {
        config.conductor.max_concurrent_deploy = 1;
    })
    .await;
    let other = site.api.available_node(OTHER_MAC, Value::Null).await;
    let uuid = site.node(Value::Null).await;
    site.api.ask(&other, "active").await;
    site.api.ask(&uuid, "active").await;
    for uuid in [&other, &uuid] {
        site.api.ends_active(uuid).await;
    }
    for mac in [MAC, OTHER_MAC] {
        wrote_once(&site.fleet.journal(mac));
    }
    assert_eq!(turns(&site.api, "deploy").await, (0.0, 0.0));
    site.stop().await;
}

#[cfg(debug_assertions)]
#[actix_web::test]
async fn a_turn_that_is_lost_to_a_panic_comes_again_until_the_node_is_given_up_on() {
    let site = Site::with(Faults::none()).await;
    site.fleet.add(OTHER_MAC, Faults::none());
    let uuid = site.node(Value::Null).await;
    let other = site.api.available_node(OTHER_MAC, Value::Null).await;
    let folder = site.stop().await;
    // Its step panics over every turn it gets; were it not called again, it would wait for ever.
    spoil(&folder, &uuid, cannot_call_its_driver);
    let limited = |config: &mut upbeat::config::Config| config.conductor.max_concurrent_deploy = 1;
    let site = Site::start_in(folder, limited, quick_machines()).await;
    site.fleet.add(OTHER_MAC, Faults::none());
    site.api.ask(&uuid, "active").await;
    site.api.ask(&other, "active").await;
    is_quarantined(&site, &uuid, "overflow").await;
    site.api.ends_active(&other).await;
    site.stop().await;
}
