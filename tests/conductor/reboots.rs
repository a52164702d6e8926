//! Reboots that were ordered: the boot before is not listened to, the one after goes on where the work stands.

use serde_json::{Value, json};

use crate::crossing::site;
use crate::support::puppet::Puppet;
use crate::support::site::MAC;

#[actix_web::test]
async fn a_step_that_reboots_the_machine_is_followed_by_the_next_one_on_the_agent_that_comes() {
    let site = site().await;
    let uuid = site.node(Value::Null).await;
    let wanted = json!({"interface": "deploy", "step": "tune_disks", "priority": 95, "args": {}});
    let wish = json!({"target": "active", "deploy_steps": [wanted]});
    site.api.ask_with(&uuid, wish).await;
    site.api.reaches(&uuid, "wait call-back").await;

    let mut before = Puppet::start().await;
    let old_token = before.arrives(&site.api, MAC, &uuid).await;
    let asked = before.command("deploy.get_deploy_steps").await;
    let offered = json!({
        "interface": "deploy", "step": "tune_disks", "priority": 0, "reboot_requested": true,
    });
    let steps = json!({"deploy_steps": {"manager": [offered]}, "hardware_manager_version": {"manager": "1"}});
    before.take(asked, "SUCCEEDED", steps);
    let asked = before.command("deploy.execute_deploy_step").await;
    assert_eq!(asked.body["params"]["step"]["step"], "tune_disks");
    before.take(asked, "SUCCEEDED", json!({}));
    site.api
        .node_when(&uuid, "without its agent", |node| {
            node["provision_state"] == "wait call-back"
                && node["driver_internal_info"].get("agent_url").is_none()
        })
        .await;
    // It has not noticed yet that it is about to go, and reports once more.
    assert_eq!(before.heartbeats(&site.api, &uuid, &old_token).await, 400);

    let mut after = Puppet::start().await;
    assert_ne!(after.url, before.url);
    let token = after.arrives(&site.api, MAC, &uuid).await;
    assert_ne!(token, old_token);
    let asked = after.command("deploy.execute_deploy_step").await;
    assert_eq!(asked.body["params"]["step"]["step"], "write_image");
    after.take(asked, "SUCCEEDED", json!({}));
    let late = before.heartbeats(&site.api, &uuid, &old_token).await;
    assert_eq!(late, 400);
    let asked = after.command("standby.get_partition_uuids").await;
    after.take(asked, "SUCCEEDED", json!({"root uuid": "0x1"}));
    let asked = after.command("standby.power_off").await;
    after.take(asked, "RUNNING", Value::Null);
    assert_eq!((before.posted.len(), after.posted.len()), (2, 3));
    drop(after);
    site.api.ends_active(&uuid).await;
    site.stop().await;
}
