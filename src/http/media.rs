//! `/v1/nodes/{node}/vmedia`: images in a machine's virtual drives.

use serde_json::{Value, json};

use super::error::Error;
use super::management::ask;
use super::nodes::split;
use super::reply::Reply;
use super::request::Request;
use crate::node::hardware::media::DRIVES;
use crate::node::hardware::recorded::Media;
use crate::node::hardware::uses;
use crate::node::masking::mask_url_passwords;
use crate::node::{HardwareRequest, Refused};

/// `GET /v1/nodes/{node}/vmedia`: a bare list, a drive each.
pub async fn list(request: &Request, ident: &str) -> Result<Reply, Error> {
    request.query_arguments()?.finish()?;
    let node = request.node(ident).await?;
    if !uses(&node.attributes, "management", "fake") {
        return Err(Refused::Unsupported {
            what: format!(
                "The driver {} has no virtual media with the management_interface of this node.",
                node.attributes.driver
            ),
        }
        .into());
    }
    let drives: Vec<Value> = DRIVES
        .iter()
        .map(|(drive, media_types)| {
            let media = node.hardware.media.get(*drive);
            json!({
                "image": media.map_or(String::new(), |media| mask_url_passwords(&media.image_url)),
                "inserted": media.is_some(),
                "media_types": media_types,
            })
        })
        .collect();
    Ok(Reply::body(&drives))
}

/// `POST /v1/nodes/{node}/vmedia`
pub async fn insert(request: &Request, ident: &str) -> Result<Reply, Error> {
    let mut arguments = request.arguments()?;
    let device_type = arguments.need_text("device_type")?;
    let image_url = arguments.need_text("image_url")?;
    let download_source = arguments.take_text("image_download_source")?;
    arguments.finish()?;
    let media = Media {
        image_url,
        download_source,
    };
    ask(
        request,
        ident,
        HardwareRequest::InsertMedia { device_type, media },
    )
    .await
}

/// `DELETE /v1/nodes/{node}/vmedia`: which drives stands in the query, once or several times, or in the body; all, if in neither.
pub async fn eject(request: &Request, ident: &str) -> Result<Reply, Error> {
    let mut types = Vec::new();
    for (key, value) in &request.query {
        if key != "device_types" {
            return Err(Error::Bad(format!("Unexpected arguments: {key}")));
        }
        types.extend(split(value));
    }
    let mut body = request.body_arguments()?;
    match body.take("device_types") {
        None => {}
        Some(Value::String(list)) => types.extend(split(&list)),
        Some(Value::Array(list)) => {
            for item in list {
                let Value::String(drive) = item else {
                    return Err(Error::Bad(
                        "device_types: must be a list of strings.".to_owned(),
                    ));
                };
                types.push(drive);
            }
        }
        Some(_) => {
            return Err(Error::Bad(
                "device_types: must be a list, or a text with commas.".to_owned(),
            ));
        }
    }
    body.finish()?;
    ask(request, ident, HardwareRequest::EjectMedia(types)).await
}
