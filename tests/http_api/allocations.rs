//! Allocations as a client sees them: from the wish to the node, or to the reasons why there is none.

use serde_json::{Value, json};

use crate::server::{Answer, Server, at, server};

const NOBODY: &str = "00000000-0000-0000-0000-000000000000";

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

/// An available node of a class; its power state is known.
async fn available(server: &Server, name: &str, class: &str) -> String {
    let document = json!({"driver": "fake-hardware", "name": name, "resource_class": class, "automated_clean": false});
    let uuid = server.node(document).await;
    for (verb, state) in [("manage", "manageable"), ("provide", "available")] {
        let path = format!("/v1/nodes/{uuid}/states/provision");
        send(server, "PUT", &path, json!({"target": verb}))
            .await
            .has_status(202);
        server
            .node_when(&uuid, |node| node["provision_state"] == state)
            .await;
    }
    uuid
}

async fn wish(server: &Server, document: Value) -> Value {
    let created = send(server, "POST", "/v1/allocations", document).await;
    let allocation = created.has_status(201).json();
    assert_eq!(allocation["state"], "allocating");
    assert_eq!(allocation["node_uuid"], Value::Null);
    allocation
}

/// What became of it.
async fn settled(server: &Server, allocation: &Value) -> Value {
    let path = format!("/v1/allocations/{}", allocation["uuid"].as_str().unwrap());
    let limit = std::time::Instant::now() + std::time::Duration::from_secs(20);
    loop {
        let now = send(server, "GET", &path, Value::Null).await;
        let now = now.has_status(200).json();
        if now["state"] != "allocating" {
            return now;
        }
        assert!(std::time::Instant::now() < limit, "never settled: {now}");
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}

#[actix_web::test]
async fn an_allocation_takes_a_node_and_gives_it_back() {
    let server = server().await;
    let node = available(&server, "n", "large").await;
    let path = format!("/v1/nodes/{node}");
    let traits = json!({"traits": ["CUSTOM_A"]});
    send(&server, "PUT", &format!("{path}/traits"), traits)
        .await
        .has_status(204);
    let asked = wish(
        &server,
        json!({"resource_class": "large", "name": "a", "traits": ["CUSTOM_A"], "extra": {"b": 1}}),
    )
    .await;
    let allocation = settled(&server, &asked).await;
    assert_eq!(allocation["state"], "active", "{allocation}");
    assert_eq!(allocation["node_uuid"], *node);
    assert_eq!(allocation["last_error"], Value::Null);
    let uuid = allocation["uuid"].as_str().unwrap();
    let taken = server.get(&path).await.json();
    assert_eq!(taken["instance_uuid"], uuid);
    assert_eq!(taken["allocation_uuid"], uuid);
    assert_eq!(taken["instance_info"]["traits"], json!(["CUSTOM_A"]));
    for path in ["/v1/allocations/a".to_owned(), format!("{path}/allocation")] {
        assert_eq!(server.get(&path).await.has_status(200).json(), allocation);
    }
    for (query, count) in [
        ("node=n", 1),
        ("resource_class=large", 1),
        ("resource_class=small", 0),
        ("state=active", 1),
        ("state=error", 0),
        ("owner=p", 0),
    ] {
        let list = server.get(&format!("/v1/allocations?{query}")).await;
        let list = list.has_status(200).json();
        assert_eq!(
            list["allocations"].as_array().unwrap().len(),
            count,
            "{query}"
        );
    }
    // No other instance over it.
    let other = json!([{"op": "add", "path": "/instance_uuid", "value": NOBODY}]);
    send(&server, "PATCH", &path, other)
        .await
        .has_status(409)
        .fault_string();
    let own = format!("/v1/allocations/{uuid}");
    let rename = json!([{"op": "replace", "path": "/name", "value": "b"}, {"op": "remove", "path": "/extra/b"}]);
    let renamed = send(&server, "PATCH", &own, rename)
        .await
        .has_status(200)
        .json();
    assert_eq!(
        (&renamed["name"], &renamed["extra"]),
        (&json!("b"), &json!({}))
    );
    let class = json!([{"op": "replace", "path": "/resource_class", "value": "small"}]);
    send(&server, "PATCH", &own, class)
        .await
        .has_status(400)
        .fault_string();
    send(&server, "DELETE", "/v1/allocations/b", Value::Null)
        .await
        .has_status(204);
    let free = server.get(&path).await.json();
    for field in ["instance_uuid", "allocation_uuid"] {
        assert_eq!(free[field], Value::Null);
    }
    assert!(free["instance_info"].get("traits").is_none());
    for (method, path) in [
        ("GET", own.as_str()),
        ("DELETE", own.as_str()),
        ("GET", &format!("{path}/allocation")),
        ("DELETE", &format!("{path}/allocation")),
    ] {
        send(&server, method, path, Value::Null)
            .await
            .has_status(404)
            .fault_string();
    }
}

#[actix_web::test]
async fn the_reasons_are_told_where_no_node_fits() {
    let server = server().await;
    let node = available(&server, "busy", "large").await;
    send(
        &server,
        "PUT",
        &format!("/v1/nodes/{node}/maintenance"),
        Value::Null,
    )
    .await
    .has_status(202);
    server
        .node(json!({"driver": "fake-hardware", "name": "new", "resource_class": "large"}))
        .await;
    let failed = settled(
        &server,
        &wish(&server, json!({"resource_class": "large"})).await,
    )
    .await;
    assert_eq!(failed["state"], "error");
    let why = failed["last_error"].as_str().unwrap();
    for words in ["large", "busy", "in maintenance", "new", "\"enroll\""] {
        assert!(why.contains(words), "{words}: {why}");
    }
    let named = json!({"resource_class": "small", "candidate_nodes": ["busy"]});
    let failed = settled(&server, &wish(&server, named).await).await;
    let why = failed["last_error"].as_str().unwrap();
    assert!(
        why.contains("small") && why.contains("its resource class is large"),
        "{why}"
    );
    assert_eq!(failed["candidate_nodes"], json!([node]));
    let own = format!("/v1/allocations/{}", failed["uuid"].as_str().unwrap());
    send(&server, "DELETE", &own, Value::Null)
        .await
        .has_status(204);
}

#[actix_web::test]
async fn many_wishes_share_the_nodes_there_are() {
    let server = server().await;
    for number in 0..3 {
        available(&server, &format!("n-{number}"), "large").await;
    }
    let mut asked = Vec::new();
    for name in ["n-2", "a", "b", "c", "d"] {
        asked.push(wish(&server, json!({"resource_class": "large", "name": name})).await);
    }
    let mut nodes = Vec::new();
    for (index, allocation) in asked.iter().enumerate() {
        let now = settled(&server, allocation).await;
        if index < 3 {
            assert_eq!(now["state"], "active", "{now}");
            nodes.push(now["node_uuid"].as_str().unwrap().to_owned());
        } else {
            assert_eq!(now["state"], "error", "{now}");
        }
    }
    let namesake = server.get("/v1/nodes/n-2").await.json();
    assert_eq!(namesake["uuid"], *nodes[0]);
    nodes.sort();
    nodes.dedup();
    assert_eq!(nodes.len(), 3);
}

#[actix_web::test]
async fn an_allocation_ends_with_the_instance() {
    let server = server().await;
    let node = available(&server, "n", "large").await;
    let path = format!("/v1/nodes/{node}");
    let allocation = wish(&server, json!({"resource_class": "large"})).await;
    settled(&server, &allocation).await;
    let own = format!("/v1/allocations/{}", allocation["uuid"].as_str().unwrap());
    let out = json!([{"op": "remove", "path": "/instance_uuid"}]);
    send(&server, "PATCH", &path, out).await.has_status(200);
    send(&server, "GET", &own, Value::Null)
        .await
        .has_status(404);
    let allocation = wish(&server, json!({"resource_class": "large"})).await;
    settled(&server, &allocation).await;
    let own = format!("/v1/allocations/{}", allocation["uuid"].as_str().unwrap());
    send(
        &server,
        "DELETE",
        &format!("{path}/allocation"),
        Value::Null,
    )
    .await
    .has_status(204);
    send(&server, "GET", &own, Value::Null)
        .await
        .has_status(404);
    // With the node goes its allocation.
    let allocation = wish(&server, json!({"resource_class": "large"})).await;
    settled(&server, &allocation).await;
    let own = format!("/v1/allocations/{}", allocation["uuid"].as_str().unwrap());
    send(&server, "DELETE", &path, Value::Null)
        .await
        .has_status(409);
    send(&server, "PUT", &format!("{path}/maintenance"), Value::Null)
        .await
        .has_status(202);
    send(&server, "DELETE", &path, Value::Null)
        .await
        .has_status(204);
    send(&server, "GET", &own, Value::Null)
        .await
        .has_status(404);
}

#[actix_web::test]
async fn a_node_in_use_gets_its_allocation_afterwards() {
    let server = server().await;
    let instance = "6523b921-218d-4849-a3bb-3ab765c2fcdc";
    let node = server
        .node(json!({"driver": "fake-hardware", "name": "n", "resource_class": "large", "instance_uuid": instance}))
        .await;
    let wrong = json!({"node": "n", "resource_class": "small"});
    send(&server, "POST", "/v1/allocations", wrong)
        .await
        .has_status(409)
        .fault_string();
    let other = json!({"node": "n", "uuid": NOBODY});
    send(&server, "POST", "/v1/allocations", other)
        .await
        .has_status(409)
        .fault_string();
    let list = server.get("/v1/allocations").await.json();
    assert_eq!(
        list["allocations"],
        json!([]),
        "what was refused is not kept"
    );
    let created = send(&server, "POST", "/v1/allocations", json!({"node": "n"}))
        .await
        .has_status(201)
        .json();
    assert_eq!(created["uuid"], instance);
    assert_eq!(created["state"], "active");
    assert_eq!(created["resource_class"], "large");
    assert_eq!(created["node_uuid"], *node);
    for (document, word) in [
        (
            json!({"node": "nobody", "resource_class": "large"}),
            "nobody",
        ),
        (
            json!({"node": "n", "candidate_nodes": ["n"]}),
            "candidate_nodes",
        ),
    ] {
        let refused = send(&server, "POST", "/v1/allocations", document).await;
        assert!(refused.has_status(400).fault_string().contains(word));
    }
}

#[actix_web::test]
async fn bad_wishes_are_refused_and_versions_kept() {
    let server = server().await;
    for (document, word) in [
        (json!({}), "resource_class"),
        (json!({"resource_class": ""}), "resource_class"),
        (
            json!({"resource_class": "large", "candidate_nodes": ["nobody"]}),
            "nobody",
        ),
        (
            json!({"resource_class": "large", "traits": ["gold"]}),
            "traits",
        ),
        (
            json!({"resource_class": "large", "state": "active"}),
            "state",
        ),
        (json!({"resource_class": "large", "name": "a b"}), "name"),
    ] {
        let refused = send(&server, "POST", "/v1/allocations", document).await;
        let text = refused.has_status(400).fault_string();
        assert!(text.contains(word), "{text}");
    }
    let list = server.get("/v1/allocations").await.json();
    assert_eq!(list["allocations"], json!([]));
    let body = |document: Value| document.to_string();
    let plain = json!({"resource_class": "large"});
    for (version, method, path, document, status) in [
        ("1.51", "GET", "/v1/allocations", Value::Null, 404),
        ("1.51", "POST", "/v1/allocations", plain.clone(), 405),
        ("1.52", "POST", "/v1/allocations", plain.clone(), 201),
        ("1.57", "POST", "/v1/allocations", json!({"node": "n"}), 406),
        (
            "1.59",
            "POST",
            "/v1/allocations",
            json!({"resource_class": "l", "owner": "p"}),
            406,
        ),
        ("1.59", "GET", "/v1/allocations?owner=p", Value::Null, 406),
        ("1.56", "PATCH", "/v1/allocations/a", json!([]), 405),
        ("1.60", "GET", "/v1/allocations/nobody", Value::Null, 404),
        (
            "1.60",
            "GET",
            "/v1/allocations?node=nobody",
            Value::Null,
            404,
        ),
        (
            "1.60",
            "GET",
            "/v1/allocations?colour=red",
            Value::Null,
            400,
        ),
    ] {
        let sent = if document.is_null() {
            String::new()
        } else {
            body(document)
        };
        let answer = server
            .raw(method, path, &at(version), sent.as_bytes())
            .await;
        assert_eq!(answer.status, status, "{version} {method} {path}");
    }
}
