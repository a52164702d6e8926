//! What was reported from the field about input, pages and filters; each with the smallest input that shows it.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::server::{Server, at, server, server_with};

const HOST: &str = "http://upbeat.test:6385";

/// Walks a list to its end, and returns the UUIDs in order with the number of pages.
async fn walked(server: &Server, path: &str, plural: &str) -> (Vec<String>, usize) {
    let (mut uuids, mut pages) = (Vec::new(), 0);
    let mut path = path.to_owned();
    loop {
        let page = server.get(&path).await.has_status(200).json();
        pages += 1;
        for item in page[plural].as_array().unwrap() {
            uuids.push(item["uuid"].as_str().unwrap().to_owned());
        }
        let Some(next) = page["next"].as_str() else {
            return (uuids, pages);
        };
        next.strip_prefix(HOST).unwrap().clone_into(&mut path);
    }
}

#[actix_web::test]
async fn every_field_can_be_removed_or_is_refused() {
    let server = server().await;
    let uuid = server
        .node(json!({"driver": "fake-hardware", "name": "n"}))
        .await;
    let path = format!("/v1/nodes/{uuid}");
    let node = server.get(&path).await.json();
    for name in node.as_object().unwrap().keys() {
        let patch = json!([{"op": "remove", "path": format!("/{name}")}]);
        let answer = server.send("PATCH", &path, Some(patch)).await;
        assert!(
            [200, 400].contains(&answer.status),
            "{name}: {}",
            String::from_utf8_lossy(&answer.body)
        );
        if answer.status == 400 {
            let text = answer.fault_string();
            assert!(text.contains(name), "{name}: {text}");
        }
    }
    let node = server.get(&path).await.json();
    assert_eq!(
        (&node["name"], &node["protected"]),
        (&Value::Null, &json!(false))
    );
    assert_eq!(node["driver"], "fake-hardware");
}

#[actix_web::test]
async fn every_operation_on_a_field_is_checked() {
    let server = server().await;
    let uuid = server
        .node(json!({"driver": "fake-hardware", "name": "before"}))
        .await;
    let path = format!("/v1/nodes/{uuid}");
    for names in [["ok", "bad name"], ["bad name", "ok"]] {
        let patch = names.map(|name| json!({"op": "replace", "path": "/name", "value": name}));
        let answer = server.send("PATCH", &path, Some(json!(patch))).await;
        answer.has_status(400);
    }
    assert_eq!(server.get(&path).await.json()["name"], "before");
}

#[actix_web::test]
async fn names_that_would_hide_something_are_refused() {
    let server = server().await;
    let long = "n".repeat(256);
    for name in [
        "detail",
        "states",
        "validate",
        "maintenance",
        "management",
        "vendor_passthru",
        "",
        "1be26c0b-03f2-4d2e-ae87-c02d7f33c123",
        "a b",
        "../x",
        "ü",
        long.as_str(),
    ] {
        let document = json!({"driver": "fake-hardware", "name": name});
        let answer = server.send("POST", "/v1/nodes", Some(document)).await;
        assert_eq!(answer.status, 400, "{name:?}");
        assert!(answer.fault_string().contains("name"), "{name:?}");
    }
    assert_eq!(server.node_count().await, 0);
    for name in ["metal3~node-1", "a.b.", "n".repeat(255).as_str()] {
        server
            .node(json!({"driver": "fake-hardware", "name": name}))
            .await;
        let found = server.get(&format!("/v1/nodes/{name}")).await;
        assert_eq!(found.has_status(200).json()["name"], name);
    }
}

#[actix_web::test]
async fn an_unknown_interface_is_told_with_what_there_is() {
    let server = server().await;
    let uuid = server.node(json!({"driver": "fake-hardware"})).await;
    let patch = json!([{"op": "add", "path": "/deploy_interface", "value": "custom-deploy"}]);
    let patched = server
        .send("PATCH", &format!("/v1/nodes/{uuid}"), Some(patch))
        .await;
    let document = json!({"driver": "fake-hardware", "management_interface": "ipxe"});
    let created = server.send("POST", "/v1/nodes", Some(document)).await;
    for (answer, words) in [
        (patched, ["deploy_interface", "custom-deploy", "direct"]),
        (created, ["management_interface", "ipxe", "fake"]),
    ] {
        let text = answer.has_status(400).fault_string();
        assert!(words.iter().all(|word| text.contains(word)), "{text}");
    }
}

#[actix_web::test]
async fn an_empty_physical_network_is_refused() {
    let server = server().await;
    let node = server.node(json!({"driver": "fake-hardware"})).await;
    let port = json!({"node_uuid": node, "address": "52:54:00:00:00:01"});
    let port = server.send("POST", "/v1/ports", Some(port)).await.json();
    let path = format!("/v1/ports/{}", port["uuid"].as_str().unwrap());
    for (value, status) in [
        (json!(""), 400),
        (Value::Null, 200),
        (json!("n".repeat(65)), 400),
    ] {
        let patch = json!([{"op": "replace", "path": "/physical_network", "value": value}]);
        let answer = server.send("PATCH", &path, Some(patch)).await;
        assert_eq!(answer.status, status, "{value}");
    }
}

#[actix_web::test]
async fn fields_may_be_named_once_or_several_times() {
    let server = server().await;
    server
        .node(json!({"driver": "fake-hardware", "name": "n"}))
        .await;
    let together = server.get("/v1/nodes?fields=uuid,name").await.json();
    assert_eq!(together["nodes"][0].as_object().unwrap().len(), 3);
    for query in [
        "fields=uuid&fields=name",
        "fields=uuid,&fields=name",
        "fields=uuid%2Cname",
        "fields=UUID,name,uuid",
    ] {
        let list = server.get(&format!("/v1/nodes?{query}")).await;
        assert_eq!(list.has_status(200).json(), together, "{query}");
    }
    server
        .get("/v1/nodes?fields=uuid&fields=colour")
        .await
        .has_status(400);
    let young = server
        .raw(
            "GET",
            "/v1/nodes?fields=uuid&fields=owner",
            &at("1.49"),
            b"",
        )
        .await;
    young.has_status(406);
    // What is no list is given once.
    server
        .get("/v1/nodes?driver=a&driver=b")
        .await
        .has_status(400);
}

#[actix_web::test]
async fn an_empty_filter_is_not_no_filter() {
    let server = server().await;
    let node = server.node(json!({"driver": "fake-hardware"})).await;
    let port = json!({"node_uuid": node, "address": "52:54:00:00:00:01"});
    server
        .send("POST", "/v1/ports", Some(port))
        .await
        .has_status(201);
    for path in [
        "/v1/ports?address=",
        "/v1/ports?node=",
        "/v1/ports?node_uuid=",
        "/v1/nodes?instance_uuid=",
        "/v1/nodes?provision_state=",
        "/v1/nodes?fault=",
        "/v1/nodes?associated=",
        "/v1/nodes?fields=",
        "/v1/nodes?limit=",
    ] {
        server.get(path).await.has_status(400);
    }
    for (path, plural) in [
        ("/v1/nodes?driver=", "nodes"),
        ("/v1/nodes?owner=", "nodes"),
        ("/v1/nodes?resource_class=", "nodes"),
        ("/v1/nodes?conductor=", "nodes"),
        ("/v1/ports?shard=", "ports"),
    ] {
        let list = server.get(path).await.has_status(200).json();
        assert_eq!(list[plural], json!([]), "{path}");
    }
    let ports = server.get("/v1/ports?fields=node_uuid").await.json();
    assert_eq!(ports["ports"][0]["node_uuid"], node);
}

#[actix_web::test]
async fn no_failure_tells_of_the_inside() {
    let server = server().await;
    for (method, path) in [
        ("DELETE", "/v1/ports/1be26c0b-03f2-4d2e-ae87-c02d7f33c123"),
        ("DELETE", "/v1/nodes/1be26c0b-03f2-4d2e-ae87-c02d7f33c123"),
        ("GET", "/v1/nodes/none-such/states"),
    ] {
        let text = server.send(method, path, None).await.has_status(404);
        let text = text.fault_string();
        let name = path.split('/').nth(3).unwrap();
        assert!(text.contains(name), "{text}");
        for inside in ["sql", "SELECT", "src/", ".rs", "panicked", "Some("] {
            assert!(!text.contains(inside), "{text}");
        }
    }
}

#[actix_web::test]
async fn what_is_no_object_is_refused_whatever_it_is_called() {
    let server = server().await;
    for content_type in [
        "",
        "Content-Type: text/plain\r\n",
        "Content-Type: application/json\r\n",
    ] {
        for body in ["[]", "\"x\"", "null", "7", "[{}]"] {
            for path in ["/v1/nodes", "/v1/ports"] {
                let headers = format!("{}{content_type}", at("1.115"));
                let answer = server.raw("POST", path, &headers, body.as_bytes()).await;
                assert_eq!(answer.status, 400, "{path} {content_type} {body}");
            }
        }
    }
    assert_eq!(server.node_count().await, 0);
}

#[actix_web::test]
async fn discovery_answers_whatever_is_asked_for() {
    let server = server().await;
    for path in ["/", "/v1", "/v1/", "/v1/nodes/", "/v1/nodes"] {
        for version in ["1.1", "1.115", "latest"] {
            let answer = server.raw("GET", path, &at(version), b"").await;
            let answer = answer.has_status(200);
            for header in ["Minimum-Version", "Maximum-Version", "Version"] {
                let name = format!("X-OpenStack-Ironic-API-{header}");
                assert!(answer.header(&name).is_some(), "{path} {name}");
            }
        }
        server
            .raw("OPTIONS", path, &at("1.115"), b"")
            .await
            .has_status(200);
    }
    // No health check stands in front of everything else.
    server.get("/healthcheck").await.has_status(404);
    server.get("/health/live").await.has_status(200);
}

#[actix_web::test]
async fn lists_are_walked_to_their_end_whatever_the_page() {
    let server = server_with(|settings| settings.page_items_max = 10).await;
    let mut nodes = BTreeSet::new();
    for index in 0..25 {
        let document = json!({"driver": "fake-hardware", "name": format!("n-{index}")});
        nodes.insert(server.node(document).await);
    }
    let of_one = nodes.first().unwrap().clone();
    let mut ports = BTreeSet::new();
    for index in 0..20 {
        let port = json!({"node_uuid": of_one, "address": format!("52:54:00:00:00:{index:02x}")});
        let port = server.send("POST", "/v1/ports", Some(port)).await;
        let uuid = port.has_status(201).json()["uuid"].clone();
        ports.insert(uuid.as_str().unwrap().to_owned());
    }
    // Every change of maintenance is a line of the history.
    for index in 0..11 {
        let method = if index % 2 == 0 { "PUT" } else { "DELETE" };
        let path = format!("/v1/nodes/{of_one}/maintenance");
        server.send(method, &path, None).await.has_status(202);
    }
    for (path, plural, all) in [
        ("/v1/nodes".to_owned(), "nodes", Some(&nodes)),
        ("/v1/nodes/detail".to_owned(), "nodes", Some(&nodes)),
        ("/v1/ports".to_owned(), "ports", Some(&ports)),
        ("/v1/ports/detail".to_owned(), "ports", Some(&ports)),
        (format!("/v1/nodes/{of_one}/ports"), "ports", Some(&ports)),
        (
            format!("/v1/nodes/{of_one}/ports/detail"),
            "ports",
            Some(&ports),
        ),
        (format!("/v1/nodes/{of_one}/history"), "history", None),
    ] {
        for query in ["", "?limit=3", "?limit=1000", "?limit=7&sort_dir=desc"] {
            let (seen, pages) = walked(&server, &format!("{path}{query}"), plural).await;
            let once: BTreeSet<String> = seen.iter().cloned().collect();
            assert_eq!(once.len(), seen.len(), "{path}{query}: twice");
            match all {
                Some(all) => assert_eq!(&once, all, "{path}{query}"),
                None => assert!(seen.len() > 10, "{path}{query}"),
            }
            assert!(pages > 1, "{path}{query}");
        }
    }
}

#[actix_web::test]
async fn the_next_page_keeps_all_that_was_asked_for() {
    let server = server().await;
    for index in 0..7 {
        let document = json!({
            "driver": "fake-hardware", "name": format!("n-{index}"), "owner": "o & p",
            "maintenance": index == 3,
        });
        server.node(document).await;
    }
    let query =
        "fields=name&maintenance=false&owner=o%20%26%20p&sort_key=name&sort_dir=desc&limit=2";
    let mut path = format!("/v1/nodes?{query}");
    let mut names = Vec::new();
    loop {
        let page = server.get(&path).await.has_status(200).json();
        for node in page["nodes"].as_array().unwrap() {
            assert_eq!(node.as_object().unwrap().len(), 2, "name and links: {node}");
            names.push(node["name"].as_str().unwrap().to_owned());
        }
        match page["next"].as_str() {
            Some(next) => next.strip_prefix(HOST).unwrap().clone_into(&mut path),
            None => break,
        }
    }
    assert_eq!(names, ["n-6", "n-5", "n-4", "n-2", "n-1", "n-0"]);
}

#[actix_web::test]
async fn a_filter_that_finds_one_thing_has_no_next_page() {
    let server = server().await;
    let instance = "5a9e4e62-1f25-4b4b-a0b0-c4a4a0d7c1b5";
    server
        .node(json!({"driver": "fake-hardware", "instance_uuid": instance}))
        .await;
    server.node(json!({"driver": "fake-hardware"})).await;
    let path = format!("/v1/nodes?limit=1&instance_uuid={instance}");
    let list = server.get(&path).await.has_status(200).json();
    assert_eq!(list["nodes"].as_array().unwrap().len(), 1);
    assert_eq!(list.get("next"), None);
}

#[actix_web::test]
async fn next_pages_stand_below_the_public_address() {
    let server = server_with(|settings| {
        settings.public_endpoint = Some("https://gw.example/baremetal/".to_owned());
    })
    .await;
    server.node(json!({"driver": "fake-hardware"})).await;
    let list = server.get("/v1/nodes?limit=1").await.json();
    let next = list["next"].as_str().unwrap();
    assert!(
        next.starts_with("https://gw.example/baremetal/v1/nodes?limit=1&marker="),
        "{next}"
    );
    let believing = server_with(|settings| settings.trust_proxy_headers = true).await;
    let forwarded = "X-Forwarded-Proto: https\r\nX-Forwarded-Host: gw.example\r\n";
    let root = believing.raw("GET", "/v1", forwarded, b"").await.json();
    assert_eq!(root["links"][0]["href"], "https://gw.example/v1/");
    // Whoever is not told to believe these headers does not.
    let root = server_with(|_| {})
        .await
        .raw("GET", "/v1", forwarded, b"")
        .await
        .json();
    assert_eq!(root["links"][0]["href"], "http://upbeat.test:6385/v1/");
}

#[actix_web::test]
async fn filters_take_every_text_as_it_is() {
    let server = server().await;
    let odd = [
        "100%",
        "a_b",
        "it's \"quoted\"",
        "grün \u{1F980}",
        "back\\slash",
        "axb",
    ];
    for text in odd {
        let document = json!({
            "driver": "fake-hardware", "owner": text, "lessee": text, "resource_class": text,
            "description": format!("about {text} here"), "shard": text.replace(',', ""),
        });
        server.node(document).await;
    }
    let found = async |name: &str, value: &str| -> usize {
        let query = url::form_urlencoded::Serializer::new(String::new())
            .append_pair(name, value)
            .finish();
        let list = server.get(&format!("/v1/nodes?{query}")).await;
        list.has_status(200).json()["nodes"]
            .as_array()
            .unwrap()
            .len()
    };
    for name in ["owner", "lessee", "project", "resource_class", "shard"] {
        for text in odd {
            assert_eq!(found(name, text).await, 1, "{name}={text}");
        }
        assert_eq!(found(name, "%").await, 0, "{name}");
    }
    for text in odd {
        assert_eq!(found("description_contains", text).await, 1, "{text}");
    }
    for (text, count) in [
        ("%", 1),
        ("_", 1),
        ("\\", 1),
        ("'", 1),
        ("ABOUT", 6),
        ("a%b", 0),
    ] {
        assert_eq!(found("description_contains", text).await, count, "{text}");
    }
}
