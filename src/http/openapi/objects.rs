//! Schemas of what is described by tables of settable fields: objects that stand for themselves, and parts of nodes.

use serde_json::{Map, Value, json};

use super::schemas::{document, kind_of};
use crate::catalog::{Allocation, Chassis, DeployTemplate, InspectionRule, Kind, Runbook};
use crate::node::fields::{Field, Holds};
use crate::node::parts::PartKind;
use crate::node::portgroups::Portgroup;
use crate::node::volume::{VolumeConnector, VolumeTarget};

/// What can be set of each kind: the name of its schema, what its fields are called by in the list of versions, and the table.
pub fn settable() -> Vec<(&'static str, &'static str, &'static [Field])> {
    vec![
        ("NewChassis", "chassis", Chassis::FIELDS),
        (
            "NewDeployTemplate",
            "deploy_template",
            DeployTemplate::FIELDS,
        ),
        ("NewRunbook", "runbook", Runbook::FIELDS),
        (
            "NewInspectionRule",
            "inspection_rule",
            InspectionRule::FIELDS,
        ),
        ("NewAllocation", "allocation", Allocation::FIELDS),
        ("NewPortgroup", "portgroup", Portgroup::FIELDS),
        (
            "NewVolumeConnector",
            "volume_connector",
            VolumeConnector::FIELDS,
        ),
        ("NewVolumeTarget", "volume_target", VolumeTarget::FIELDS),
    ]
}

/// Documents of new things, and the small ones about them.
pub fn documents() -> Vec<(&'static str, Value)> {
    let mut all: Vec<(&'static str, Value)> = settable()
        .into_iter()
        .map(|(name, _, fields)| (name, new(name, fields)))
        .collect();
    let links = || json!({"type": "array", "items": {"$ref": "#/components/schemas/Link"}});
    all.extend([
        (
            "Volume",
            json!({
                "type": "object",
                "properties": {"connectors": links(), "targets": links(), "links": links()},
                "required": ["connectors", "targets", "links"],
            }),
        ),
        (
            "Children",
            json!({
                "type": "object",
                "properties": {
                    "children": {"type": "array", "items": {"type": "string", "format": "uuid"}},
                    "links": {"$ref": "#/components/schemas/Link"},
                },
                "required": ["children", "links"],
            }),
        ),
        (
            "Shards",
            json!({
                "type": "object",
                "properties": {
                    "shards": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "properties": {"name": {"type": "string"}, "count": {"type": "integer"}},
                            "required": ["name", "count"],
                        },
                    },
                },
                "required": ["shards"],
            }),
        ),
    ]);
    all
}

fn new(name: &str, fields: &[Field]) -> Value {
    let mut properties = Map::new();
    let mut required: Vec<&str> = fields
        .iter()
        .filter(|field| field.required)
        .map(|field| field.name)
        .collect();
    let uuid = || json!({"type": ["string", "null"], "format": "uuid"});
    properties.insert("uuid".to_owned(), uuid());
    if matches!(
        name,
        "NewPortgroup" | "NewVolumeConnector" | "NewVolumeTarget"
    ) {
        properties.insert("node_uuid".to_owned(), json!({"type": "string"}));
        required.push("node_uuid");
    }
    if name == "NewAllocation" {
        let node = json!({"type": ["string", "null"], "x-since": "1.58"});
        properties.insert("node".to_owned(), node);
    }
    for field in fields {
        let mut schema = match field.holds {
            Holds::Text(most) => json!({"type": ["string", "null"], "maxLength": most}),
            Holds::Name | Holds::Mac => json!({"type": ["string", "null"], "maxLength": 255}),
            Holds::Uuid => uuid(),
            Holds::Object => json!({"type": ["object", "null"]}),
            Holds::Bool => json!({"type": ["boolean", "string", "null"]}),
            Holds::Number(least, most) => {
                json!({"type": ["integer", "string", "null"], "minimum": least, "maximum": most})
            }
            Holds::Checked(_) => kind_of(field.name),
        };
        schema["x-since"] = json!(format!("1.{}", field.since));
        properties.insert(field.name.to_owned(), schema);
    }
    document(&properties, &required)
}
