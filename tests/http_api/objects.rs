//! Chassis, deploy templates, runbooks and inspection rules as a client sees them.

use serde_json::{Value, json};

use crate::server::{Server, at, server};

const NOBODY: &str = "00000000-0000-0000-0000-000000000000";

/// The youngest version; what the other helpers of these tests send may be older.
async fn send(server: &Server, method: &str, path: &str, body: Value) -> crate::server::Answer {
    let body = if body.is_null() {
        String::new()
    } else {
        body.to_string()
    };
    server
        .raw(method, path, &at("latest"), body.as_bytes())
        .await
}

fn step(rank: &str) -> Value {
    json!({"interface": "bios", "step": "apply", "args": {"password": "p", "a": 1}, rank: 5})
}

/// Each kind: where it is, what makes one, how it may be named, and what changes it.
fn kinds() -> Vec<(&'static str, u16, Value, Option<&'static str>, Value)> {
    vec![
        (
            "chassis",
            1,
            json!({"description": "rack 1", "extra": {"a": 1}}),
            None,
            json!([{"op": "replace", "path": "/description", "value": "rack 2"}]),
        ),
        (
            "deploy_templates",
            55,
            json!({"name": "CUSTOM_A", "steps": [step("priority")]}),
            Some("CUSTOM_A"),
            json!([{"op": "add", "path": "/extra/a", "value": 2}]),
        ),
        (
            "runbooks",
            92,
            json!({"name": "CUSTOM_A", "steps": [step("order")], "public": "True"}),
            Some("CUSTOM_A"),
            json!([{"op": "add", "path": "/description", "value": "yearly"}]),
        ),
        (
            "inspection_rules",
            96,
            json!({"actions": [{"op": "set-attribute", "args": {"path": "a", "value": 1}}], "conditions": null}),
            None,
            json!([{"op": "replace", "path": "/priority", "value": 7}]),
        ),
    ]
}

#[actix_web::test]
async fn every_kind_is_created_shown_changed_and_deleted() {
    let server = server().await;
    for (plural, _, document, name, patch) in kinds() {
        let path = format!("/v1/{plural}");
        let created = send(&server, "POST", &path, document.clone())
            .await
            .has_status(201);
        let object = created.json();
        let uuid = object["uuid"].as_str().unwrap().to_owned();
        let own = format!("{path}/{uuid}");
        assert_eq!(
            created.header("location").unwrap(),
            format!("http://upbeat.test:6385{own}")
        );
        assert_eq!(
            object["links"][0]["href"],
            format!("http://upbeat.test:6385{own}")
        );
        assert_eq!(object["updated_at"], Value::Null);
        assert_eq!(server.get(&own).await.has_status(200).json(), object);
        if let Some(name) = name {
            let by_name = server.get(&format!("{path}/{name}")).await;
            assert_eq!(by_name.has_status(200).json()["uuid"], *uuid);
            let again = send(&server, "POST", &path, document.clone()).await;
            assert!(again.has_status(409).fault_string().contains(name));
        }
        let mut same = document.clone();
        same["uuid"] = json!(uuid);
        if name.is_some() {
            same["name"] = json!("CUSTOM_OTHER");
        }
        let same = send(&server, "POST", &path, same).await;
        assert!(same.has_status(409).fault_string().contains(&uuid));
        let list = server.get(&path).await.has_status(200).json();
        let items = list[plural].as_array().unwrap();
        assert_eq!(items.len(), 1, "{plural}");
        assert!(
            items[0].get("created_at").is_none(),
            "{plural}: the short form"
        );
        let full = server.get(&format!("{path}?detail=true")).await.json();
        assert_eq!(full[plural][0], object, "{plural}");
        let chosen = server.get(&format!("{own}?fields=uuid")).await.json();
        assert_eq!(chosen.as_object().unwrap().len(), 2, "{chosen}");
        server
            .get(&format!("{own}?fields=colour"))
            .await
            .has_status(400)
            .fault_string();
        let changed = send(&server, "PATCH", &own, patch.clone())
            .await
            .has_status(200)
            .json();
        assert_ne!(changed["updated_at"], Value::Null);
        let field = patch[0]["path"]
            .as_str()
            .unwrap()
            .split('/')
            .nth(1)
            .unwrap();
        assert_ne!(changed[field], object[field], "{plural}");
        for wrong in [
            json!([{"op": "add", "path": "/uuid", "value": NOBODY}]),
            json!([{"op": "add", "path": "/colour", "value": 1}]),
            json!({"op": "add"}),
        ] {
            let refused = send(&server, "PATCH", &own, wrong).await;
            refused.has_status(400).fault_string();
        }
        let unchanged = send(&server, "PATCH", &own, json!([])).await;
        assert_eq!(unchanged.has_status(200).json(), changed);
        let mut wrong = document.clone();
        wrong["colour"] = json!("red");
        let wrong = send(&server, "POST", &path, wrong).await;
        assert!(wrong.has_status(400).fault_string().contains("colour"));
        send(&server, "POST", &path, json!([]))
            .await
            .has_status(400)
            .fault_string();
        let gone = send(&server, "DELETE", &own, Value::Null)
            .await
            .has_status(204);
        assert!(gone.body.is_empty());
        for method in ["GET", "DELETE"] {
            let missing = send(&server, method, &own, Value::Null).await;
            missing.has_status(404).fault_string();
        }
        let missing = send(&server, "PATCH", &own, patch).await;
        missing.has_status(404).fault_string();
    }
}

#[actix_web::test]
async fn kinds_are_as_old_as_they_are() {
    let server = server().await;
    for (plural, since, document, ..) in kinds() {
        if since == 1 {
            continue;
        }
        let path = format!("/v1/{plural}");
        let before = at(&format!("1.{}", since - 1));
        server
            .raw("GET", &path, &before, b"")
            .await
            .has_status(404)
            .is_routing_failure();
        let status = if plural == "runbooks" { 404 } else { 405 };
        let body = document.to_string();
        server
            .raw("POST", &path, &before, body.as_bytes())
            .await
            .has_status(status)
            .is_routing_failure();
        let since = at(&format!("1.{since}"));
        server.raw("GET", &path, &since, b"").await.has_status(200);
        server
            .raw("POST", &path, &since, body.as_bytes())
            .await
            .has_status(201);
    }
    for (path, method) in [
        ("/v1/chassis", "DELETE"),
        ("/v1/deploy_templates", "DELETE"),
        ("/v1/deploy_templates/CUSTOM_A", "PUT"),
    ] {
        server
            .send(method, path, None)
            .await
            .has_status(405)
            .is_routing_failure();
    }
}

#[actix_web::test]
async fn lists_come_in_pages() {
    let server = server().await;
    for number in 1..=3 {
        let document = json!({"name": format!("CUSTOM_{number}"), "steps": [step("priority")]});
        send(&server, "POST", "/v1/deploy_templates", document)
            .await
            .has_status(201);
    }
    let mut path = "/v1/deploy_templates?limit=2&sort_key=name&sort_dir=desc".to_owned();
    let mut seen = Vec::new();
    loop {
        let page = server.get(&path).await.has_status(200).json();
        for item in page["deploy_templates"].as_array().unwrap() {
            seen.push(item["name"].as_str().unwrap().to_owned());
        }
        let Some(next) = page["next"].as_str() else {
            break;
        };
        path = next
            .strip_prefix("http://upbeat.test:6385")
            .unwrap()
            .to_owned();
        assert!(path.contains("sort_key=name"), "{path}");
    }
    assert_eq!(seen, ["CUSTOM_3", "CUSTOM_2", "CUSTOM_1"]);
    server
        .get(&format!("/v1/deploy_templates?marker={NOBODY}"))
        .await
        .has_status(404)
        .fault_string();
    for wrong in [
        "limit=0",
        "sort_key=steps",
        "sort_dir=up",
        "marker=x",
        "odd=1",
    ] {
        server
            .get(&format!("/v1/deploy_templates?{wrong}"))
            .await
            .has_status(400)
            .fault_string();
    }
}

#[actix_web::test]
async fn secrets_in_steps_and_in_rules_stay_hidden() {
    let server = server().await;
    for (path, rank) in [
        ("/v1/deploy_templates", "priority"),
        ("/v1/runbooks", "order"),
    ] {
        let document = json!({"name": "CUSTOM_A", "steps": [step(rank)]});
        let created = send(&server, "POST", path, document)
            .await
            .has_status(201)
            .json();
        let args = &created["steps"][0]["args"];
        assert_eq!(
            (&args["password"], &args["a"]),
            (&json!("******"), &json!(1))
        );
    }
    let rule = json!({"sensitive": "true", "actions": [{"op": "log", "args": {"msg": "s"}}]});
    let created = send(&server, "POST", "/v1/inspection_rules", rule)
        .await
        .has_status(201)
        .json();
    assert_eq!(created["actions"], Value::Null);
    assert_eq!(created["conditions"], Value::Null);
    let own = format!("/v1/inspection_rules/{}", created["uuid"].as_str().unwrap());
    let open = json!([{"op": "replace", "path": "/sensitive", "value": false}]);
    send(&server, "PATCH", &own, open)
        .await
        .has_status(400)
        .fault_string();
}

#[actix_web::test]
async fn all_inspection_rules_go_at_once() {
    let server = server().await;
    let rule = json!({"actions": [{"op": "fail", "args": {"msg": "m"}}]});
    for _ in 0..3 {
        send(&server, "POST", "/v1/inspection_rules", rule.clone())
            .await
            .has_status(201);
    }
    for _ in 0..2 {
        send(&server, "DELETE", "/v1/inspection_rules", Value::Null)
            .await
            .has_status(204);
        let list = server.get("/v1/inspection_rules").await.json();
        assert_eq!(list["inspection_rules"], json!([]));
    }
}

#[actix_web::test]
async fn a_chassis_holds_nodes_and_stays_as_long_as_it_does() {
    let server = server().await;
    let chassis = send(&server, "POST", "/v1/chassis", json!({}))
        .await
        .has_status(201)
        .json();
    let uuid = chassis["uuid"].as_str().unwrap();
    let node = server
        .node(json!({"driver": "fake-hardware", "chassis_uuid": uuid}))
        .await;
    server.node(json!({"driver": "fake-hardware"})).await;
    for path in [
        format!("/v1/chassis/{uuid}/nodes"),
        format!("/v1/chassis/{uuid}/nodes/detail"),
        format!("/v1/nodes?chassis_uuid={uuid}"),
    ] {
        let list = server.get(&path).await.has_status(200).json();
        assert_eq!(list["nodes"].as_array().unwrap().len(), 1, "{path}");
        assert_eq!(list["nodes"][0]["uuid"], *node);
    }
    let next = server
        .get(&format!("/v1/chassis/{uuid}/nodes?limit=1"))
        .await;
    let next = next.json()["next"].as_str().unwrap().to_owned();
    assert!(
        next.contains(&format!("/v1/chassis/{uuid}/nodes?")),
        "{next}"
    );
    let own = format!("/v1/chassis/{uuid}");
    let refused = send(&server, "DELETE", &own, Value::Null).await;
    assert!(refused.has_status(400).fault_string().contains("1 nodes"));
    let path = format!("/v1/nodes/{node}");
    let out = json!([{"op": "remove", "path": "/chassis_uuid"}]);
    let body = out.to_string();
    server
        .raw("PATCH", &path, &at("1.24"), body.as_bytes())
        .await
        .has_status(400);
    let changed = send(&server, "PATCH", &path, out).await.has_status(200);
    assert_eq!(changed.json()["chassis_uuid"], Value::Null);
    send(&server, "DELETE", &own, Value::Null)
        .await
        .has_status(204);
    // One that is not there: 400 in a body, 404 in a filter and a path.
    let missing = json!([{"op": "add", "path": "/chassis_uuid", "value": NOBODY}]);
    send(&server, "PATCH", &path, missing)
        .await
        .has_status(400)
        .fault_string();
    for path in [
        format!("/v1/nodes?chassis_uuid={NOBODY}"),
        format!("/v1/chassis/{NOBODY}/nodes"),
    ] {
        server.get(&path).await.has_status(404).fault_string();
    }
    server
        .get("/v1/chassis/name/nodes")
        .await
        .has_status(400)
        .is_routing_failure();
}

#[actix_web::test]
async fn a_runbook_has_traits_and_a_free_name_from_1_112_on() {
    let server = server().await;
    let document = json!({"name": "yearly service", "steps": [step("order")]});
    let body = document.to_string();
    server
        .raw("POST", "/v1/runbooks", &at("1.111"), body.as_bytes())
        .await
        .has_status(400);
    send(&server, "POST", "/v1/runbooks", document)
        .await
        .has_status(201);
    let path = "/v1/runbooks/yearly%20service/traits";
    let get = async || send(&server, "GET", path, Value::Null).await.json();
    assert_eq!(get().await, json!({"traits": []}));
    let set = json!({"traits": ["CUSTOM_B", "CUSTOM_A"]});
    send(&server, "PUT", path, set).await.has_status(204);
    let add = format!("{path}/HW_C");
    send(&server, "PUT", &add, Value::Null)
        .await
        .has_status(204);
    assert_eq!(
        get().await,
        json!({"traits": ["CUSTOM_A", "CUSTOM_B", "HW_C"]})
    );
    send(&server, "DELETE", &add, Value::Null)
        .await
        .has_status(204);
    send(&server, "DELETE", &add, Value::Null)
        .await
        .has_status(404)
        .fault_string();
    let wrong = json!({"traits": ["gold"]});
    send(&server, "PUT", path, wrong)
        .await
        .has_status(400)
        .fault_string();
    send(&server, "DELETE", path, Value::Null)
        .await
        .has_status(204);
    assert_eq!(get().await, json!({"traits": []}));
    server
        .raw("GET", path, &at("1.111"), b"")
        .await
        .has_status(404)
        .is_routing_failure();
}
