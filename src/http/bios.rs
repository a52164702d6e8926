//! `/v1/nodes/{node}/bios`, `/v1/nodes/{node}/firmware`: the settings of a machine's BIOS and the versions of its firmware.

use serde_json::{Value, json};

use super::error::Error;
use super::lists::{self, list_text};
use super::nodes::frame;
use super::reply::{Document, Reply, json_text};
use super::request::Request;
use super::view::{self, Selection, Shown, links, short, shown, time};
use crate::node::hardware::bios::{Setting, SettingKind, SettingOfNode, settings};
use crate::node::hardware::firmware::{Component, components};
use crate::node::hardware::recorded::{BiosChange, FirmwareChange};
use crate::node::{Node, NodeId};
use crate::timestamp::Timestamp;

/// A setting of a node.
pub struct BiosRow {
    node: NodeId,
    created_at: Timestamp,
    setting: &'static Setting,
    change: Option<BiosChange>,
}

impl BiosRow {
    fn of(node: &Node, of: SettingOfNode<'_>) -> BiosRow {
        BiosRow {
            node: node.id,
            created_at: node.created_at,
            setting: of.setting,
            change: of.change.cloned(),
        }
    }
}

/// A component of a node.
pub struct FirmwareRow {
    created_at: Timestamp,
    component: &'static Component,
    change: Option<FirmwareChange>,
}

/// The fields of a BIOS setting. Values are texts, whatever the setting holds: clients expect it so.
pub const BIOS_FIELDS: &[Shown<BiosRow>] = &[
    short(shown("name", 40, |row: &BiosRow, _| {
        json!(row.setting.name)
    })),
    short(shown("value", 40, |row: &BiosRow, _| {
        json!(
            row.change
                .as_ref()
                .map_or(row.setting.factory_value, |change| &change.value)
        )
    })),
    short(shown("created_at", 40, |row: &BiosRow, _| {
        time(Some(row.created_at))
    })),
    short(shown("updated_at", 40, |row: &BiosRow, _| {
        time(row.change.as_ref().map(|change| change.at))
    })),
    shown("attribute_type", 74, |row: &BiosRow, _| {
        json!(row.setting.kind.name())
    }),
    shown("allowable_values", 74, |row: &BiosRow, _| {
        match row.setting.kind {
            SettingKind::Enumeration(words) => json!(words),
            _ => Value::Null,
        }
    }),
    shown("lower_bound", 74, |row: &BiosRow, _| {
        match row.setting.kind {
            SettingKind::Integer(lowest, _) => json!(lowest),
            _ => Value::Null,
        }
    }),
    shown("upper_bound", 74, |row: &BiosRow, _| {
        match row.setting.kind {
            SettingKind::Integer(_, highest) => json!(highest),
            _ => Value::Null,
        }
    }),
    shown("min_length", 74, |row: &BiosRow, _| {
        match row.setting.kind {
            SettingKind::Text(shortest, _) => json!(shortest),
            _ => Value::Null,
        }
    }),
    shown("max_length", 74, |row: &BiosRow, _| {
        match row.setting.kind {
            SettingKind::Text(_, longest) => json!(longest),
            _ => Value::Null,
        }
    }),
    shown("read_only", 74, |row: &BiosRow, _| {
        json!(row.setting.read_only)
    }),
    shown("reset_required", 74, |row: &BiosRow, _| {
        json!(row.setting.reset_required)
    }),
    shown("unique", 74, |row: &BiosRow, _| json!(row.setting.unique)),
    short(shown("links", 40, |row: &BiosRow, frame| {
        let path = format!("nodes/{}/bios/{}", row.node, row.setting.name);
        links(frame.base, &path)
    })),
];

/// The fields of a firmware component.
pub const FIRMWARE_FIELDS: &[Shown<FirmwareRow>] = &[
    short(shown("component", 86, |row: &FirmwareRow, _| {
        json!(row.component.name)
    })),
    short(shown("initial_version", 86, |row: &FirmwareRow, _| {
        json!(row.component.initial_version)
    })),
    short(shown("current_version", 86, |row: &FirmwareRow, _| {
        json!(
            row.change
                .as_ref()
                .map_or(row.component.initial_version, |change| &change.version)
        )
    })),
    short(shown("last_version_flashed", 86, |row: &FirmwareRow, _| {
        json!(row.change.as_ref().map(|change| &change.version))
    })),
    short(shown("created_at", 86, |row: &FirmwareRow, _| {
        time(Some(row.created_at))
    })),
    short(shown("updated_at", 86, |row: &FirmwareRow, _| {
        time(row.change.as_ref().map(|change| change.at))
    })),
    short(shown("vendor", 114, |_: &FirmwareRow, _| Value::Null)),
    short(shown("model", 114, |_: &FirmwareRow, _| Value::Null)),
    short(shown("serial_number", 114, |_: &FirmwareRow, _| {
        Value::Null
    })),
];

/// `GET /v1/nodes/{node}/bios`
pub async fn list(request: &Request, ident: &str) -> Result<Reply, Error> {
    let mut arguments = request.query_arguments()?;
    let selection = lists::selection(request, &mut arguments, BIOS_FIELDS, false)?;
    arguments.finish()?;
    let node = request.node(ident).await?;
    let rows: Vec<Document> = settings(&node)
        .into_iter()
        .map(|of| BiosRow::of(&node, of))
        .map(|row| view::document(BIOS_FIELDS, &row, &selection, frame(request)))
        .collect();
    Ok(Reply::Body(list_text("bios", &rows, None)))
}

/// `GET /v1/nodes/{node}/bios/{setting}`: the setting below its own name.
pub async fn show(request: &Request, ident: &str, name: &str) -> Result<Reply, Error> {
    request.query_arguments()?.finish()?;
    let node = request.node(ident).await?;
    let of = settings(&node)
        .into_iter()
        .find(|of| of.setting.name == name)
        .ok_or_else(|| {
            Error::NotFound(format!(
                "BIOS setting {name} of node {} could not be found.",
                node.id
            ))
        })?;
    let row = BiosRow::of(&node, of);
    let shown = view::document(BIOS_FIELDS, &row, &Selection::Full, frame(request));
    Ok(Reply::Body(format!(
        "{{{}:{}}}",
        json_text(&name),
        json_text(&shown)
    )))
}

/// `GET /v1/nodes/{node}/firmware`
pub async fn firmware(request: &Request, ident: &str) -> Result<Reply, Error> {
    let mut arguments = request.query_arguments()?;
    let selection = lists::selection(request, &mut arguments, FIRMWARE_FIELDS, false)?;
    arguments.finish()?;
    let node = request.node(ident).await?;
    let rows: Vec<Document> = components(&node)
        .into_iter()
        .map(|of| FirmwareRow {
            created_at: node.created_at,
            component: of.component,
            change: of.change.cloned(),
        })
        .map(|row| view::document(FIRMWARE_FIELDS, &row, &selection, frame(request)))
        .collect();
    Ok(Reply::Body(list_text("firmware", &rows, None)))
}
