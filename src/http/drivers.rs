//! `GET /v1/drivers`: the hardware types of this conductor.

use serde_json::json;

use super::error::Error;
use super::lists::list_text;
use super::nodes::frame;
use super::reply::{Document, Reply};
use super::request::Request;
use super::view::{self, Frame, links};
use crate::node::hardware::{self, HARDWARE_TYPES, HardwareType, raid};

/// `GET /v1/drivers`
pub async fn list(request: &Request) -> Result<Reply, Error> {
    let mut arguments = request.query_arguments()?;
    let kind = arguments.take_text("type")?;
    let detail = arguments.take_bool("detail")?;
    let fields = arguments.take_text("fields")?;
    arguments.finish()?;
    let is_classic = match kind.as_deref() {
        None | Some("dynamic") => false,
        Some("classic") => true,
        Some(other) => {
            return Err(Error::Bad(format!(
                "type: \"{other}\" is not valid; use classic or dynamic."
            )));
        }
    };
    let detail = detail.unwrap_or(false);
    if detail && fields.is_some() {
        return Err(Error::Bad(
            "Can't fetch a subset of fields with 'detail' set".to_owned(),
        ));
    }
    let mut shown = Vec::new();
    if !is_classic {
        for hardware_type in HARDWARE_TYPES {
            let whole = document(hardware_type, frame(request), detail || fields.is_some());
            shown.push(chosen(whole, fields.as_deref())?);
        }
    }
    Ok(Reply::Body(list_text("drivers", &shown, None)))
}

/// `GET /v1/drivers/{driver}`
pub async fn show(request: &Request, name: &str) -> Result<Reply, Error> {
    let mut arguments = request.query_arguments()?;
    let fields = arguments.take_text("fields")?;
    arguments.finish()?;
    let whole = document(find(name)?, frame(request), true);
    Ok(Reply::body(&chosen(whole, fields.as_deref())?))
}

/// `GET /v1/drivers/{driver}/properties`: the drivers of this version need nothing in `driver_info`.
pub async fn properties(request: &Request, name: &str) -> Result<Reply, Error> {
    request.query_arguments()?.finish()?;
    find(name)?;
    Ok(Reply::body(&json!({})))
}

/// `GET /v1/drivers/{driver}/raid/logical_disk_properties`
pub async fn logical_disk_properties(request: &Request, name: &str) -> Result<Reply, Error> {
    request.query_arguments()?.finish()?;
    let raid = find(name)?
        .interfaces
        .iter()
        .find(|interface| interface.kind == "raid");
    match raid {
        Some(raid) if raid.default != "no-raid" => {
            Ok(Reply::body(&raid::logical_disk_properties()))
        }
        _ => Err(Error::NotFound(format!(
            "RAID of the driver {name} could not be found; its nodes have none unless they say so."
        ))),
    }
}

/// The hardware type a path names.
///
/// # Errors
/// [`Error::NotFound`].
pub fn find(name: &str) -> Result<&'static HardwareType, Error> {
    hardware::hardware_type(name)
        .ok_or_else(|| Error::NotFound(format!("The driver '{name}' could not be found.")))
}

fn chosen(whole: Document, fields: Option<&str>) -> Result<Document, Error> {
    let Some(list) = fields else {
        return Ok(whole);
    };
    let wanted: Vec<String> = list
        .split(',')
        .map(|name| name.trim().to_lowercase())
        .collect();
    if let Some(unknown) = wanted
        .iter()
        .find(|name| !whole.0.iter().any(|(known, _)| known == name))
    {
        return Err(Error::Bad(format!("Field(s) \"{unknown}\" are not valid")));
    }
    let keep = |name: &str| name == "links" || wanted.iter().any(|wanted| wanted == name);
    Ok(Document(
        whole.0.into_iter().filter(|(name, _)| keep(name)).collect(),
    ))
}

fn document(hardware_type: &HardwareType, frame: Frame<'_>, is_full: bool) -> Document {
    let minor = frame.microversion.0;
    let path = format!("drivers/{}", hardware_type.name);
    let mut document = Document::default();
    document.put("name", hardware_type.name);
    document.put("hosts", json!([frame.conductor]));
    document.put("links", links(frame.base, &path));
    if minor >= 14 {
        document.put(
            "properties",
            links(frame.base, &format!("{path}/properties")),
        );
    }
    if minor >= 30 {
        document.put("type", "dynamic");
    }
    if minor >= 30 && is_full {
        for (default, enabled, kind) in INTERFACE_FIELDS {
            let since = view::NODE_FIELDS
                .iter()
                .find(|field| field.name.strip_suffix("_interface") == Some(kind))
                .map_or(1, |field| field.since);
            let interface = hardware_type
                .interfaces
                .iter()
                .find(|known| known.kind == *kind);
            if since <= minor.max(31) {
                document.put(default, json!(interface.map(|known| known.default)));
                document.put(
                    enabled,
                    json!(interface.map_or(&[][..], |known| known.enabled)),
                );
            }
        }
    }
    document
}

macro_rules! interface_fields {
    ($($kind:literal),+) => {
        &[$((concat!("default_", $kind, "_interface"), concat!("enabled_", $kind, "_interfaces"), $kind)),+]
    };
}

/// Names of the two fields each kind of interface has in a driver's document.
const INTERFACE_FIELDS: &[(&str, &str, &str)] = interface_fields![
    "bios",
    "boot",
    "console",
    "deploy",
    "firmware",
    "inspect",
    "management",
    "network",
    "power",
    "raid",
    "rescue",
    "storage",
    "vendor"
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::microversion::Microversion;
    use crate::node::hardware::INTERFACE_KINDS;

    fn names(minor: u16) -> Vec<&'static str> {
        let frame = Frame {
            base: "http://h",
            microversion: Microversion(minor),
            conductor: "c",
        };
        document(&HARDWARE_TYPES[0], frame, true)
            .0
            .iter()
            .map(|(name, _)| *name)
            .collect()
    }

    #[test]
    fn interfaces_are_told_from_their_version_on() {
        assert!(!names(29).contains(&"default_boot_interface"));
        assert!(names(30).contains(&"default_boot_interface"));
        assert!(!names(39).contains(&"default_bios_interface"));
        assert!(names(86).contains(&"enabled_firmware_interfaces"));
        assert_eq!(INTERFACE_FIELDS.len(), INTERFACE_KINDS.len());
    }
}
