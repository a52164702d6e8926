//! Ports as a client sees them.

use serde_json::{Value, json};

use crate::server::{at, server};

const MAC: &str = "52:54:00:aa:00:01";

#[actix_web::test]
async fn a_port_is_created_found_changed_and_deleted() {
    let server = server().await;
    let node = server
        .node(json!({"driver": "fake-hardware", "name": "n"}))
        .await;
    let document = json!({"address": "52:54:00:AA:00:01", "node_uuid": node, "pxe_enabled": "true", "extra": {"a": 1}});
    let created = server
        .send("POST", "/v1/ports", Some(document))
        .await
        .has_status(201);
    let port = created.json();
    let uuid = port["uuid"].as_str().unwrap().to_owned();
    assert_eq!(
        created.header("location").unwrap(),
        format!("http://upbeat.test:6385/v1/ports/{uuid}")
    );
    assert_eq!(port["address"], MAC);
    assert_eq!(port["node_uuid"], *node);
    assert_eq!(port["pxe_enabled"], true);
    for path in [
        format!("/v1/ports?address={MAC}"),
        "/v1/ports?address=52:54:00:AA:00:01&fields=node_uuid,uuid,address".to_owned(),
        format!("/v1/ports?node_uuid={node}"),
        "/v1/ports?node=n".to_owned(),
        "/v1/nodes/n/ports".to_owned(),
        format!("/v1/nodes/{node}/ports/detail"),
    ] {
        let list = server.get(&path).await.has_status(200).json();
        assert_eq!(list["ports"][0]["uuid"], *uuid, "{path}");
        assert_eq!(list["ports"].as_array().unwrap().len(), 1, "{path}");
    }
    assert_eq!(
        server
            .get("/v1/ports?address=52:54:00:aa:00:02")
            .await
            .json()["ports"],
        json!([])
    );
    let path = format!("/v1/ports/{uuid}");
    let patch = json!([{"op": "add", "path": "/name", "value": "eth0"}, {"op": "remove", "path": "/extra/a"}]);
    let changed = server
        .send("PATCH", &path, Some(patch))
        .await
        .has_status(200)
        .json();
    assert_eq!(
        (&changed["name"], &changed["extra"]),
        (&json!("eth0"), &json!({}))
    );
    assert_ne!(changed["updated_at"], Value::Null);
    assert_eq!(server.get("/v1/ports/eth0").await.json(), changed);
    server.send("DELETE", &path, None).await.has_status(204);
    server.get(&path).await.has_status(404).fault_string();
}

#[actix_web::test]
async fn bad_ports_are_refused_and_not_stored() {
    let server = server().await;
    let node = server.node(json!({"driver": "fake-hardware"})).await;
    let first =
        json!({"address": MAC, "node_uuid": node, "uuid": "6523b921-218d-4849-a3bb-3ab765c2fcdc"});
    server
        .send("POST", "/v1/ports", Some(first))
        .await
        .has_status(201);
    for (document, status, word) in [
        (json!({"address": MAC, "node_uuid": node}), 409, MAC),
        (
            json!({"address": "52:54:00:aa:00:02", "node_uuid": node, "uuid": "6523b921-218d-4849-a3bb-3ab765c2fcdc"}),
            409,
            "6523b921-218d-4849-a3bb-3ab765c2fcdc",
        ),
        (json!({"address": "x", "node_uuid": node}), 400, "address"),
        (json!({"node_uuid": node}), 400, "address"),
        (json!({"address": "52:54:00:aa:00:02"}), 400, "node_uuid"),
        (
            json!({"address": "52:54:00:aa:00:02", "node_uuid": "nobody"}),
            400,
            "nobody",
        ),
        (
            json!({"address": "52:54:00:aa:00:02", "node_uuid": "00000000-0000-0000-0000-000000000000"}),
            400,
            "node_uuid",
        ),
        (
            json!({"address": "52:54:00:aa:00:02", "node_uuid": node, "odd": 1}),
            400,
            "odd",
        ),
    ] {
        let answer = server
            .send("POST", "/v1/ports", Some(document.clone()))
            .await
            .has_status(status);
        let text = answer.fault_string();
        assert!(text.contains(word), "{document}: {text}");
    }
    let young = json!({"address": "52:54:00:aa:00:02", "node_uuid": node, "name": "p"}).to_string();
    server
        .raw("POST", "/v1/ports", &at("1.87"), young.as_bytes())
        .await
        .has_status(406);
    let path = "/v1/ports/6523b921-218d-4849-a3bb-3ab765c2fcdc";
    let patch = json!([{"op": "add", "path": "/extra/b", "value": 1}, {"op": "replace", "path": "/address", "value": "x"}]);
    server
        .send("PATCH", path, Some(patch))
        .await
        .has_status(400);
    assert_eq!(server.get(path).await.json()["extra"], json!({}));
    assert_eq!(
        server.get("/v1/ports").await.json()["ports"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
}
