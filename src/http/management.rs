//! `/v1/nodes/{node}/management/boot_device`: the drivers of this version can't be asked for a boot device, so clients are told.

use super::error::Error;
use super::reply::Reply;
use super::request::Request;
use crate::node::Refused;

/// Every method of the boot device.
pub async fn boot_device(request: &Request, ident: &str) -> Result<Reply, Error> {
    let node = request.node(ident).await?;
    Err(Refused::Unsupported {
        what: format!(
            "The driver {} can neither tell nor set a boot device.",
            node.attributes.driver
        ),
    }
    .into())
}
