//! Port groups, volume connectors and targets, traits, children and shards as a client sees them.

use serde_json::{Value, json};

use crate::server::{Answer, Server, at, server};

const NOBODY: &str = "00000000-0000-0000-0000-000000000000";
const MAC: &str = "52:54:00:aa:00:01";

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

async fn a_node(server: &Server) -> String {
    server
        .node(json!({"driver": "fake-hardware", "name": "n"}))
        .await
}

#[actix_web::test]
async fn a_port_group_is_created_found_changed_and_deleted() {
    let server = server().await;
    let node = a_node(&server).await;
    let document = json!({"address": "52-54-00-AA-00-01", "node_uuid": node, "name": "bond0", "properties": {"miimon": 1}});
    let created = send(&server, "POST", "/v1/portgroups", document.clone())
        .await
        .has_status(201);
    let group = created.json();
    let uuid = group["uuid"].as_str().unwrap().to_owned();
    assert_eq!(
        created.header("location").unwrap(),
        format!("http://upbeat.test:6385/v1/portgroups/{uuid}")
    );
    assert_eq!(group["address"], MAC);
    assert_eq!(group["mode"], "active-backup");
    assert_eq!(group["standalone_ports_supported"], true);
    assert_eq!(group["dynamic_portgroup"], false);
    for path in [
        format!("/v1/portgroups?address={MAC}"),
        "/v1/portgroups?node=n".to_owned(),
        "/v1/portgroups/detail".to_owned(),
        "/v1/portgroups?fields=uuid,mode".to_owned(),
        "/v1/nodes/n/portgroups".to_owned(),
        format!("/v1/nodes/{node}/portgroups/detail"),
    ] {
        let list = server.get(&path).await.has_status(200).json();
        assert_eq!(list["portgroups"].as_array().unwrap().len(), 1, "{path}");
        assert_eq!(list["portgroups"][0]["uuid"], *uuid, "{path}");
    }
    let none = server.get("/v1/portgroups?address=52:54:00:aa:00:99").await;
    assert_eq!(none.json()["portgroups"], json!([]));
    let short = server.get("/v1/portgroups").await.json();
    assert!(short["portgroups"][0].get("mode").is_none());
    let port = json!({"address": "52:54:00:aa:00:02", "node_uuid": node, "portgroup_uuid": uuid});
    let port = send(&server, "POST", "/v1/ports", port)
        .await
        .has_status(201)
        .json();
    assert_eq!(port["portgroup_uuid"], *uuid);
    for path in [
        "/v1/ports?portgroup=bond0",
        "/v1/portgroups/bond0/ports",
        "/v1/portgroups/bond0/ports/detail",
    ] {
        let list = server.get(path).await.has_status(200).json();
        assert_eq!(list["ports"].as_array().unwrap().len(), 1, "{path}");
        assert_eq!(list["ports"][0]["uuid"], port["uuid"], "{path}");
    }
    let own = format!("/v1/portgroups/{uuid}");
    let refused = send(&server, "DELETE", &own, Value::Null).await;
    assert!(refused.has_status(400).fault_string().contains("1 ports"));
    let out = json!([{"op": "remove", "path": "/portgroup_uuid"}]);
    let path = format!("/v1/ports/{}", port["uuid"].as_str().unwrap());
    send(&server, "PATCH", &path, out).await.has_status(200);
    let patch = json!([
        {"op": "replace", "path": "/mode", "value": "802.3ad"},
        {"op": "remove", "path": "/properties/miimon"},
        {"op": "remove", "path": "/name"},
    ]);
    let changed = send(&server, "PATCH", &own, patch)
        .await
        .has_status(200)
        .json();
    assert_eq!(changed["mode"], "802.3ad");
    assert_eq!(
        (&changed["properties"], &changed["name"]),
        (&json!({}), &Value::Null)
    );
    send(&server, "DELETE", &own, Value::Null)
        .await
        .has_status(204);
    for method in ["GET", "DELETE"] {
        let missing = send(&server, method, &own, Value::Null).await;
        missing.has_status(404).fault_string();
    }
}

#[actix_web::test]
async fn bad_port_groups_are_refused_and_not_stored() {
    let server = server().await;
    let node = a_node(&server).await;
    let first = json!({"address": MAC, "node_uuid": node, "name": "bond0"});
    send(&server, "POST", "/v1/portgroups", first)
        .await
        .has_status(201);
    for (document, status, word) in [
        (json!({"address": MAC, "node_uuid": node}), 409, MAC),
        (json!({"name": "bond0", "node_uuid": node}), 409, "bond0"),
        (json!({"address": "x", "node_uuid": node}), 400, "address"),
        (json!({}), 400, "node_uuid"),
        (json!({"node_uuid": NOBODY}), 400, NOBODY),
        (json!({"node_uuid": node, "name": "a b"}), 400, "name"),
        (json!({"node_uuid": node, "colour": 1}), 400, "colour"),
        (
            json!({"node_uuid": node, "dynamic_portgroup": true}),
            400,
            "dynamic",
        ),
    ] {
        let answer = send(&server, "POST", "/v1/portgroups", document.clone()).await;
        let text = answer.has_status(status).fault_string();
        assert!(text.contains(word), "{document}: {text}");
    }
    let list = server.get("/v1/portgroups").await.json();
    assert_eq!(list["portgroups"].as_array().unwrap().len(), 1);
    server
        .get("/v1/portgroups?address=x")
        .await
        .has_status(400)
        .fault_string();
    for path in [
        "/v1/portgroups?node=nobody",
        "/v1/ports?portgroup=nobody",
        "/v1/portgroups/nobody",
    ] {
        server.get(path).await.has_status(404).fault_string();
    }
    for (version, document, status) in [
        ("1.25", json!({"node_uuid": node, "mode": "x"}), 406),
        ("1.25", json!({"node_uuid": node}), 201),
        (
            "1.101",
            json!({"node_uuid": node, "physical_network": "x"}),
            406,
        ),
        ("1.22", json!({"node_uuid": node}), 404),
    ] {
        let body = document.to_string();
        server
            .raw("POST", "/v1/portgroups", &at(version), body.as_bytes())
            .await
            .has_status(status);
    }
    server
        .raw("GET", "/v1/portgroups?shard=a", &at("1.105"), b"")
        .await
        .has_status(406);
}

#[actix_web::test]
async fn volumes_are_created_found_changed_and_deleted() {
    let server = server().await;
    let node = a_node(&server).await;
    for (plural, schema, name, patch) in [
        (
            "connectors",
            json!({"node_uuid": node, "type": "iqn", "connector_id": "iqn.a"}),
            "connector_id",
            json!([{"op": "add", "path": "/connector_id", "value": "iqn.b"}]),
        ),
        (
            "targets",
            json!({"node_uuid": node, "volume_type": "iscsi", "volume_id": "v", "boot_index": 0,
                "properties": {"auth_password": "p", "target_lun": 1}}),
            "volume_id",
            json!([{"op": "add", "path": "/volume_id", "value": "w"}]),
        ),
    ] {
        let path = format!("/v1/volume/{plural}");
        let created = send(&server, "POST", &path, schema.clone())
            .await
            .has_status(201);
        let part = created.json();
        let uuid = part["uuid"].as_str().unwrap();
        let own = format!("{path}/{uuid}");
        assert_eq!(
            created.header("location").unwrap(),
            format!("http://upbeat.test:6385{own}")
        );
        if plural == "targets" {
            let properties = json!({"auth_password": "******", "target_lun": 1});
            assert_eq!(part["properties"], properties);
        }
        send(&server, "POST", &path, schema)
            .await
            .has_status(409)
            .fault_string();
        for list in [
            path.clone(),
            format!("{path}?node=n"),
            format!("{path}?detail=True"),
            format!("/v1/nodes/n/volume/{plural}"),
        ] {
            let found = server.get(&list).await.has_status(200).json();
            assert_eq!(found[plural].as_array().unwrap().len(), 1, "{list}");
            assert_eq!(found[plural][0][name], part[name], "{list}");
        }
        // The power state of a node that was just enrolled is not known.
        for (method, body) in [("PATCH", patch.clone()), ("DELETE", Value::Null)] {
            let refused = send(&server, method, &own, body).await;
            let text = refused.has_status(400).fault_string();
            assert!(text.contains("power off"), "{text}");
        }
        let off = json!({"target": "power off"});
        send(&server, "PUT", "/v1/nodes/n/states/power", off)
            .await
            .has_status(202);
        server
            .node_when(&node, |node| node["power_state"] == "power off")
            .await;
        let changed = send(&server, "PATCH", &own, patch)
            .await
            .has_status(200)
            .json();
        assert_ne!(changed[name], part[name]);
        send(&server, "DELETE", &own, Value::Null)
            .await
            .has_status(204);
        server.get(&own).await.has_status(404).fault_string();
        server
            .get(&format!("{path}/name"))
            .await
            .has_status(400)
            .is_routing_failure();
        let on = json!({"target": "power on"});
        send(&server, "PUT", "/v1/nodes/n/states/power", on)
            .await
            .has_status(202);
        server
            .node_when(&node, |node| node["power_state"] == "power on")
            .await;
    }
    for (path, own) in [
        ("/v1/volume".to_owned(), "volume".to_owned()),
        (
            "/v1/nodes/n/volume".to_owned(),
            format!("nodes/{node}/volume"),
        ),
    ] {
        let index = server.get(&path).await.has_status(200).json();
        assert_eq!(
            index["connectors"][0]["href"],
            format!("http://upbeat.test:6385/v1/{own}/connectors")
        );
        assert_eq!(
            index["links"][1]["href"],
            format!("http://upbeat.test:6385/{own}")
        );
        server
            .raw("GET", &path, &at("1.31"), b"")
            .await
            .has_status(404)
            .is_routing_failure();
    }
    for wrong in [
        json!({"node_uuid": node, "type": "odd", "connector_id": "x"}),
        json!({"node_uuid": node, "type": "iqn"}),
        json!({"type": "iqn", "connector_id": "x"}),
    ] {
        send(&server, "POST", "/v1/volume/connectors", wrong)
            .await
            .has_status(400)
            .fault_string();
    }
}

#[actix_web::test]
async fn traits_of_a_node_are_set_added_and_removed() {
    let server = server().await;
    let node = a_node(&server).await;
    let path = format!("/v1/nodes/{node}/traits");
    let get = async || server.get(&path).await.has_status(200).json()["traits"].clone();
    let set = json!({"traits": ["CUSTOM_B", "HW_CPU_X86_VMX"]});
    let answer = send(&server, "PUT", &path, set.clone())
        .await
        .has_status(204);
    assert!(answer.body.is_empty());
    send(&server, "PUT", &format!("{path}/CUSTOM_A"), Value::Null)
        .await
        .has_status(204);
    let all = json!(["CUSTOM_A", "CUSTOM_B", "HW_CPU_X86_VMX"]);
    assert_eq!(get().await, all);
    let shown = server.get(&format!("/v1/nodes/{node}")).await.json();
    assert_eq!(shown["traits"], all);
    let one = format!("{path}/CUSTOM_A");
    send(&server, "DELETE", &one, Value::Null)
        .await
        .has_status(204);
    send(&server, "DELETE", &one, Value::Null)
        .await
        .has_status(404)
        .fault_string();
    let many: Vec<String> = (0..51).map(|n| format!("CUSTOM_{n}")).collect();
    for wrong in [
        json!({"traits": ["custom"]}),
        json!({"traits": "CUSTOM_A"}),
        json!({"traits": [1]}),
        json!({"traits": many}),
        json!({}),
    ] {
        send(&server, "PUT", &path, wrong)
            .await
            .has_status(400)
            .fault_string();
    }
    send(&server, "PUT", &format!("{path}/gold"), Value::Null)
        .await
        .has_status(400)
        .fault_string();
    assert_eq!(get().await.as_array().unwrap().len(), 2);
    for (method, path) in [
        ("GET", &path),
        ("PUT", &path),
        ("DELETE", &one),
        ("PUT", &one),
    ] {
        server
            .raw(method, path, &at("1.36"), set.to_string().as_bytes())
            .await
            .has_status(406);
    }
    send(&server, "DELETE", &path, Value::Null)
        .await
        .has_status(204);
    assert_eq!(get().await, json!([]));
}

#[actix_web::test]
async fn children_and_shards_are_counted() {
    let server = server().await;
    let parent = a_node(&server).await;
    let child = server
        .node(json!({"driver": "fake-hardware", "parent_node": parent, "shard": "s1"}))
        .await;
    let path = format!("/v1/nodes/{parent}/children");
    let found = server.get(&path).await.has_status(200).json();
    assert_eq!(found["children"], json!([child]));
    assert_eq!(
        found["links"]["href"],
        format!("http://upbeat.test:6385{path}")
    );
    server
        .raw("GET", &path, &at("1.82"), b"")
        .await
        .has_status(404)
        .is_routing_failure();
    let shards = server.get("/v1/shards").await.has_status(200).json();
    assert_eq!(
        shards["shards"],
        json!([{"name": "None", "count": 1}, {"name": "s1", "count": 1}])
    );
    server
        .raw("GET", "/v1/shards", &at("1.81"), b"")
        .await
        .has_status(404)
        .is_routing_failure();
    server
        .get("/v1/nodes/nobody/children")
        .await
        .has_status(404)
        .fault_string();
}

#[actix_web::test]
async fn a_deleted_node_is_not_there_for_a_second_delete() {
    let server = server().await;
    let node = a_node(&server).await;
    let path = format!("/v1/nodes/{node}");
    server.send("DELETE", &path, None).await.has_status(204);
    for path in [path.as_str(), "/v1/nodes/n"] {
        server
            .send("DELETE", path, None)
            .await
            .has_status(404)
            .fault_string();
    }
}

#[actix_web::test]
async fn parents_and_children_are_two_generations_and_no_ring() {
    let server = server().await;
    let node = async |name: &str, parent: Value| {
        let document = json!({"driver": "fake-hardware", "name": name, "parent_node": parent});
        server.node(document).await
    };
    let parent = node("parent", Value::Null).await;
    let child = node("child", json!(parent)).await;
    let other = node("other", Value::Null).await;
    let adopt = async |of: &str, by: &str| {
        let patch = json!([{"op": "add", "path": "/parent_node", "value": by}]);
        send(&server, "PATCH", &format!("/v1/nodes/{of}"), patch).await
    };
    for (of, by, said) in [
        (&parent, &child, "has child nodes"),
        (&parent, &other, "has child nodes"),
        (&other, &child, "is a child itself"),
    ] {
        let refused = adopt(of, by).await;
        assert_eq!(refused.status, 400);
        let text = String::from_utf8(refused.body).unwrap();
        assert!(text.contains(said), "{text}");
    }
    let path = format!("/v1/nodes/{parent}");
    let refused = send(&server, "DELETE", &path, Value::Null).await;
    assert_eq!(refused.status, 409);
    let text = String::from_utf8(refused.body).unwrap();
    assert!(text.contains("children"), "{text}");
    send(
        &server,
        "DELETE",
        &format!("/v1/nodes/{child}"),
        Value::Null,
    )
    .await
    .has_status(204);
    send(&server, "DELETE", &path, Value::Null)
        .await
        .has_status(204);
}
