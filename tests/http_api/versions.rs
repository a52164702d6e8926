//! All versions from 1.1 to the maximum: which fields, filters, verbs and endpoints each has.
//!
//! The numbers of fields, filters and verbs stand here once more, so that a slip in the tables of the source is seen.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::scenarios::waiting_node;
use crate::server::{Answer, Server, at, server};

const MAXIMUM: u16 = 115;
const NOBODY: &str = "00000000-0000-4000-8000-000000000000";

/// Fields of nodes that are not there from the beginning on.
const NODE_FIELDS: &[(u16, &[&str])] = &[
    (3, &["driver_internal_info"]),
    (5, &["name"]),
    (6, &["inspection_finished_at", "inspection_started_at"]),
    (7, &["clean_step"]),
    (12, &["raid_config", "target_raid_config"]),
    (20, &["network_interface"]),
    (21, &["resource_class"]),
    (
        31,
        &[
            "boot_interface",
            "console_interface",
            "deploy_interface",
            "inspect_interface",
            "management_interface",
            "power_interface",
            "raid_interface",
            "vendor_interface",
        ],
    ),
    (33, &["storage_interface"]),
    (37, &["traits"]),
    (38, &["rescue_interface"]),
    (40, &["bios_interface"]),
    (42, &["fault"]),
    (44, &["deploy_step"]),
    (46, &["conductor_group"]),
    (47, &["automated_clean"]),
    (48, &["protected", "protected_reason"]),
    (49, &["conductor"]),
    (50, &["owner"]),
    (51, &["description"]),
    (52, &["allocation_uuid"]),
    (61, &["retired", "retired_reason"]),
    (65, &["lessee"]),
    (66, &["network_data"]),
    (75, &["boot_mode", "secure_boot"]),
    (82, &["shard"]),
    (83, &["parent_node"]),
    (86, &["firmware_interface"]),
    (87, &["service_step"]),
    (95, &["disable_power_off"]),
    (104, &["instance_name"]),
    (109, &["health"]),
];

/// Fields of ports that are not there from the beginning on.
const PORT_FIELDS: &[(u16, &[&str])] = &[
    (18, &["internal_info"]),
    (19, &["local_link_connection", "pxe_enabled"]),
    (24, &["portgroup_uuid"]),
    (34, &["physical_network"]),
    (53, &["is_smartnic"]),
    (88, &["name"]),
    (97, &["description"]),
    (100, &["vendor"]),
    (101, &["category"]),
];

const NODE_FILTERS: &[(u16, &str, &str)] = &[
    (1, "associated", "true"),
    (1, "maintenance", "false"),
    (1, "instance_uuid", NOBODY),
    (9, "provision_state", "active"),
    (16, "driver", "fake-hardware"),
    (21, "resource_class", "c"),
    (42, "fault", "power failure"),
    (46, "conductor_group", ""),
    (49, "conductor", "c"),
    (50, "owner", "o"),
    (51, "description_contains", "d"),
    (61, "retired", "true"),
    (65, "lessee", "l"),
    (65, "project", "p"),
    (82, "shard", "a,b"),
    (82, "sharded", "true"),
    (83, "parent_node", NOBODY),
    (83, "include_children", "true"),
    (104, "instance_name", "i"),
    (8, "fields", "uuid"),
];

const PORT_FILTERS: &[(u16, &str, &str)] = &[
    (1, "address", "52:54:00:00:00:01"),
    (8, "fields", "uuid"),
    (82, "shard", "a"),
    (97, "description_contains", "d"),
    (99, "conductor_groups", "g"),
];

const VERBS: &[(u16, &str)] = &[
    (4, "manage"),
    (4, "provide"),
    (6, "inspect"),
    (13, "abort"),
    (17, "adopt"),
    (38, "unrescue"),
    (73, "deploy"),
    (73, "undeploy"),
    (85, "unhold"),
    (1, "active"),
    (1, "rebuild"),
    (1, "deleted"),
];

fn query(pairs: &[(&str, &str)]) -> String {
    url::form_urlencoded::Serializer::new(String::new())
        .extend_pairs(pairs)
        .finish()
}

async fn get_at(server: &Server, minor: u16, path: &str) -> Answer {
    server
        .raw("GET", path, &at(&format!("1.{minor}")), b"")
        .await
}

/// Sends a body with every version, and expects 406 below `since` and `otherwise` from there on.
async fn is_acceptable_since(
    server: &Server,
    since: u16,
    (method, path, body): (&str, &str, Value),
    otherwise: &[u16],
) {
    let body = body.to_string();
    for minor in 1..=MAXIMUM {
        let version = at(&format!("1.{minor}"));
        let answer = server.raw(method, path, &version, body.as_bytes()).await;
        let expected = if minor < since { &[406] } else { otherwise };
        assert!(
            expected.contains(&answer.status),
            "{} to {method} {path} {body} with 1.{minor}: {}",
            answer.status,
            String::from_utf8_lossy(&answer.body)
        );
    }
}

/// Every field with every version, in full answers, by `fields`, and by `sort_key` where it can be sorted by.
async fn fields_appear(server: &Server, list: &str, one: &str, fields: &[(u16, &[&str])]) {
    let keys = |answer: Answer| -> Vec<String> {
        let document = answer.has_status(200).json();
        document.as_object().unwrap().keys().cloned().collect()
    };
    let young: BTreeMap<&str, u16> = fields
        .iter()
        .flat_map(|(since, names)| names.iter().map(move |name| (*name, *since)))
        .collect();
    for minor in 1..=MAXIMUM {
        let shown = keys(get_at(server, minor, one).await);
        for (name, since) in &young {
            let is_there = shown.iter().any(|shown| shown == name);
            assert_eq!(is_there, minor >= *since, "{name} with 1.{minor}");
            let asked = get_at(server, minor, &format!("{one}?fields={name}")).await;
            let expected = if minor < (*since).max(8) { 406 } else { 200 };
            assert_eq!(asked.status, expected, "fields={name} with 1.{minor}");
        }
    }
    for (name, since) in &young {
        let sorted = async |minor| {
            get_at(server, minor, &format!("{list}?sort_key={name}"))
                .await
                .status
        };
        let sorted = (sorted(since - 1).await, sorted(*since).await);
        assert!(
            matches!(sorted, (400, 400) | (406, 200)),
            "sort_key={name} around 1.{since}: {sorted:?}"
        );
    }
}

#[actix_web::test]
async fn fields_of_nodes_appear_with_their_version() {
    let server = server().await;
    let uuid = server.node(json!({"driver": "fake-hardware"})).await;
    fields_appear(
        &server,
        "/v1/nodes",
        &format!("/v1/nodes/{uuid}"),
        NODE_FIELDS,
    )
    .await;
}

#[actix_web::test]
async fn fields_of_ports_appear_with_their_version() {
    let server = server().await;
    let node = server.node(json!({"driver": "fake-hardware"})).await;
    let port = json!({"node_uuid": node, "address": "52:54:00:00:00:01"});
    let port = server.send("POST", "/v1/ports", Some(port)).await;
    let uuid = port.has_status(201).json()["uuid"].clone();
    let one = format!("/v1/ports/{}", uuid.as_str().unwrap());
    fields_appear(&server, "/v1/ports", &one, PORT_FIELDS).await;
}

#[actix_web::test]
async fn fields_younger_than_the_request_can_not_be_set() {
    let server = server().await;
    // What is shown only is a bad field whatever the version.
    const SHOWN_ONLY: &[&str] = &[
        "driver_internal_info",
        "inspection_finished_at",
        "inspection_started_at",
        "clean_step",
        "raid_config",
        "target_raid_config",
        "traits",
        "fault",
        "deploy_step",
        "conductor",
        "allocation_uuid",
        "service_step",
        "health",
    ];
    const NOT_PATCHABLE: &[&str] = &["boot_mode", "secure_boot"];
    const NOT_FOR_NEW: &[&str] = &["protected", "protected_reason"];
    for (since, names) in NODE_FIELDS {
        for name in *names {
            if SHOWN_ONLY.contains(name) {
                continue;
            }
            // No such driver, so that nothing is made; a forbidden field is refused by its name with any version.
            let new = json!({"driver": "none-such", *name: null});
            if !NOT_FOR_NEW.contains(name) {
                is_acceptable_since(&server, *since, ("POST", "/v1/nodes", new), &[400]).await;
            }
            let operation = json!([{"op": "remove", "path": format!("/{name}")}]);
            if !NOT_PATCHABLE.contains(name) {
                let path = format!("/v1/nodes/{NOBODY}");
                is_acceptable_since(&server, *since, ("PATCH", &path, operation), &[404]).await;
            }
        }
    }
}

#[actix_web::test]
async fn the_kind_of_network_of_a_port_is_younger_than_its_link() {
    let server = server().await;
    let link = json!({"network_type": "unmanaged"});
    // No such node, so that nothing is made.
    let new = json!({
        "node_uuid": NOBODY, "address": "52:54:00:00:00:01", "local_link_connection": link,
    });
    is_acceptable_since(&server, 64, ("POST", "/v1/ports", new), &[400]).await;
    let path = format!("/v1/ports/{NOBODY}");
    for (below, value) in [("", link.clone()), ("/network_type", json!("unmanaged"))] {
        let operation = json!([
            {"op": "add", "path": format!("/local_link_connection{below}"), "value": value},
        ]);
        is_acceptable_since(&server, 64, ("PATCH", &path, operation), &[404]).await;
    }
}

#[actix_web::test]
async fn filters_appear_with_their_version() {
    let server = server().await;
    for (path, filters) in [("/v1/nodes", NODE_FILTERS), ("/v1/ports", PORT_FILTERS)] {
        for (since, name, value) in filters {
            let path = format!("{path}?{}", query(&[(name, value)]));
            for minor in 1..=MAXIMUM {
                let expected = if minor < *since { 406 } else { 200 };
                let status = get_at(&server, minor, &path).await.status;
                assert_eq!(status, expected, "{path} with 1.{minor}");
            }
        }
        for minor in 1..=MAXIMUM {
            let expected = if minor < 43 { 400 } else { 200 };
            let status = get_at(&server, minor, &format!("{path}?detail=true")).await;
            assert_eq!(status.status, expected, "{path}?detail with 1.{minor}");
        }
    }
}

#[actix_web::test]
async fn verbs_and_arguments_appear_with_their_version() {
    let server = server().await;
    let provision = format!("/v1/nodes/{NOBODY}/states/provision");
    for (since, verb) in VERBS {
        let body = json!({"target": verb});
        is_acceptable_since(&server, *since, ("PUT", &provision, body), &[400, 404]).await;
    }
    let power = format!("/v1/nodes/{NOBODY}/states/power");
    let body = json!({"target": "power on", "timeout": 5});
    is_acceptable_since(&server, 27, ("PUT", &power, body), &[404]).await;
    let body = json!({"target": "active", "deploy_steps": []});
    is_acceptable_since(&server, 69, ("PUT", &provision, body), &[404]).await;
}

#[actix_web::test]
async fn abort_is_younger_in_states_that_wait_for_an_agent() {
    let server = server().await;
    let deployed = waiting_node(&server, "52:54:00:00:00:01").await;
    let inspected = server.node(json!({"driver": "fake-hardware"})).await;
    for (verb, state) in [("manage", "manageable"), ("inspect", "inspect wait")] {
        let path = format!("/v1/nodes/{inspected}/states/provision");
        let body = json!({"target": verb});
        server.send("PUT", &path, Some(body)).await.has_status(202);
        let is_so = |node: &Value| node["provision_state"] == state;
        server.node_when(&inspected, is_so).await;
    }
    for (node, since) in [(deployed, 110), (inspected, 41)] {
        let path = format!("/v1/nodes/{node}/states/provision");
        let body = br#"{"target": "abort"}"#;
        for minor in 13..since {
            let version = at(&format!("1.{minor}"));
            let answer = server.raw("PUT", &path, &version, body).await;
            assert_eq!(answer.status, 406, "1.{minor}");
        }
        let version = at(&format!("1.{since}"));
        server
            .raw("PUT", &path, &version, body)
            .await
            .has_status(202);
    }
}

/// The document says of each endpoint since when it is there and what older requests get; this is what they do get.
#[actix_web::test]
async fn endpoints_appear_with_their_version() {
    let server = server().await;
    let document = server.get("/openapi.json").await.has_status(200).json();
    let mut tried = 0;
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let Some(since) = operation["x-since"].as_str() else {
                continue;
            };
            let since: u16 = since.strip_prefix("1.").unwrap().parse().unwrap();
            let older = operation["x-older"].as_u64().unwrap();
            let names = path
                .split('/')
                .map(|part| if part.starts_with('{') { NOBODY } else { part });
            let address = names.collect::<Vec<_>>().join("/");
            let method = method.to_uppercase();
            for minor in 1..=MAXIMUM {
                let version = at(&format!("1.{minor}"));
                let answer = server.raw(&method, &address, &version, b"").await;
                let what = format!("{method} {path} with 1.{minor}: {answer:?}");
                if minor < since {
                    // What agents found was taken with 1.1 before it had a version of its own.
                    let is_exception = path == "/v1/continue_inspection" && minor == 1;
                    assert!(u64::from(answer.status) == older || is_exception, "{what}");
                } else {
                    assert!(![405, 406].contains(&answer.status), "{what}");
                    let is_gone = answer.status == 404 && answer.fault()["code"].is_number();
                    assert!(!is_gone, "{what}");
                }
                tried += 1;
            }
        }
    }
    assert!(tried > 30 * usize::from(MAXIMUM), "{tried}");
}
