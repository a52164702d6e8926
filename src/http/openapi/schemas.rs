//! The schemas of the document, as far as tables of fields describe them. The rest is in `by_hand`.

use serde_json::{Map, Value, json};

use super::resources::{Resource, resources};
use super::{by_hand, objects};
use crate::node::attributes::{self, Kind};
use crate::node::ports;

/// Everything under `components/schemas`.
pub fn schemas() -> Map<String, Value> {
    let mut schemas = Map::new();
    for resource in resources() {
        schemas.insert(resource.schema.to_owned(), shown(&resource));
    }
    schemas.insert("NewNode".to_owned(), new_node());
    schemas.insert("NewPort".to_owned(), new_port());
    for (name, schema) in by_hand::documents()
        .into_iter()
        .chain(by_hand::of_machines())
        .chain(objects::documents())
    {
        schemas.insert(name.to_owned(), schema);
    }
    schemas
}

/// Every failure, in either envelope.
pub fn error_response() -> Value {
    json!({
        "description": "It failed; the text says what, where and how to mend it.",
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
    })
}

fn shown(resource: &Resource) -> Value {
    let mut properties = Map::new();
    for (name, since) in &resource.fields {
        let mut schema = kind_of(name);
        schema["x-since"] = json!(format!("1.{since}"));
        properties.insert((*name).to_owned(), schema);
    }
    json!({
        "type": "object",
        "description": format!("Called {} in the list of microversions.", resource.prefix),
        "properties": properties,
        "additionalProperties": false,
    })
}

/// What a field of this name holds, whatever it is a field of.
pub fn kind_of(name: &str) -> Value {
    match name {
        "uuid" => json!({"type": "string", "format": "uuid"}),
        "links" | "ports" | "portgroups" | "states" | "nodes" | "volume" => {
            json!({"type": "array", "items": {"$ref": "#/components/schemas/Link"}})
        }
        "traits" | "drivers" | "candidate_nodes" => {
            json!({"type": "array", "items": {"type": "string"}})
        }
        "steps" | "actions" | "conditions" => {
            json!({"type": ["array", "null"], "items": {"type": "object"}})
        }
        "driver_info"
        | "driver_internal_info"
        | "instance_info"
        | "properties"
        | "extra"
        | "network_data"
        | "raid_config"
        | "target_raid_config"
        | "clean_step"
        | "deploy_step"
        | "service_step"
        | "internal_info"
        | "local_link_connection" => json!({"type": "object"}),
        "maintenance"
        | "console_enabled"
        | "protected"
        | "retired"
        | "disable_power_off"
        | "pxe_enabled"
        | "is_smartnic"
        | "alive"
        | "public"
        | "sensitive"
        | "standalone_ports_supported"
        | "dynamic_portgroup"
        | "available_for_dynamic_portgroup" => json!({"type": "boolean"}),
        "automated_clean" | "secure_boot" | "disable_ramdisk" => {
            json!({"type": ["boolean", "null"]})
        }
        "read_only" | "reset_required" | "unique" => json!({"type": ["boolean", "null"]}),
        "allowable_values" => json!({"type": ["array", "null"], "items": {"type": "string"}}),
        "lower_bound" | "upper_bound" | "min_length" | "max_length" => {
            json!({"type": ["integer", "null"]})
        }
        "priority" | "boot_index" => json!({"type": "integer"}),
        "duration_seconds" => json!({"type": ["number", "null"]}),
        name if name.ends_with("_at") => json!({"type": ["string", "null"], "format": "date-time"}),
        name if name.ends_with("_uuid") => json!({"type": ["string", "null"], "format": "uuid"}),
        _ => json!({"type": ["string", "null"]}),
    }
}

pub fn document(properties: &Map<String, Value>, required: &[&str]) -> Value {
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

fn new_node() -> Value {
    let mut properties = Map::new();
    properties.insert(
        "uuid".to_owned(),
        json!({"type": ["string", "null"], "format": "uuid"}),
    );
    for field in attributes::FIELDS.iter().filter(|field| field.creatable) {
        let mut schema = match field.kind {
            Kind::Name => json!({"type": ["string", "null"], "maxLength": 255}),
            Kind::Text(most) => json!({"type": ["string", "null"], "maxLength": most}),
            Kind::Driver | Kind::Group | Kind::Interface => json!({"type": ["string", "null"]}),
            Kind::Object | Kind::Properties | Kind::NetworkData => {
                json!({"type": ["object", "null"]})
            }
            Kind::Uuid => json!({"type": ["string", "null"], "format": "uuid"}),
            Kind::Bool => json!({"type": ["boolean", "string", "null"]}),
            Kind::BootMode => json!({"enum": ["bios", "uefi", null]}),
        };
        schema["x-since"] = json!(format!("1.{}", field.since));
        properties.insert(field.name.to_owned(), schema);
    }
    document(&properties, &["driver"])
}

fn new_port() -> Value {
    let mut properties = Map::new();
    for name in ["uuid", "node_uuid"] {
        properties.insert(name.to_owned(), json!({"type": ["string", "null"]}));
    }
    for (name, since) in ports::FIELDS {
        let mut schema = kind_of(name);
        schema["x-since"] = json!(format!("1.{since}"));
        properties.insert((*name).to_owned(), schema);
    }
    document(&properties, &["address"])
}
