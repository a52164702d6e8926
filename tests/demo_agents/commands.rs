//! What agents answer to commands, good and bad.

use std::time::Duration;

use serde_json::{Value, json};
use upbeat::demo::{Faults, FleetOptions, Scheme};

use crate::lab::*;
use crate::stub_api::{self, StubApi};

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
        json!({"generic_hardware_manager": "1.2", "SimulatedHardwareManager": "1"})
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
