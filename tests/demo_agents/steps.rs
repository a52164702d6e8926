//! Clean and service steps: what is offered, what runs, what fails.

use serde_json::{Value, json};
use upbeat::demo::{Faults, Fleet};

use crate::lab::*;

fn for_node() -> Value {
    json!({"node": node(), "ports": []})
}

fn executes(step: &Value) -> Value {
    json!({"step": step, "node": node(), "ports": []})
}

#[tokio::test]
async fn cleaning_erases_metadata_first_as_the_real_agent_has_it() {
    let lab = Lab::new(Faults::none()).await;
    lab.boot().await;
    let (status, command) = lab
        .post("clean.get_clean_steps", for_node(), true)
        .await
        .unwrap();
    assert_eq!(
        (status, &command["command_status"]),
        (200, &json!("SUCCEEDED"))
    );
    let result = &command["command_result"];
    let mut by_itself: Vec<(i64, &str)> = result["clean_steps"]["GenericHardwareManager"]
        .as_array()
        .unwrap()
        .iter()
        .map(|step| {
            (
                step["priority"].as_i64().unwrap(),
                step["step"].as_str().unwrap(),
            )
        })
        .filter(|(priority, _)| *priority > 0)
        .collect();
    by_itself.sort_unstable_by(|one, other| other.cmp(one));
    assert_eq!(
        by_itself,
        [(99, "erase_devices_metadata"), (10, "erase_devices")]
    );

    let version = &result["hardware_manager_version"];
    let step = json!({"step": "erase_devices_metadata", "interface": "deploy", "priority": 99, "x_operation_id": "op-1"});
    let mut params = executes(&step);
    params["clean_version"] = version.clone();
    let (_, command) = lab
        .post("clean.execute_clean_step", params.clone(), false)
        .await
        .unwrap();
    assert_eq!(
        (&command["command_status"], &command["command_name"]),
        (&json!("RUNNING"), &json!("execute_clean_step"))
    );
    let journal = lab
        .wait(|journal| {
            journal
                .commands
                .iter()
                .all(|command| command.finished_at.is_some())
        })
        .await;
    assert_eq!(journal.steps_started, ["clean.erase_devices_metadata"]);
    let done = lab.list().await.pop().unwrap();
    assert_eq!(
        done["command_result"],
        json!({"clean_result": null, "clean_step": step}),
        "the whole step is echoed"
    );

    params["clean_version"] = json!({"generic_hardware_manager": "0.9"});
    let (_, command) = lab
        .post("clean.execute_clean_step", params, true)
        .await
        .unwrap();
    assert_eq!(command["command_status"], "CLEAN_VERSION_MISMATCH");
}

#[tokio::test]
async fn each_kind_of_step_answers_in_its_own_words() {
    let lab = Lab::new(Faults::none()).await;
    lab.boot().await;
    for (kind, error) in [
        ("clean", "CleaningError"),
        ("deploy", "DeploymentError"),
        ("service", "ServicingError"),
    ] {
        let execute = format!("{kind}.execute_{kind}_step");
        let (_, command) = lab
            .post(&format!("{kind}.get_{kind}_steps"), for_node(), true)
            .await
            .unwrap();
        assert_eq!(command["command_name"], format!("get_{kind}_steps"));
        let offered =
            &command["command_result"][format!("{kind}_steps")]["SimulatedHardwareManager"];
        assert_eq!(offered.as_array().unwrap().len(), 3, "{command}");

        let pause =
            json!({"step": "simulated_pause", "interface": "deploy", "args": {"seconds": 0.01}});
        let (_, command) = lab.post(&execute, executes(&pause), true).await.unwrap();
        assert_eq!(
            command["command_result"],
            json!({format!("{kind}_result"): "paused for 0.01 s", format!("{kind}_step"): pause})
        );
        let failure = json!({"step": "simulated_failure", "interface": "deploy", "args": {"message": "no luck"}});
        let (_, command) = lab.post(&execute, executes(&failure), true).await.unwrap();
        assert_eq!(command["command_status"], "FAILED");
        assert_eq!(command["command_error"]["type"], error);
        assert_eq!(
            command["command_error"]["details"],
            format!(
                "Unexpected exception performing {kind} step simulated_failure. RuntimeError: no luck"
            )
        );
        let (_, command) = lab
            .post(&execute, json!({"node": node()}), true)
            .await
            .unwrap();
        let details = command["command_error"]["details"].as_str().unwrap();
        assert!(
            details.ends_with("missing 2 required positional arguments: 'step' and 'ports'"),
            "{details}"
        );
    }
}

#[tokio::test]
async fn an_erased_disk_is_not_booted_from() {
    let lab = Lab::new(Faults::none()).await;
    lab.boot().await;
    lab.write_image(true).await.unwrap();
    let step = json!({"step": "erase_devices", "interface": "deploy"});
    let (_, command) = lab
        .post("clean.execute_clean_step", executes(&step), true)
        .await
        .unwrap();
    assert_eq!(
        command["command_result"]["clean_result"],
        json!({"/dev/sda": null})
    );
    lab.post("standby.power_off", json!({}), false)
        .await
        .unwrap();
    let is_off = |fleet: &Fleet| !fleet.is_on(MAC);
    lab.wait(|_| is_off(&lab.fleet)).await;
    let before = lab.fleet.journal(MAC).agent_starts;
    lab.fleet.power(MAC, true);
    let journal = lab.wait(|journal| journal.agent_starts > before).await;
    assert_eq!(journal.instance_boots, 0);
}
