//! What agents find in their machines, as they post it, and what comes of it.

use serde_json::{Value, json};

use crate::server::{Answer, Server, at, server};

const FIRST_MAC: &str = "52:54:00:aa:00:01";
const SECOND_MAC: &str = "52:54:00:aa:00:02";
const PATH: &str = "/v1/continue_inspection";

/// A node in `inspect wait`.
async fn inspected_node(server: &Server, mac: &str) -> String {
    let uuid = server.node(json!({"driver": "fake-hardware"})).await;
    let port = json!({"address": mac, "node_uuid": uuid});
    server
        .send("POST", "/v1/ports", Some(port))
        .await
        .has_status(201);
    ask(server, &uuid, "manage", "manageable").await;
    ask(server, &uuid, "inspect", "inspect wait").await;
    uuid
}

async fn ask(server: &Server, uuid: &str, verb: &str, state: &str) {
    let path = format!("/v1/nodes/{uuid}/states/provision");
    let body = json!({"target": verb});
    server.send("PUT", &path, Some(body)).await.has_status(202);
    reaches(server, uuid, state).await;
}

async fn reaches(server: &Server, uuid: &str, state: &str) -> Value {
    let is_there = |node: &Value| node["provision_state"] == state;
    server.node_when(uuid, is_there).await
}

fn found(macs: &[&str]) -> Value {
    let interface =
        |(number, mac): (usize, &&str)| json!({"name": format!("eth{number}"), "mac_address": mac});
    let interfaces: Vec<Value> = macs.iter().enumerate().map(interface).collect();
    json!({
        "inventory": {
            "interfaces": interfaces, "cpu": {"architecture": "x86_64"}, "memory": {"physical_mb": 8192},
        },
        "boot_interface": macs.first(),
        "error": null,
    })
}

/// As the agent does: without a version, and whatever the type of the content.
async fn post(server: &Server, query: &str, data: &Value) -> Answer {
    let (path, body) = (format!("{PATH}{query}"), data.to_string());
    server.raw("POST", &path, "", body.as_bytes()).await
}

async fn ports(server: &Server, uuid: &str) -> Vec<String> {
    let list = server.get(&format!("/v1/nodes/{uuid}/ports")).await.json();
    let ports = list["ports"].as_array().unwrap().iter();
    ports
        .map(|port| port["address"].as_str().unwrap().to_owned())
        .collect()
}

#[actix_web::test]
async fn findings_are_taken_over_by_the_rules_and_served_as_they_came() {
    let server = server().await;
    for (priority, value) in [(0, "last"), (5, "first")] {
        let rule = json!({
            "priority": priority,
            "conditions": [{"op": "gt", "args": {"values": ["{inventory[memory][physical_mb]}", 4096]}}],
            "actions": [{"op": "set-attribute", "args": {"path": "/extra/said", "value": value}}],
        });
        let created = server.send("POST", "/v1/inspection_rules", Some(rule));
        created.await.has_status(201);
    }
    let uuid = inspected_node(&server, FIRST_MAC).await;
    let mut data = found(&[FIRST_MAC, SECOND_MAC]);
    data["inventory"]["odd"] =
        json!({"ä": "…", "big": u64::MAX, "less": i64::MIN, "none": null, "text": "{\"a\": 1}"});
    let answer = post(&server, "", &data).await.has_status(202).json();
    assert_eq!(answer, json!({"uuid": uuid}));
    let node = reaches(&server, &uuid, "manageable").await;
    assert_eq!(node["last_error"], Value::Null);
    assert_eq!(node["extra"], json!({"said": "last"}));
    assert_eq!(node["properties"]["cpu_arch"], "x86_64");
    let path = format!("/v1/nodes/{uuid}/inventory");
    let stored = server.get(&path).await.has_status(200).json();
    assert_eq!(stored["inventory"], data["inventory"]);
    // Posted once more because an answer was lost: nobody waits for it, and the agent goes on with its lookup.
    post(&server, "", &data).await.has_status(404);
    // Of a second inspection the newest findings count.
    ask(&server, &uuid, "inspect", "inspect wait").await;
    let data = found(&[FIRST_MAC]);
    let answer = server
        .raw("POST", PATH, &at("1.84"), data.to_string().as_bytes())
        .await;
    let answer = answer.has_status(202).json();
    assert_eq!(answer["node"]["uuid"], uuid.as_str());
    reaches(&server, &uuid, "manageable").await;
    let stored = server.get(&path).await.has_status(200).json();
    assert_eq!(stored["inventory"], data["inventory"]);
}

#[actix_web::test]
async fn a_rule_that_fails_is_named_and_a_sensitive_one_says_no_more() {
    let server = server().await;
    for is_sensitive in [false, true] {
        let rule = json!({
            "sensitive": is_sensitive,
            "actions": [{"op": "fail", "args": {"msg": "too little of everything"}}],
        });
        let created = server
            .send("POST", "/v1/inspection_rules", Some(rule))
            .await;
        let rule = created.has_status(201).json()["uuid"].clone();
        let rule = rule.as_str().unwrap();
        let mac = [FIRST_MAC, SECOND_MAC][usize::from(is_sensitive)];
        let uuid = inspected_node(&server, mac).await;
        let data = found(&[mac]);
        post(&server, "", &data).await.has_status(202);
        let node = reaches(&server, &uuid, "inspect failed").await;
        let error = node["last_error"].as_str().unwrap();
        assert!(error.contains(rule), "{error}");
        assert_eq!(error.contains("too little"), !is_sensitive, "{error}");
        let inventory = format!("/v1/nodes/{uuid}/inventory");
        server.get(&inventory).await.has_status(404);
        let path = format!("/v1/inspection_rules/{rule}");
        server.send("DELETE", &path, None).await.has_status(204);
    }
}

#[actix_web::test]
async fn what_is_no_inventory_is_refused() {
    let server = server().await;
    let uuid = inspected_node(&server, FIRST_MAC).await;
    let mut too_many = found(&[FIRST_MAC]);
    too_many["inventory"]["interfaces"] =
        vec![json!({"name": "e", "mac_address": FIRST_MAC}); 257].into();
    for data in [
        json!([]),
        json!("x"),
        json!(null),
        json!(5),
        json!({}),
        json!({"inventory": null}),
        json!({"inventory": {}}),
        json!({"inventory": {"interfaces": []}}),
        json!({"inventory": {"interfaces": {}}}),
        json!({"inventory": {"interfaces": [5]}}),
        json!({"inventory": {"interfaces": [{"name": "eth0"}]}}),
        too_many,
    ] {
        let named = format!("?node_uuid={uuid}");
        let answer = post(&server, &named, &data).await;
        answer.has_status(400).fault_string();
    }
    post(&server, "?node_uuid=x", &found(&[FIRST_MAC]))
        .await
        .has_status(400);
    for headers in [at("1.83"), at("1.2")] {
        let body = found(&[FIRST_MAC]).to_string();
        let answer = server.raw("POST", PATH, &headers, body.as_bytes()).await;
        answer.has_status(404);
    }
    let nobody = "?node_uuid=00000000-0000-0000-0000-000000000000";
    post(&server, nobody, &found(&[FIRST_MAC]))
        .await
        .has_status(404);
    post(&server, "", &found(&[SECOND_MAC]))
        .await
        .has_status(404);
    let node = server.get(&format!("/v1/nodes/{uuid}")).await.json();
    assert_eq!(node["provision_state"], "inspect wait");
    // Whatever an old agent says of its content.
    let body = found(&[FIRST_MAC]).to_string();
    let kind = "Content-Type: text/plain\r\n";
    let answer = server.raw("POST", PATH, kind, body.as_bytes()).await;
    answer.has_status(202);
}

#[actix_web::test]
async fn logs_may_come_along_but_not_without_end() {
    let server = server().await;
    let uuid = inspected_node(&server, FIRST_MAC).await;
    let mut data = found(&[FIRST_MAC]);
    data["logs"] = "A".repeat(17 << 20).into();
    post(&server, "", &data).await.has_status(413);
    data["logs"] = "A".repeat(2 << 20).into();
    let heartbeat = format!("/v1/heartbeat/{uuid}");
    let body = data.to_string();
    let answer = server.raw("POST", &heartbeat, "", body.as_bytes()).await;
    answer.has_status(413);
    let mut deep = found(&[FIRST_MAC]);
    let nested = format!("{}{}", "[".repeat(30), "]".repeat(30));
    deep["inventory"]["deep"] = serde_json::from_str(&nested).unwrap();
    post(&server, "", &deep).await.has_status(400);
    post(&server, "", &data).await.has_status(202);
    reaches(&server, &uuid, "manageable").await;
    let path = format!("/v1/nodes/{uuid}/inventory");
    let stored = server.get(&path).await.has_status(200).json();
    assert_eq!(stored["plugin_data"].get("logs"), None);
}

/// A network device with the same address on every machine, or an address that was entered for the wrong one.
#[actix_web::test]
async fn an_address_of_two_nodes_is_no_guess_and_no_port() {
    let server = server().await;
    let first = inspected_node(&server, FIRST_MAC).await;
    inspected_node(&server, SECOND_MAC).await;
    let mut data = found(&[FIRST_MAC, SECOND_MAC]);
    data["boot_interface"] = Value::Null;
    post(&server, "", &data).await.has_status(404);
    post(&server, &format!("?node_uuid={first}"), &data)
        .await
        .has_status(202);
    let node = reaches(&server, &first, "manageable").await;
    assert_eq!(node["last_error"], Value::Null);
    assert_eq!(ports(&server, &first).await, [FIRST_MAC]);
    let history = format!("/v1/nodes/{first}/history?detail=true");
    let history = server.get(&history).await.body;
    let history = String::from_utf8(history).unwrap();
    assert!(history.contains("no ports made"), "{history}");
}

/// Machines whose NICs nobody entered are told by their BMCs, where that is no guess.
#[actix_web::test]
async fn a_node_without_ports_is_found_by_the_address_of_its_bmc() {
    let server = server().await;
    let mut nodes = Vec::new();
    for address in [
        "https://[2001:db8::1]:8443",
        "192.0.2.7",
        "https://192.0.2.9/a",
        "https://192.0.2.9/b",
    ] {
        let node = json!({"driver": "fake-hardware", "driver_info": {"redfish_address": address}});
        let uuid = server.node(node).await;
        ask(&server, &uuid, "manage", "manageable").await;
        ask(&server, &uuid, "inspect", "inspect wait").await;
        nodes.push(uuid);
    }
    let at = |v4: Value, v6: Value| {
        let mut data = found(&[FIRST_MAC]);
        data["inventory"]["bmc_address"] = v4;
        data["inventory"]["bmc_v6address"] = v6;
        data
    };
    for nobody in [
        at(json!(null), json!(null)),
        at(json!(""), json!("::/0")),
        at(json!("0.0.0.0"), json!("::1")),
        at(json!("192.0.2.8"), json!(7)),
        at(json!("192.0.2.9"), json!(null)),
    ] {
        post(&server, "", &nobody).await.has_status(404);
    }
    let data = at(json!("0.0.0.0"), json!("2001:db8::1/64"));
    let answer = post(&server, "", &data).await.has_status(202).json();
    assert_eq!(answer["uuid"], nodes[0].as_str());
    reaches(&server, &nodes[0], "manageable").await;
    assert_eq!(ports(&server, &nodes[0]).await, [FIRST_MAC]);
    // From now on the port says whose machine it is, whatever the BMC.
    let data = at(json!("192.0.2.7"), json!(null));
    post(&server, "", &data).await.has_status(404);
}
