//! The life of a node as a client sees it.

use serde_json::{Value, json};

use crate::server::{at, server};

#[actix_web::test]
async fn lists_show_the_same_as_the_nodes_themselves() {
    let server = server().await;
    let chassis = server.send("POST", "/v1/chassis", Some(json!({}))).await;
    let chassis = chassis.has_status(201).json()["uuid"].clone();
    let parent = server.node(json!({"driver": "manual-management"})).await;
    let full = json!({
        "driver": "fake-hardware", "name": "full", "instance_uuid": "6f2b5a0e-9d0f-4c52-9a57-6ad2b1f1c001",
        "resource_class": "large", "conductor_group": "eu", "owner": "o", "lessee": "l",
        "retired": true, "shard": "s", "parent_node": parent, "chassis_uuid": chassis,
        "instance_name": "web", "description": "Rack 1", "extra": {"a": 1},
    });
    let full = server.node(full).await;
    let manage = json!({"target": "manage"});
    let path = format!("/v1/nodes/{full}/states/provision");
    server
        .send("PUT", &path, Some(manage))
        .await
        .has_status(202);
    server
        .node_when(&full, |node| node["provision_state"] == "manageable")
        .await;
    for uuid in [&full, &parent] {
        let whole = server.get(&format!("/v1/nodes/{uuid}")).await.json();
        for field in whole.as_object().unwrap().keys() {
            let one = server
                .get(&format!("/v1/nodes/{uuid}?fields=uuid,{field}"))
                .await;
            if one.status == 400 {
                // It can't be asked for by itself.
                continue;
            }
            let list = server
                .get(&format!(
                    "/v1/nodes?include_children=true&fields=uuid,{field}"
                ))
                .await
                .has_status(200)
                .json();
            let nodes = list["nodes"].as_array().unwrap();
            let in_list = nodes.iter().find(|node| node["uuid"] == **uuid).unwrap();
            assert_eq!(*in_list, one.json(), "{field}");
            assert_eq!(in_list[field], whole[field], "{field}");
        }
    }
}

#[actix_web::test]
async fn a_node_is_created_shown_changed_and_deleted() {
    let server = server().await;
    let document = json!({
        "driver": "fake-hardware", "name": "n-1", "driver_info": {"bmc_password": "p", "address": "a"},
        "properties": {"cpu_arch": "x86_64"}, "automated_clean": "True",
    });
    let created = server
        .send("POST", "/v1/nodes", Some(document))
        .await
        .has_status(201);
    let node = created.json();
    let uuid = node["uuid"].as_str().unwrap().to_owned();
    assert_eq!(
        created.header("location").unwrap(),
        format!("http://upbeat.test:6385/v1/nodes/{uuid}")
    );
    assert_eq!(node["provision_state"], "enroll");
    assert_eq!(node["power_state"], Value::Null);
    assert_eq!(
        node["driver_info"],
        json!({"bmc_password": "******", "address": "a"})
    );
    assert_eq!(node["automated_clean"], true);
    assert_eq!(node["conductor"], "conductor-1");
    assert!(node["created_at"].as_str().unwrap().ends_with("+00:00"));
    assert_eq!(server.get("/v1/nodes/n-1").await.json(), node);

    let patch = json!([
        {"op": "add", "path": "/extra/a", "value": 1}, {"op": "remove", "path": "/automated_clean"},
        {"op": "replace", "path": "/name", "value": "n-2"}, {"op": "add", "path": "/maintenance", "value": "true"},
    ]);
    let changed = server
        .send("PATCH", "/v1/nodes/n-1", Some(patch))
        .await
        .has_status(200)
        .json();
    assert_eq!(changed["extra"], json!({"a": 1}));
    assert_eq!(changed["automated_clean"], Value::Null);
    assert_eq!(changed["maintenance"], true);
    assert_eq!(server.get("/v1/nodes/n-2").await.json(), changed);
    server.get("/v1/nodes/n-1").await.has_status(404);

    let gone = server
        .send("DELETE", "/v1/nodes/n-2", None)
        .await
        .has_status(204);
    assert!(gone.body.is_empty());
    server
        .send("DELETE", "/v1/nodes/n-2", None)
        .await
        .has_status(404)
        .fault_string();
    assert_eq!(server.node_count().await, 0);
}

#[actix_web::test]
async fn old_requests_create_available_nodes_and_see_old_fields() {
    let server = server().await;
    let body = json!({"driver": "fake-hardware"}).to_string();
    let node = server
        .raw("POST", "/v1/nodes", &at("1.10"), body.as_bytes())
        .await
        .has_status(201)
        .json();
    assert_eq!(node["provision_state"], "available");
    assert!(node.get("deploy_interface").is_none());
    let path = format!("/v1/nodes/{}", node["uuid"].as_str().unwrap());
    let oldest = server.raw("GET", &path, "", b"").await.json();
    assert_eq!(oldest["provision_state"], Value::Null);
    assert!(oldest.get("name").is_none());
}

#[actix_web::test]
async fn lists_have_pages_fields_and_filters() {
    let server = server().await;
    let mut created = Vec::new();
    for index in 0..5 {
        let document = json!({
            "driver": if index == 4 { "manual-management" } else { "fake-hardware" },
            "name": format!("n-{index}"), "resource_class": "large",
        });
        created.push(server.node(document).await);
    }
    let mut seen = Vec::new();
    let mut path = "/v1/nodes?limit=2&resource_class=large&fields=uuid%2Cname".to_owned();
    loop {
        let page = server.get(&path).await.has_status(200).json();
        for node in page["nodes"].as_array().unwrap() {
            assert_eq!(
                node.as_object().unwrap().len(),
                3,
                "uuid, name and links: {node}"
            );
            seen.push(node["uuid"].as_str().unwrap().to_owned());
        }
        match page["next"].as_str() {
            Some(next) => {
                assert!(next.contains("resource_class=large"), "{next}");
                path = next
                    .strip_prefix("http://upbeat.test:6385")
                    .unwrap()
                    .to_owned();
            }
            None => break,
        }
    }
    assert_eq!(seen, created);
    let names = async |query: &str| -> Vec<String> {
        let list = server
            .get(&format!("/v1/nodes?{query}"))
            .await
            .has_status(200)
            .json();
        let nodes = list["nodes"].as_array().unwrap().clone();
        nodes
            .iter()
            .map(|node| node["name"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(names("driver=manual-management").await, ["n-4"]);
    assert_eq!(names("sort_key=name&sort_dir=desc&limit=1").await, ["n-4"]);
    assert_eq!(names("maintenance=True").await, [""; 0]);
    assert_eq!(
        names("conductor=conductor-1&provision_state=enroll")
            .await
            .len(),
        5
    );
    assert_eq!(names("conductor=nobody").await, [""; 0]);
    let detail = server.get("/v1/nodes/detail?limit=1").await.json();
    assert_eq!(detail["nodes"][0]["driver"], "fake-hardware");
    assert!(
        detail["next"]
            .as_str()
            .unwrap()
            .contains("/v1/nodes/detail?")
    );
    assert_eq!(
        server.get("/v1/nodes?detail=True").await.json()["nodes"][4]["driver"],
        "manual-management"
    );
}

#[actix_web::test]
async fn verbs_lead_from_enroll_to_available() {
    let server = server().await;
    let uuid = server.node(json!({"driver": "fake-hardware"})).await;
    let path = format!("/v1/nodes/{uuid}");
    for (verb, state) in [
        ("manage", "manageable"),
        ("provide", "available"),
        ("manage", "manageable"),
    ] {
        // The target may stand in the query, too.
        let put = format!("{path}/states/provision?target={verb}");
        let answer = server.send("PUT", &put, None).await.has_status(202);
        assert!(answer.body.is_empty());
        assert_eq!(answer.header("content-type"), None);
        assert_eq!(
            answer.header("location").unwrap(),
            format!("http://upbeat.test:6385{path}/states")
        );
        server
            .node_when(&uuid, |node| {
                node["provision_state"] == state && node["reservation"].is_null()
            })
            .await;
    }
    let body = json!({"target": "abort"});
    server
        .send("PUT", &format!("{path}/states/provision"), Some(body))
        .await
        .has_status(400);
    let states = server.get(&format!("{path}/states")).await.json();
    assert_eq!(states["provision_state"], "manageable");
    assert_eq!(states["target_provision_state"], Value::Null);
    let history = server
        .get(&format!("{path}/history"))
        .await
        .has_status(200)
        .json();
    let ledger = server.get(&format!("{path}/commands")).await;
    assert_eq!(
        ledger.has_status(200).json(),
        json!({"waiting": null, "commands": []})
    );
    let entry = history["history"][0].clone();
    assert!(
        entry["event"].is_string() && entry.get("event_type").is_none(),
        "{entry}"
    );
    let one = server
        .get(&format!(
            "{path}/history/{}",
            entry["uuid"].as_str().unwrap()
        ))
        .await
        .json();
    assert_eq!(one["conductor"], "conductor-1");
    let nobody = "00000000-0000-0000-0000-000000000000";
    server
        .get(&format!("{path}/history/{nobody}"))
        .await
        .has_status(404)
        .fault_string();
    server
        .raw("GET", &format!("{path}/history"), &at("1.77"), b"")
        .await
        .has_status(404);
}

#[actix_web::test]
async fn power_and_maintenance_change() {
    let server = server().await;
    let uuid = server.node(json!({"driver": "fake-hardware"})).await;
    let path = format!("/v1/nodes/{uuid}");
    let body = json!({"target": "power on", "timeout": 60});
    server
        .send("PUT", &format!("{path}/states/power"), Some(body))
        .await
        .has_status(202);
    server
        .node_when(&uuid, |node| {
            node["power_state"] == "power on" && node["target_power_state"].is_null()
        })
        .await;
    let maintenance = format!("{path}/maintenance");
    let put = server
        .send("PUT", &maintenance, Some(json!({"reason": "disk"})))
        .await
        .has_status(202);
    assert!(put.body.is_empty());
    let node = server.get(&path).await.json();
    assert_eq!(
        (&node["maintenance"], &node["maintenance_reason"]),
        (&json!(true), &json!("disk"))
    );
    server
        .send("DELETE", &maintenance, None)
        .await
        .has_status(202);
    assert_eq!(
        server.get(&path).await.json()["maintenance_reason"],
        Value::Null
    );
    server.send("PUT", &maintenance, None).await.has_status(202);
    server
        .send("PUT", &maintenance, Some(json!({"reason": 5})))
        .await
        .has_status(400);
}

#[actix_web::test]
async fn protected_nodes_and_nodes_at_work_can_not_be_deleted() {
    let server = server().await;
    let instance = "6523b921-218d-4849-a3bb-3ab765c2fcdd";
    let uuid = server
        .node(json!({"driver": "fake-hardware", "instance_uuid": instance}))
        .await;
    let path = format!("/v1/nodes/{uuid}");
    server
        .send("DELETE", &path, None)
        .await
        .has_status(409)
        .fault_string();
    let patch = json!([{"op": "add", "path": "/protected", "value": true}]);
    server
        .send("PATCH", &path, Some(patch))
        .await
        .has_status(409)
        .fault_string();
    server
        .send("PUT", &format!("{path}/maintenance"), None)
        .await
        .has_status(202);
    server.send("DELETE", &path, None).await.has_status(204);
}

#[actix_web::test]
async fn what_this_version_has_not_is_said_in_the_way_clients_expect() {
    let server = server().await;
    let uuid = server.node(json!({"driver": "fake-hardware"})).await;
    let path = format!("/v1/nodes/{uuid}");
    server
        .get(&format!("{path}/inventory"))
        .await
        .has_status(404)
        .fault_string();
    assert_eq!(
        server.get(&format!("{path}/traits")).await.json(),
        json!({"traits": []})
    );
    server
        .raw("GET", &format!("{path}/traits"), &at("1.36"), b"")
        .await
        .has_status(406);
    server
        .raw("GET", &format!("{path}/inventory"), &at("1.80"), b"")
        .await
        .has_status(404)
        .is_routing_failure();
    server
        .get(&format!("{path}/management/indicators"))
        .await
        .has_status(404)
        .is_routing_failure();
    let report = server
        .get(&format!("{path}/validate"))
        .await
        .has_status(200)
        .json();
    assert_eq!(report["deploy"]["result"], false);
    assert_eq!(report["power"]["result"], true);
}
