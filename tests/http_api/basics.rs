//! Addresses, versions, envelopes, authentication, health.

use serde_json::{Value, json};

use crate::server::{POISON, at, server, server_with};

#[actix_web::test]
async fn discovery_needs_no_version_and_says_the_range() {
    let server = server().await;
    for path in ["/", "/v1", "/v1/"] {
        let answer = server.raw("GET", path, "", b"").await.has_status(200);
        assert_eq!(
            answer.header("X-OpenStack-Ironic-API-Minimum-Version"),
            Some("1.1")
        );
        assert_eq!(
            answer.header("X-OpenStack-Ironic-API-Maximum-Version"),
            Some("1.115")
        );
        assert_eq!(answer.header("X-OpenStack-Ironic-API-Version"), Some("1.1"));
    }
    let root = server.raw("GET", "/", "", b"").await.json();
    assert_eq!(root["default_version"]["version"], "1.115");
    assert_eq!(
        root["versions"][0]["links"][0]["href"],
        "http://upbeat.test:6385/v1/"
    );
    // Agents fall back to a version without tokens for good if this one document fails.
    server
        .raw("GET", "/", &at("1.999"), b"")
        .await
        .has_status(200);
}

#[actix_web::test]
async fn every_answer_has_a_request_id() {
    let server = server().await;
    for path in ["/v1/nodes", "/v1/nothing", "/health/live"] {
        let answer = server.get(path).await;
        let id = answer.header("x-openstack-request-id").unwrap();
        assert!(id.starts_with("req-") && id.len() == 40, "{id}");
        assert_eq!(answer.header("openstack-request-id"), Some(id));
    }
}

#[actix_web::test]
async fn versions_are_negotiated() {
    let server = server().await;
    let served = async |headers: String| -> String {
        let answer = server
            .raw("GET", "/v1/nodes", &headers, b"")
            .await
            .has_status(200);
        answer
            .header("X-OpenStack-Ironic-API-Version")
            .unwrap()
            .to_owned()
    };
    assert_eq!(served(String::new()).await, "1.1");
    assert_eq!(served(at("1.62")).await, "1.62");
    assert_eq!(served(at("latest")).await, "1.115");
    let both = format!("{}OpenStack-API-Version: baremetal 1.80\r\n", at("1.5"));
    assert_eq!(served(both).await, "1.80");
    let other = "OpenStack-API-Version: compute 2.1\r\n".to_owned();
    assert_eq!(served(other).await, "1.1");
}

#[actix_web::test]
async fn versions_out_of_range_and_malformed_are_406() {
    let server = server().await;
    for version in ["1.116", "1.0", "2.1", "9.99"] {
        let answer = server
            .raw("GET", "/v1/nodes", &at(version), b"")
            .await
            .has_status(406);
        answer.is_routing_failure();
        assert_eq!(
            answer.header("X-OpenStack-Ironic-API-Maximum-Version"),
            Some("1.115")
        );
        assert_eq!(
            answer.header("X-OpenStack-Ironic-API-Minimum-Version"),
            Some("1.1")
        );
        assert_eq!(answer.header("X-OpenStack-Ironic-API-Version"), None);
    }
    let answer = server
        .raw("GET", "/v1/nodes", &at("new"), b"")
        .await
        .has_status(406);
    answer.is_routing_failure();
    assert_eq!(
        answer.header("X-OpenStack-Ironic-API-Maximum-Version"),
        None
    );
}

#[actix_web::test]
async fn unknown_paths_and_methods_are_routing_failures_without_versions() {
    let server = server().await;
    for path in [
        "/v2",
        "/v1/nothing",
        "/v1/nodes/n/nothing",
        "/v1/racks",
        "/v1/nodes/n/states/nothing",
    ] {
        let answer = server.get(path).await.has_status(404);
        answer.is_routing_failure();
        assert_eq!(
            answer.header("X-OpenStack-Ironic-API-Maximum-Version"),
            None,
            "{path}"
        );
    }
    for (method, path, allowed) in [
        ("PUT", "/v1/nodes", "GET, HEAD, POST"),
        ("POST", "/v1/nodes/n", "GET, HEAD, PATCH, DELETE"),
        ("GET", "/v1/nodes/n/states/provision", "PUT"),
        ("BREW", "/v1/drivers", "GET, HEAD"),
    ] {
        let answer = server.send(method, path, None).await.has_status(405);
        answer.is_routing_failure();
        assert_eq!(answer.header("allow"), Some(allowed));
    }
}

#[actix_web::test]
async fn paths_work_without_prefix_and_with_a_slash() {
    let server = server().await;
    let uuid = server
        .node(json!({"driver": "fake-hardware", "name": "ns~n"}))
        .await;
    for path in [
        format!("/nodes/{uuid}"),
        "/v1/nodes/ns~n".to_owned(),
        "/nodes/ns%7En/".to_owned(),
        "/v1/nodes/ns~n/".to_owned(),
    ] {
        assert_eq!(
            server.get(&path).await.has_status(200).json()["uuid"],
            *uuid
        );
    }
    server.get("/nodes/?limit=1").await.has_status(200);
    // Below 1.91 a suffix is dropped.
    server
        .raw("GET", "/v1/nodes/ns~n.json", &at("1.90"), b"")
        .await
        .has_status(200);
    server
        .raw("GET", "/v1/nodes/ns~n.json", &at("1.91"), b"")
        .await
        .has_status(404);
    let port = json!({"node_uuid": uuid, "address": "52:54:00:00:00:01"});
    let port = server.send("POST", "/v1/ports", Some(port)).await.json();
    let by_suffix = format!("/v1/ports/{}.json", port["uuid"].as_str().unwrap());
    for (version, status) in [("1.90", 200), ("1.91", 404)] {
        let answer = server.raw("GET", &by_suffix, &at(version), b"").await;
        answer.has_status(status);
    }
}

#[actix_web::test]
async fn head_and_options_have_no_body() {
    let server = server().await;
    let head = server
        .send("HEAD", "/v1/drivers", None)
        .await
        .has_status(200);
    assert!(head.body.is_empty());
    assert_ne!(head.header("content-length"), Some("0"));
    let options = server
        .send("OPTIONS", "/v1/nodes", None)
        .await
        .has_status(200);
    assert!(options.body.is_empty());
    assert_eq!(options.header("allow"), Some("GET, HEAD, POST"));
}

#[actix_web::test]
async fn a_fault_of_ours_costs_one_request_and_is_told_in_the_envelope() {
    let server = server().await;
    let uuid = server.node(json!({"driver": "fake-hardware"})).await;
    let body = json!({"callback_url": POISON, "agent_token": "x", "agent_version": "13.0.0"});
    let answer = server
        .send("POST", &format!("/v1/heartbeat/{uuid}"), Some(body))
        .await
        .has_status(500);
    assert!(!answer.fault_string().contains("a fault of ours"));
    assert!(answer.header("x-openstack-request-id").is_some());
    server.get("/v1/drivers").await.has_status(200);
    let seen = server.seen.lock().unwrap();
    assert!(
        seen.contains(&("POST", "/v1/heartbeat/{node}", 500)),
        "{seen:?}"
    );
}

#[actix_web::test]
async fn links_come_from_the_host_or_the_public_endpoint() {
    let by_host = server().await;
    let links = by_host.get("/v1/drivers/fake-hardware").await.json()["links"].clone();
    assert_eq!(
        links,
        json!([
            {"href": "http://upbeat.test:6385/v1/drivers/fake-hardware", "rel": "self"},
            {"href": "http://upbeat.test:6385/drivers/fake-hardware", "rel": "bookmark"},
        ])
    );
    let by_setting = server_with(|settings| {
        settings.public_endpoint = Some("https://metal.example/".to_owned());
    })
    .await;
    let links = by_setting.get("/v1/drivers/fake-hardware").await.json()["links"].clone();
    assert_eq!(
        links[0]["href"],
        "https://metal.example/v1/drivers/fake-hardware"
    );
}

#[actix_web::test]
async fn basic_authentication_leaves_discovery_agents_and_health_open() {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    let folder = tempfile::tempdir().unwrap();
    let htpasswd = folder.path().join("htpasswd");
    std::fs::write(
        &htpasswd,
        format!("ada:{}\n", bcrypt::hash("lovelace", 4).unwrap()),
    )
    .unwrap();
    let server =
        server_with(|settings| settings.auth = upbeat::http::Auth::Basic { htpasswd }).await;
    for path in ["/", "/v1", "/v1/", "/health/live", "/health/ready"] {
        server.get(path).await.has_status(200);
    }
    server
        .get("/v1/lookup?addresses=52:54:00:aa:00:01")
        .await
        .has_status(404);
    for path in ["/v1/nodes", "/v1/nothing", "/metrics"] {
        let answer = server.get(path).await.has_status(401);
        assert_eq!(
            answer.header("www-authenticate"),
            Some("Basic realm=\"Baremetal API\"")
        );
        assert_eq!(answer.json()["error"]["code"], 401);
        assert!(answer.json()["error"]["message"].is_string());
    }
    let with = |credentials: &str| format!("Authorization: {credentials}\r\n{}", at("1.115"));
    let basic = |pair: &str| with(&format!("Basic {}", STANDARD.encode(pair)));
    let wrong = server
        .raw("GET", "/v1/nodes", &basic("ada:byron"), b"")
        .await;
    wrong.has_status(401);
    let other = server.raw("GET", "/v1/nodes", &with("Bearer x"), b"").await;
    assert_eq!(other.has_status(400).json()["error"]["code"], 400);
    for _ in 0..2 {
        let right = server
            .raw("GET", "/v1/nodes", &basic("ada:lovelace"), b"")
            .await;
        right.has_status(200);
    }
}

#[actix_web::test]
async fn health_and_metrics_have_no_versions() {
    let server = server().await;
    assert_eq!(
        server.get("/health/ready").await.has_status(200).json(),
        json!({"ready": true})
    );
    let metrics = server
        .raw("GET", "/metrics", &at("nonsense"), b"")
        .await
        .has_status(200);
    assert_eq!(metrics.body, b"# EOF\n");
    assert_eq!(metrics.header("X-OpenStack-Ironic-API-Version"), None);
    server.behind.conductor.stop();
    let answer = server.get("/health/ready").await.has_status(503);
    assert!(answer.header("retry-after").is_some());
    answer.fault_string();
    server.get("/health/live").await.has_status(200);
}

#[actix_web::test]
async fn drivers_and_conductors_are_listed() {
    let server = server().await;
    let drivers = server
        .raw("GET", "/drivers", "", b"")
        .await
        .has_status(200)
        .json();
    assert_eq!(drivers["drivers"].as_array().unwrap().len(), 2);
    assert_eq!(drivers["drivers"][0]["hosts"], json!(["conductor-1"]));
    assert_eq!(
        server.get("/v1/drivers?type=classic").await.json()["drivers"],
        json!([])
    );
    server.get("/v1/drivers?type=odd").await.has_status(400);
    server
        .get("/v1/drivers/none")
        .await
        .has_status(404)
        .fault_string();
    let whole = server.get("/v1/drivers/manual-management").await.json();
    assert_eq!(whole["default_boot_interface"], "pxe");
    let chosen = server
        .get("/v1/drivers/manual-management?fields=name")
        .await
        .json();
    assert_eq!(chosen.as_object().unwrap().len(), 2);
    assert_eq!(
        server
            .get("/v1/drivers/fake-hardware/properties")
            .await
            .json(),
        json!({})
    );
    let conductors = server.get("/v1/conductors").await.json();
    assert_eq!(conductors["conductors"][0]["alive"], true);
    assert_eq!(conductors["conductors"][0]["hostname"], "conductor-1");
    server.get("/v1/conductors/nobody").await.has_status(404);
    server
        .raw("GET", "/v1/conductors", &at("1.48"), b"")
        .await
        .has_status(404)
        .is_routing_failure();
    let detail = server.get("/v1/conductors?detail=true").await.json();
    assert_eq!(detail["conductors"][0]["drivers"][0], "fake-hardware");
    assert_eq!(detail["conductors"][0]["created_at"], Value::Null);
}
