//! What an inspection found, as a client sees it.

use std::sync::Arc;

use serde_json::json;
use upbeat::store::{Change, Ident, Save};

use crate::server::server;

#[actix_web::test]
async fn an_inventory_is_served_once_an_inspection_has_stored_one() {
    let server = server().await;
    let uuid = server
        .node(json!({"driver": "fake-hardware", "name": "n"}))
        .await;
    let path = format!("/v1/nodes/{uuid}/inventory");
    let text = server.get(&path).await.has_status(404).fault_string();
    assert!(text.contains("never inspected"), "{text}");
    let found = json!({"inventory": {"memory": {"physical_mb": 8192}, "bmc_address": null}, "plugin_data": {"all_interfaces": {}}});
    let store = &server.behind.store;
    let ident = Ident::Id(uuid.parse().unwrap());
    let mut node = store.reader.node(ident).await.unwrap().unwrap();
    let from_version = node.version;
    node.version += 1;
    let save = Save {
        inventory: Some(found.clone()),
        ..Save::of(Arc::new(node), Change::Update { from_version })
    };
    store.writer.save(save).await.unwrap();
    assert_eq!(server.get(&path).await.has_status(200).json(), found);
    let by_name = server.get("/v1/nodes/n/inventory").await;
    assert_eq!(by_name.has_status(200).json(), found);
    server
        .get(&format!("{path}?odd=1"))
        .await
        .has_status(400)
        .fault_string();
}
