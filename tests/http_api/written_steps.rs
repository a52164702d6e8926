//! Deploy templates and runbooks at work: which steps a node is given with a verb.

use serde_json::{Value, json};
use upbeat::node::{Node, Provision};
use upbeat::store::Ident;

use crate::server::{Answer, Server, at, server};

async fn send(server: &Server, method: &str, path: &str, body: Value) -> Answer {
    let body = if body.is_null() {
        String::new()
    } else {
        body.to_string()
    };
    server
        .raw(method, path, &at("latest"), body.as_bytes())
        .await
}

async fn asks(server: &Server, uuid: &str, body: Value) -> Answer {
    let path = format!("/v1/nodes/{uuid}/states/provision");
    send(server, "PUT", &path, body).await
}

/// A node with the trait CUSTOM_A whose instance asks for it.
async fn a_node(server: &Server) -> String {
    let uuid = server
        .node(json!({
            "driver": "fake-hardware",
            "automated_clean": false,
            "instance_info": {
                "image_source": "http://127.0.0.1:9/i.raw",
                "image_os_hash_algo": "sha256",
                "image_os_hash_value": "a".repeat(64),
                "image_disk_format": "raw",
                "traits": ["CUSTOM_A"],
            },
        }))
        .await;
    let path = format!("/v1/nodes/{uuid}/traits/CUSTOM_A");
    send(server, "PUT", &path, Value::Null)
        .await
        .has_status(204);
    asks(server, &uuid, json!({"target": "manage"}))
        .await
        .has_status(202);
    server
        .node_when(&uuid, |node| node["provision_state"] == "manageable")
        .await;
    uuid
}

/// The steps that the node's work was asked for.
async fn wanted(server: &Server, uuid: &str) -> Vec<String> {
    let ident = Ident::Id(uuid.parse().unwrap());
    let node: Node = server
        .behind
        .store
        .reader
        .node(ident)
        .await
        .unwrap()
        .unwrap();
    let Provision::Working(work) = &node.provision else {
        panic!("{}", node.provision_state());
    };
    let step = |step: &upbeat::node::steps::WorkStep| format!("{}.{}", step.interface, step.step);
    work.wanted_steps.iter().map(step).collect()
}

#[actix_web::test]
async fn a_template_applies_where_the_instance_asks_for_its_trait() {
    let server = server().await;
    for (name, step) in [("CUSTOM_A", "burn_in"), ("CUSTOM_B", "never")] {
        let steps = json!([{"interface": "deploy", "step": step, "priority": 90}]);
        let template = json!({"name": name, "steps": steps});
        send(&server, "POST", "/v1/deploy_templates", template)
            .await
            .has_status(201);
    }
    let node = a_node(&server).await;
    asks(&server, &node, json!({"target": "provide"}))
        .await
        .has_status(202);
    server
        .node_when(&node, |node| node["provision_state"] == "available")
        .await;
    // The machine itself must be able to do what the instance asks for.
    let path = format!("/v1/nodes/{node}/traits/CUSTOM_A");
    send(&server, "DELETE", &path, Value::Null)
        .await
        .has_status(204);
    let refused = asks(&server, &node, json!({"target": "active"})).await;
    let text = refused.has_status(400).fault_string();
    assert!(text.contains("CUSTOM_A"), "{text}");
    let report = server
        .get(&format!("/v1/nodes/{node}/validate"))
        .await
        .json();
    assert_eq!(report["deploy"]["result"], false);
    send(&server, "PUT", &path, Value::Null)
        .await
        .has_status(204);
    let own = json!([{"interface": "raid", "step": "apply", "priority": 85}]);
    asks(
        &server,
        &node,
        json!({"target": "active", "deploy_steps": own}),
    )
    .await
    .has_status(202);
    assert_eq!(
        wanted(&server, &node).await,
        ["deploy.burn_in", "raid.apply"]
    );
}

#[actix_web::test]
async fn a_runbook_is_used_on_nodes_it_is_for() {
    let server = server().await;
    let steps = json!([
        {"interface": "bios", "step": "second", "order": 2},
        {"interface": "bios", "step": "first", "order": 1},
    ]);
    for name in ["CUSTOM_A", "CUSTOM_OTHER", "yearly"] {
        let runbook = json!({"name": name, "steps": steps});
        send(&server, "POST", "/v1/runbooks", runbook)
            .await
            .has_status(201);
    }
    let node = a_node(&server).await;
    let clean = async |runbook: Value| {
        asks(
            &server,
            &node,
            json!({"target": "clean", "runbook": runbook}),
        )
        .await
    };
    for (runbook, status, word) in [
        (json!("CUSTOM_OTHER"), 400, "CUSTOM_OTHER"),
        (json!("yearly"), 400, "yearly"),
        (json!("nothing"), 404, "nothing"),
        (json!(5), 400, "runbook"),
    ] {
        let text = clean(runbook).await.has_status(status).fault_string();
        assert!(text.contains(word), "{text}");
    }
    let both = json!({"target": "clean", "runbook": "CUSTOM_A", "clean_steps": [{"interface": "bios", "step": "x"}]});
    asks(&server, &node, both)
        .await
        .has_status(400)
        .fault_string();
    asks(
        &server,
        &node,
        json!({"target": "inspect", "runbook": "CUSTOM_A"}),
    )
    .await
    .has_status(400);
    let path = format!("/v1/nodes/{node}/states/provision");
    let body = json!({"target": "clean", "runbook": "CUSTOM_A"}).to_string();
    server
        .raw("PUT", &path, &at("1.91"), body.as_bytes())
        .await
        .has_status(406);
    // With a trait of its list it is for the node as well as with the name.
    let traits = json!({"traits": ["CUSTOM_A"]});
    send(&server, "PUT", "/v1/runbooks/yearly/traits", traits)
        .await
        .has_status(204);
    clean(json!("yearly")).await.has_status(202);
    assert_eq!(wanted(&server, &node).await, ["bios.first", "bios.second"]);
}

#[actix_web::test]
async fn the_history_tells_states_and_how_long_they_lasted() {
    let server = server().await;
    let node = a_node(&server).await;
    let path = format!("/v1/nodes/{node}/history?detail=true");
    let history = send(&server, "GET", &path, Value::Null).await.json();
    let lines = history["history"].as_array().unwrap();
    let line = lines
        .iter()
        .find(|line| line["event"] == "enroll -> verifying");
    let line = line.unwrap_or_else(|| panic!("{history}"));
    assert_eq!(line["state"], "verifying");
    assert_eq!(line["target_provision_state"], "manageable");
    assert!(line["duration_seconds"].is_number(), "{line}");
    assert_eq!(line["project"], Value::Null);
    for (version, field) in [("1.112", "project"), ("1.114", "duration_seconds")] {
        let older = server.raw("GET", &path, &at(version), b"").await.json();
        assert!(older["history"][0].get(field).is_none(), "{version}");
    }
}
