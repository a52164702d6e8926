//! What can be listed of a node's machine: virtual interfaces and media, BIOS settings, firmware, vendor methods.

use serde_json::{Value, json};

use crate::hardware::{changes, is_hidden_below, managed, manual, refused};
use crate::server::{at, server};

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
    let used = format!("/v1/ports/{}", port.as_str().unwrap());
    let text = refused(&server, 409, "DELETE", &used, Value::Null).await;
    assert!(text.contains("VIF c"), "{text}");
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
    let subscription = server
        .send(
            "POST",
            &format!("{vendor}?method=create_subscription"),
            Some(json!({"Destination": "https://events.example/", "HttpHeaders": null})),
        )
        .await
        .has_status(200)
        .json();
    let by_id = json!({"id": subscription["Id"]});
    let show = format!("{vendor}/get_subscription");
    let shown = server.send("GET", &show, Some(by_id.clone())).await;
    assert_eq!(shown.has_status(200).json(), subscription);
    let delete = format!("{vendor}?method=delete_subscription");
    let deleted = server.send("DELETE", &delete, Some(by_id.clone())).await;
    assert_eq!(deleted.has_status(200).json(), Value::Null);
    refused(&server, 404, "DELETE", &delete, by_id).await;

    for (method, path, body) in [
        ("POST", format!("{vendor}/nothing"), json!({"bar": "x"})),
        ("POST", format!("{vendor}/first_method"), json!({})),
        ("POST", vendor.clone(), json!({"bar": "x"})),
        ("DELETE", delete, json!({})),
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
