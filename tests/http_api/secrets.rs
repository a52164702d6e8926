//! A secret in every place that can hold one, and a look at everything that comes out: answers of every path there is, failures,
//! history, metrics and the log.

use serde_json::{Value, json};

use crate::log::heard;
use crate::server::{Server, server};

/// Each in a text that nothing else holds.
const SECRET: &str = "s3cr3t-planted-here";

struct Planted<'a> {
    server: &'a Server,
    /// Where something came out that holds the secret.
    leaks: Vec<String>,
    asked: usize,
}

impl Planted<'_> {
    async fn ask(&mut self, method: &str, path: &str, body: Option<Value>) -> (u16, Value) {
        let answer = self.server.send(method, path, body).await;
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        let heads: String = answer
            .headers
            .iter()
            .map(|(name, value)| format!("{name}: {value}\n"))
            .collect();
        self.asked += 1;
        if text.contains(SECRET) || heads.contains(SECRET) {
            self.leaks.push(format!("{method} {path}: {text}"));
        }
        (
            answer.status,
            serde_json::from_str(&text).unwrap_or(Value::Null),
        )
    }

    async fn made(&mut self, path: &str, body: Value) -> String {
        let (status, made) = self.ask("POST", path, Some(body)).await;
        assert_eq!(status, 201, "{path}: {made}");
        made["uuid"].as_str().unwrap().to_owned()
    }

    /// Asks every path that can be looked at, whatever it is called, with these in the places of names.
    async fn look_everywhere(&mut self, names: &[(&str, &str)]) {
        let document = self.server.get("/openapi.json").await.json();
        for (pattern, methods) in document["paths"].as_object().unwrap() {
            if methods.get("get").is_none() {
                continue;
            }
            let mut path = pattern.clone();
            for (name, uuid) in names {
                path = path.replace(&format!("{{{name}}}"), uuid);
            }
            let path = path.replace(['{', '}'], "");
            for query in ["", "?detail=true", "?limit=1"] {
                self.ask("GET", &format!("{path}{query}"), None).await;
            }
        }
    }
}

fn secretive() -> Value {
    json!({
        "ipmi_password": SECRET, "redfish_password": SECRET, "snmp_auth_key": SECRET,
        "nested": {"deeper": [{"api_token": SECRET}]},
        "note": format!("password={SECRET} and more"),
        "redfish_address": format!("https://admin:{SECRET}@10.0.0.1/redfish"),
    })
}

#[actix_web::test]
async fn a_secret_that_was_put_in_comes_out_nowhere() {
    let log = heard();
    let server = server().await;
    let mut planted = Planted {
        server: &server,
        leaks: Vec::new(),
        asked: 0,
    };
    let node = planted
        .made(
            "/v1/nodes",
            json!({
                "driver": "fake-hardware", "name": "keeper", "driver_info": secretive(),
                "resource_class": "large",
                "instance_info": {
                    "image_source": format!("http://user:{SECRET}@127.0.0.1:9/i.raw"),
                    "image_url": format!("http://127.0.0.1:9/i?sig={SECRET}"),
                    "image_os_hash_algo": "sha256", "image_os_hash_value": "a".repeat(64),
                    "configdrive": format!("http://127.0.0.1:9/{SECRET}"),
                    "admin_pass": SECRET,
                },
            }),
        )
        .await;
    let path = format!("/v1/nodes/{node}");
    let port = planted
        .made(
            "/v1/ports",
            json!({"node_uuid": node, "address": "52:54:00:aa:00:01"}),
        )
        .await;
    let group = planted
        .made("/v1/portgroups", json!({"node_uuid": node, "name": "g"}))
        .await;
    let connector = planted
        .made(
            "/v1/volume/connectors",
            json!({"node_uuid": node, "type": "iqn", "connector_id": "iqn.2026-01.example:a"}),
        )
        .await;
    let target = planted
        .made(
            "/v1/volume/targets",
            json!({
                "node_uuid": node, "volume_type": "iscsi", "boot_index": 0, "volume_id": "v",
                "properties": {"auth_password": SECRET, "auth_username": "u", "target_portal": "10.0.0.9"},
            }),
        )
        .await;
    let step = |more: Value| {
        let mut step = json!({
            "interface": "deploy", "step": "write_secret",
            "args": {"password": SECRET, "inner": {"secret_key": SECRET}, "line": format!("password: {SECRET}")},
        });
        for (key, value) in more.as_object().unwrap() {
            step[key] = value.clone();
        }
        step
    };
    let template = planted
        .made(
            "/v1/deploy_templates",
            json!({"name": "CUSTOM_SECRET", "steps": [step(json!({"priority": 50}))]}),
        )
        .await;
    let runbook = planted
        .made(
            "/v1/runbooks",
            json!({"name": "CUSTOM_SECRET", "steps": [step(json!({"order": 1}))]}),
        )
        .await;
    let rule = planted
        .made(
            "/v1/inspection_rules",
            json!({
                "description": "hides", "sensitive": true,
                "actions": [{"op": "set-attribute", "args": {"path": "/driver_info/ipmi_password", "value": SECRET}}],
            }),
        )
        .await;
    // Changes, good and bad.
    for (patch, wanted) in [
        (
            json!([{"op": "add", "path": "/driver_info/ipmi_password", "value": SECRET}]),
            200,
        ),
        (
            json!([{"op": "add", "path": "/driver_info/deploy_kernel", "value": format!("file://{SECRET}")}]),
            400,
        ),
        (
            json!([{"op": "add", "path": "/driver_info/kernel_append_params", "value": format!("a=\"{SECRET}\"")}]),
            400,
        ),
        (
            json!([{"op": "add", "path": "/driver_info", "value": format!("password={SECRET}")}]),
            400,
        ),
        (
            json!([{"op": "test", "path": "/driver_info/ipmi_password", "value": SECRET}]),
            400,
        ),
        (
            json!([{"op": "add", "path": "/instance_info/configdrive", "value": SECRET}]),
            200,
        ),
    ] {
        let (status, _) = planted.ask("PATCH", &path, Some(patch.clone())).await;
        assert_eq!(status, wanted, "{patch}");
    }
    let (status, _) = planted
        .ask(
            "PATCH",
            &format!("/v1/volume/targets/{target}"),
            Some(json!([{"op": "add", "path": "/properties/auth_password", "value": SECRET}])),
        )
        .await;
    // Only while the machine is off, or never: the answer counts, whichever it is.
    assert!([200, 400, 409].contains(&status), "{status}");
    planted
        .ask(
            "POST",
            &format!("{path}/vmedia"),
            Some(json!({"device_type": "cdrom", "image_url": format!("http://user:{SECRET}@127.0.0.1:9/i.iso")})),
        )
        .await;
    let names = [
        ("node", node.as_str()),
        ("port", &port),
        ("portgroup", &group),
        ("connector", &connector),
        ("target", &target),
        ("template", &template),
        ("deploy_template", &template),
        ("runbook", &runbook),
        ("rule", &rule),
        ("inspection_rule", &rule),
        ("driver", "fake-hardware"),
    ];
    planted.look_everywhere(&names).await;
    // The whole way to a machine in use and into rescue, as far as it goes without an agent.
    let provision = format!("{path}/states/provision");
    for (body, state) in [
        (json!({"target": "manage"}), "manageable"),
        (
            json!({"target": "clean", "clean_steps": [step(json!({}))]}),
            "clean wait",
        ),
        (json!({"target": "abort"}), "clean failed"),
        (json!({"target": "manage"}), "manageable"),
        (json!({"target": "provide"}), "available"),
        (
            json!({
                "target": "active", "deploy_steps": [step(json!({"priority": 20}))],
                "configdrive": {"user_data": format!("password: {SECRET}")},
            }),
            "wait call-back",
        ),
        (json!({"target": "abort"}), "deploy failed"),
    ] {
        if state == "manageable" {
            planted
                .ask("DELETE", &format!("{path}/maintenance"), None)
                .await;
        }
        let (status, answer) = planted.ask("PUT", &provision, Some(body.clone())).await;
        assert_eq!(status, 202, "{body}: {answer}");
        server
            .node_when(&node, |node| node["provision_state"] == state)
            .await;
        planted.look_everywhere(&names).await;
    }
    // What is refused quotes no secret either.
    for body in [
        json!({"target": "rescue", "rescue_password": SECRET}),
        json!({"target": "rescue", "rescue_password": [SECRET]}),
        json!({"target": "active", "configdrive": SECRET}),
        json!({"target": "active", "configdrive": {"user_data": 7, "meta_data": SECRET}}),
        json!({"target": "active", "deploy_steps": [{"interface": "deploy", "step": "x", "args": format!("password={SECRET}"), "priority": 1}]}),
    ] {
        let (status, _) = planted.ask("PUT", &provision, Some(body)).await;
        assert!((400..500).contains(&status), "{status}");
    }
    let (status, shown) = planted.ask("GET", &path, None).await;
    assert_eq!(
        (status, &shown["driver_info"]["ipmi_password"]),
        (200, &json!("******"))
    );
    assert!(planted.asked > 500, "{}", planted.asked);
    assert_eq!(planted.leaks, Vec::<String>::new());

    let written = String::from_utf8_lossy(&log.lock().unwrap()).into_owned();
    assert!(written.contains(&node), "the log tells of this node");
    let leaks: Vec<&str> = written
        .lines()
        .filter(|line| line.contains(SECRET))
        .collect();
    assert_eq!(leaks, Vec::<&str>::new());
    assert!(!server.behind.metrics.encode().contains(SECRET));
}
