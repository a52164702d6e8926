//! An address of their own for agents: what is answered where.

use serde_json::{Value, json};

use crate::server::{Answer, Server, at, server, server_of, server_with};

const AGENTS: [(&str, &str); 3] = [
    ("GET", "/v1/lookup?addresses=52:54:00:aa:00:01"),
    ("POST", "/v1/heartbeat/00000000-0000-4000-8000-000000000001"),
    ("POST", "/v1/continue_inspection"),
];

/// A server for users with passwords, and for agents somewhere else.
async fn divided(folder: &tempfile::TempDir) -> Server {
    let htpasswd = folder.path().join("htpasswd");
    let hash = bcrypt::hash("lovelace", 4).unwrap();
    std::fs::write(&htpasswd, format!("ada:{hash}\n")).unwrap();
    server_with(|settings| {
        settings.agent_listen = Some("127.0.0.1:0".parse().unwrap());
        settings.auth = upbeat::http::Auth::Basic { htpasswd };
        settings.public_endpoint = Some("https://metal.example".to_owned());
    })
    .await
}

fn is_nothing(answer: &Answer) {
    assert_eq!(answer.status, 404);
    answer.is_routing_failure();
    assert_eq!(answer.header("www-authenticate"), None);
    assert_eq!(answer.header("x-openstack-ironic-api-version"), None);
}

#[actix_web::test]
async fn agents_find_nothing_but_their_own_where_they_are_listened_to() {
    let folder = tempfile::tempdir().unwrap();
    let server = divided(&folder).await;
    let for_agents = server.for_agents();
    assert_ne!(for_agents.address, server.address);
    // Every path there is, with every method it has.
    let document = server.get("/openapi.json").await.has_status(200).json();
    let mut seen = 0;
    for (path, methods) in document["paths"].as_object().unwrap() {
        if ["/", "/v1"].contains(&path.as_str()) {
            for path in [path.clone(), format!("{path}/")] {
                server.get(&path).await.has_status(200);
                for_agents.get(&path).await.has_status(200);
            }
            continue;
        }
        let is_theirs = AGENTS.iter().any(|(_, own)| {
            let own = own.split('?').next().unwrap();
            own == path || (path.starts_with("/v1/heartbeat/") && own.starts_with("/v1/heartbeat/"))
        });
        if is_theirs {
            continue;
        }
        let path = path.replace(['{', '}'], "");
        for method in methods.as_object().unwrap().keys() {
            let method = method.to_uppercase();
            is_nothing(&for_agents.send(&method, &path, Some(json!({}))).await);
            seen += 1;
        }
    }
    assert!(seen > 100, "{seen}");
    for path in ["/v1/nothing", "/nodes", "/v1/nodes/", "/metrics", "/v1/%ff"] {
        is_nothing(&for_agents.get(path).await);
    }
    for (method, path) in AGENTS {
        is_nothing(&server.send(method, path, Some(json!({}))).await);
        let short = path.strip_prefix("/v1").unwrap();
        is_nothing(&server.send(method, short, Some(json!({}))).await);
        let answer = for_agents.send(method, path, Some(json!({}))).await;
        assert_ne!(answer.status, 401);
        assert!(
            answer.header("x-openstack-ironic-api-version").is_some(),
            "{path} is served: {answer:?}"
        );
    }
    // Users still have to say who they are.
    server.get("/v1/nodes").await.has_status(401);
    // Agents don't reach the public address.
    let link = |answer: Answer| answer.json()["default_version"]["links"][0]["href"].clone();
    assert_eq!(
        link(for_agents.get("/").await),
        "http://upbeat.test:6385/v1/"
    );
    assert_eq!(link(server.get("/").await), "https://metal.example/v1/");
}

#[actix_web::test]
async fn an_agent_calls_where_it_is_listened_to_and_its_node_is_seen_by_users() {
    let server = server_of(
        |_| {},
        |settings| settings.agent_listen = Some("127.0.0.1:0".parse().unwrap()),
    )
    .await;
    let uuid = server
        .node(json!({
            "driver": "fake-hardware",
            "instance_info": {
                "image_source": "http://127.0.0.1:9/i.raw", "image_os_hash_algo": "sha256",
                "image_os_hash_value": "a".repeat(64),
            },
        }))
        .await;
    for (verb, state) in [
        ("manage", "manageable"),
        ("provide", "available"),
        ("active", "wait call-back"),
    ] {
        let path = format!("/v1/nodes/{uuid}/states/provision");
        server
            .send("PUT", &path, Some(json!({"target": verb})))
            .await
            .has_status(202);
        server
            .node_when(&uuid, |node| node["provision_state"] == state)
            .await;
    }
    let for_agents = server.for_agents();
    let found = for_agents
        .get(&format!("/v1/lookup?node_uuid={uuid}"))
        .await
        .has_status(200)
        .json();
    let beat = json!({
        "callback_url": "http://127.0.0.1:9",
        "agent_token": found["config"]["agent_token"],
        "agent_version": "13.0.0",
    });
    for_agents
        .send("POST", &format!("/v1/heartbeat/{uuid}"), Some(beat))
        .await
        .has_status(202);
    server
        .node_when(&uuid, |node| {
            node["driver_internal_info"]["agent_url"] == "http://127.0.0.1:9"
        })
        .await;
}

#[actix_web::test]
async fn in_one_place_all_is_answered() {
    let server = server().await;
    assert_eq!(server.agent_address, None);
    let nobody = server.get(AGENTS[0].1).await.has_status(404);
    assert_eq!(nobody.fault()["faultcode"], "Client");
    let listed = server.raw("GET", "/v1/nodes", &at("1.115"), b"").await;
    assert_eq!(listed.has_status(200).json()["nodes"], Value::Array(vec![]));
}
