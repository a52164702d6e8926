//! What is managed of a node's machine from outside, as a client sees it: every endpoint with its codes and its versions.

use serde_json::{Value, json};

use crate::server::{Answer, Server, at, server};

/// A manageable node of `fake-hardware`: the address of it.
async fn managed(server: &Server) -> String {
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
async fn manual(server: &Server) -> String {
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
async fn changes(server: &Server, status: u16, method: &str, path: &str, body: Value) -> Answer {
    let body = Some(body).filter(|body| !body.is_null());
    let answer = server.send(method, path, body).await.has_status(status);
    assert!(answer.body.is_empty());
    assert_eq!(answer.header("content-type"), None);
    let node: Vec<&str> = path.split('/').take(4).collect();
    at_rest(server, &node.join("/")).await;
    answer
}

async fn refused(server: &Server, status: u16, method: &str, path: &str, body: Value) -> String {
    let body = Some(body).filter(|body| !body.is_null());
    let answer = server.send(method, path, body).await;
    answer.has_status(status).fault_string()
}

/// Below its version an endpoint is not there.
async fn is_hidden_below(server: &Server, since: u16, method: &str, path: &str) {
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
async fn virtual_interfaces_are_remembered_since_1_28() {
    let server = server().await;
    let path = managed(&server).await;
    let vifs = format!("{path}/vifs");
    assert_eq!(
        server.get(&vifs).await.has_status(200).json(),
        json!({"vifs": []})
    );
    changes(&server, 204, "POST", &vifs, json!({"id": "a", "mtu": 9000})).await;
    changes(&server, 204, "POST", &vifs, json!({"id": "b"})).await;
    let told = server.get(&vifs).await.json();
    assert_eq!(told, json!({"vifs": [{"id": "a"}, {"id": "b"}]}));
    refused(&server, 409, "POST", &vifs, json!({"id": "a"})).await;
    changes(&server, 204, "DELETE", &format!("{vifs}/a"), Value::Null).await;
    refused(&server, 400, "DELETE", &format!("{vifs}/a"), Value::Null).await;

    let uuid = path.rsplit('/').next().unwrap();
    let port = json!({"node_uuid": uuid, "address": "52:54:00:aa:00:01"});
    let port = server.send("POST", "/v1/ports", Some(port)).await.json()["uuid"].clone();
    changes(
        &server,
        204,
        "POST",
        &vifs,
        json!({"id": "c", "port_uuid": port}),
    )
    .await;
    for body in [
        json!({}),
        json!([]),
        json!({"id": ""}),
        json!({"id": 5}),
        json!({"id": "d", "port_uuid": "x"}),
        json!({"id": "d", "port_uuid": "6523b921-218d-4849-a3bb-3ab765c2fcdc"}),
        json!({"id": "d", "portgroup_uuid": "6523b921-218d-4849-a3bb-3ab765c2fcdc"}),
        json!({"id": "d", "port_uuid": port, "portgroup_uuid": port}),
    ] {
        refused(&server, 400, "POST", &vifs, body).await;
    }
    let body = json!({"id": "d", "port_uuid": port}).to_string();
    let old = server
        .raw("POST", &vifs, &at("1.66"), body.as_bytes())
        .await;
    old.has_status(406);
    for (method, path) in [
        ("GET", vifs.clone()),
        ("POST", vifs.clone()),
        ("DELETE", format!("{vifs}/b")),
    ] {
        is_hidden_below(&server, 28, method, &path).await;
    }
}

#[actix_web::test]
async fn virtual_media_are_inserted_listed_and_ejected() {
    let server = server().await;
    let path = managed(&server).await;
    let vmedia = format!("{path}/vmedia");
    let inserted = async || -> Vec<String> {
        let told = server.get(&vmedia).await.has_status(200).json();
        told.as_array()
            .expect("a bare list")
            .iter()
            .filter(|drive| drive["inserted"] == true)
            .map(|drive| drive["image"].as_str().unwrap().to_owned())
            .collect()
    };
    assert!(inserted().await.is_empty());
    for (device, url) in [
        ("cdrom", "http://user:secret@h.example/a.iso"),
        ("disk", "nfs://h.example/share/b.img"),
        ("floppy", "https://h.example/c.img"),
    ] {
        let body = json!({"device_type": device, "image_url": url});
        changes(&server, 204, "POST", &vmedia, body).await;
    }
    assert_eq!(
        inserted().await,
        [
            "http://user:******@h.example/a.iso",
            "nfs://h.example/share/b.img",
            "https://h.example/c.img"
        ]
    );
    // In the query, as gophercloud sends it; in the body, as openstacksdk does; and in neither.
    let csv = format!("{vmedia}?device_types=cdrom");
    changes(&server, 204, "DELETE", &csv, Value::Null).await;
    changes(
        &server,
        204,
        "DELETE",
        &vmedia,
        json!({"device_types": ["disk"]}),
    )
    .await;
    assert_eq!(inserted().await, ["https://h.example/c.img"]);
    changes(
        &server,
        204,
        "DELETE",
        &vmedia,
        json!({"device_types": "cdrom,disk"}),
    )
    .await;
    assert_eq!(inserted().await.len(), 1);
    changes(&server, 204, "DELETE", &vmedia, Value::Null).await;
    assert!(inserted().await.is_empty());

    for body in [
        json!({}),
        json!({"device_type": "cdrom"}),
        json!({"image_url": "http://h/a.iso"}),
        json!({"device_type": "tape", "image_url": "http://h/a.iso"}),
        json!({"device_type": "cdrom", "image_url": "file:///etc/shadow"}),
        json!({"device_type": "cdrom", "image_url": "FILE:///dev/zero"}),
        json!({"device_type": "cdrom", "image_url": "javascript:alert(1)"}),
        json!({"device_type": "cdrom", "image_url": "http://h/a.iso", "image_download_source": "pigeon"}),
        json!({"device_type": "cdrom", "image_url": "http://h/a.iso", "odd": 1}),
    ] {
        refused(&server, 400, "POST", &vmedia, body).await;
    }
    for (query, body) in [
        ("?device_types=tape", Value::Null),
        ("?odd=1", Value::Null),
        ("", json!({"device_types": 1})),
        ("", json!({"device_types": [1]})),
        ("", json!({"odd": 1})),
    ] {
        refused(&server, 400, "DELETE", &format!("{vmedia}{query}"), body).await;
    }
    is_hidden_below(&server, 93, "GET", &vmedia).await;
    is_hidden_below(&server, 89, "POST", &vmedia).await;
    is_hidden_below(&server, 89, "DELETE", &vmedia).await;
    let by_hand = format!("{}/vmedia", manual(&server).await);
    refused(&server, 400, "GET", &by_hand, Value::Null).await;
}

#[actix_web::test]
async fn bios_settings_are_listed_and_shown_since_1_40() {
    let server = server().await;
    let path = managed(&server).await;
    let bios = format!("{path}/bios");
    let told = server.get(&bios).await.has_status(200).json();
    let first = &told["bios"][0];
    assert_eq!(
        (&first["name"], &first["value"]),
        (&json!("AssetTag"), &json!(""))
    );
    assert!(first.get("attribute_type").is_none() && first["links"].is_array());
    for setting in told["bios"].as_array().unwrap() {
        assert!(setting["value"].is_string(), "{setting}");
    }
    let detailed = server.get(&format!("{bios}?detail=true")).await.json();
    let delay = &detailed["bios"][1];
    assert_eq!(
        (&delay["attribute_type"], &delay["upper_bound"]),
        (&json!("Integer"), &json!(600))
    );
    let fields = server
        .get(&format!("{bios}?fields=name,read_only"))
        .await
        .json();
    assert_eq!(
        fields["bios"][0].as_object().unwrap().len(),
        3,
        "name, read_only, links"
    );
    let shown = server
        .get(&format!("{bios}/NumLock"))
        .await
        .has_status(200)
        .json();
    assert_eq!(shown["NumLock"]["value"], "On");
    assert_eq!(shown["NumLock"]["allowable_values"], json!(["On", "Off"]));
    refused(&server, 404, "GET", &format!("{bios}/Turbo"), Value::Null).await;
    refused(
        &server,
        400,
        "GET",
        &format!("{bios}?fields=odd"),
        Value::Null,
    )
    .await;
    refused(
        &server,
        400,
        "GET",
        &format!("{bios}?fields=name&detail=true"),
        Value::Null,
    )
    .await;
    is_hidden_below(&server, 40, "GET", &bios).await;
    is_hidden_below(&server, 40, "GET", &format!("{bios}/NumLock")).await;
    let old = server
        .raw("GET", &format!("{bios}?detail=true"), &at("1.73"), b"")
        .await;
    old.has_status(406);
    let by_hand = format!("{}/bios", manual(&server).await);
    assert_eq!(
        server.get(&by_hand).await.has_status(200).json(),
        json!({"bios": []})
    );
    // Nobody has seen the machine yet.
    let fresh = server.node(json!({"driver": "fake-hardware"})).await;
    let told = server.get(&format!("/v1/nodes/{fresh}/bios")).await.json();
    assert_eq!(told, json!({"bios": []}));
}

#[actix_web::test]
async fn firmware_is_listed_since_1_86() {
    let server = server().await;
    let path = managed(&server).await;
    let firmware = format!("{path}/firmware");
    let told = server.get(&firmware).await.has_status(200).json();
    let bmc = &told["firmware"][1];
    assert_eq!(bmc["component"], "bmc");
    assert_eq!(bmc["initial_version"], "1.0.0");
    assert_eq!(bmc["current_version"], "1.0.0");
    assert_eq!(bmc["last_version_flashed"], Value::Null);
    assert!(bmc["created_at"].is_string() && bmc["updated_at"].is_null());
    let fields = server
        .get(&format!("{firmware}?fields=component"))
        .await
        .json();
    assert_eq!(fields["firmware"][0], json!({"component": "bios"}));
    is_hidden_below(&server, 86, "GET", &firmware).await;
    let by_hand = format!("{}/firmware", manual(&server).await);
    assert_eq!(server.get(&by_hand).await.json(), json!({"firmware": []}));
}

#[actix_web::test]
async fn vendor_methods_are_called_by_path_and_by_query() {
    let server = server().await;
    let path = managed(&server).await;
    let vendor = format!("{path}/vendor_passthru");
    let told = server
        .get(&format!("{vendor}/methods"))
        .await
        .has_status(200)
        .json();
    assert_eq!(told["third_method_sync"]["async"], false);
    assert_eq!(told["third_method_sync"]["http_methods"], json!(["POST"]));
    assert_eq!(
        told["fourth_method_shared_lock"]["require_exclusive_lock"],
        false
    );

    let call = async |path: &str, bar: &str| {
        let answer = server.send("POST", path, Some(json!({"bar": bar}))).await;
        answer.has_status(200).json()
    };
    assert_eq!(
        call(&format!("{vendor}/third_method_sync"), "meow").await,
        json!(true)
    );
    assert_eq!(
        call(&format!("{vendor}?method=third_method_sync"), "bark").await,
        json!(false)
    );
    for method in ["first_method", "second_method", "fourth_method_shared_lock"] {
        let path = format!("{vendor}/{method}");
        changes(&server, 202, "POST", &path, json!({"bar": "x"})).await;
    }
    for (method, path, body) in [
        ("POST", format!("{vendor}/nothing"), json!({"bar": "x"})),
        ("POST", format!("{vendor}/first_method"), json!({})),
        ("POST", vendor.clone(), json!({"bar": "x"})),
        (
            "DELETE",
            format!("{vendor}?method=delete_subscription"),
            json!({"id": "1"}),
        ),
        ("GET", format!("{vendor}/first_method?bar=x"), Value::Null),
        ("PATCH", format!("{vendor}/first_method"), json!([])),
    ] {
        refused(&server, 400, method, &path, body).await;
    }
    let by_hand = format!("{}/vendor_passthru", manual(&server).await);
    refused(
        &server,
        400,
        "GET",
        &format!("{by_hand}/methods"),
        Value::Null,
    )
    .await;
    refused(&server, 400, "POST", &format!("{by_hand}/x"), json!({})).await;

    let driver = "/v1/drivers/fake-hardware/vendor_passthru";
    let told = server
        .get(&format!("{driver}/methods"))
        .await
        .has_status(200)
        .json();
    assert_eq!(told, json!({}));
    refused(&server, 400, "POST", &format!("{driver}/x"), json!({})).await;
    refused(
        &server,
        400,
        "POST",
        &format!("{driver}?method=x"),
        json!({}),
    )
    .await;
    let nobody = "/v1/drivers/nobody/vendor_passthru/methods";
    refused(&server, 404, "GET", nobody, Value::Null).await;
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
