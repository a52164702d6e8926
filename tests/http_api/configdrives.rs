//! Config drives as they come with a request.

use serde_json::{Value, json};
use upbeat::store::Ident;

use crate::server::server;

/// The drive is as large as one may be, and is nowhere but where it belongs.
#[actix_web::test]
async fn a_large_config_drive_is_kept_and_makes_no_list_longer() {
    let server = server().await;
    let image = json!({
        "image_source": "http://127.0.0.1:9/i.raw", "image_os_hash_algo": "sha256",
        "image_os_hash_value": "a".repeat(64),
    });
    let document =
        json!({"driver": "fake-hardware", "automated_clean": false, "instance_info": image});
    let uuid = server.node(document).await;
    let path = format!("/v1/nodes/{uuid}/states/provision");
    for (verb, state) in [("manage", "manageable"), ("provide", "available")] {
        let asked = server.send("PUT", &path, Some(json!({"target": verb})));
        asked.await.has_status(202);
        server
            .node_when(&uuid, |node| node["provision_state"] == state)
            .await;
    }
    // 10 MiB of gzip in base64.
    let drive = format!("H4sI{}", "A".repeat(10 << 20));
    let body = json!({"target": "active", "configdrive": drive});
    server.send("PUT", &path, Some(body)).await.has_status(202);
    server
        .node_when(&uuid, |node| node["provision_state"] == "wait call-back")
        .await;
    let ident = Ident::Id(uuid.parse().unwrap());
    let kept = server
        .behind
        .store
        .reader
        .node(ident)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(kept.attributes.instance_info["configdrive"], drive);
    for path in [
        format!("/v1/nodes/{uuid}"),
        "/v1/nodes/detail".to_owned(),
        format!("/v1/nodes/{uuid}/history?detail=true"),
    ] {
        let shown = server.get(&path).await.has_status(200);
        assert!(shown.body.len() < 20_000, "{path}: {}", shown.body.len());
    }
    let shown: Value = server.get(&format!("/v1/nodes/{uuid}")).await.json();
    assert_eq!(shown["instance_info"]["configdrive"], "******");
}
