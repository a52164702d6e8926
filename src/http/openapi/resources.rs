//! The tables of fields that the document and the checks of versions go through: one line per kind of thing.

use crate::http::view::{NODE_FIELDS, PORT_FIELDS, Shown};
use crate::http::{bios, conductors, history};
#[cfg(test)]
use crate::node::{attributes, ports};

/// A kind of thing that answers show by a table of fields.
pub struct Resource {
    /// The name of its schema.
    pub schema: &'static str,
    /// What its fields are called by in the list of versions.
    pub prefix: &'static str,
    /// The names of its fields, and since when each is there.
    pub fields: Vec<(&'static str, u16)>,
}

fn resource<T>(schema: &'static str, prefix: &'static str, fields: &[Shown<T>]) -> Resource {
    Resource {
        schema,
        prefix,
        fields: fields
            .iter()
            .map(|field| (field.name, field.since))
            .collect(),
    }
}

/// Every kind of thing that answers show.
pub fn resources() -> Vec<Resource> {
    vec![
        resource("Node", "node", NODE_FIELDS),
        resource("Port", "port", PORT_FIELDS),
        resource("HistoryEntry", "history", history::FIELDS),
        resource("BiosSetting", "bios", bios::BIOS_FIELDS),
        resource("FirmwareComponent", "firmware", bios::FIRMWARE_FIELDS),
        resource("Conductor", "conductor", conductors::FIELDS),
    ]
}

/// For tests: what can be set: the prefix of a kind of thing, and its fields.
#[cfg(test)]
pub fn settable() -> Vec<(&'static str, Vec<(&'static str, u16)>)> {
    let of_nodes = attributes::FIELDS
        .iter()
        .map(|field| (field.name, field.since));
    vec![
        ("node", of_nodes.collect()),
        ("port", ports::FIELDS.to_vec()),
    ]
}
