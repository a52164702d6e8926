//! An agent that is slow, silent or busy, and everybody else meanwhile: nobody waits for it, and it is not asked twice.

use std::time::{Duration, Instant};

use diesel::connection::SimpleConnection as _;
use futures_util::future::join_all;
use serde_json::{Value, json};
use upbeat::config::Config;
use upbeat::demo::{Faults, FleetOptions};

use crate::support::api::{LIMIT, eventually};
use crate::support::puppet::{Asked, Puppet};
use crate::support::site::{MAC, Site, quick_machines, wrote_once};

const OTHER_MAC: &str = "52:54:00:aa:00:02";
/// Far less than a request to an agent may take here, far more than an answer from memory takes.
const AT_ONCE: Duration = Duration::from_secs(8);

/// A site for puppets whose answers may take 25 s.
async fn patient_site(change: impl FnOnce(&mut Config)) -> Site {
    Site::start(
        |config| {
            config.agent.require_tls = false;
            config.agent.command_timeout = 25;
            config.conductor.deploy_callback_timeout = 60;
            change(config);
        },
        FleetOptions::default(),
    )
    .await
}

/// A node whose puppet has called and told its steps; next comes the write.
async fn about_to_write(site: &Site) -> (String, Puppet, String) {
    let uuid = site.deploying().await;
    site.api.reaches(&uuid, "wait call-back").await;
    let mut puppet = Puppet::start().await;
    let token = puppet.arrives(&site.api, MAC, &uuid).await;
    puppet.tells_its_steps().await;
    (uuid, puppet, token)
}

/// The puppet has taken the write and works on it.
async fn writing(site: &Site) -> (String, Puppet, String) {
    let (uuid, mut puppet, token) = about_to_write(site).await;
    let asked = puppet.command("deploy.execute_deploy_step").await;
    puppet.take(asked, "RUNNING", Value::Null);
    (uuid, puppet, token)
}

fn is_look(asked: &Asked) -> bool {
    asked.path.starts_with("/v1/commands/0")
}

#[actix_web::test]
async fn fifty_heartbeats_and_lookups_behind_a_slow_agent_are_answered_at_once_and_asked_about_once()
 {
    let site = patient_site(|_| {}).await;
    let (uuid, mut puppet, token) = writing(&site).await;
    let held = puppet.until("a look at the write", is_look).await;

    let began = Instant::now();
    let heartbeats = (0..50).map(|_| puppet.heartbeats(&site.api, &uuid, &token));
    let path = format!("/v1/lookup?addresses={MAC}");
    let lookups = (0..20).map(|_| site.api.send("GET", &path, Value::Null));
    let (beaten, found) = tokio::join!(join_all(heartbeats), join_all(lookups));
    assert_eq!(beaten, [202; 50]);
    for (status, answer) in found {
        assert_eq!(
            (status, &answer["config"]["agent_token"]),
            (200, &json!("******"))
        );
    }
    // Operators are answered too, about this node and about others.
    let maintenance = format!("/v1/nodes/{uuid}/maintenance");
    site.api.expect(202, "PUT", &maintenance, json!({})).await;
    site.api.available_node(OTHER_MAC, Value::Null).await;
    site.api
        .expect(200, "GET", "/v1/nodes/detail", Value::Null)
        .await;
    assert!(began.elapsed() < AT_ONCE, "{:?}", began.elapsed());
    let node = site.api.node(&uuid).await;
    assert_eq!(
        node["last_error"],
        Value::Null,
        "nobody collided with anybody"
    );
    assert_eq!(node["provision_state"], "wait call-back");

    // All those signs of life have led to one more look.
    puppet.read(held);
    puppet.finish("SUCCEEDED", json!({}));
    let mut looks = 0;
    loop {
        let asked = puppet.next("a look, or the next command").await;
        if asked.method == "POST" {
            assert_eq!(asked.command(), "standby.get_partition_uuids");
            break;
        }
        looks += usize::from(is_look(&asked));
        puppet.read(asked);
    }
    assert!((1..=2).contains(&looks), "{looks}");
    site.stop().await;
}

#[actix_web::test]
async fn an_agent_that_never_answers_a_look_is_given_up_on_in_time_and_holds_nobody_up() {
    let site = patient_site(|config| config.conductor.deploy_callback_timeout = 3).await;
    let (uuid, mut puppet, _) = writing(&site).await;
    let mut held = puppet.until("a look at the write", is_look).await;
    let silent = Instant::now();
    let maintenance = format!("/v1/nodes/{uuid}/maintenance");
    site.api.expect(202, "PUT", &maintenance, json!({})).await;
    let why = site.api.ends_failed(&uuid).await;
    let took = silent.elapsed();
    assert!(took > Duration::from_secs(2), "{took:?}");
    assert!(why.contains("went silent"), "{why}");
    held.is_given_up().await;
    assert!(silent.elapsed() < AT_ONCE, "{:?}", silent.elapsed());
    site.stop().await;
}

#[actix_web::test]
async fn an_abort_does_not_wait_for_an_agent_that_does_not_answer() {
    let site = patient_site(|_| {}).await;
    let (uuid, mut puppet, _) = writing(&site).await;
    let mut held = puppet.until("a look at the write", is_look).await;
    let asked = Instant::now();
    site.api.ask(&uuid, "abort").await;
    let why = site.api.ends_failed(&uuid).await;
    assert!(why.contains("aborted"), "{why}");
    held.is_given_up().await;
    assert!(asked.elapsed() < AT_ONCE, "{:?}", asked.elapsed());
    site.stop().await;
}

#[actix_web::test]
async fn every_third_look_fails_and_nothing_comes_of_it() {
    let site = patient_site(|_| {}).await;
    let (uuid, mut puppet, _) = writing(&site).await;
    for number in 0..9 {
        let asked = puppet.next("a look at the write").await;
        if number % 3 == 2 {
            asked.answer(502, json!("Bad Gateway"));
        } else {
            puppet.read(asked);
        }
    }
    let node = site.api.node(&uuid).await;
    assert_eq!(node["provision_state"], "wait call-back");
    assert_eq!(node["last_error"], Value::Null);
    puppet.finish("SUCCEEDED", json!({}));
    puppet.command("standby.get_partition_uuids").await;
    assert_eq!(puppet.posted.len(), 2, "{:#?}", puppet.posted);
    site.stop().await;
}

/// It has taken the command, and says that it is busy with it.
async fn busy_with_ours(status: u16, text: &str) {
    let site = patient_site(|_| {}).await;
    let (uuid, mut puppet, token) = about_to_write(&site).await;
    let asked = puppet.command("deploy.execute_deploy_step").await;
    puppet.keep(&asked, "RUNNING", Value::Null);
    asked.answer(status, json!({"faultcode": "Client", "faultstring": text}));
    let look = puppet.until("a look at the adopted write", is_look).await;
    puppet.read(look);
    assert_eq!(puppet.heartbeats(&site.api, &uuid, &token).await, 202);
    puppet.finish("SUCCEEDED", json!({}));
    puppet.command("standby.get_partition_uuids").await;
    assert_eq!(puppet.posted.len(), 2, "{:#?}", puppet.posted);
    assert_eq!(site.api.node(&uuid).await["last_error"], Value::Null);
    site.stop().await;
}

#[actix_web::test]
async fn an_agent_that_is_busy_with_our_own_command_is_followed_and_not_asked_again() {
    let new = busy_with_ours(409, "Agent is busy: executing command execute_deploy_step");
    let old = busy_with_ours(500, "Command execution failed: agent is busy");
    tokio::join!(new, old);
}

#[actix_web::test]
async fn an_agent_that_is_busy_with_something_else_gets_the_command_when_it_has_finished() {
    let site = patient_site(|_| {}).await;
    let uuid = site.deploying().await;
    site.api.reaches(&uuid, "wait call-back").await;
    let mut puppet = Puppet::start().await;
    let token = puppet.arrives(&site.api, MAC, &uuid).await;
    let asked = puppet.command("deploy.get_deploy_steps").await;
    let steps = json!({"deploy_steps": {}, "hardware_manager_version": {}});
    let answer = puppet.keep(&asked, "SUCCEEDED", steps);
    // Somebody else was quicker than the next command.
    puppet.begins("log.collect_system_logs");
    asked.answer(200, answer);
    let ledger = format!("/v1/nodes/{uuid}/commands");
    let limit = Instant::now() + LIMIT;
    // Such news is stored with the next sign of life, a few seconds later at most.
    let trouble = loop {
        assert!(Instant::now() < limit, "the trouble is never told");
        let list = |asked: &Asked| asked.path == "/v1/commands/";
        let asked = puppet.until("a look at the list", list).await;
        puppet.read(asked);
        assert_eq!(puppet.heartbeats(&site.api, &uuid, &token).await, 202);
        let ledger = site.api.expect(200, "GET", &ledger, Value::Null).await;
        if let Some(trouble) = ledger["waiting"]["trouble"].as_str() {
            break trouble.to_owned();
        }
    };
    assert!(trouble.contains("collect_system_logs"), "{trouble}");
    puppet.finish("SUCCEEDED", Value::Null);
    let asked = puppet.command("deploy.execute_deploy_step").await;
    puppet.take(asked, "SUCCEEDED", json!({}));
    puppet.command("standby.get_partition_uuids").await;
    assert_eq!(puppet.posted.len(), 2);
    site.stop().await;
}

#[actix_web::test]
async fn a_boot_loader_that_takes_longer_than_a_request_may_is_looked_at_meanwhile() {
    const REQUEST_S: u64 = 2;
    let site = patient_site(|config| {
        config.agent.command_timeout = REQUEST_S;
        config.agent.connect_timeout = 1;
        config.conductor.deploy_callback_timeout = 3;
    })
    .await;
    let uefi = json!({"properties": {"capabilities": "boot_mode:uefi"}});
    let uuid = site.node(uefi).await;
    site.api.ask(&uuid, "active").await;
    site.api.reaches(&uuid, "wait call-back").await;
    let mut puppet = Puppet::start().await;
    puppet.arrives(&site.api, MAC, &uuid).await;
    puppet.tells_its_steps().await;
    for (name, result) in [
        ("deploy.execute_deploy_step", json!({})),
        ("standby.get_partition_uuids", json!({"root uuid": "0x1"})),
    ] {
        let asked = puppet.command(name).await;
        puppet.take(asked, "SUCCEEDED", result);
    }
    let asked = puppet.command("image.install_bootloader").await;
    puppet.take(asked, "RUNNING", Value::Null);
    let until = Instant::now() + Duration::from_secs(2 * REQUEST_S);
    while Instant::now() < until {
        let look = puppet.next("a look at the installation").await;
        puppet.read(look);
    }
    puppet.finish("SUCCEEDED", Value::Null);
    let asked = puppet.command("standby.power_off").await;
    puppet.take(asked, "RUNNING", Value::Null);
    assert_eq!(puppet.posted.len(), 5);
    drop(puppet);
    site.api.ends_active(&uuid).await;
    site.stop().await;
}

#[actix_web::test]
async fn reads_are_answered_whatever_the_node_and_the_database_are_busy_with() {
    let site = patient_site(|_| {}).await;
    let (uuid, mut puppet, _) = writing(&site).await;
    let held = puppet.until("a look at the write", is_look).await;
    // Nothing can be stored, and the node's actor waits for it.
    let mut lock = site.database();
    lock.batch_execute("BEGIN IMMEDIATE").unwrap();
    let (api, path) = (site.api.clone(), format!("/v1/nodes/{uuid}/maintenance"));
    let changed = actix_web::rt::spawn(async move { api.send("PUT", &path, json!({})).await });
    let below_node = [
        "",
        "/states",
        "/validate",
        "/history",
        "/commands",
        "/traits",
        "/vifs",
        "/bios",
        "/firmware",
        "/inventory",
        "/management/boot_device",
        "/management/boot_device/supported",
        "/vmedia",
        "/ports",
    ];
    let of_node = below_node.map(|below| format!("/v1/nodes/{uuid}{below}"));
    let of_all = [
        "/",
        "/v1",
        "/v1/",
        "/v1/nodes",
        "/v1/nodes/detail",
        "/v1/ports",
        "/v1/drivers",
        "/v1/conductors",
        "/health/live",
        "/metrics",
    ];
    let began = Instant::now();
    for path in of_node.iter().map(String::as_str).chain(of_all) {
        let (status, answer) = site.api.send("GET", path, Value::Null).await;
        let is_here = status == 200 || !of_all.contains(&path);
        assert!(status < 409 && is_here, "{path}: {status} {answer}");
    }
    assert!(began.elapsed() < AT_ONCE, "{:?}", began.elapsed());
    assert!(!changed.is_finished(), "the change is still waiting");
    lock.batch_execute("COMMIT").unwrap();
    assert_eq!(changed.await.unwrap().0, 202);
    drop(held);
    site.stop().await;
}

#[actix_web::test]
async fn a_deploy_that_is_looked_at_all_the_time_ends_as_always() {
    let site = Site::with(Faults::none()).await;
    let uuid = site.deploying().await;
    let (api, other) = (site.api.clone(), uuid.clone());
    let looking = actix_web::rt::spawn(async move {
        loop {
            for below in ["/states", "/validate", "", "/history"] {
                let path = format!("/v1/nodes/{other}{below}");
                let (status, answer) = api.send("GET", &path, Value::Null).await;
                assert_eq!(status, 200, "{path}: {answer}");
            }
        }
    });
    site.api.ends_active(&uuid).await;
    wrote_once(&site.journal());
    assert!(!looking.is_finished(), "no read failed");
    looking.abort();
    site.stop().await;
}

#[actix_web::test]
async fn changes_in_the_middle_of_a_step_are_all_kept_and_so_is_the_step() {
    const CHANGES: usize = 100;
    let site = patient_site(|_| {}).await;
    let (uuid, mut puppet, token) = writing(&site).await;
    let before = site.api.node(&uuid).await;
    let path = format!("/v1/nodes/{uuid}");
    // The node and its ports are one row to whoever changes either.
    let changing = async {
        for number in 0..CHANGES {
            let address = format!("52:54:00:dd:00:{number:02x}");
            let port = json!({"node_uuid": uuid, "address": address});
            site.api.expect(201, "POST", "/v1/ports", port).await;
        }
    };
    let holding = async {
        for _ in 0..10 {
            let path = format!("{path}/maintenance");
            site.api
                .expect(202, "PUT", &path, json!({"reason": "fans"}))
                .await;
            site.api.expect(202, "DELETE", &path, Value::Null).await;
        }
    };
    let (api, other, url) = (site.api.clone(), uuid.clone(), puppet.url.clone());
    let beating = actix_web::rt::spawn(async move {
        let path = format!("/v1/heartbeat/{other}");
        let heartbeat =
            json!({"callback_url": url, "agent_token": token, "agent_version": "13.0.0"});
        for _ in 0..CHANGES {
            assert_eq!(api.send("POST", &path, heartbeat.clone()).await.0, 202);
        }
    });
    {
        let all = async { tokio::join!(changing, holding, beating) };
        tokio::pin!(all);
        loop {
            tokio::select! {
                done = &mut all => {
                    done.2.unwrap();
                    break;
                }
                asked = puppet.next("a look at the write") => puppet.read(asked),
            }
        }
    }
    let after = site.api.node(&uuid).await;
    let ports = format!("/v1/nodes/{uuid}/ports?limit=1000");
    let ports = site.api.expect(200, "GET", &ports, Value::Null).await;
    assert_eq!(ports["ports"].as_array().unwrap().len(), 1 + CHANGES);
    assert_eq!(after["maintenance"], false);
    for field in ["provision_state", "instance_info", "deploy_step"] {
        assert_eq!(after[field], before[field], "{field}");
    }
    for key in ["agent_url", "deploy_steps", "deploy_step_index"] {
        let of = |node: &Value| node["driver_internal_info"][key].clone();
        assert_eq!(of(&after), of(&before), "{key}");
    }
    puppet.finish("SUCCEEDED", json!({}));
    puppet.command("standby.get_partition_uuids").await;
    assert_eq!(puppet.posted.len(), 2);
    site.stop().await;
}

#[actix_web::test]
async fn agents_that_were_all_put_off_are_served_when_it_is_over_and_none_has_failed() {
    const MACHINES: usize = 30;
    let site = Site::start(
        |config| config.conductor.deploy_callback_timeout = 4,
        quick_machines(),
    )
    .await;
    let macs: Vec<String> = (0..MACHINES)
        .map(|n| format!("52:54:00:cc:00:{n:02x}"))
        .collect();
    let mut uuids = Vec::new();
    for mac in &macs {
        let slow = Faults::none().slow_write(Duration::from_secs(3));
        site.fleet.add(mac.as_str(), slow);
        uuids.push(site.api.available_node(mac, Value::Null).await);
    }
    for uuid in &uuids {
        site.api.ask(uuid, "active").await;
    }
    for mac in &macs {
        eventually("a write begin", async || {
            (!site.fleet.journal(mac).writes_started.is_empty()).then_some(())
        })
        .await;
    }
    // For longer than an agent may be silent nothing can be stored.
    site.database()
        .batch_execute(
            "CREATE TRIGGER shut BEFORE UPDATE ON nodes BEGIN SELECT RAISE(ABORT, 'database or disk is full'); END",
        )
        .unwrap();
    tokio::time::sleep(Duration::from_secs(6)).await;
    site.database().batch_execute("DROP TRIGGER shut").unwrap();
    let mut put_off = 0;
    for (uuid, mac) in uuids.iter().zip(&macs) {
        site.api.ends_active(uuid).await;
        let journal = site.fleet.journal(mac);
        wrote_once(&journal);
        let put_off_here = |beat: &&upbeat::demo::HeartbeatRecord| beat.status == Some(503);
        put_off += journal.heartbeats.iter().filter(put_off_here).count();
    }
    assert!(put_off > 0, "the outage was felt");
    site.stop().await;
}
