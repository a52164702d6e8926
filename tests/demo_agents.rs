//! The simulated agents against a conductor that only answers: do they behave as real agents do?
//!
//! Each test starts a stub of the ramdisk API on loopback, a fleet of one machine, and plays the conductor itself with
//! an HTTP client. Waiting is done by the machine's journal, which is told after the fact.

#[path = "support/stub_api.rs"]
mod stub_api;

use std::time::Duration;

use base64::Engine as _;
use serde_json::{Value, json};
use stub_api::StubApi;
use upbeat::demo::{
    Answer, BadAnswer, Faults, Fleet, FleetOptions, Journal, Scheme, Times, WriteError,
    WriteWhenLost,
};

const MAC: &str = "52:54:00:aa:00:01";
const LIMIT: Duration = Duration::from_secs(10);
const TOKEN: &str = stub_api::TOKEN;

/// One machine, the API it calls, and a client in the conductor's place.
struct Lab {
    api: StubApi,
    fleet: Fleet,
    client: reqwest::Client,
}

impl Lab {
    async fn new(faults: Faults) -> Self {
        Self::with(faults, quick(), StubApi::start().await)
    }

    fn with(faults: Faults, options: FleetOptions, api: StubApi) -> Self {
        let fleet = Fleet::new(&api.url, options);
        fleet.add(MAC, faults);
        let client = reqwest::Client::builder()
            .tls_danger_accept_invalid_certs(true)
            .tls_info(true)
            .redirect(reqwest::redirect::Policy::none())
            .pool_max_idle_per_host(0)
            .timeout(LIMIT)
            .build()
            .unwrap();
        Self { api, fleet, client }
    }

    /// Switches on and waits for the first heartbeat.
    async fn boot(&self) -> Journal {
        self.fleet.power(MAC, true);
        self.wait(|journal| journal.heartbeats_accepted() > 0).await
    }

    async fn wait(&self, wished: impl FnMut(&Journal) -> bool) -> Journal {
        self.fleet
            .wait_for(MAC, LIMIT, wished)
            .await
            .unwrap_or_else(|journal| panic!("not in time: {journal:#?}"))
    }

    fn url(&self, path: &str) -> String {
        format!(
            "{}{path}",
            self.fleet
                .journal(MAC)
                .callback_url
                .expect("the agent has announced itself")
        )
    }

    async fn get(&self, path: &str) -> Result<(u16, Value), reqwest::Error> {
        let answer = self
            .client
            .get(self.url(path))
            .query(&[("agent_token", TOKEN)])
            .send()
            .await?;
        Ok((answer.status().as_u16(), answer.json().await?))
    }

    async fn list(&self) -> Vec<Value> {
        let (status, body) = self.get("/v1/commands/").await.unwrap();
        assert_eq!(status, 200, "{body}");
        body["commands"].as_array().unwrap().clone()
    }

    async fn post(
        &self,
        name: &str,
        params: Value,
        wait: bool,
    ) -> Result<(u16, Value), reqwest::Error> {
        let query = [
            ("wait", wait.to_string()),
            ("agent_token", TOKEN.to_owned()),
        ];
        let body = json!({"name": name, "params": params});
        let answer = self
            .client
            .post(self.url("/v1/commands/"))
            .query(&query)
            .json(&body)
            .send()
            .await?;
        Ok((answer.status().as_u16(), answer.json().await?))
    }

    async fn write_image(&self, wait: bool) -> Result<(u16, Value), reqwest::Error> {
        self.post("deploy.execute_deploy_step", write_image(), wait)
            .await
    }
}

fn quick() -> FleetOptions {
    FleetOptions {
        boot_delay: Duration::from_millis(5),
        write_time: (Duration::from_millis(40), Duration::from_millis(60)),
        pace: 0.005,
        ..FleetOptions::default()
    }
}

fn slow() -> Faults {
    Faults::none().slow_write(Duration::from_secs(60))
}

fn node() -> Value {
    json!({"uuid": stub_api::NODE, "properties": {}, "instance_info": {}, "driver_internal_info": {}})
}

fn write_image() -> Value {
    json!({"step": step(), "node": node(), "ports": [], "deploy_version": null})
}

fn step() -> Value {
    json!({
        "interface": "deploy",
        "step": "write_image",
        "args": {
            "image_info": {
                "id": "small.raw", "urls": ["http://127.0.0.1:1/small.raw"], "disk_format": "raw",
                "stream_raw_images": true, "os_hash_algo": "sha256", "os_hash_value": "00ff", "node_uuid": stub_api::NODE,
            },
            "configdrive": null,
        },
        "x_operation_id": "op-7",
    })
}

fn fault(answer: &(u16, Value)) -> (u16, &str) {
    (
        answer.0,
        answer.1["faultstring"].as_str().unwrap_or_default(),
    )
}

#[tokio::test]
async fn the_agent_looks_up_and_heartbeats_with_the_versions_and_fields_of_the_real_one() {
    let lab = Lab::new(Faults::none()).await;
    let journal = lab.boot().await;

    let lookup = &lab.api.requests("/v1/lookup")[0];
    assert_eq!(lookup.version.as_deref(), Some("1.62"));
    assert_eq!(
        lookup.query,
        format!("addresses={}", MAC.replace(':', "%3A"))
    );

    let heartbeat = &lab.api.requests("/v1/heartbeat/")[0];
    assert_eq!(heartbeat.version.as_deref(), Some("1.68"));
    assert_eq!(heartbeat.path, format!("/v1/heartbeat/{}", stub_api::NODE));
    let keys: Vec<&str> = heartbeat
        .body
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    assert_eq!(
        keys,
        [
            "agent_token",
            "agent_verify_ca",
            "agent_version",
            "callback_url"
        ]
    );
    assert_eq!(heartbeat.body["agent_token"], TOKEN);
    assert_eq!(heartbeat.body["agent_version"], "13.0.0");
    let callback_url = heartbeat.body["callback_url"].as_str().unwrap();
    assert!(
        callback_url.starts_with("https://127.0.0.1:"),
        "{callback_url}"
    );
    assert_eq!(journal.callback_url.as_deref(), Some(callback_url));
}

#[tokio::test]
async fn the_agent_serves_the_certificate_that_it_announced() {
    for curve in [
        upbeat::demo::fleet::Curve::P256,
        upbeat::demo::fleet::Curve::P384,
    ] {
        let lab = Lab::with(
            Faults::none(),
            FleetOptions { curve, ..quick() },
            StubApi::start().await,
        );
        lab.boot().await;
        let announced = lab.api.requests("/v1/heartbeat/")[0].body["agent_verify_ca"]
            .as_str()
            .unwrap()
            .to_owned();
        let base64: String = announced
            .lines()
            .filter(|line| !line.starts_with("---"))
            .map(str::trim)
            .collect();
        let announced = base64::engine::general_purpose::STANDARD
            .decode(base64)
            .unwrap();
        let answer = lab.client.get(lab.url("/v1/status")).send().await.unwrap();
        let served = answer
            .extensions()
            .get::<reqwest::tls::TlsInfo>()
            .unwrap()
            .peer_certificate()
            .unwrap()
            .to_vec();
        assert_eq!(served, announced);
    }
}

#[tokio::test]
async fn an_old_api_gets_an_old_agent_without_token_and_tls() {
    let api = StubApi::start().await;
    api.set(|behaviour| behaviour.version = json!({"nothing": "here"}));
    let lab = Lab::with(Faults::none(), quick(), api);
    lab.boot().await;
    assert_eq!(
        lab.api.requests("/v1/lookup")[0].version.as_deref(),
        Some("1.31")
    );
    let heartbeat = &lab.api.requests("/v1/heartbeat/")[0];
    assert_eq!(heartbeat.version.as_deref(), Some("1.31"));
    assert_eq!(heartbeat.body, json!({"callback_url": lab.url("")}));
    assert!(lab.url("").starts_with("http://"));
}

#[tokio::test]
async fn commands_need_the_token_and_status_does_not() {
    let lab = Lab::new(Faults::none()).await;
    lab.boot().await;
    for query in [
        "",
        "?agent_token=",
        "?agent_token=wrongwrongwrongwrongwrongwrongwrong",
    ] {
        let answer = lab
            .client
            .get(lab.url("/v1/commands/") + query)
            .send()
            .await
            .unwrap();
        assert_eq!(answer.status(), 401, "GET {query}");
        let body: Value = answer.json().await.unwrap();
        assert_eq!(
            body,
            json!({"faultcode": "Client", "faultstring": "401 Unauthorized: Token invalid."})
        );
        let body = json!({"name": "standby.sync", "params": {}});
        let answer = lab
            .client
            .post(lab.url("/v1/commands/") + query)
            .json(&body)
            .send()
            .await
            .unwrap();
        assert_eq!(answer.status(), 401, "POST {query}");
    }
    let status: Value = lab
        .client
        .get(lab.url("/v1/status"))
        .send()
        .await
        .unwrap()
        .json()
        .await
        .unwrap();
    assert_eq!(status["version"], "13.0.0");
    assert!(status["started_at"].is_f64());
    assert_eq!(lab.list().await, Vec::<Value>::new());
    assert_eq!(
        lab.get("/commands/").await.unwrap().0,
        200,
        "also without /v1"
    );
}

#[tokio::test]
async fn a_short_token_is_ignored_and_the_agent_cannot_be_commanded() {
    let api = StubApi::start().await;
    api.set(|behaviour| behaviour.token = json!("x".repeat(31)));
    let lab = Lab::with(Faults::none(), quick(), api);
    lab.boot().await;
    assert_eq!(
        lab.api.requests("/v1/heartbeat/")[0].body["agent_token"],
        Value::Null
    );
    assert_eq!(lab.get("/v1/commands/").await.unwrap().0, 401);
}

#[tokio::test]
async fn a_masked_token_is_the_end_of_the_agent() {
    let api = StubApi::start().await;
    api.set(|behaviour| behaviour.token = json!("******"));
    let lab = Lab::with(Faults::none(), quick(), api);
    lab.fleet.power(MAC, true);
    lab.wait(|journal| journal.token_was_masked).await;
    let later = lab
        .fleet
        .wait_for(MAC, Duration::from_millis(300), |journal| {
            !journal.heartbeats.is_empty()
                || journal.agent_starts > 1
                || journal.callback_url.is_some()
        });
    assert!(
        later.await.is_err(),
        "it neither heartbeats nor serves nor starts again"
    );
    assert!(lab.fleet.is_on(MAC));
}

#[tokio::test]
async fn a_lookup_is_repeated_until_it_is_answered() {
    let api = StubApi::start().await;
    api.set(|behaviour| behaviour.lookup_statuses = [404, 409, 500, 503].into());
    let lab = Lab::with(Faults::none(), quick(), api);
    let journal = lab.boot().await;
    assert_eq!(journal.lookups_sent, 5);
    assert_eq!(journal.agent_starts, 1);
}

#[tokio::test]
async fn an_agent_that_finds_no_node_for_long_exits_and_is_started_again() {
    let api = StubApi::start().await;
    api.set(|behaviour| behaviour.lookup_statuses = std::iter::repeat_n(404, 10_000).collect());
    let lab = Lab::with(
        Faults::none(),
        FleetOptions {
            pace: 0.001,
            ..quick()
        },
        api,
    );
    lab.fleet.power(MAC, true);
    let journal = lab.wait(|journal| journal.agent_starts > 1).await;
    assert!(journal.lookups_sent > 3);
}

#[tokio::test]
async fn a_refused_heartbeat_is_repeated_for_ever() {
    let api = StubApi::start().await;
    api.set(|behaviour| behaviour.heartbeat_statuses = [409, 400, 404, 503].into());
    let lab = Lab::with(Faults::none(), quick(), api);
    let journal = lab.boot().await;
    let statuses: Vec<_> = journal
        .heartbeats
        .iter()
        .map(|heartbeat| heartbeat.status.unwrap())
        .collect();
    assert_eq!(statuses, [409, 400, 404, 503, 202]);
}

#[tokio::test]
async fn a_finished_command_forces_a_heartbeat_but_a_sync_command_does_not() {
    let lab = Lab::new(Faults::none()).await;
    lab.boot().await; // The next regular heartbeat is 90 s away.
    lab.post("standby.sync", json!({}), true).await.unwrap();
    lab.write_image(true).await.unwrap();
    let journal = lab.wait(|journal| journal.heartbeats.len() > 1).await;
    assert_eq!(
        journal
            .heartbeats
            .iter()
            .map(|heartbeat| heartbeat.forced)
            .collect::<Vec<_>>(),
        [false, true]
    );
    let finished_at = journal
        .commands_named("deploy.execute_deploy_step")
        .next()
        .unwrap()
        .finished_at
        .unwrap();
    let gap = journal.heartbeats[1]
        .sent_at
        .checked_duration_since(finished_at);
    assert!(
        gap.is_some() || finished_at - journal.heartbeats[1].sent_at < Duration::from_millis(100)
    );
}

#[tokio::test]
async fn forced_heartbeats_can_be_dropped() {
    let lab = Lab::new(Faults::none().drops_forced_heartbeats()).await;
    lab.boot().await;
    lab.write_image(true).await.unwrap();
    let more = lab
        .fleet
        .wait_for(MAC, Duration::from_millis(300), |journal| {
            journal.heartbeats.len() > 1
        });
    assert!(more.await.is_err());
}

#[tokio::test]
async fn while_a_command_runs_every_other_is_refused_as_busy() {
    let lab = Lab::new(slow()).await;
    lab.boot().await;
    let (status, command) = lab.write_image(false).await.unwrap();
    assert_eq!(status, 200);
    assert_eq!(command["command_status"], "RUNNING");
    assert_eq!(command["command_name"], "execute_deploy_step");
    assert_eq!(
        (&command["command_error"], &command["command_result"]),
        (&Value::Null, &Value::Null)
    );

    let busy = (409, "Agent is busy: executing command execute_deploy_step");
    for (name, params) in [
        ("deploy.execute_deploy_step", write_image()),
        (
            "deploy.get_deploy_steps",
            json!({"node": node(), "ports": []}),
        ),
        ("standby.get_partition_uuids", json!({})),
        ("nosuch.command", json!({})),
    ] {
        assert_eq!(
            fault(&lab.post(name, params, true).await.unwrap()),
            busy,
            "{name}"
        );
    }
    let no_dot = lab.post("sync", json!({}), true).await.unwrap();
    assert_eq!(no_dot.0, 400, "the form of the name is checked before");
    assert_eq!(lab.list().await, std::slice::from_ref(&command));
    let id = command["id"].as_str().unwrap();
    assert_eq!(
        lab.get(&format!("/v1/commands/{id}")).await.unwrap(),
        (200, command.clone())
    );
    assert_eq!(lab.fleet.journal(MAC).writes_started.len(), 1);
    assert_eq!(lab.fleet.journal(MAC).refusals.len(), 5);
}

#[tokio::test]
async fn a_sync_command_is_listed_only_when_finished_and_the_next_one_waits_for_it() {
    let options = FleetOptions {
        steps_time: Duration::from_millis(300),
        ..quick()
    };
    let lab = Lab::with(Faults::none(), options, StubApi::start().await);
    lab.boot().await;
    let steps = lab.post(
        "deploy.get_deploy_steps",
        json!({"node": node(), "ports": []}),
        false,
    );
    let meanwhile = async {
        lab.wait(|journal| journal.commands.len() == 1).await;
        assert_eq!(lab.list().await, Vec::<Value>::new());
        lab.post("standby.sync", json!({}), false).await.unwrap()
    };
    let (steps, sync) = tokio::join!(steps, meanwhile);
    let (status, steps) = steps.unwrap();
    assert_eq!(
        (status, &steps["command_status"]),
        (200, &json!("SUCCEEDED")),
        "sync whatever wait says"
    );
    assert_eq!(
        (sync.0, &sync.1["command_status"]),
        (200, &json!("SUCCEEDED")),
        "it waited instead of failing"
    );
    let names: Vec<Value> = lab
        .list()
        .await
        .iter()
        .map(|command| command["command_name"].clone())
        .collect();
    assert_eq!(names, ["get_deploy_steps", "sync"]);

    let result = &steps["command_result"];
    assert_eq!(
        result["hardware_manager_version"],
        json!({"generic_hardware_manager": "1.2"})
    );
    let steps = result["deploy_steps"]["GenericHardwareManager"]
        .as_array()
        .unwrap();
    assert!(steps.contains(
        &json!({"step": "write_image", "priority": 0, "interface": "deploy", "reboot_requested": false})
    ));
}

#[tokio::test]
async fn a_write_answers_as_the_real_one_and_is_remembered() {
    let lab = Lab::new(Faults::none()).await;
    lab.boot().await;
    let (_, nothing) = lab
        .post("standby.get_partition_uuids", json!({}), true)
        .await
        .unwrap();
    assert_eq!(nothing["command_result"], json!({}));
    let (_, command) = lab.write_image(true).await.unwrap();
    assert_eq!(command["command_status"], "SUCCEEDED");
    assert_eq!(
        command["command_result"]["deploy_step"],
        step(),
        "the whole step, the conductor's mark included"
    );
    let text = command["command_result"]["deploy_result"]["result"]
        .as_str()
        .unwrap();
    let root_uuid = text
        .strip_prefix("prepare_image: image (small.raw) written to device /dev/sda root_uuid=")
        .unwrap();
    let (_, uuids) = lab
        .post("standby.get_partition_uuids", json!({}), true)
        .await
        .unwrap();
    assert_eq!(uuids["command_result"], json!({"root uuid": root_uuid}));

    let journal = lab.fleet.journal(MAC);
    let write = &journal.writes_started[0];
    assert_eq!(json!(write.command_id), command["id"]);
    assert_eq!(
        (write.image_id.as_str(), write.node_uuid.as_str()),
        ("small.raw", stub_api::NODE)
    );
    assert_eq!(write.marks["x_operation_id"], "op-7");
    assert_eq!(journal.writes_finished, 1);
    let refresh = &lab.api.requests("/v1/lookup")[1];
    assert!(
        refresh
            .query
            .ends_with(&format!("&node_uuid={}", stub_api::NODE)),
        "{}",
        refresh.query
    );
}

#[tokio::test]
async fn waiting_for_a_running_command_ends_with_it() {
    let lab = Lab::new(Faults::none().slow_write(Duration::from_millis(200))).await;
    lab.boot().await;
    let (_, command) = lab.write_image(false).await.unwrap();
    let id = command["id"].as_str().unwrap();
    let url = lab.url(&format!("/v1/commands/{id}?wait=true&agent_token={TOKEN}"));
    let finished: Value = lab
        .client
        .get(url)
        .send()
        .await
        .unwrap()
        .json()
        .await
        .unwrap();
    assert_eq!(finished["command_status"], "SUCCEEDED");
}

#[tokio::test]
async fn a_lost_reply_leaves_the_command_running() {
    let lab = Lab::new(slow().loses_first_reply(WriteWhenLost::StillRunning)).await;
    lab.boot().await;
    lab.write_image(false)
        .await
        .expect_err("the connection closes without an answer");
    let list = lab.list().await;
    assert_eq!(
        (list.len(), &list[0]["command_status"]),
        (1, &json!("RUNNING"))
    );
    assert_eq!(lab.write_image(false).await.unwrap().0, 409);
    assert_eq!(lab.fleet.journal(MAC).writes_started.len(), 1);
}

#[tokio::test]
async fn a_reply_can_be_lost_after_the_command_has_finished() {
    let lab = Lab::new(Faults::none().loses_first_reply(WriteWhenLost::AlreadyFinished)).await;
    lab.boot().await;
    lab.write_image(false)
        .await
        .expect_err("the connection closes without an answer");
    assert_eq!(lab.list().await[0]["command_status"], "SUCCEEDED");
}

#[tokio::test]
async fn a_command_can_be_lost_on_its_way_once() {
    let lab = Lab::new(Faults::none().never_receives_first_post()).await;
    lab.boot().await;
    lab.write_image(false)
        .await
        .expect_err("the connection closes without an answer");
    assert_eq!(lab.list().await, Vec::<Value>::new());
    assert_eq!(lab.fleet.journal(MAC).writes_started.len(), 0);
    assert_eq!(
        lab.write_image(true).await.unwrap().1["command_status"],
        "SUCCEEDED"
    );
}

#[tokio::test]
async fn answers_can_be_damaged_once() {
    for how in [
        BadAnswer::Garbage,
        BadAnswer::TruncatedBody,
        BadAnswer::BadGateway,
    ] {
        let lab = Lab::new(
            slow()
                .bad_answer_once(Answer::ToExecuteStep, how)
                .bad_answer_once(Answer::ToCommandList, how),
        );
        let lab = lab.await;
        lab.boot().await;
        lab.write_image(false).await.expect_err("no JSON");
        let url = lab.url(&format!("/v1/commands/?agent_token={TOKEN}"));
        let bad = lab
            .client
            .get(url)
            .send()
            .await
            .expect("the headers arrive");
        assert_eq!(
            bad.status(),
            if how == BadAnswer::BadGateway {
                502
            } else {
                200
            }
        );
        assert_eq!(
            bad.bytes().await.is_err(),
            how == BadAnswer::TruncatedBody,
            "{how:?}"
        );
        assert_eq!(
            lab.list().await[0]["command_status"],
            "RUNNING",
            "the command was accepted all the same"
        );
    }
}

#[tokio::test]
async fn a_failed_write_names_the_agents_error() {
    for (error, kind, code) in [
        (WriteError::Checksum, "ImageChecksumError", 500),
        (WriteError::Download, "ImageDownloadError", 500),
        (WriteError::NotFound, "ImageDownloadFatalError", 500),
        (WriteError::DiskFull, "ImageWriteError", 500),
        (WriteError::NoDevice, "DeviceNotFound", 404),
    ] {
        let lab = Lab::new(Faults::none().write_fails(error, Times::Once)).await;
        lab.boot().await;
        let (_, command) = lab.write_image(true).await.unwrap();
        assert_eq!(command["command_status"], "FAILED");
        assert_eq!(
            (
                &command["command_error"]["type"],
                &command["command_error"]["code"]
            ),
            (&json!(kind), &json!(code))
        );
        assert_eq!(command["command_result"], Value::Null);
        assert_eq!(
            lab.write_image(true).await.unwrap().1["command_status"],
            "SUCCEEDED",
            "the second one works"
        );
    }
}

#[tokio::test]
async fn a_machine_that_dies_is_silent_until_its_power_is_cycled() {
    let lab = Lab::new(Faults::none().dies_during_write()).await;
    lab.api
        .set(|behaviour| behaviour.heartbeat_timeout = json!(0.2));
    lab.boot().await;
    let running = lab.write_image(true);
    let silent = tokio::time::timeout(Duration::from_millis(400), running).await;
    assert!(
        silent.is_err(),
        "an open connection stays open without an answer"
    );
    let status = lab
        .client
        .get(lab.url("/v1/status"))
        .timeout(Duration::from_millis(200))
        .send()
        .await;
    assert!(
        status.unwrap_err().is_timeout(),
        "a new one is not answered either"
    );
    let heartbeats = lab.fleet.journal(MAC).heartbeats.len();
    let more = lab
        .fleet
        .wait_for(MAC, Duration::from_millis(400), |journal| {
            journal.heartbeats.len() > heartbeats
        });
    assert!(more.await.is_err(), "nor does it heartbeat");

    lab.fleet.power(MAC, false);
    lab.fleet.power(MAC, true);
    lab.wait(|journal| journal.agent_starts == 2 && journal.heartbeats.len() > heartbeats)
        .await;
    assert_eq!(
        lab.write_image(true).await.unwrap().1["command_status"],
        "SUCCEEDED"
    );
}

#[tokio::test]
async fn a_write_can_hang_while_the_agent_heartbeats() {
    let lab = Lab::new(Faults::none().hangs_during_write()).await;
    lab.api
        .set(|behaviour| behaviour.heartbeat_timeout = json!(0.2));
    lab.boot().await;
    lab.write_image(false).await.unwrap();
    let before = lab.fleet.journal(MAC).heartbeats.len();
    lab.wait(|journal| journal.heartbeats.len() > before + 5)
        .await;
    assert_eq!(lab.list().await[0]["command_status"], "RUNNING");
}

#[tokio::test]
async fn an_agent_that_restarts_has_forgotten_everything() {
    let lab = Lab::new(Faults::none().restarts_during_write()).await;
    lab.boot().await;
    let (_, before) = lab.get("/v1/status").await.unwrap();
    let certificate = |lab: &Lab| {
        lab.api.requests("/v1/heartbeat/").last().unwrap().body["agent_verify_ca"].clone()
    };
    let old_certificate = certificate(&lab);
    let old_url = lab.url("");
    lab.write_image(true)
        .await
        .expect_err("the connection breaks");
    let journal = lab
        .wait(|journal| journal.agent_starts == 2 && journal.heartbeats.len() == 2)
        .await;
    assert_eq!(journal.power_ons, 1);
    let (_, after) = lab.get("/v1/status").await.unwrap();
    assert_ne!(before["started_at"], after["started_at"]);
    assert_ne!(old_certificate, certificate(&lab));
    assert_eq!(old_url, lab.url(""), "the address stays");
    assert_eq!(lab.list().await, Vec::<Value>::new());
}

#[tokio::test]
async fn a_port_can_refuse_connections_while_heartbeats_flow() {
    let lab = Lab::new(Faults::none().refuses_connections(Duration::from_millis(400))).await;
    lab.boot().await;
    assert!(lab.get("/v1/status").await.unwrap_err().is_connect());
    let opened = async {
        while lab.get("/v1/status").await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LIMIT, opened)
        .await
        .expect("it opens later");
}

#[tokio::test]
async fn power_off_ends_the_machine_and_the_instance_boots_next() {
    let lab = Lab::new(Faults::none()).await;
    lab.boot().await;
    lab.write_image(true).await.unwrap();
    let (status, command) = lab
        .post("standby.power_off", json!({}), false)
        .await
        .unwrap();
    assert_eq!(
        (status, &command["command_status"]),
        (200, &json!("RUNNING"))
    );
    lab.wait(|_| !lab.fleet.is_on(MAC)).await;
    assert!(lab.get("/v1/status").await.unwrap_err().is_connect());

    lab.fleet.power(MAC, false);
    lab.fleet.power(MAC, true);
    let journal = lab.fleet.journal(MAC);
    assert_eq!(journal.power_ons, 2);
    lab.wait(|journal| journal.instance_boots == 1).await;
    assert_eq!(lab.fleet.journal(MAC).agent_starts, 1);
    lab.fleet.power(MAC, true);
    assert_eq!(
        lab.fleet.journal(MAC).power_ons,
        2,
        "switching on what is on does nothing"
    );
    lab.fleet.power(MAC, false);
    lab.fleet.power(MAC, true);
    lab.wait(|journal| journal.agent_starts == 2).await;
}

#[tokio::test]
async fn lockdown_closes_the_agent_and_leaves_the_machine_on() {
    let lab = Lab::new(Faults::none()).await;
    lab.boot().await;
    assert_eq!(
        lab.post("system.lockdown", json!({}), false)
            .await
            .unwrap()
            .1["command_status"],
        "SUCCEEDED"
    );
    let closed = async {
        while lab.get("/v1/status").await.is_ok() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LIMIT, closed)
        .await
        .expect("it closes");
    assert!(lab.fleet.is_on(MAC));
}

#[tokio::test]
async fn the_other_commands_of_a_deploy_work() {
    let lab = Lab::new(Faults::none()).await;
    lab.boot().await;
    let bootloader =
        json!({"root_uuid": "0x1", "efi_system_part_uuid": null, "target_boot_mode": "uefi"});
    let (_, command) = lab
        .post("image.install_bootloader", bootloader, true)
        .await
        .unwrap();
    assert_eq!(
        (&command["command_status"], &command["command_result"]),
        (&json!("SUCCEEDED"), &Value::Null)
    );
    let (_, command) = lab
        .post("log.collect_system_logs", json!({}), true)
        .await
        .unwrap();
    assert!(
        command["command_result"]["system_logs"]
            .as_str()
            .unwrap()
            .starts_with("H4sI"),
        "base64 of gzip"
    );
}

#[tokio::test]
async fn requests_that_make_no_sense_get_the_agents_own_words() {
    let lab = Lab::new(Faults::none()).await;
    lab.boot().await;
    let bad = async |name: &str, params: Value| {
        let answer = lab.post(name, params, false).await.unwrap();
        let (status, text) = fault(&answer);
        (status, text.to_owned())
    };
    let said = |status: u16, text: &str| (status, text.to_owned());
    assert_eq!(
        bad("sync", json!({})).await,
        said(
            400,
            "Invalid command: Command name must be of the form <extension>.<name>"
        )
    );
    assert_eq!(
        bad("nosuch.x", json!({})).await,
        said(404, "Not found: Extension with id nosuch not found.")
    );
    assert_eq!(
        bad("standby.nosuch", json!({})).await,
        said(400, "Invalid command: Unknown command: nosuch")
    );
    assert_eq!(
        bad("standby.sync", json!([1])).await,
        said(400, "400 Bad Request: Missing or invalid name or params")
    );
    assert_eq!(
        bad("standby.prepare_image", json!({"image_info": {"id": "x"}})).await,
        said(
            400,
            "Invalid command parameters: Image is missing 'urls' field."
        )
    );
    let no_uuid = json!({"node": {}, "ports": []});
    assert_eq!(
        bad("deploy.get_deploy_steps", no_uuid).await,
        said(404, "Not found: Extension with id deploy not found.")
    );
    assert_eq!(
        lab.list().await,
        Vec::<Value>::new(),
        "none of them is listed"
    );

    let id = "00000000-0000-0000-0000-000000000000";
    let answer = lab.get(&format!("/v1/commands/{id}")).await.unwrap();
    assert_eq!(
        fault(&answer),
        (
            404,
            format!("Not found: Command Result with id {id} not found.").as_str()
        )
    );
    assert_eq!(lab.get("/v1/nothing").await.unwrap().0, 404);
    let delete = lab
        .client
        .delete(lab.url(&format!("/v1/commands/?agent_token={TOKEN}")))
        .send()
        .await
        .unwrap();
    assert_eq!(delete.status(), 405);

    let other_step =
        json!({"step": {"interface": "deploy", "step": "dance"}, "node": node(), "ports": []});
    let (_, command) = lab
        .post("deploy.execute_deploy_step", other_step, true)
        .await
        .unwrap();
    assert_eq!(
        command["command_error"]["type"],
        "HardwareManagerMethodNotFound"
    );
    let mut no_checksum = write_image();
    no_checksum["step"]["args"]["image_info"]["os_hash_algo"].take();
    no_checksum["step"]["args"]["image_info"]["os_hash_value"].take();
    let (status, command) = lab
        .post("deploy.execute_deploy_step", no_checksum, true)
        .await
        .unwrap();
    assert_eq!(
        (status, &command["command_error"]["type"]),
        (200, &json!("InvalidCommandParamsError"))
    );
    let mut other_version = write_image();
    other_version["deploy_version"] = json!({"SomeManager": "0"});
    let (_, command) = lab
        .post("deploy.execute_deploy_step", other_version, true)
        .await
        .unwrap();
    assert_eq!(command["command_status"], "CLEAN_VERSION_MISMATCH");
    assert_eq!(lab.fleet.journal(MAC).writes_started.len(), 0);
}

#[tokio::test]
async fn wrong_parameters_of_a_sync_command_poison_the_list_for_good() {
    let lab = Lab::new(Faults::none()).await;
    lab.boot().await;
    let poisoned = (500, "Object of type TypeError is not JSON serializable");
    assert_eq!(
        fault(
            &lab.post("standby.sync", json!({"unexpected": 1}), false)
                .await
                .unwrap()
        ),
        poisoned
    );
    let (_, good) = lab.post("standby.sync", json!({}), false).await.unwrap();
    assert_eq!(fault(&lab.get("/v1/commands/").await.unwrap()), poisoned);
    let id = good["id"].as_str().unwrap();
    assert_eq!(
        lab.get(&format!("/v1/commands/{id}")).await.unwrap(),
        (200, good.clone()),
        "single ones work"
    );
}

#[tokio::test]
async fn the_slash_at_the_end_matters() {
    let options = FleetOptions {
        scheme: Scheme::Http,
        ..quick()
    };
    let lab = Lab::with(Faults::none(), options, StubApi::start().await);
    lab.boot().await;
    assert!(lab.url("").starts_with("http://"));
    for method in [reqwest::Method::GET, reqwest::Method::POST] {
        let url = lab.url("/v1/commands?agent_token=abc");
        let answer = lab
            .client
            .request(method, url)
            .body("{}")
            .send()
            .await
            .unwrap();
        assert_eq!(answer.status(), 308);
        assert_eq!(
            answer.headers()["location"],
            lab.url("/v1/commands/?agent_token=abc")
        );
    }
    let root: Value = lab
        .client
        .get(lab.url("/"))
        .send()
        .await
        .unwrap()
        .json()
        .await
        .unwrap();
    assert_eq!(root["default_version"]["id"], "v1");
    let v1: Value = lab
        .client
        .get(lab.url("/v1/"))
        .send()
        .await
        .unwrap()
        .json()
        .await
        .unwrap();
    assert_eq!(v1["status"][0]["href"], lab.url("/v1/status"));
}

#[tokio::test]
async fn a_stopped_fleet_is_off_and_its_journals_stay() {
    let lab = Lab::new(Faults::none()).await;
    lab.boot().await;
    lab.fleet.stop().await;
    assert!(!lab.fleet.is_on(MAC));
    assert_eq!(lab.fleet.journal(MAC).power_ons, 1);
    assert!(lab.get("/v1/status").await.unwrap_err().is_connect());
}
