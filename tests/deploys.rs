//! Whole deploys: the real conductor in this process, simulated machines on loopback, one fault after the other.
//!
//! Each test asserts how the deploy ends, why if it fails, and by the machine's own journal that the image was written once and
//! never twice.

mod support;

use std::sync::Mutex;
use std::time::{Duration, Instant};

use diesel::RunQueryDsl as _;
use futures_util::future::join_all;
use serde_json::{Value, json};
use support::api::eventually;
use support::puppet::Puppet;
use support::site::{MAC, Site, quick_machines, wrote, wrote_once};
use upbeat::demo::{
    Answer, BadAnswer, Fault, Faults, FleetOptions, Scheme, Times, WriteError, WriteWhenLost,
};

/// Deploys a machine with faults that must not matter.
async fn survives(faults: Faults) {
    let site = Site::with(faults).await;
    let uuid = site.deploying().await;
    let node = site.api.ends_active(&uuid).await;
    assert_eq!(node["power_state"], "power on");
    let journal = site.journal();
    wrote_once(&journal);
    assert_eq!(journal.writes_finished, 1);
    assert_eq!(journal.agent_starts, 1);
    site.sees("its instance boot", |journal| journal.instance_boots == 1)
        .await;
    assert!(site.fleet.is_on(MAC));
    site.stop().await;
}

/// Deploys a machine with faults that end the deploy; answers why it failed. The machine is off afterwards.
async fn fails(faults: Faults) -> String {
    let site = Site::with(faults).await;
    let uuid = site.deploying().await;
    let why = site.api.ends_failed(&uuid).await;
    site.goes_off().await;
    wrote_once(&site.journal());
    assert_eq!(site.journal().writes_finished, 0);
    site.stop().await;
    why
}

#[actix_web::test]
async fn a_healthy_machine_over_tls_and_bios() {
    let site = Site::with(Faults::none()).await;
    let uuid = site.deploying().await;
    site.api.ends_active(&uuid).await;
    let journal = site.journal();
    wrote_once(&journal);
    let names: Vec<&str> = journal
        .commands
        .iter()
        .map(|command| command.name.as_str())
        .collect();
    assert_eq!(
        names,
        [
            "deploy.get_deploy_steps",
            "deploy.execute_deploy_step",
            "standby.get_partition_uuids",
            "standby.power_off",
        ]
    );
    assert!(journal.callback_url.unwrap().starts_with("https://"));
    assert_eq!(journal.refusals, []);
    assert_eq!(
        site.api
            .metric("upbeat_nodes{provision_state=\"active\"}")
            .await,
        1.0
    );
    assert_eq!(
        site.api
            .metric("upbeat_nodes{provision_state=\"deploying\"}")
            .await,
        0.0
    );
    site.stop().await;
}

#[actix_web::test]
async fn a_healthy_machine_over_plain_http() {
    let machines = FleetOptions {
        scheme: Scheme::Http,
        ..quick_machines()
    };
    let site = Site::start(|_| {}, machines).await;
    site.fleet.add(MAC, Faults::none());
    let uuid = site.deploying().await;
    site.api.ends_active(&uuid).await;
    let journal = site.journal();
    wrote_once(&journal);
    assert!(journal.callback_url.unwrap().starts_with("http://"));
    site.stop().await;
}

#[actix_web::test]
async fn an_agent_without_tls_is_refused_where_tls_is_required() {
    let machines = FleetOptions {
        scheme: Scheme::Http,
        ..quick_machines()
    };
    let site = Site::start(|config| config.agent.require_tls = true, machines).await;
    site.fleet.add(MAC, Faults::none());
    let uuid = site.deploying().await;
    let why = site.api.ends_failed(&uuid).await;
    assert!(why.contains("deploy_callback_timeout"), "{why}");
    let journal = site.journal();
    assert_eq!(journal.commands.len(), 0);
    assert_eq!(journal.heartbeats[0].status, Some(400));
    site.stop().await;
}

#[actix_web::test]
async fn uefi_machines_get_their_boot_loader() {
    let machines = FleetOptions {
        is_uefi: true,
        ..quick_machines()
    };
    let site = Site::start(|_| {}, machines).await;
    site.fleet.add(MAC, Faults::none());
    let uefi = json!({"properties": {"capabilities": "boot_mode:uefi"}});
    let uuid = site.node(uefi).await;
    site.api.ask(&uuid, "active").await;
    site.api.ends_active(&uuid).await;
    let journal = site.journal();
    wrote_once(&journal);
    let loader: Vec<_> = journal
        .commands_named("image.install_bootloader")
        .map(|command| command.status)
        .collect();
    assert_eq!(loader, ["SUCCEEDED"]);
    site.stop().await;
}

#[actix_web::test]
async fn a_slow_write_outlives_the_callback_timeout() {
    survives(Faults::none().slow_write(Duration::from_secs(4))).await;
}

#[actix_web::test]
async fn a_lost_reply_to_a_running_write_is_found_again() {
    survives(Faults::none().loses_first_reply(WriteWhenLost::StillRunning)).await;
}

#[actix_web::test]
async fn a_lost_reply_to_a_finished_write_is_found_again() {
    survives(Faults::none().loses_first_reply(WriteWhenLost::AlreadyFinished)).await;
}

#[actix_web::test]
async fn a_post_that_never_arrived_is_sent_again() {
    survives(
        Faults::none()
            .never_receives_first_post()
            .drops_forced_heartbeats(),
    )
    .await;
}

#[actix_web::test]
async fn an_agent_that_refuses_connections_for_a_while_is_waited_for() {
    survives(Faults::none().refuses_connections(Duration::from_secs(2))).await;
}

#[actix_web::test]
async fn damaged_answers_to_the_write_are_looked_into() {
    let damages = [
        BadAnswer::Garbage,
        BadAnswer::TruncatedBody,
        BadAnswer::BadGateway,
    ];
    let faults = damages.map(|how| Faults::none().bad_answer_once(Answer::ToExecuteStep, how));
    join_all(faults.map(survives)).await;
}

#[actix_web::test]
async fn damaged_lists_of_commands_are_asked_for_again() {
    // A list is only read while something runs when the reply to the write was lost.
    let damages = [
        BadAnswer::Garbage,
        BadAnswer::TruncatedBody,
        BadAnswer::BadGateway,
    ];
    let faults = damages.map(|how| {
        Faults::none()
            .slow_write(Duration::from_millis(1_500))
            .loses_first_reply(WriteWhenLost::StillRunning)
            .bad_answer_once(Answer::ToCommandList, how)
    });
    join_all(faults.map(survives)).await;
}

#[actix_web::test]
async fn everything_that_can_be_survived_at_once_is() {
    survives(
        Faults::none()
            .refuses_connections(Duration::from_millis(700))
            .loses_first_reply(WriteWhenLost::StillRunning)
            .bad_answer_once(Answer::ToCommandList, BadAnswer::TruncatedBody)
            .slow_write(Duration::from_millis(3_500))
            .drops_forced_heartbeats(),
    )
    .await;
}

#[actix_web::test]
async fn the_conductor_looks_by_itself_when_no_heartbeat_tells_it() {
    // The agent reports every 90 s at the earliest, so the deploy can only end soon because running commands are looked at.
    let site = Site::start(
        |config| {
            config.agent.heartbeat_timeout = 300;
            config.conductor.deploy_callback_timeout = 1_800;
        },
        quick_machines(),
    )
    .await;
    site.fleet
        .add(MAC, Faults::none().drops_forced_heartbeats());
    let uuid = site.deploying().await;
    let asked = Instant::now();
    site.api.ends_active(&uuid).await;
    assert!(asked.elapsed() < Duration::from_secs(15));
    let journal = site.journal();
    wrote_once(&journal);
    assert_eq!(journal.heartbeats.len(), 1);
    site.stop().await;
}

#[actix_web::test]
async fn an_agent_that_dies_is_given_up_on_within_its_limit() {
    let site = Site::with(Faults::none().dies_during_write()).await;
    let uuid = site.deploying().await;
    let began = site.writing().await.writes_started[0].at;
    let why = site.api.ends_failed(&uuid).await;
    // It dies within 0.15 s of that; its last sign of life may be a little earlier.
    let took = began.elapsed();
    assert!(took > Duration::from_secs(2), "{took:?}");
    assert!(took < Duration::from_millis(5_500), "{took:?}");
    assert!(
        why.contains("went silent") && why.contains("deploy.write_image"),
        "{why}"
    );
    site.goes_off().await;
    wrote_once(&site.journal());

    // The fault is used up: the same node can be deployed now.
    site.api.ask(&uuid, "active").await;
    site.api.ends_active(&uuid).await;
    wrote(&site.journal(), 2);
    site.stop().await;
}

#[actix_web::test]
async fn a_write_that_hangs_ends_with_its_own_limit_though_the_agent_lives() {
    let site = Site::start(
        |config| config.conductor.write_image_limit = 2,
        quick_machines(),
    )
    .await;
    site.fleet.add(MAC, Faults::none().hangs_during_write());
    let uuid = site.deploying().await;
    let why = site.api.ends_failed(&uuid).await;
    assert!(why.contains("write_image_limit"), "{why}");
    site.goes_off().await;
    wrote_once(&site.journal());
    site.stop().await;
}

#[actix_web::test]
async fn an_agent_that_restarts_in_the_middle_writes_nothing_more() {
    let why = fails(Faults::none().restarts_during_write()).await;
    assert!(why.contains("went silent"), "{why}");
}

#[actix_web::test]
async fn a_write_that_fails_names_image_cause_and_cure() {
    let cases = [
        (WriteError::Download, "Check that image_source exists"),
        (WriteError::NotFound, "404"),
        (WriteError::Checksum, "image_os_hash_value"),
        (WriteError::DiskFull, "does not fit"),
        (WriteError::NoDevice, "root_device"),
    ];
    let failing = cases.map(|(error, _)| fails(Faults::none().write_fails(error, Times::Once)));
    for ((error, words), why) in cases.iter().zip(join_all(failing).await) {
        assert!(why.contains(words), "{error:?}: {why}");
        assert!(why.contains("http://images.invalid/small.raw"), "{why}");
    }
}

#[actix_web::test]
async fn a_failed_deploy_can_be_repeated_and_a_good_one_rebuilt() {
    let site = Site::with(Faults::none().write_fails(WriteError::Checksum, Times::Once)).await;
    let uuid = site.deploying().await;
    site.api.ends_failed(&uuid).await;
    site.goes_off().await;
    site.api.ask(&uuid, "active").await;
    site.api.ends_active(&uuid).await;
    wrote(&site.journal(), 2);
    site.api.ask(&uuid, "rebuild").await;
    site.sees("a third write", |journal| journal.writes_started.len() == 3)
        .await;
    site.api.ends_active(&uuid).await;
    wrote(&site.journal(), 3);
    assert_eq!(site.journal().writes_finished, 2);
    site.stop().await;
}

#[actix_web::test]
async fn an_abort_stops_the_write_and_switches_the_machine_off() {
    let site = Site::with(Faults::none().slow_write(Duration::from_secs(60))).await;
    let uuid = site.deploying().await;
    site.writing().await;
    site.api.reaches(&uuid, "wait call-back").await;
    site.api.ask(&uuid, "abort").await;
    let why = site.api.ends_failed(&uuid).await;
    assert!(why.contains("aborted by request"), "{why}");
    site.goes_off().await;
    wrote_once(&site.journal());
    // Nothing is left that would still speak of the old deploy.
    site.fleet.add(MAC, Faults::none());
    site.api.ask(&uuid, "active").await;
    site.api.ends_active(&uuid).await;
    wrote(&site.journal(), 2);
    site.stop().await;
}

/// After `deleted`: off, forgotten, and honest about the disk.
async fn is_undeployed(site: &Site, uuid: &str) {
    let node = site.api.reaches(uuid, "available").await;
    assert_eq!(node["instance_info"], json!({}));
    assert_eq!(node["instance_uuid"], Value::Null);
    assert_eq!(node["driver_internal_info"], json!({}));
    assert_eq!(node["power_state"], "power off");
    assert_eq!(node["last_error"], Value::Null);
    site.goes_off().await;
    let history = site.api.history(uuid).await;
    assert!(history.contains("nothing was cleaned"), "{history}");
}

#[actix_web::test]
async fn deleting_takes_a_waiting_node_back() {
    let site = Site::with(Faults::none().slow_write(Duration::from_secs(60))).await;
    let uuid = site.deploying().await;
    site.writing().await;
    site.api.reaches(&uuid, "wait call-back").await;
    site.api.ask(&uuid, "deleted").await;
    is_undeployed(&site, &uuid).await;
    wrote_once(&site.journal());
    site.stop().await;
}

#[actix_web::test]
async fn deleting_takes_an_active_node_back() {
    let site = Site::with(Faults::none()).await;
    let uuid = site.deploying().await;
    site.api.ends_active(&uuid).await;
    site.api.ask(&uuid, "deleted").await;
    is_undeployed(&site, &uuid).await;
    site.stop().await;
}

#[actix_web::test]
async fn maintenance_does_not_stop_a_deploy_that_has_begun_but_keeps_a_new_one_away() {
    let site = Site::with(Faults::none().slow_write(Duration::from_secs(1))).await;
    let uuid = site.deploying().await;
    site.writing().await;
    let path = format!("/v1/nodes/{uuid}/maintenance");
    let why = json!({"reason": "fans"});
    site.api.expect(202, "PUT", &path, why).await;
    let node = site.api.ends_active(&uuid).await;
    assert_eq!(node["maintenance"], true);
    assert_eq!(node["maintenance_reason"], "fans");
    wrote_once(&site.journal());
    let again = json!({"target": "rebuild"});
    let provision = format!("/v1/nodes/{uuid}/states/provision");
    site.api.expect(400, "PUT", &provision, again).await;
    site.stop().await;
}

#[actix_web::test]
async fn an_unknown_deploy_step_is_named_before_anything_is_written() {
    let site = Site::with(Faults::none()).await;
    let uuid = site.node(Value::Null).await;
    let step = json!({"interface": "bios", "step": "polish", "priority": 90, "args": {}});
    let wish = json!({"target": "active", "deploy_steps": [step]});
    site.api.ask_with(&uuid, wish).await;
    let why = site.api.ends_failed(&uuid).await;
    assert!(why.contains("bios.polish"), "{why}");
    site.goes_off().await;
    wrote(&site.journal(), 0);
    site.stop().await;
}

#[actix_web::test]
async fn operators_switch_machines_that_rest_and_not_those_at_work() {
    let site = Site::with(Faults::none().slow_write(Duration::from_secs(60))).await;
    let uuid = site.node(Value::Null).await;
    let path = format!("/v1/nodes/{uuid}/states/power");
    for (target, is_on) in [
        ("power on", true),
        ("rebooting", true),
        ("power off", false),
    ] {
        let body = json!({"target": target});
        site.api.expect(202, "PUT", &path, body).await;
        let state = if is_on { "power on" } else { "power off" };
        let node = site
            .api
            .node_when(&uuid, state, |node| {
                node["power_state"] == state && node["target_power_state"].is_null()
            })
            .await;
        assert_eq!(node["last_error"], Value::Null);
        assert_eq!(site.fleet.is_on(MAC), is_on, "{target}");
    }
    assert_eq!(site.journal().power_ons, 2);

    site.api.ask(&uuid, "active").await;
    site.writing().await;
    let off = json!({"target": "power off"});
    site.api.expect(409, "PUT", &path, off).await;
    assert!(site.fleet.is_on(MAC));
    site.stop().await;
}

#[actix_web::test]
async fn a_person_can_be_the_driver() {
    let site = Site::with(Faults::none()).await;
    let uuid = site.node(json!({"driver": "manual-management"})).await;
    site.api.ask(&uuid, "active").await;
    let node = site.api.reaches(&uuid, "wait call-back").await;
    assert_eq!(node["power_state"], "power on");
    assert!(!site.fleet.is_on(MAC), "nobody but the person switches it");
    site.fleet.power(MAC, true);
    site.api.ends_active(&uuid).await;
    wrote_once(&site.journal());
    site.stop().await;
}

#[actix_web::test]
async fn twenty_machines_at_once_each_get_their_own_image_once() {
    let site = Site::start(|_| {}, quick_machines()).await;
    let macs: Vec<String> = (0..20).map(|n| format!("52:54:00:bb:00:{n:02x}")).collect();
    let mut uuids = Vec::new();
    for (number, mac) in macs.iter().enumerate() {
        let faults = match number % 4 {
            0 => Faults::none().loses_first_reply(WriteWhenLost::StillRunning),
            1 => Faults::none().with(Fault::DropsForcedHeartbeats),
            _ => Faults::none(),
        };
        site.fleet.add(mac.as_str(), faults);
        uuids.push(site.api.available_node(mac, Value::Null).await);
    }
    for uuid in &uuids {
        site.api.ask(uuid, "active").await;
    }
    for (uuid, mac) in uuids.iter().zip(&macs) {
        site.api.ends_active(uuid).await;
        let journal = site.fleet.journal(mac);
        wrote_once(&journal);
        assert_eq!(journal.writes_started[0].node_uuid, *uuid);
    }
    eventually("the gauge at twenty", async || {
        let active = "upbeat_nodes{provision_state=\"active\"}";
        (site.api.metric(active).await == 20.0).then_some(())
    })
    .await;
    site.stop().await;
}

/// Everything logged by this process, at the most talkative level.
fn log() -> String {
    String::from_utf8_lossy(&LOG.lock().unwrap()).into_owned()
}

static LOG: Mutex<Vec<u8>> = Mutex::new(Vec::new());

struct ToLog;

impl std::io::Write for ToLog {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        LOG.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[actix_web::test]
async fn a_config_drive_reaches_the_agent_and_nobody_else() {
    const DRIVE: &str = "H4sIAAAAAAACA0tUKEstqlQoKMosSyxJVUgB0qkACsa1dxQAAAA=";
    // Another test of this process may have set one; then its lines are in the same place.
    let _ = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_ansi(false)
        .with_writer(|| ToLog)
        .try_init();
    let site = Site::start(
        |config| config.agent.require_tls = false,
        FleetOptions::default(),
    )
    .await;
    let uefi = json!({"properties": {"capabilities": "boot_mode:uefi"}});
    let uuid = site.node(uefi).await;
    let wish = json!({"target": "active", "configdrive": DRIVE});
    site.api.ask_with(&uuid, wish).await;
    site.api.reaches(&uuid, "wait call-back").await;
    let mut puppet = Puppet::start().await;
    let token = puppet.arrives(&site.api, MAC, &uuid).await;
    puppet.tells_its_steps().await;
    for (name, result) in [
        ("deploy.execute_deploy_step", json!({})),
        ("standby.get_partition_uuids", json!({"root uuid": "0xabc"})),
        ("image.install_bootloader", Value::Null),
    ] {
        let asked = puppet.command(name).await;
        puppet.take(asked, "SUCCEEDED", result);
    }
    let asked = puppet.command("standby.power_off").await;
    puppet.take(asked, "RUNNING", Value::Null);
    let posted = std::mem::take(&mut puppet.posted);
    drop(puppet);
    site.api.ends_active(&uuid).await;

    let [steps, write, uuids, loader, off] = &posted[..] else {
        panic!("{posted:#?}");
    };
    let args = &write["params"]["step"]["args"];
    assert_eq!(args["configdrive"], DRIVE);
    assert_eq!(args["image_info"]["configdrive"], DRIVE);
    assert_eq!(loader["params"]["target_boot_mode"], "uefi");
    assert_eq!(loader["params"]["root_uuid"], "0xabc");
    assert!(!format!("{steps}{uuids}{loader}{off}").contains(DRIVE));

    for path in [
        format!("/v1/nodes/{uuid}"),
        "/v1/nodes/detail".to_owned(),
        format!("/v1/nodes/{uuid}/states"),
        format!("/v1/nodes/{uuid}/history?detail=true"),
    ] {
        let shown = site
            .api
            .expect(200, "GET", &path, Value::Null)
            .await
            .to_string();
        assert!(
            shown.contains(&uuid) || shown.contains("provision_state"),
            "{path}"
        );
        assert!(!shown.contains(DRIVE) && !shown.contains(&token), "{path}");
    }
    let ledger = diesel::sql_query(
        "SELECT group_concat(request || phase || coalesce(error, '')) AS text FROM commands",
    )
    .get_result::<Text>(&mut site.database())
    .unwrap()
    .text;
    assert!(ledger.contains("deploy.execute_deploy_step"));
    assert!(!ledger.contains(DRIVE));
    let log = log();
    assert!(log.contains(&uuid), "something was logged");
    assert!(!log.contains(DRIVE) && !log.contains(&token));
    let tables = diesel::sql_query("SELECT group_concat(body) AS text FROM nodes")
        .get_result::<Text>(&mut site.database())
        .unwrap()
        .text;
    assert!(tables.contains(DRIVE), "the node itself keeps it");
    assert!(!tables.contains(&token), "but never the token");
    site.stop().await;
}

#[derive(diesel::QueryableByName)]
struct Text {
    #[diesel(sql_type = diesel::sql_types::Text)]
    text: String,
}

#[actix_web::test]
async fn an_agent_that_restarts_in_the_middle_is_power_cycled_and_writes_anew() {
    let site = Site::start(
        |config| config.conductor.deploy_callback_timeout = 60,
        quick_machines(),
    )
    .await;
    site.fleet.add(MAC, Faults::none().restarts_during_write());
    let uuid = site.deploying().await;
    site.api.ends_active(&uuid).await;
    let journal = site.journal();
    wrote(&journal, 2);
    assert_eq!(journal.writes_finished, 1, "{journal:#?}");
    // The first boot, the restart of the agent, the boot after the power cycle.
    assert_eq!(journal.agent_starts, 3, "{journal:#?}");
    assert!(journal.token_was_masked, "it asked for its token again");
    let history = site.api.history(&uuid).await;
    assert!(history.contains("begun anew"), "{history}");
    site.stop().await;
}
