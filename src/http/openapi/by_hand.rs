//! Schemas of the few documents that no table of fields describes.

use serde_json::{Map, Value, json};

use super::schemas::kind_of;
use crate::http::view::STATES;

/// Documents that no table describes.
pub fn documents() -> Vec<(&'static str, Value)> {
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
            "Findings",
            json!({
                "type": "object",
                "properties": {
                    "inventory": {
                        "type": "object",
                        "properties": {"interfaces": {
                            "type": "array",
                            "minItems": 1,
                            "items": {
                                "type": "object",
                                "properties": {"name": text(), "mac_address": text()},
                                "required": ["mac_address"],
                            },
                        }},
                        "required": ["interfaces"],
                    },
                    "error": {"type": ["string", "null"]},
                },
                "required": ["inventory"],
            }),
        ),
        (
            "Lookup",
            json!({"type": "object", "properties": {"node": object(), "config": object()}, "required": ["node", "config"]}),
        ),
        (
            "Continued",
            json!({"type": "object", "properties": {"uuid": text(), "node": object(), "config": object()}}),
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

/// Documents about a node's machine.
pub fn of_machines() -> Vec<(&'static str, Value)> {
    let object = || json!({"type": "object"});
    let text = || json!({"type": "string"});
    let texts = || json!({"type": "array", "items": {"type": "string"}});
    vec![
        (
            "NamedBiosSetting",
            json!({
                "type": "object",
                "additionalProperties": {"$ref": "#/components/schemas/BiosSetting"},
            }),
        ),
        (
            "Console",
            json!({
                "type": "object",
                "properties": {
                    "console_enabled": {"type": "boolean"},
                    "console_info": {"type": ["object", "null"], "properties": {"type": text(), "url": text()}},
                },
                "required": ["console_enabled", "console_info"],
            }),
        ),
        (
            "Vifs",
            json!({
                "type": "object",
                "properties": {
                    "vifs": {"type": "array", "items": {"type": "object", "properties": {"id": text()}}},
                },
                "required": ["vifs"],
            }),
        ),
        (
            "Vif",
            json!({
                "type": "object",
                "properties": {
                    "id": {"type": "string", "minLength": 1, "maxLength": 255},
                    "port_uuid": {"type": "string", "format": "uuid"},
                    "portgroup_uuid": {"type": "string", "format": "uuid"},
                },
                "required": ["id"],
            }),
        ),
        (
            "VirtualMedia",
            json!({
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {"image": text(), "inserted": {"type": "boolean"}, "media_types": texts()},
                },
            }),
        ),
        (
            "DeviceTypes",
            json!({
                "type": "object",
                "properties": {"device_types": {"type": ["string", "array"], "items": text()}},
                "additionalProperties": false,
            }),
        ),
        (
            "TargetRaidConfig",
            json!({
                "type": "object",
                "properties": {"logical_disks": {"type": "array", "items": object()}},
            }),
        ),
        (
            "VendorMethods",
            json!({"type": "object", "additionalProperties": object()}),
        ),
        ("VendorArguments", object()),
        ("VendorAnswer", json!({})),
        (
            "LogicalDiskProperties",
            json!({"type": "object", "additionalProperties": {"type": "string"}}),
        ),
    ]
}
