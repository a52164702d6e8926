//! The tables of fields that the document and the checks of versions go through: one line per kind of thing.

#[cfg(test)]
use super::objects;
use crate::catalog::{Allocation, Chassis, DeployTemplate, InspectionRule, Runbook};
use crate::http::objects::Served as _;
use crate::http::parts::Served as _;
use crate::http::view::{NODE_FIELDS, PORT_FIELDS, Shown};
use crate::http::{bios, conductors, history};
use crate::node::portgroups::Portgroup;
use crate::node::volume::{VolumeConnector, VolumeTarget};
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
        resource("Chassis", "chassis", Chassis::SHOWN),
        resource("DeployTemplate", "deploy_template", DeployTemplate::SHOWN),
        resource("Runbook", "runbook", Runbook::SHOWN),
        resource("InspectionRule", "inspection_rule", InspectionRule::SHOWN),
        resource("Allocation", "allocation", Allocation::SHOWN),
        resource("Portgroup", "portgroup", Portgroup::SHOWN),
        resource(
            "VolumeConnector",
            "volume_connector",
            VolumeConnector::SHOWN,
        ),
        resource("VolumeTarget", "volume_target", VolumeTarget::SHOWN),
    ]
}

/// For tests: what can be set: the prefix of a kind of thing, and its fields.
#[cfg(test)]
pub fn settable() -> Vec<(&'static str, Vec<(&'static str, u16)>)> {
    let of_nodes = attributes::FIELDS
        .iter()
        .map(|field| (field.name, field.since));
    let mut all = vec![
        ("node", of_nodes.collect()),
        ("port", ports::FIELDS.to_vec()),
    ];
    all.extend(objects::settable().into_iter().map(|(_, prefix, fields)| {
        let fields = fields.iter().map(|field| (field.name, field.since));
        (prefix, fields.collect())
    }));
    all
}
