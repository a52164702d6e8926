//! The real binary, killed and started again on the same database while simulated machines are at work.
//!
//! The machines live in this process and survive the conductor. Its fake driver has nobody to press their switches, so the test
//! does: on when the API shows `wait call-back`.

mod support;

use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use rustix::process::{Pid, Signal};
use serde_json::{Value, json};
use support::api::{Api, LIMIT, eventually};
use support::puppet::{Asked, Puppet};
use support::site::{MAC, quick_machines, wrote_once};
use tempfile::TempDir;
use upbeat::demo::{Faults, Fleet, Journal, WriteWhenLost};

/// `upbeat serve` on one database and one address, whoever runs it at the moment.
struct Conductor {
    api: Api,
    folder: TempDir,
    process: Option<Child>,
}

impl Conductor {
    /// `silence`: seconds an agent may be silent.
    async fn start(silence: u32, require_tls: bool) -> Conductor {
        let folder = tempfile::tempdir().unwrap();
        let port = lasting_port();
        let settings = format!(
            "[api]\nlisten = \"127.0.0.1:{port}\"\nworkers = 1\n\
             [database]\nurl = \"sqlite://{}/upbeat.db\"\n\
             [conductor]\nhost = \"conductor-1\"\nautomated_clean = false\ndeploy_callback_timeout = {silence}\nsoft_power_off_wait = 5\n\
             default_boot_mode = \"bios\"\n\
             [agent]\nheartbeat_timeout = 2\npoll_interval_max = 1\nrequire_tls = {require_tls}\n\
             connect_timeout = 2\ncommand_timeout = 5\ncallback_networks = [\"127.0.0.0/8\"]\n",
            folder.path().display()
        );
        std::fs::write(folder.path().join("upbeat.toml"), settings).unwrap();
        let mut conductor = Conductor {
            api: Api::new(&format!("http://127.0.0.1:{port}")),
            folder,
            process: None,
        };
        conductor.start_again().await;
        conductor
    }

    fn log(&self) -> PathBuf {
        self.folder.path().join("upbeat.log")
    }

    fn spawn(&self, arguments: &[&str]) -> Child {
        let log = std::fs::File::options()
            .create(true)
            .append(true)
            .open(self.log())
            .unwrap();
        Command::new(env!("CARGO_BIN_EXE_upbeat"))
            .arg("serve")
            .arg("--config")
            .arg(self.folder.path().join("upbeat.toml"))
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap()
    }

    async fn start_again(&mut self) {
        self.start_again_with(&[]).await;
    }

    async fn start_again_with(&mut self, arguments: &[&str]) {
        assert!(self.process.is_none());
        self.process = Some(self.spawn(arguments));
        eventually("the conductor ready", async || {
            let ended = self.process.as_mut().unwrap().try_wait().unwrap();
            assert_eq!(ended, None, "{}", self.tail());
            let ready = self.api.try_send("GET", "/health/ready", None).await?;
            (ready.0 == 200).then_some(())
        })
        .await;
    }

    /// SIGKILL: nothing is put in order.
    fn kill(&mut self) {
        let mut process = self.process.take().unwrap();
        process.kill().unwrap();
        process.wait().unwrap();
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(self.process.as_ref().unwrap());
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// SIGTERM; answers how and after how long it ended.
    async fn terminate(&mut self) -> (ExitStatus, Duration) {
        self.signal(Signal::TERM);
        let mut process = self.process.take().unwrap();
        let asked = Instant::now();
        let status = eventually("the end of the process", async || {
            process.try_wait().unwrap()
        })
        .await;
        (status, asked.elapsed())
    }

    fn tail(&self) -> String {
        let log = std::fs::read_to_string(self.log()).unwrap();
        let lines: Vec<&str> = log.lines().rev().take(20).collect();
        lines.into_iter().rev().collect::<Vec<_>>().join("\n")
    }
}

impl Drop for Conductor {
    fn drop(&mut self) {
        if let Some(process) = &mut self.process {
            // It may have ended by itself.
            let _ = process.kill();
            let _ = process.wait();
        }
        if std::thread::panicking() {
            println!("--- the end of the conductor's log\n{}", self.tail());
        }
    }
}

/// A free port that nobody is given by chance while the conductor is away: below those that systems hand out.
fn lasting_port() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    loop {
        let number = std::process::id().wrapping_mul(31) + NEXT.fetch_add(1, Ordering::Relaxed);
        let port = u16::try_from(12_000 + number % 20_000).unwrap();
        if std::net::TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// A conductor and one machine whose node is in `wait call-back`; the machine is off still.
struct Scene {
    conductor: Conductor,
    fleet: Arc<Fleet>,
    uuid: String,
}

impl Scene {
    async fn with(faults: Faults) -> Scene {
        let conductor = Conductor::start(4, true).await;
        let fleet = Arc::new(Fleet::new(&conductor.api.url, quick_machines()));
        fleet.add(MAC, faults);
        // With a hint where to write the agent does not look its node up once more, which takes it long without a conductor.
        let hint = json!({"properties": {"root_device": {"name": "/dev/sda"}}});
        let uuid = conductor.api.available_node(MAC, hint).await;
        conductor.api.ask(&uuid, "active").await;
        conductor.api.reaches(&uuid, "wait call-back").await;
        Scene {
            conductor,
            fleet,
            uuid,
        }
    }

    async fn sees(&self, what: &str, wished: impl FnMut(&Journal) -> bool) -> Journal {
        match self.fleet.wait_for(MAC, LIMIT, wished).await {
            Ok(journal) => journal,
            Err(journal) => panic!("the machine never saw {what}: {journal:#?}"),
        }
    }

    /// The deploy ends well, with one write, one agent and one token.
    async fn ends_well(self) {
        self.conductor.api.ends_active(&self.uuid).await;
        let journal = self.fleet.journal(MAC);
        wrote_once(&journal);
        assert_eq!(journal.writes_finished, 1);
        assert_eq!(journal.agent_starts, 1);
        assert!(!journal.token_was_masked);
        for (number, record) in journal.commands.iter().enumerate() {
            let is_repeated = journal.commands[..number]
                .iter()
                .any(|before| before.name == record.name);
            // Reading is all that may ever be asked for twice.
            let is_harmless = ["deploy.get_deploy_steps", "standby.get_partition_uuids"]
                .contains(&record.name.as_str());
            assert!(!is_repeated || is_harmless, "{journal:#?}");
        }
        self.fleet.stop().await;
    }
}

#[actix_web::test]
async fn killed_while_the_agent_is_awaited() {
    let mut scene = Scene::with(Faults::none()).await;
    scene.conductor.kill();
    // The machine boots while nobody is there to hear it.
    scene.fleet.power(MAC, true);
    scene
        .sees("an agent", |journal| journal.agent_starts > 0)
        .await;
    scene.conductor.start_again().await;
    scene.conductor.api.ends_active(&scene.uuid).await;
    wrote_once(&scene.fleet.journal(MAC));
    scene.fleet.stop().await;
}

#[actix_web::test]
async fn killed_between_the_lookup_and_the_first_heartbeat_and_while_writing() {
    let mut scene = Scene::with(Faults::none().slow_write(Duration::from_secs(2))).await;
    scene.fleet.power(MAC, true);
    scene
        .sees("its token", |journal| journal.lookups_sent > 0)
        .await;
    scene.conductor.kill();
    scene.conductor.start_again().await;
    scene
        .sees("a write begin", |journal| {
            !journal.writes_started.is_empty()
        })
        .await;
    scene.conductor.kill();
    scene.conductor.start_again().await;
    scene.ends_well().await;
}

#[actix_web::test]
async fn killed_while_writing_and_away_until_the_write_is_done() {
    let mut scene = Scene::with(Faults::none()).await;
    scene.fleet.power(MAC, true);
    scene
        .sees("a write begin", |journal| {
            !journal.writes_started.is_empty()
        })
        .await;
    scene.conductor.kill();
    scene
        .sees("the end of the write", |journal| {
            journal.writes_finished == 1
        })
        .await;
    scene.conductor.start_again().await;
    scene.ends_well().await;
}

#[actix_web::test]
async fn killed_after_the_reply_to_the_write_was_lost() {
    let faults = Faults::none()
        .slow_write(Duration::from_secs(2))
        .loses_first_reply(WriteWhenLost::AlreadyFinished);
    let mut scene = Scene::with(faults).await;
    scene.fleet.power(MAC, true);
    scene
        .sees("a write begin", |journal| {
            !journal.writes_started.is_empty()
        })
        .await;
    // The reply is still owed; the next conductor only knows that a command was about to leave.
    scene.conductor.kill();
    scene.conductor.start_again().await;
    scene.ends_well().await;
}

#[actix_web::test]
async fn killed_again_and_again() {
    let mut scene = Scene::with(Faults::none().slow_write(Duration::from_millis(1_500))).await;
    scene.fleet.power(MAC, true);
    scene
        .sees("an accepted heartbeat", |journal| {
            journal.heartbeats_accepted() > 0
        })
        .await;
    for pause_ms in [0, 5, 20, 60, 120, 250] {
        // Not to wait for anything: each moment to be killed at is as good as another.
        tokio::time::sleep(Duration::from_millis(pause_ms)).await;
        scene.conductor.kill();
        scene.conductor.start_again().await;
    }
    scene.ends_well().await;
}

#[actix_web::test]
async fn killed_between_the_order_to_power_off_and_power_on() {
    let mut conductor = Conductor::start(4, false).await;
    let uuid = conductor.api.available_node(MAC, Value::Null).await;
    conductor.api.ask(&uuid, "active").await;
    conductor.api.reaches(&uuid, "wait call-back").await;
    let mut puppet = Puppet::start().await;
    let token = puppet.arrives(&conductor.api, MAC, &uuid).await;
    puppet.tells_its_steps().await;
    for (name, result) in [
        ("deploy.execute_deploy_step", json!({})),
        ("standby.get_partition_uuids", json!({"root uuid": "0x1"})),
    ] {
        let asked = puppet.command(name).await;
        puppet.take(asked, "SUCCEEDED", result);
    }
    // It takes the order and is gone before it could say so; then the conductor is gone too.
    let asked = puppet.command("standby.power_off").await;
    puppet.keep(&asked, "RUNNING", Value::Null);
    conductor.kill();
    let posted = puppet.posted.len();
    drop((asked, puppet));
    conductor.start_again().await;
    let node = conductor.api.ends_active(&uuid).await;
    assert_eq!(node["power_state"], "power on");
    assert_eq!(posted, 4);
    // What was left of that agent is not listened to any more.
    let late = json!({"callback_url": "http://127.0.0.1:9", "agent_token": token, "agent_version": "13.0.0"});
    let path = format!("/v1/heartbeat/{uuid}");
    let (status, _) = conductor.api.send("POST", &path, late).await;
    assert!((400..500).contains(&status), "{status}");
}

#[actix_web::test]
async fn the_time_nobody_could_be_heard_does_not_count() {
    let mut conductor = Conductor::start(3, true).await;
    let uuid = conductor.api.available_node(MAC, Value::Null).await;
    conductor.api.ask(&uuid, "active").await;
    conductor.api.reaches(&uuid, "wait call-back").await;
    conductor.kill();
    // The limit passes while the conductor is away.
    let away = Instant::now() + Duration::from_millis(3_500);
    tokio::time::sleep_until(away.into()).await;
    conductor.start_again().await;
    let started = Instant::now();
    assert_eq!(
        conductor.api.node(&uuid).await["provision_state"],
        "wait call-back"
    );
    let why = conductor.api.ends_failed(&uuid).await;
    assert!(why.contains("No agent called"), "{why}");
    assert!(started.elapsed() > Duration::from_secs(1));
}

#[actix_web::test]
async fn sigterm_ends_soon_and_in_order_and_the_deploy_goes_on_afterwards() {
    let mut scene = Scene::with(Faults::none().slow_write(Duration::from_secs(1))).await;
    scene.fleet.power(MAC, true);
    scene
        .sees("a write begin", |journal| {
            !journal.writes_started.is_empty()
        })
        .await;
    let (status, took) = scene.conductor.terminate().await;
    assert_eq!(status.code(), Some(0), "{}", scene.conductor.tail());
    assert!(took < Duration::from_secs(10), "{took:?}");
    scene.conductor.start_again().await;
    scene.ends_well().await;
}

#[actix_web::test]
async fn a_second_conductor_on_the_same_database_does_not_start() {
    let mut conductor = Conductor::start(4, true).await;
    let mut second = conductor.spawn(&["--set", "api.listen=127.0.0.1:0"]);
    let status = eventually("the end of the second", async || second.try_wait().unwrap()).await;
    assert_eq!(status.code(), Some(1));
    let log = conductor.tail();
    assert!(log.contains("not started"), "{log}");
    assert!(
        log.contains("upbeat.db") && log.contains("in use"),
        "which database, and why: {log}"
    );
    // The first did not notice.
    let uuid = conductor.api.available_node(MAC, Value::Null).await;
    conductor.kill();
    conductor.start_again().await;
    conductor.api.reaches(&uuid, "available").await;
}

#[actix_web::test]
async fn killed_while_its_node_was_in_maintenance_and_started_under_another_name() {
    let mut scene = Scene::with(Faults::none().slow_write(Duration::from_secs(2))).await;
    scene.fleet.power(MAC, true);
    scene
        .sees("a write begin", |journal| {
            !journal.writes_started.is_empty()
        })
        .await;
    let path = format!("/v1/nodes/{}/maintenance", scene.uuid);
    let api = scene.conductor.api.clone();
    api.expect(202, "PUT", &path, json!({"reason": "fans"}))
        .await;
    scene.conductor.kill();
    let renamed = ["--set", "conductor.host=CONDUCTOR-1.example"];
    scene.conductor.start_again_with(&renamed).await;
    let node = api.node(&scene.uuid).await;
    assert_eq!(node["maintenance_reason"], "fans");
    assert_eq!(node["conductor"], "CONDUCTOR-1.example");
    api.expect(202, "DELETE", &path, Value::Null).await;
    let node = api.ends_active(&scene.uuid).await;
    assert_eq!(
        node["reservation"],
        Value::Null,
        "the old name holds nothing"
    );
    scene.ends_well().await;
}

#[actix_web::test]
async fn a_conductor_that_can_not_start_says_why_and_ends_with_a_failure() {
    let conductor = Conductor::start(4, true).await;
    let taken = conductor.api.url.trim_start_matches("http://").to_owned();
    let elsewhere = format!(
        "database.url=sqlite://{}/other.db",
        conductor.folder.path().display()
    );
    let listen_there = format!("api.listen={taken}");
    for (arguments, word) in [
        (
            vec!["--set", &elsewhere, "--set", &listen_there],
            "another program listens there",
        ),
        (
            vec![
                "--set",
                "database.url=sqlite:///nonexistent/folder/u.db",
                "--set",
                "api.listen=127.0.0.1:0",
            ],
            "/nonexistent/folder",
        ),
        (
            vec![
                "--set",
                "database.url=postgres://u:geheim@127.0.0.1:1/d",
                "--set",
                "api.listen=127.0.0.1:0",
            ],
            "127.0.0.1",
        ),
        (
            vec!["--set", "conductor.deploy_callback_timeout=-1"],
            "deploy_callback_timeout",
        ),
    ] {
        let mut process = conductor.spawn(&arguments);
        let status = eventually("its end", async || process.try_wait().unwrap()).await;
        assert!(
            status.code().is_some_and(|code| code != 0),
            "{arguments:?}: {status}"
        );
        let log = conductor.tail();
        assert!(log.contains(word), "{arguments:?}: {log}");
        assert!(!log.contains("geheim"), "{log}");
    }
    let node = json!({"driver": "fake-hardware"});
    conductor.api.expect(201, "POST", "/v1/nodes", node).await;
}

#[actix_web::test]
async fn sigterm_answers_every_request_it_took() {
    let mut conductor = Conductor::start(4, true).await;
    let mut uuids = Vec::new();
    for number in 0..8 {
        let node = json!({"driver": "fake-hardware", "name": format!("n-{number}")});
        let node = conductor.api.expect(201, "POST", "/v1/nodes", node).await;
        uuids.push(node["uuid"].as_str().unwrap().to_owned());
    }
    let address = conductor.api.url.trim_start_matches("http://").to_owned();
    let clients = uuids.iter().map(|uuid| {
        let (address, uuid) = (address.clone(), uuid.clone());
        actix_web::rt::spawn(async move { asks_until_nobody_listens(&address, &uuid).await })
    });
    let clients: Vec<_> = clients.collect();
    let api = conductor.api.clone();
    eventually("every client has been answered a few times", async || {
        for uuid in &uuids {
            api.node_when(uuid, "changed", |node| node["extra"].get("k3").is_some())
                .await;
        }
        Some(())
    })
    .await;
    let (status, took) = conductor.terminate().await;
    assert_eq!(status.code(), Some(0), "{}", conductor.tail());
    assert!(took < Duration::from_secs(10), "{took:?}");
    let promised: Vec<usize> = join_all(clients)
        .await
        .into_iter()
        .map(|promised| promised.unwrap())
        .collect();
    conductor.start_again().await;
    for (uuid, promised) in uuids.iter().zip(promised) {
        let node = conductor.api.node(uuid).await;
        let kept = node["extra"].as_object().unwrap().len();
        assert_eq!(kept, promised, "what was carried out was answered");
    }
}

/// Changes a node again and again, each time on a connection of its own, until none can be made any more; answers how many changes
/// were promised. A connection that brings no answer was closed before its request was read.
async fn asks_until_nobody_listens(address: &str, uuid: &str) -> usize {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let mut promised = 0;
    for key in 0.. {
        let body =
            json!([{"op": "add", "path": format!("/extra/k{key}"), "value": key}]).to_string();
        let request = format!(
            "PATCH /v1/nodes/{uuid} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-OpenStack-Ironic-API-Version: 1.115\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let Ok(mut stream) = tokio::net::TcpStream::connect(address).await else {
            return promised;
        };
        let mut answer = String::new();
        let sent = stream.write_all(request.as_bytes()).await;
        let read = stream.read_to_string(&mut answer).await;
        match answer.split(' ').nth(1) {
            Some("200") => promised += 1,
            Some("503" | "409") => {}
            None if answer.is_empty() => return promised,
            _ => panic!("{uuid} k{key}: {sent:?} {read:?} {answer:?}"),
        }
    }
    promised
}

#[actix_web::test]
async fn stopped_for_longer_than_an_agent_may_be_silent_and_gone_on_with() {
    let scene = Scene::with(Faults::none().slow_write(Duration::from_secs(12))).await;
    scene.fleet.power(MAC, true);
    scene
        .sees("a write begin", |journal| {
            !journal.writes_started.is_empty()
        })
        .await;
    scene
        .conductor
        .api
        .reaches(&scene.uuid, "wait call-back")
        .await;
    scene.conductor.signal(Signal::STOP);
    tokio::time::sleep(Duration::from_secs(8)).await;
    scene.conductor.signal(Signal::CONT);
    eventually("a word about it in the log", async || {
        let log = std::fs::read_to_string(scene.conductor.log()).unwrap();
        log.contains("stood still").then_some(())
    })
    .await;
    scene.ends_well().await;
}

#[actix_web::test]
async fn sigterm_does_not_wait_for_an_agent_that_does_not_answer() {
    let mut conductor = Conductor::start(20, false).await;
    let uuid = conductor.api.available_node(MAC, Value::Null).await;
    conductor.api.ask(&uuid, "active").await;
    conductor.api.reaches(&uuid, "wait call-back").await;
    let mut puppet = Puppet::start().await;
    puppet.arrives(&conductor.api, MAC, &uuid).await;
    puppet.tells_its_steps().await;
    // It takes the write and never says so.
    let asked = puppet.command("deploy.execute_deploy_step").await;
    puppet.keep(&asked, "RUNNING", Value::Null);
    let (status, took) = conductor.terminate().await;
    assert_eq!(status.code(), Some(0), "{}", conductor.tail());
    assert!(took < Duration::from_secs(10), "{took:?}");
    drop(asked);
    conductor.start_again().await;
    let looks = |asked: &Asked| asked.path.starts_with("/v1/commands/0");
    let look = puppet.until("a look at the write", looks).await;
    puppet.read(look);
    puppet.finish("SUCCEEDED", json!({}));
    puppet.command("standby.get_partition_uuids").await;
    assert_eq!(puppet.posted.len(), 2, "{:#?}", puppet.posted);
}

#[actix_web::test]
async fn killed_with_nodes_in_the_queue_which_come_in_their_order_before_anybody_new() {
    let mut conductor = Conductor::start(600, true).await;
    let limit = ["--set", "conductor.max_concurrent_deploy=1"];
    conductor.kill();
    conductor.start_again_with(&limit).await;
    let mut uuids = Vec::new();
    for number in 0..4 {
        let mac = format!("52:54:00:aa:01:{number:02x}");
        uuids.push(conductor.api.available_node(&mac, Value::Null).await);
    }
    // Not in the order of their identities, which would come by itself.
    uuids.sort();
    uuids.reverse();
    let (new, old) = uuids.split_last().unwrap();
    for uuid in old {
        conductor.api.ask(uuid, "active").await;
    }
    conductor.api.reaches(&old[0], "wait call-back").await;
    for _ in 0..2 {
        conductor.kill();
        conductor.start_again_with(&limit).await;
        conductor.api.ask(new, "active").await;
        for (place, uuid) in [&old[1], &old[2], new].into_iter().enumerate() {
            let path = format!("/v1/nodes/{uuid}/commands");
            let told = conductor.api.expect(200, "GET", &path, Value::Null).await;
            let queue = &told["waiting"]["queue"];
            assert_eq!(queue["place"], place + 1, "{told}");
            assert_eq!(queue["of"], 3);
        }
        conductor.api.ask(new, "abort").await;
        conductor.api.reaches(new, "deploy failed").await;
    }
    for pair in old.windows(2) {
        conductor.api.ask(&pair[0], "abort").await;
        conductor.api.reaches(&pair[1], "wait call-back").await;
    }
}
