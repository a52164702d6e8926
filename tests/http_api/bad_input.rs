//! Whatever is wrong with a request: the right code, a text that names the place, and nothing stored.

use serde_json::{Value, json};

use crate::server::{at, server, server_with};

#[actix_web::test]
async fn malformed_json_names_line_and_column() {
    let server = server().await;
    for (body, place) in [
        ("{\"driver\": \"fake-hardware\",\n oops}", "line 2 column 2"),
        ("{\"driver\": ", "line 1"),
        ("", "empty"),
        ("[]", "object"),
        ("\"text\"", "object"),
        ("{\"driver\": \"fake-hardware\"} x", "line 1"),
        ("\u{0}", "line 1"),
    ] {
        let answer = server
            .raw("POST", "/v1/nodes", &at("1.115"), body.as_bytes())
            .await;
        let text = answer.has_status(400).fault_string();
        assert!(text.contains(place), "{body:?}: {text}");
    }
    let bytes = server
        .raw("POST", "/v1/nodes", &at("1.115"), b"{\"driver\": \"\xff\"}")
        .await;
    bytes.has_status(400).fault_string();
    assert_eq!(server.node_count().await, 0);
}

#[actix_web::test]
async fn any_content_type_but_a_form_is_read_as_json() {
    let server = server().await;
    let body = b"{\"driver\": \"fake-hardware\"}";
    for kind in [
        "application/json-patch+json",
        "text/plain",
        "application/octet-stream",
    ] {
        let headers = format!("Content-Type: {kind}\r\n{}", at("1.115"));
        server
            .raw("POST", "/v1/nodes", &headers, body)
            .await
            .has_status(201);
    }
    let headers = format!(
        "Content-Type: application/x-www-form-urlencoded\r\n{}",
        at("1.115")
    );
    let answer = server
        .raw("POST", "/v1/nodes", &headers, b"driver=fake-hardware")
        .await;
    answer.has_status(400).fault_string();
}

#[actix_web::test]
async fn too_deep_and_too_big_bodies_are_refused() {
    let server = server_with(|settings| {
        settings.configdrive_body_bytes_max = 4096;
        settings.body_bytes_max = 1024;
        settings.findings_bytes_max = 2048;
    })
    .await;
    let nested = |depth: usize| {
        format!(
            "{{\"driver\": \"fake-hardware\", \"extra\": {}1{}}}",
            "{\"a\":".repeat(depth - 1),
            "}".repeat(depth - 1)
        )
    };
    let post = async |body: String| {
        server
            .raw("POST", "/v1/nodes", &at("1.115"), body.as_bytes())
            .await
    };
    post(nested(25)).await.has_status(201);
    let text = post(nested(26)).await.has_status(400).fault_string();
    assert!(text.contains("25"), "{text}");
    let text = post("[".repeat(4000)).await.has_status(400).fault_string();
    assert!(text.contains("25"), "{text}");
    let text = post("x".repeat(4097)).await.has_status(413).fault_string();
    assert!(text.contains("4096"), "{text}");
    let path = "/v1/heartbeat/00000000-0000-0000-0000-000000000000";
    let answer = server.raw("POST", path, &at("1.68"), &[b' '; 1025]).await;
    answer.has_status(413).fault_string();
    for (path, bytes_max) in [("/v1/continue_inspection", 2048), ("/v1/ports", 1024)] {
        let body = vec![b' '; bytes_max];
        let answer = server.raw("POST", path, &at("1.115"), &body).await;
        answer.has_status(400);
        let body = vec![b' '; bytes_max + 1];
        let answer = server.raw("POST", path, &at("1.115"), &body).await;
        answer.has_status(413);
    }
    // Without a length in front, the body is counted as it comes.
    let chunk = format!("1400\r\n{}\r\n0\r\n\r\n", "x".repeat(0x1400));
    let headers = format!("Transfer-Encoding: chunked\r\n{}", at("1.115"));
    let answer = server
        .chunked("POST", "/v1/nodes", &headers, chunk.as_bytes())
        .await;
    answer.has_status(413);
    assert_eq!(server.node_count().await, 1);
}

#[actix_web::test]
async fn many_shallow_patches_can_not_make_a_node_that_is_too_deep_to_read() {
    let server = server().await;
    let document = json!({"driver": "fake-hardware", "name": "deep"});
    let created = server.send("POST", "/v1/nodes", Some(document)).await;
    created.has_status(201);
    let operations: Vec<Value> = (1..300)
        .map(|depth| json!({"op": "add", "path": format!("/extra{}", "/a".repeat(depth)), "value": {}}))
        .collect();
    let answer = server
        .send("PATCH", "/v1/nodes/deep", Some(json!(operations)))
        .await;
    let text = answer.has_status(400).fault_string();
    assert!(text.contains("extra/a") && text.contains("24"), "{text}");
    let node = server.get("/v1/nodes/deep").await.has_status(200).json();
    assert_eq!(node["extra"], json!({}));
}

#[actix_web::test]
async fn an_answer_does_not_repeat_all_a_client_sent() {
    let server = server().await;
    server
        .node(json!({"driver": "fake-hardware", "name": "n"}))
        .await;
    let target = json!({"target": "x".repeat(200_000)});
    let answer = server
        .send("PUT", "/v1/nodes/n/states/power", Some(target))
        .await;
    let text = answer.has_status(400).fault_string();
    assert!(
        text.contains("power state") && text.len() < 1_100,
        "{}",
        text.len()
    );
}

#[actix_web::test]
async fn arguments_have_no_nul_in_them() {
    let server = server().await;
    server
        .node(json!({"driver": "fake-hardware", "name": "n"}))
        .await;
    let reason = json!({"reason": "a\u{0}b"});
    let answer = server
        .send("PUT", "/v1/nodes/n/maintenance", Some(reason))
        .await;
    let text = answer.has_status(400).fault_string();
    assert!(text.contains("reason"), "{text}");
    let text = server
        .get("/v1/nodes?owner=%00")
        .await
        .has_status(400)
        .fault_string();
    assert!(text.contains("owner"), "{text}");
}

#[actix_web::test]
async fn every_bad_field_of_a_new_node_is_named_and_nothing_is_stored() {
    let server = server().await;
    for (document, field) in [
        (json!({}), "driver"),
        (json!({"driver": "ipmi"}), "driver"),
        (json!({"driver": 5}), "driver"),
        (
            json!({"driver": "fake-hardware", "colour": "red"}),
            "colour",
        ),
        (
            json!({"driver": "fake-hardware", "provision_state": "active"}),
            "provision_state",
        ),
        (json!({"driver": "fake-hardware", "uuid": "x"}), "uuid"),
        (json!({"driver": "fake-hardware", "name": "a b"}), "name"),
        (json!({"driver": "fake-hardware", "extra": 5}), "extra"),
        (
            json!({"driver": "fake-hardware", "instance_uuid": "x"}),
            "instance_uuid",
        ),
        (
            json!({"driver": "fake-hardware", "automated_clean": "maybe"}),
            "automated_clean",
        ),
        (
            json!({"driver": "fake-hardware", "boot_interface": "pigeon"}),
            "boot_interface",
        ),
        (
            json!({"driver": "fake-hardware", "properties": {"cpus": "many"}}),
            "properties/cpus",
        ),
        (
            json!({"driver": "fake-hardware", "parent_node": "00000000-0000-0000-0000-000000000000"}),
            "parent_node",
        ),
        (
            json!({"driver": "fake-hardware", "description": "x".repeat(4097)}),
            "description",
        ),
    ] {
        let answer = server
            .send("POST", "/v1/nodes", Some(document.clone()))
            .await
            .has_status(400);
        let text = answer.fault_string();
        assert!(text.contains(field), "{document}: {text}");
    }
    assert_eq!(server.node_count().await, 0);
    server
        .send("POST", "/v1/nodes?driver=fake-hardware", Some(json!({})))
        .await
        .has_status(400);
}

#[actix_web::test]
async fn a_field_younger_than_the_request_is_406() {
    let server = server().await;
    let body = json!({"driver": "fake-hardware", "owner": "me"}).to_string();
    let answer = server
        .raw("POST", "/v1/nodes", &at("1.49"), body.as_bytes())
        .await
        .has_status(406);
    let text = answer.fault_string();
    assert!(text.contains("owner") && text.contains("1.50"), "{text}");
    assert_eq!(
        answer.header("X-OpenStack-Ironic-API-Version"),
        Some("1.49")
    );
    let uuid = server.node(json!({"driver": "fake-hardware"})).await;
    let patch = json!([{"op": "add", "path": "/shard", "value": "s"}]).to_string();
    let path = format!("/v1/nodes/{uuid}");
    server
        .raw("PATCH", &path, &at("1.81"), patch.as_bytes())
        .await
        .has_status(406);
    for (path, version) in [
        ("/v1/nodes?owner=me", "1.49"),
        ("/v1/nodes?fields=owner", "1.49"),
        ("/v1/nodes?fields=uuid", "1.7"),
        ("/v1/nodes?provision_state=enroll", "1.8"),
    ] {
        server
            .raw("GET", path, &at(version), b"")
            .await
            .has_status(406)
            .fault_string();
    }
    assert_eq!(server.node_count().await, 1);
}

#[actix_web::test]
async fn duplicates_are_409_and_name_what_is_taken() {
    let server = server().await;
    let uuid = "6523b921-218d-4849-a3bb-3ab765c2fcdc";
    let instance = "6523b921-218d-4849-a3bb-3ab765c2fcdd";
    server
        .node(json!({"driver": "fake-hardware", "uuid": uuid, "name": "n", "instance_uuid": instance}))
        .await;
    for (document, word) in [
        (json!({"driver": "fake-hardware", "uuid": uuid}), uuid),
        (json!({"driver": "fake-hardware", "name": "n"}), "n"),
        (
            json!({"driver": "fake-hardware", "instance_uuid": instance}),
            instance,
        ),
    ] {
        let text = server
            .send("POST", "/v1/nodes", Some(document))
            .await
            .has_status(409)
            .fault_string();
        assert!(text.contains(word), "{text}");
    }
    let other = server.node(json!({"driver": "fake-hardware"})).await;
    let patch = json!([{"op": "add", "path": "/name", "value": "n"}]);
    let path = format!("/v1/nodes/{other}");
    server
        .send("PATCH", &path, Some(patch))
        .await
        .has_status(409)
        .fault_string();
    assert_eq!(server.get(&path).await.json()["name"], Value::Null);
    assert_eq!(server.node_count().await, 2);
}

#[actix_web::test]
async fn bad_identifiers_are_routing_failures() {
    let server = server().await;
    for path in ["/v1/nodes/a%20b", "/v1/nodes/a%20b/states", "/v1/ports/x!"] {
        server.get(path).await.has_status(400).is_routing_failure();
    }
    for path in [
        "/v1/nodes/nobody",
        "/v1/nodes/00000000-0000-0000-0000-000000000000",
        "/v1/nodes/nobody/validate",
    ] {
        let text = server.get(path).await.has_status(404).fault_string();
        assert!(text.contains("could not be found"), "{text}");
    }
}

#[actix_web::test]
async fn bad_list_parameters_are_400() {
    let server = server().await;
    for query in [
        "limit=0",
        "limit=-1",
        "limit=x",
        "sort_dir=up",
        "sort_key=extra",
        "marker=x",
        "fields=colour",
        "colour=1",
        "fields=uuid&detail=true",
        "detail=maybe",
        "provision_state=Enroll",
        "fault=none",
        "fault=",
        "maintenance=maybe",
        "instance_uuid=x",
        "limit=1&limit=2",
    ] {
        server
            .get(&format!("/v1/nodes?{query}"))
            .await
            .has_status(400)
            .fault_string();
    }
    server
        .get("/v1/nodes/detail?fields=uuid")
        .await
        .has_status(400)
        .fault_string();
    server
        .raw("GET", "/v1/nodes?detail=true", &at("1.42"), b"")
        .await
        .has_status(400);
    let nobody = "00000000-0000-0000-0000-000000000000";
    server
        .get(&format!("/v1/nodes?marker={nobody}"))
        .await
        .has_status(404)
        .fault_string();
    server
        .get(&format!("/v1/nodes?chassis_uuid={nobody}"))
        .await
        .has_status(404)
        .fault_string();
    server
        .get("/v1/ports?address=x")
        .await
        .has_status(400)
        .fault_string();
    server
        .get("/v1/ports?node=nobody")
        .await
        .has_status(404)
        .fault_string();
}

#[actix_web::test]
async fn a_refused_patch_changes_nothing() {
    let server = server().await;
    let uuid = server
        .node(json!({"driver": "fake-hardware", "extra": {"a": 1}}))
        .await;
    let path = format!("/v1/nodes/{uuid}");
    let before = server.get(&path).await.json();
    let fine = json!({"op": "add", "path": "/extra/b", "value": 2});
    for wrong in [
        json!({"op": "add", "path": "/uuid", "value": "x"}),
        json!({"op": "add", "path": "/provision_state", "value": "active"}),
        json!({"op": "remove", "path": "/extra/none"}),
        json!({"op": "add", "path": "/driver", "value": "ipmi"}),
        json!({"op": "move", "path": "/extra/a", "from": "/extra/b"}),
        json!({"op": "add", "path": "extra/a", "value": 1}),
        json!({"op": "add", "path": "/extra/a"}),
        json!("text"),
    ] {
        let patch = json!([fine, wrong]);
        server
            .send("PATCH", &path, Some(patch))
            .await
            .has_status(400)
            .fault_string();
    }
    server
        .send("PATCH", &path, Some(json!({})))
        .await
        .has_status(400);
    assert_eq!(server.get(&path).await.json(), before);
    assert_eq!(
        server
            .send("PATCH", &path, Some(json!([])))
            .await
            .has_status(200)
            .json(),
        before
    );
}

#[actix_web::test]
async fn verbs_and_power_targets_that_can_not_be_are_told_so() {
    let server = server().await;
    let uuid = server.node(json!({"driver": "fake-hardware"})).await;
    let path = format!("/v1/nodes/{uuid}");
    let before = server.get(&path).await.json();
    let provision = format!("{path}/states/provision");
    for body in [
        json!({}),
        json!({"target": 5}),
        json!({"target": "fly"}),
        json!({"target": "done"}),
        json!({"target": "active"}),
        json!({"target": "inspect"}),
        json!({"target": "clean", "clean_steps": []}),
        json!({"target": "manage", "configdrive": "x"}),
        json!({"target": "manage", "odd": 1}),
        json!({"target": "active", "configdrive": "not base64!"}),
        json!({"target": "active", "configdrive": {"meta_data": {}}}),
        json!({"target": "active", "deploy_steps": [{"interface": "deploy", "step": "write_image", "priority": 90}]}),
        json!({"target": "active", "deploy_steps": [{"interface": "network", "step": "x", "priority": 90}]}),
    ] {
        server
            .send("PUT", &provision, Some(body))
            .await
            .has_status(400)
            .fault_string();
    }
    for (verb, version) in [
        ("manage", "1.3"),
        ("deploy", "1.72"),
        ("abort", "1.12"),
        ("clean", "1.14"),
    ] {
        let body = json!({"target": verb}).to_string();
        server
            .raw("PUT", &provision, &at(version), body.as_bytes())
            .await
            .has_status(406);
    }
    let power = format!("{path}/states/power");
    for body in [
        json!({}),
        json!({"target": "on"}),
        json!({"target": "power on", "timeout": 0}),
        json!({"target": "power on", "timeout": 604_801}),
        json!({"target": "power on", "timeout": "soon"}),
        json!({"target": "power on", "odd": 1}),
    ] {
        server
            .send("PUT", &power, Some(body))
            .await
            .has_status(400)
            .fault_string();
    }
    let soft = json!({"target": "soft power off"}).to_string();
    server
        .raw("PUT", &power, &at("1.26"), soft.as_bytes())
        .await
        .has_status(406);
    assert_eq!(server.get(&path).await.json(), before);
}
