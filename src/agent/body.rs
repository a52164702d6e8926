//! Writes the bodies of commands to the agent.
//!
//! Pure. An agent needs little of what it is sent (`uuid`, `properties`, `instance_info`, `driver_internal_info`), but hardware
//! managers of vendors may read any key, so the whole node goes out in the shape agents are used to: every key, with a neutral
//! value where the conductor has none. Secrets are masked; the config drive travels unmasked with a deploy step, and only there.

use serde_json::{Value, json};

use super::wire::OPERATION_KEY;
use crate::command::{Command, Request, StepsOf};
use crate::node::hardware::{INTERFACE_KINDS, hardware_type};
use crate::node::image::image_of;
use crate::node::internal_info::{current_step, driver_internal_info, utc_text};
use crate::node::masking::masked_value;
use crate::node::steps::WRITE_IMAGE;
use crate::node::{Node, Object, Port};

/// The body of the POST for `command`: `{"name", "params"}`.
///
/// # Errors
/// What of the node can't be sent, in words for an operator.
pub fn command_body(node: &Node, command: &Command) -> Result<Value, String> {
    let params = match &command.request {
        Request::GetSteps { .. } => json!({
            "node": node_document(node, ConfigDrive::Masked),
            "ports": port_documents(node),
        }),
        Request::ExecuteStep {
            of,
            interface,
            step,
            args,
        } => {
            let is_write = *of == StepsOf::Deploy && interface == "deploy" && step == WRITE_IMAGE;
            let args = if is_write {
                write_image_args(node, args)?
            } else {
                args.clone()
            };
            let work = node.work();
            let config_drive = match of {
                StepsOf::Deploy => ConfigDrive::Plain,
                StepsOf::Clean | StepsOf::Service => ConfigDrive::Masked,
            };
            let mut params = json!({
                "step": {
                    "interface": interface,
                    "step": step,
                    "args": args,
                    "priority": work
                        .and_then(|work| work.current_step())
                        .map_or(0, |current| current.priority),
                    OPERATION_KEY: node.operation_id(command.id),
                },
                "node": node_document(node, config_drive),
                "ports": port_documents(node),
            });
            params[format!("{}_version", of.word())] =
                work.map_or(Value::Null, |work| work.hardware_manager_version.unpack());
            params
        }
        Request::FinalizeRescue => {
            let hash = node
                .work()
                .and_then(|work| work.rescue_password_hash.as_ref());
            json!({
                "rescue_password": hash.ok_or("the hash of the rescue password is gone")?,
                "hashed": true,
            })
        }
        Request::InstallBootloader {
            root_uuid,
            efi_system_part_uuid,
            prep_boot_part_uuid,
            target_boot_mode,
        } => json!({
            "root_uuid": root_uuid,
            "efi_system_part_uuid": efi_system_part_uuid,
            "prep_boot_part_uuid": prep_boot_part_uuid,
            "target_boot_mode": target_boot_mode,
        }),
        // These take no parameters. A wrong parameter to a synchronous command breaks the agent's list of commands for good.
        Request::GetPartitionUuids | Request::Sync | Request::PowerOff => json!({}),
    };
    Ok(json!({"name": command.request.full_name(), "params": params}))
}

/// Whether the config drive is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ConfigDrive {
    Masked,
    Plain,
}

/// The user's arguments with `image_info` and `configdrive` on top, which are the conductor's to say.
fn write_image_args(node: &Node, user: &Object) -> Result<Object, String> {
    let image = image_of(&node.attributes).map_err(|problems| problems.join("; "))?;
    let config_drive = config_drive(node)?;
    let mut info = Object::new();
    let mut put = |key: &str, value: Value| info.insert(key.to_owned(), value);
    put("id", json!(image.id));
    put("urls", json!([image.url]));
    put("disk_format", json!(image.disk_format));
    put(
        "container_format",
        node.attributes
            .instance_info
            .get("image_container_format")
            .cloned()
            .unwrap_or(Value::Null),
    );
    put("stream_raw_images", json!(true));
    put("node_uuid", json!(node.id));
    if let Some(checksum) = image.checksum {
        put("checksum", json!(checksum));
    }
    if let Some((algorithm, value)) = image.os_hash {
        put("os_hash_algo", json!(algorithm));
        put("os_hash_value", json!(value));
    }
    // Agents read the argument beside it; old ones only this one.
    if let Some(config_drive) = config_drive {
        put("configdrive", json!(config_drive));
    }
    let mut args = user.clone();
    args.insert("image_info".to_owned(), Value::Object(info));
    args.insert("configdrive".to_owned(), json!(config_drive));
    Ok(args)
}

fn config_drive(node: &Node) -> Result<Option<&str>, String> {
    match node.attributes.instance_info.get("configdrive") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if text.is_empty() => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(
            "instance_info/configdrive must be text (gzip and base64) or a URL; give it with the provision request"
                .to_owned(),
        ),
    }
}

/// The node as agents are used to be sent it.
fn node_document(node: &Node, config_drive: ConfigDrive) -> Value {
    let of = &node.attributes;
    let state = node.provision_state();
    let mut document = json!({
        "uuid": node.id,
        "name": of.name,
        "instance_uuid": of.instance_uuid,
        "instance_name": of.instance_name,
        "driver": of.driver,
        "driver_info": of.driver_info,
        "driver_internal_info": driver_internal_info(node),
        "properties": of.properties,
        "conductor_group": of.conductor_group,
        "power_state": node.power.state.map(|state| state.name()),
        "target_power_state": node.power.target.map(|state| state.name()),
        "provision_state": state.name(),
        "target_provision_state": node.target_provision_state().map(|state| state.name()),
        "provision_updated_at": node.provision_updated_at.map(utc_text),
        "maintenance": node.maintenance.is_some(),
        "maintenance_reason": node.maintenance.as_ref().and_then(|set| set.reason.as_ref()),
        "fault": node.maintenance.as_ref().and_then(|set| set.fault.as_ref()),
        "last_error": node.last_error,
        "resource_class": of.resource_class,
        "extra": of.extra,
        "automated_clean": of.automated_clean,
        "protected": of.protected,
        "protected_reason": of.protected_reason,
        "owner": of.owner,
        "lessee": of.lessee,
        "description": of.description,
        "retired": of.retired,
        "retired_reason": of.retired_reason,
        "network_data": of.network_data,
        "boot_mode": of.boot_mode,
        "secure_boot": of.secure_boot,
        "raid_config": node.hardware.raid_config,
        "target_raid_config": node.hardware.target_raid_config,
        "console_enabled": node.hardware.console_enabled,
        "shard": of.shard,
        "parent_node": of.parent_node,
        "disable_power_off": of.disable_power_off,
        "created_at": utc_text(node.created_at),
        "updated_at": node.updated_at.map(utc_text),
        "instance_info": of.instance_info,
    });
    if let (Some(document), Value::Object(neutral)) = (document.as_object_mut(), neutral()) {
        document.extend(neutral);
    }
    for of in [StepsOf::Deploy, StepsOf::Clean, StepsOf::Service] {
        document[format!("{}_step", of.word())] = current_step(node, of);
    }
    for kind in INTERFACE_KINDS {
        document[format!("{kind}_interface")] = json!(interface_of(node, kind));
    }
    let mut document = masked_value(&document);
    // The agent gets the image by the same URL, so there is nothing in it to hide from the agent.
    if let Some(source) = of.instance_info.get("image_source") {
        let shown = &mut document["instance_info"];
        shown["image_source"] = source.clone();
        shown["image_url"] = source.clone();
        shown["image_type"] = json!("whole-disk");
    }
    if config_drive == ConfigDrive::Plain
        && let Some(plain) = of.instance_info.get("configdrive")
    {
        document["instance_info"]["configdrive"] = plain.clone();
    }
    document
}

/// What agents are used to find in a node and this conductor has no value for: row numbers of a database, a lock's holder, and
/// what other operations than a deploy would set.
fn neutral() -> Value {
    json!({
        "id": 1,
        "chassis_id": null,
        "allocation_id": null,
        "conductor_affinity": 1,
        "reservation": null,
        "inspection_finished_at": null,
        "inspection_started_at": null,
        "traits": {"objects": []},
        "health": null,
    })
}

/// The interface implementation a node uses: its own, or its hardware type's default.
fn interface_of<'a>(node: &'a Node, kind: &str) -> Option<&'a str> {
    node.attributes
        .interfaces
        .get(kind)
        .map(String::as_str)
        .or_else(|| {
            hardware_type(&node.attributes.driver)?
                .interfaces
                .iter()
                .find(|interface| interface.kind == kind)
                .map(|interface| interface.default)
        })
}

fn port_documents(node: &Node) -> Vec<Value> {
    node.ports
        .iter()
        .map(|port| masked_value(&port_document(node, port)))
        .collect()
}

fn port_document(node: &Node, port: &Port) -> Value {
    json!({
        "id": 1,
        "node_id": 1,
        "portgroup_id": null,
        "uuid": port.id,
        "node_uuid": node.id,
        "address": port.address,
        "name": port.name,
        "extra": port.extra,
        "local_link_connection": port.local_link_connection,
        "pxe_enabled": port.pxe_enabled,
        "internal_info": {},
        "physical_network": port.physical_network,
        "is_smartnic": port.is_smartnic,
        "description": port.description,
        "vendor": port.vendor,
        "category": port.category,
        "available_for_dynamic_portgroup": true,
        "created_at": utc_text(port.created_at),
        "updated_at": port.updated_at.map(utc_text),
    })
}
