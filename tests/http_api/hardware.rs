//! What is managed of a node's machine from outside, as a client sees it: every endpoint with its codes and its versions. What can
//! be listed of it is in `devices`.

use serde_json::{Value, json};

use crate::server::{Answer, Server, at, server};

/// A manageable node of `fake-hardware`: the address of it.
pub async fn managed(server: &Server) -> String {
    let uuid = server.node(json!({"driver": "fake-hardware"})).await;
    let path = format!("/v1/nodes/{uuid}");
    let manage = json!({"target": "manage"});
    server
        .send("PUT", &format!("{path}/states/provision"), Some(manage))
        .await
        .has_status(202);
    server
        .node_when(&uuid, |node| node["provision_state"] == "manageable")
        .await;
    path
}

/// A node whose machine only a person can manage.
pub async fn manual(server: &Server) -> String {
    let uuid = server.node(json!({"driver": "manual-management"})).await;
    format!("/v1/nodes/{uuid}")
}

async fn at_rest(server: &Server, path: &str) -> Value {
    let uuid = path.rsplit('/').next().unwrap();
    server
        .node_when(uuid, |node| node["reservation"].is_null())
        .await
}

/// Sends a change that is answered so, without a body, and waits until the node is free again.
pub async fn changes(
    server: &Server,
    status: u16,
    method: &str,
    path: &str,
    body: Value,
) -> Answer {
    let body = Some(body).filter(|body| !body.is_null());
    let answer = server.send(method, path, body).await.has_status(status);
    assert!(answer.body.is_empty());
    assert_eq!(answer.header("content-type"), None);
    let node: Vec<&str> = path.split('/').take(4).collect();
    at_rest(server, &node.join("/")).await;
    answer
}

pub async fn refused(
    server: &Server,
    status: u16,
    method: &str,
    path: &str,
    body: Value,
) -> String {
    let body = Some(body).filter(|body| !body.is_null());
    let answer = server.send(method, path, body).await;
    answer.has_status(status).fault_string()
}

/// Below its version an endpoint is not there.
pub async fn is_hidden_below(server: &Server, since: u16, method: &str, path: &str) {
    let version = at(&format!("1.{}", since - 1));
    let answer = server.raw(method, path, &version, b"").await;
    answer.has_status(404).is_routing_failure();
}

#[actix_web::test]
async fn the_boot_device_is_set_and_told() {
    let server = server().await;
    let path = managed(&server).await;
    let device = format!("{path}/management/boot_device");
    let told = server.get(&device).await.has_status(200).json();
    assert_eq!(told, json!({"boot_device": null, "persistent": null}));
    let supported = server.get(&format!("{device}/supported")).await.json();
    assert_eq!(
        supported["supported_boot_devices"],
        json!(["bios", "cdrom", "disk", "pxe", "safe"])
    );
    changes(
        &server,
        204,
        "PUT",
        &device,
        json!({"boot_device": "pxe", "persistent": "True"}),
    )
    .await;
    let told = server.get(&device).await.json();
    assert_eq!(told, json!({"boot_device": "pxe", "persistent": true}));
    changes(&server, 204, "PUT", &device, json!({"boot_device": "disk"})).await;
    assert_eq!(server.get(&device).await.json()["persistent"], false);
    for body in [
        json!({}),
        json!({"boot_device": "teapot"}),
        json!({"boot_device": 7}),
        json!({"boot_device": "pxe", "persistent": "maybe"}),
        json!({"boot_device": "pxe", "odd": 1}),
    ] {
        refused(&server, 400, "PUT", &device, body).await;
    }
    let nobody = "/v1/nodes/nobody/management/boot_device";
    server.get(nobody).await.has_status(404);

    let by_hand = format!("{}/management/boot_device", manual(&server).await);
    changes(
        &server,
        204,
        "PUT",
        &by_hand,
        json!({"boot_device": "disk"}),
    )
    .await;
    assert_eq!(
        server.get(&by_hand).await.json()["boot_device"],
        Value::Null
    );
    let text = refused(
        &server,
        400,
        "PUT",
        &by_hand,
        json!({"boot_device": "cdrom"}),
    )
    .await;
    assert!(text.contains("disk, pxe"), "{text}");
}

#[actix_web::test]
async fn an_interrupt_is_injected_since_1_29() {
    let server = server().await;
    let path = format!("{}/management/inject_nmi", managed(&server).await);
    changes(&server, 204, "PUT", &path, json!({})).await;
    changes(&server, 204, "PUT", &path, Value::Null).await;
    is_hidden_below(&server, 29, "PUT", &path).await;
    refused(&server, 400, "PUT", &path, json!({"x": 1})).await;
    let by_hand = format!("{}/management/inject_nmi", manual(&server).await);
    refused(&server, 400, "PUT", &by_hand, json!({})).await;
}

#[actix_web::test]
async fn boot_modes_are_set_in_the_background_since_1_76() {
    let server = server().await;
    let path = managed(&server).await;
    let (mode, secure) = (
        format!("{path}/states/boot_mode"),
        format!("{path}/states/secure_boot"),
    );
    let answer = changes(&server, 202, "PUT", &mode, json!({"target": "bios"})).await;
    let states = format!("http://upbeat.test:6385{path}/states");
    assert_eq!(answer.header("location"), Some(states.as_str()));
    changes(&server, 202, "PUT", &secure, json!({"target": "True"})).await;
    let told = server.get(&format!("{path}/states")).await.json();
    assert_eq!(
        (&told["boot_mode"], &told["secure_boot"]),
        (&json!("bios"), &json!(true))
    );
    for (of, body) in [
        (&mode, json!({})),
        (&mode, json!({"target": "legacy"})),
        (&secure, json!({"target": "maybe"})),
        (&secure, json!({})),
    ] {
        refused(&server, 400, "PUT", of, body).await;
    }
    is_hidden_below(&server, 76, "PUT", &mode).await;
    is_hidden_below(&server, 76, "PUT", &secure).await;
    let by_hand = format!("{}/states/secure_boot", manual(&server).await);
    refused(&server, 400, "PUT", &by_hand, json!({"target": true})).await;
}

#[actix_web::test]
async fn a_console_is_switched_on_and_off() {
    let server = server().await;
    let path = managed(&server).await;
    let console = format!("{path}/states/console");
    let told = server.get(&console).await.has_status(200).json();
    assert_eq!(
        told,
        json!({"console_enabled": false, "console_info": null})
    );
    let answer = changes(&server, 202, "PUT", &console, json!({"enabled": true})).await;
    let address = format!("http://upbeat.test:6385{console}");
    assert_eq!(answer.header("location"), Some(address.as_str()));
    let told = server.get(&console).await.json();
    assert_eq!(told["console_enabled"], true);
    assert!(told["console_info"]["url"].is_string() && told["console_info"]["type"].is_string());
    assert_eq!(server.get(&path).await.json()["console_enabled"], true);
    changes(&server, 202, "PUT", &console, json!({"enabled": "false"})).await;
    assert_eq!(
        server.get(&console).await.json()["console_info"],
        Value::Null
    );
    refused(&server, 400, "PUT", &console, json!({"enabled": "maybe"})).await;
    refused(&server, 400, "PUT", &console, json!({})).await;
    let by_hand = format!("{}/states/console", manual(&server).await);
    refused(&server, 400, "PUT", &by_hand, json!({"enabled": true})).await;
    refused(&server, 400, "GET", &by_hand, Value::Null).await;
}

#[actix_web::test]
async fn a_raid_is_wished_for_since_1_12() {
    let server = server().await;
    let path = managed(&server).await;
    let raid = format!("{path}/states/raid");
    let target =
        json!({"logical_disks": [{"size_gb": "MAX", "raid_level": "1", "controller": "software"}]});
    changes(&server, 204, "PUT", &raid, target.clone()).await;
    let told = server.get(&format!("{path}/states")).await.json();
    assert_eq!(told["target_raid_config"], target);
    assert_eq!(told["raid_config"], json!({}));
    assert_eq!(server.get(&path).await.json()["target_raid_config"], target);
    for body in [
        json!([]),
        json!({"logical_disks": []}),
        json!({"logical_disks": [{"size_gb": 1}]}),
        json!({"logical_disks": [{"size_gb": 1, "raid_level": "99"}]}),
        json!({"disks": []}),
    ] {
        refused(&server, 400, "PUT", &raid, body).await;
    }
    changes(&server, 204, "PUT", &raid, json!({})).await;
    let told = server.get(&path).await.json();
    assert_eq!(told["target_raid_config"], json!({}));
    let old = server.raw("PUT", &raid, &at("1.11"), b"{}").await;
    old.has_status(406).fault_string();
    let by_hand = format!("{}/states/raid", manual(&server).await);
    refused(&server, 404, "PUT", &by_hand, json!({})).await;

    let properties = "/v1/drivers/fake-hardware/raid/logical_disk_properties";
    let told = server.get(properties).await.has_status(200).json();
    assert!(told["raid_level"].as_str().unwrap().contains("JBOD"));
    let old = server.raw("GET", properties, &at("1.11"), b"").await;
    old.has_status(406);
    for other in ["manual-management", "nothing"] {
        let path = format!("/v1/drivers/{other}/raid/logical_disk_properties");
        refused(&server, 404, "GET", &path, Value::Null).await;
    }
}

#[actix_web::test]
async fn power_is_changed_hard_and_softly() {
    let server = server().await;
    let path = managed(&server).await;
    let power = format!("{path}/states/power");
    let states = format!("http://upbeat.test:6385{path}/states");
    for (body, state) in [
        (json!({"target": "power on", "timeout": 30}), "power on"),
        (json!({"target": "soft power off"}), "power off"),
        (
            json!({"target": "soft rebooting", "timeout": "30"}),
            "power on",
        ),
        (json!({"target": "power off"}), "power off"),
        (json!({"target": "rebooting"}), "power on"),
    ] {
        let answer = changes(&server, 202, "PUT", &power, body.clone()).await;
        assert_eq!(answer.header("location"), Some(states.as_str()));
        let told = server.get(&format!("{path}/states")).await.json();
        assert_eq!(told["power_state"], state, "{body}");
        assert_eq!(told["target_power_state"], Value::Null);
    }
    let soft = json!({"target": "soft power off"});
    let old = server
        .raw("PUT", &power, &at("1.26"), soft.to_string().as_bytes())
        .await;
    old.has_status(406);
    let timed = json!({"target": "power on", "timeout": 5}).to_string();
    let old = server
        .raw("PUT", &power, &at("1.26"), timed.as_bytes())
        .await;
    old.has_status(406);
    let by_hand = format!("{}/states/power", manual(&server).await);
    let text = refused(&server, 400, "PUT", &by_hand, soft).await;
    assert!(text.contains("power off"), "{text}");
}

#[actix_web::test]
async fn kernel_parameters_and_boot_images_smuggle_nothing() {
    let server = server().await;
    let path = managed(&server).await;
    for (field, value) in [
        ("instance_info/kernel_append_params", "a\nchain http://evil"),
        ("instance_info/kernel_append_params", "x; shell"),
        ("driver_info/kernel_append_params", "${net0/ip}"),
        ("driver_info/deploy_kernel", "file:///etc/shadow"),
        ("instance_info/boot_iso", "http://h/a.iso init=/bin/sh"),
    ] {
        let patch = json!([{"op": "add", "path": format!("/{field}"), "value": value}]);
        let text = refused(&server, 400, "PATCH", &path, patch).await;
        assert!(text.starts_with(field), "{text}");
    }
    let patch = json!([
        {"op": "add", "path": "/instance_info/kernel_append_params", "value": "console=ttyS0,115200n8"},
        {"op": "add", "path": "/driver_info/deploy_kernel", "value": "http://h/ipa.kernel"},
    ]);
    server
        .send("PATCH", &path, Some(patch))
        .await
        .has_status(200);
}
