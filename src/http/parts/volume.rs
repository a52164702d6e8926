//! Volume connectors and targets.

use serde_json::{Value, json};

use super::{Served, fields_of, node_uuid};
use crate::http::error::Error;
use crate::http::reply::Reply;
use crate::http::request::Request;
use crate::http::view::{Shown, links, short, shown};
use crate::node::masking::masked;
use crate::node::volume::{VolumeConnector, VolumeTarget};
use crate::store::PartOfNode;

impl Served for VolumeConnector {
    const PLURAL: &'static str = "connectors";
    const PATH: &'static str = "volume/connectors";
    const SHOWN: &'static [Shown<PartOfNode<VolumeConnector>>] = fields_of!(
        VolumeConnector,
        "volume/connectors",
        short(shown("type", 1, |of: &PartOfNode<VolumeConnector>, _| {
            json!(of.part.is.kind)
        })),
        short(shown(
            "connector_id",
            1,
            |of: &PartOfNode<VolumeConnector>, _| { json!(of.part.is.connector_id) }
        )),
        shown("extra", 1, |of: &PartOfNode<VolumeConnector>, _| json!(
            of.part.is.extra
        )),
        short(shown(
            "node_uuid",
            1,
            |of: &PartOfNode<VolumeConnector>, _| node_uuid(of.node)
        )),
    );
    const SORT_KEYS: &'static [&'static str] =
        &["uuid", "connector_id", "created_at", "updated_at"];
}

impl Served for VolumeTarget {
    const PLURAL: &'static str = "targets";
    const PATH: &'static str = "volume/targets";
    const SHOWN: &'static [Shown<PartOfNode<VolumeTarget>>] = fields_of!(
        VolumeTarget,
        "volume/targets",
        short(shown(
            "volume_type",
            1,
            |of: &PartOfNode<VolumeTarget>, _| { json!(of.part.is.volume_type) }
        )),
        shown("properties", 1, |of: &PartOfNode<VolumeTarget>, _| {
            Value::Object(masked(&of.part.is.properties))
        }),
        short(shown(
            "boot_index",
            1,
            |of: &PartOfNode<VolumeTarget>, _| { json!(of.part.is.boot_index) }
        )),
        short(shown("volume_id", 1, |of: &PartOfNode<VolumeTarget>, _| {
            json!(of.part.is.volume_id)
        })),
        shown("extra", 1, |of: &PartOfNode<VolumeTarget>, _| json!(
            of.part.is.extra
        )),
        short(shown("node_uuid", 1, |of: &PartOfNode<VolumeTarget>, _| {
            node_uuid(of.node)
        })),
    );
    const SORT_KEYS: &'static [&'static str] = &["uuid", "created_at", "updated_at"];
}

/// `GET /v1/volume`
pub async fn index(request: &Request) -> Result<Reply, Error> {
    request.query_arguments()?.finish()?;
    Ok(Reply::body(&index_document(&request.base, "volume")))
}

/// `GET /v1/nodes/{node}/volume`
pub async fn index_of_node(request: &Request, ident: &str) -> Result<Reply, Error> {
    request.query_arguments()?.finish()?;
    let node = request.node(ident).await?.id;
    let path = format!("nodes/{node}/volume");
    Ok(Reply::body(&index_document(&request.base, &path)))
}

fn index_document(base: &str, path: &str) -> Value {
    json!({
        "connectors": links(base, &format!("{path}/connectors")),
        "targets": links(base, &format!("{path}/targets")),
        "links": links(base, path),
    })
}
