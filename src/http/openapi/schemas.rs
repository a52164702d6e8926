//! The schemas of the document: of what is shown, from the tables of fields; of the few documents without a table, by hand.

use serde_json::{Map, Value, json};

use super::resources::{Resource, resources};
use crate::http::view::STATES;
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
    for (name, schema) in by_hand() {
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
fn kind_of(name: &str) -> Value {
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
        "priority" | "boot_index" => json!({"type": "integer"}),
        "duration_seconds" => json!({"type": ["number", "null"]}),
        name if name.ends_with("_at") => json!({"type": ["string", "null"], "format": "date-time"}),
        name if name.ends_with("_uuid") => json!({"type": ["string", "null"], "format": "uuid"}),
        _ => json!({"type": ["string", "null"]}),
    }
}

fn document(properties: &Map<String, Value>, required: &[&str]) -> Value {
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

/// Documents that no table describes.
fn by_hand() -> Vec<(&'static str, Value)> {
    let object = || json!({"type": "object"});
    let text = || json!({"type": "string"});
    let texts = || json!({"type": "array", "items": {"type": "string"}});
    let about_version = || {
        json!({
            "type": "object",
            "properties": {
                "id": text(), "status": text(), "min_version": text(), "version": text(),
                "links": {"type": "array", "items": {"$ref": "#/components/schemas/Link"}},
            },
            "required": ["id", "status", "min_version", "version", "links"],
        })
    };
    let mut states = Map::new();
    for name in STATES {
        states.insert(name.to_owned(), kind_of(name));
    }
    vec![
        (
            "Link",
            json!({"type": "object", "properties": {"href": text(), "rel": text()}, "required": ["href", "rel"]}),
        ),
        (
            "Error",
            json!({
                "type": "object",
                "properties": {
                    "error_message": {
                        "type": "string",
                        "description": "JSON in a string: an object with faultcode, faultstring and debuginfo, or with code, \
                                        title and description where the address itself was wrong.",
                    },
                    "error": {
                        "type": "object",
                        "properties": {"message": text(), "code": {"type": "integer"}},
                        "description": "Where the user name and password were wrong.",
                    },
                },
                "minProperties": 1,
                "additionalProperties": false,
            }),
        ),
        (
            "Patch",
            json!({
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "op": {"enum": ["add", "remove", "replace"]},
                        "path": {"type": "string", "pattern": "^(/[A-Za-z0-9_~-]+)+$"},
                        "value": {},
                    },
                    "required": ["op", "path"],
                    "additionalProperties": false,
                },
            }),
        ),
        (
            "Versions",
            json!({
                "type": "object",
                "properties": {
                    "name": text(), "description": text(), "default_version": about_version(),
                    "versions": {"type": "array", "items": about_version()},
                },
                "required": ["default_version", "versions"],
            }),
        ),
        (
            "Version",
            json!({
                "type": "object",
                "properties": {"id": text(), "version": about_version()},
                "required": ["id", "version"],
            }),
        ),
        (
            "Lookup",
            json!({"type": "object", "properties": {"node": object(), "config": object()}, "required": ["node", "config"]}),
        ),
        ("States", json!({"type": "object", "properties": states})),
        (
            "Validation",
            json!({
                "type": "object",
                "additionalProperties": {
                    "type": "object",
                    "properties": {"result": {"type": ["boolean", "null"]}, "reason": text()},
                    "required": ["result"],
                },
            }),
        ),
        (
            "Commands",
            json!({
                "type": "object",
                "properties": {
                    "waiting": {"type": ["object", "null"]},
                    "commands": {"type": "array", "items": object()},
                },
                "required": ["waiting", "commands"],
            }),
        ),
        (
            "Traits",
            json!({"type": "object", "properties": {"traits": texts()}, "required": ["traits"]}),
        ),
        (
            "Inventory",
            json!({
                "type": "object",
                "properties": {"inventory": object(), "plugin_data": object()},
                "required": ["inventory", "plugin_data"],
            }),
        ),
        (
            "BootDevice",
            json!({
                "type": "object",
                "properties": {
                    "boot_device": {"type": ["string", "null"]},
                    "persistent": {"type": ["boolean", "null"]},
                },
            }),
        ),
        (
            "BootDevices",
            json!({"type": "object", "properties": {"supported_boot_devices": texts()}}),
        ),
        (
            "Driver",
            json!({
                "type": "object",
                "properties": {
                    "name": text(), "type": text(), "hosts": texts(),
                    "links": {"type": "array", "items": {"$ref": "#/components/schemas/Link"}},
                    "properties": {"type": "array", "items": {"$ref": "#/components/schemas/Link"}},
                },
            }),
        ),
        (
            "DriverProperties",
            json!({"type": "object", "additionalProperties": {"type": "string"}}),
        ),
        (
            "Alive",
            json!({"type": "object", "properties": {"alive": {"type": "boolean"}}}),
        ),
        (
            "Ready",
            json!({"type": "object", "properties": {"ready": {"type": "boolean"}}}),
        ),
        (
            "OpenApi",
            json!({"type": "object", "required": ["openapi", "info", "paths"]}),
        ),
    ]
}
