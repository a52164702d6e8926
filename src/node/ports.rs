//! What operators may set on a port: the document of a new one, and patches.
//!
//! Pure. `http::ports` reads documents with [`new_port`]; the node's step applies patches with [`patch_port`].

use serde_json::{Map, Value, json};

use super::attributes::{bad, boolean, is_name, mac_address, object_of, optional_uuid, text_of};
use super::event::{PatchOp, PatchOperation};
use super::patch::apply_below;
use super::portgroups::{check_may_rewire, check_port_in_group};
use super::refused::Refused;
use super::state::{Node, Object, Port, PortId};
use crate::timestamp::Timestamp;

/// What a document says of a new port.
#[derive(Debug, Clone, PartialEq)]
pub struct NewPort {
    /// The UUID it asks for.
    pub id: Option<PortId>,
    /// UUID or name of its node.
    pub node: String,
    /// The port; its UUID and time of creation are for the caller to fill in.
    pub port: Port,
}

/// Fields that can be set, with the microversion each is there since.
pub const FIELDS: &[(&str, u16)] = &[
    ("address", 1),
    ("extra", 1),
    ("local_link_connection", 19),
    ("pxe_enabled", 19),
    ("portgroup_uuid", 24),
    ("physical_network", 34),
    ("is_smartnic", 53),
    ("name", 88),
    ("node_ident", 94),
    ("description", 97),
    ("vendor", 100),
    ("category", 101),
    ("available_for_dynamic_portgroup", 111),
];

/// What a local link connection may say of its network, and since when.
const NETWORK_TYPE: (&str, u16) = ("network_type", 64);

/// The first field of a new port's document that is younger than `microversion`, and since when it is there.
pub fn too_new(document: &Object, microversion: u16) -> Option<(&'static str, u16)> {
    FIELDS
        .iter()
        .copied()
        .find(|(name, since)| document.contains_key(*name) && *since > microversion)
        .or_else(|| {
            let link = document.get("local_link_connection")?;
            link.get(NETWORK_TYPE.0).map(|_| NETWORK_TYPE)
        })
        .filter(|(_, since)| *since > microversion)
}

/// The first field of a patch that is younger than `microversion`, and since when it is there.
pub fn patch_too_new(
    operations: &[PatchOperation],
    microversion: u16,
) -> Option<(&'static str, u16)> {
    let is_of = |operation: &PatchOperation, name: &str| {
        operation.path.first().is_some_and(|root| root == name)
    };
    let names_network_type = |operation: &PatchOperation| {
        is_of(operation, "local_link_connection")
            && (operation
                .path
                .get(1)
                .is_some_and(|word| word == NETWORK_TYPE.0)
                || operation.value.get(NETWORK_TYPE.0).is_some())
    };
    FIELDS
        .iter()
        .copied()
        .find(|(name, since)| {
            *since > microversion && operations.iter().any(|operation| is_of(operation, name))
        })
        .or_else(|| {
            let is_named = operations.iter().any(names_network_type);
            is_named.then_some(NETWORK_TYPE)
        })
        .filter(|(_, since)| *since > microversion)
}

/// Reads the document of a new port.
///
/// # Errors
/// [`Refused::BadValue`] naming the field.
pub fn new_port(document: &Object) -> Result<NewPort, Refused> {
    let mut port = Port::new(PortId::default(), String::new(), Timestamp(0));
    let (mut id, mut node) = (None, None);
    for (key, value) in document {
        match key.as_str() {
            "uuid" => id = optional_uuid(key, value)?.map(PortId),
            "node_uuid" | "node_ident" => {
                let text = text_of(key, value, 255)?;
                if node.replace(text.to_owned()).is_some() {
                    return Err(bad(key, "give exactly one of node_uuid and node_ident"));
                }
                if optional_uuid(key, value).is_err() && !is_name(text) {
                    return Err(bad(key, "is neither a UUID nor a name"));
                }
            }
            _ => set(&mut port, key, value)?,
        }
    }
    if port.address.is_empty() {
        return Err(bad("address", "is missing; give the MAC address"));
    }
    let Some(node) = node else {
        return Err(bad(
            "node_uuid",
            "is missing; give the UUID of the port's node",
        ));
    };
    Ok(NewPort { id, node, port })
}

/// Applies a patch to one of a node's ports.
///
/// # Errors
/// [`Refused::NotFound`] if the node has no such port; [`Refused::BadValue`]; [`Refused::Conflict`] where the node's state is
/// against it.
pub fn patch_port(node: &Node, id: PortId, operations: &[PatchOperation]) -> Result<Port, Refused> {
    let Some(old) = node.ports.iter().find(|port| port.id == id) else {
        return Err(Refused::NotFound {
            what: format!("Port {id}"),
        });
    };
    let mut port = old.clone();
    for operation in operations {
        let Some((root, below)) = operation.path.split_first() else {
            return Err(bad("path", "is empty; name a field, for example /extra"));
        };
        if root == "node_uuid" {
            let is_same =
                operation.op != PatchOp::Remove && operation.value == json!(node.id.to_string());
            if is_same && below.is_empty() {
                continue;
            }
            return Err(bad(
                root,
                "a port can't be moved to another node; delete it and create it there",
            ));
        }
        if below.is_empty() {
            let value = match operation.op {
                PatchOp::Remove => &Value::Null,
                PatchOp::Add | PatchOp::Replace => &operation.value,
            };
            set(&mut port, root, value)?;
        } else {
            let mut whole = match root.as_str() {
                "extra" => Value::Object(port.extra.clone()),
                "local_link_connection" => Value::Object(port.local_link_connection.clone()),
                _ => return Err(bad(root, "has no parts that could be changed")),
            };
            apply_below(&mut whole, below, operation, &operation.path.join("/"))?;
            set(&mut port, root, &whole)?;
        }
    }
    check_connectivity(node, old, &port)?;
    check_port_in_group(node, &port)?;
    Ok(port)
}

/// What connects the machine may change only while nobody relies on it.
fn check_connectivity(node: &Node, old: &Port, new: &Port) -> Result<(), Refused> {
    let is_same = old.address == new.address
        && old.local_link_connection == new.local_link_connection
        && old.physical_network == new.physical_network
        && old.pxe_enabled == new.pxe_enabled
        && old.portgroup_uuid == new.portgroup_uuid
        && old.is_smartnic == new.is_smartnic;
    if is_same {
        return Ok(());
    }
    check_may_rewire(node, "a port")
}

/// Sets one field; null brings its default.
fn set(port: &mut Port, name: &str, value: &Value) -> Result<(), Refused> {
    match name {
        "address" => {
            let text = value
                .as_str()
                .ok_or_else(|| bad(name, "must be a MAC address such as 52:54:00:12:34:56"))?;
            port.address = mac_address(text).ok_or_else(|| {
                bad(
                    name,
                    &format!("expected a MAC address such as 52:54:00:12:34:56 but got {text:?}"),
                )
            })?;
        }
        "name" => {
            port.name = optional_text(name, value, 255)?;
            if port.name.as_deref().is_some_and(|text| !is_name(text)) {
                return Err(bad(
                    name,
                    "a name is made of letters, digits and - . _ ~ only, and is no UUID",
                ));
            }
        }
        "pxe_enabled" => port.pxe_enabled = switch(name, value, true)?,
        "is_smartnic" => port.is_smartnic = switch(name, value, false)?,
        "extra" => port.extra = object(name, value)?,
        "local_link_connection" => {
            let connection = object(name, value)?;
            check_local_link(&connection)?;
            port.local_link_connection = connection;
        }
        "physical_network" => {
            port.physical_network = optional_text(name, value, 64)?;
            if port.physical_network.as_deref() == Some("") {
                return Err(bad(name, "must not be empty; null says that there is none"));
            }
        }
        "description" => port.description = optional_text(name, value, 255)?,
        "vendor" => port.vendor = optional_text(name, value, 32)?,
        "category" => port.category = optional_text(name, value, 80)?,
        "portgroup_uuid" => port.portgroup_uuid = optional_uuid(name, value)?,
        "available_for_dynamic_portgroup" => {
            port.available_for_dynamic_portgroup = switch(name, value, true)?;
        }
        "uuid" | "created_at" | "updated_at" | "internal_info" | "links" => {
            return Err(bad(name, "can't be changed"));
        }
        _ => return Err(bad(name, "is not a field of a port that can be set")),
    }
    Ok(())
}

fn check_local_link(connection: &Object) -> Result<(), Refused> {
    const KNOWN: [&str; 5] = [
        "switch_id",
        "port_id",
        "switch_info",
        "hostname",
        "network_type",
    ];
    for (key, value) in connection {
        let field = format!("local_link_connection/{key}");
        if !KNOWN.contains(&key.as_str()) {
            return Err(bad(
                &field,
                &format!("is not known; use {}", KNOWN.join(", ")),
            ));
        }
        let text = text_of(&field, value, 255)?;
        if key == "switch_id" && mac_address(text).is_none() && !is_datapath_id(text) {
            return Err(bad(
                &field,
                "must be a MAC address or an OpenFlow datapath id",
            ));
        }
        if key == "network_type" && text != "managed" && text != "unmanaged" {
            return Err(bad(&field, "must be managed or unmanaged"));
        }
    }
    let is_unmanaged = connection.get("network_type") == Some(&json!("unmanaged"));
    let is_whole = connection.contains_key("switch_id") && connection.contains_key("port_id");
    let is_smart = connection.contains_key("hostname") && connection.contains_key("port_id");
    if connection.is_empty() || is_unmanaged || is_whole || is_smart {
        return Ok(());
    }
    Err(bad(
        "local_link_connection",
        "needs switch_id and port_id, or network_type \"unmanaged\"",
    ))
}

/// Eight pairs of hexadecimal digits with colons, or 16 digits after `0x`.
fn is_datapath_id(text: &str) -> bool {
    let parts: Vec<&str> = text.split(':').collect();
    let is_hex = |part: &str, length| {
        part.len() == length && part.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    (parts.len() == 8 && parts.iter().all(|part| is_hex(part, 2)))
        || text.strip_prefix("0x").is_some_and(|rest| is_hex(rest, 16))
}

fn optional_text(
    name: &str,
    value: &Value,
    characters_max: usize,
) -> Result<Option<String>, Refused> {
    if value.is_null() {
        return Ok(None);
    }
    Ok(Some(text_of(name, value, characters_max)?.to_owned()))
}

fn switch(name: &str, value: &Value, default: bool) -> Result<bool, Refused> {
    if value.is_null() {
        return Ok(default);
    }
    boolean(value).ok_or_else(|| bad(name, "must be true or false"))
}

fn object(name: &str, value: &Value) -> Result<Object, Refused> {
    if value.is_null() {
        return Ok(Map::new());
    }
    Ok(object_of(name, value)?.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::state::{Attributes, NodeId, Provision};

    const NODE: &str = "6523b921-218d-4849-a3bb-3ab765c2fcdc";

    fn read(document: Value) -> Result<NewPort, Refused> {
        new_port(document.as_object().unwrap())
    }

    #[test]
    fn a_port_is_read_with_one_spelling_of_its_address() {
        let new = read(json!({
            "address": "52-54-00-AA-00-03", "node_uuid": NODE, "pxe_enabled": "false", "extra": {"a": 1},
            "local_link_connection": {"switch_id": "0a:1b:2c:3d:4e:5f", "port_id": "Ethernet3/1"},
        }))
        .unwrap();
        assert_eq!(new.port.address, "52:54:00:aa:00:03");
        assert!(!new.port.pxe_enabled);
        assert_eq!(new.node, NODE);
        assert!(read(json!({"address": "52:54:00:aa:00:03", "node_ident": "by-name"})).is_ok());
    }

    #[test]
    fn every_bad_value_is_named() {
        let mac = "52:54:00:aa:00:03";
        let cases = [
            (json!({"node_uuid": NODE}), "address"),
            (json!({"address": "52:54:00", "node_uuid": NODE}), "address"),
            (json!({"address": 5, "node_uuid": NODE}), "address"),
            (json!({"address": mac}), "node_uuid"),
            (
                json!({"address": mac, "node_uuid": NODE, "node_ident": NODE}),
                "node_uuid",
            ),
            (json!({"address": mac, "node_uuid": "a b"}), "node_uuid"),
            (
                json!({"address": mac, "node_uuid": NODE, "uuid": "x"}),
                "uuid",
            ),
            (
                json!({"address": mac, "node_uuid": NODE, "colour": 1}),
                "colour",
            ),
            (
                json!({"address": mac, "node_uuid": NODE, "internal_info": {}}),
                "internal_info",
            ),
            (
                json!({"address": mac, "node_uuid": NODE, "pxe_enabled": "maybe"}),
                "pxe_enabled",
            ),
            (
                json!({"address": mac, "node_uuid": NODE, "portgroup_uuid": "g"}),
                "portgroup_uuid",
            ),
            (
                json!({"address": mac, "node_uuid": NODE, "local_link_connection": {"port_id": "1"}}),
                "local_link_connection",
            ),
            (
                json!({"address": mac, "node_uuid": NODE, "local_link_connection": {"switch_id": "x", "port_id": "1"}}),
                "local_link_connection/switch_id",
            ),
        ];
        for (document, field) in cases {
            match read(document.clone()) {
                Err(Refused::BadValue { field: named, .. }) => assert_eq!(named, field),
                other => panic!("{document}: {other:?}"),
            }
        }
    }

    fn node_with_port(provision: Provision) -> Node {
        let mut node = Node::enrolled(NodeId::default(), Attributes::default(), Timestamp(0));
        let new =
            read(json!({"address": "52:54:00:aa:00:03", "node_uuid": NODE, "extra": {"a": 1}}))
                .unwrap();
        node.ports = vec![new.port].into();
        node.provision = provision;
        node
    }

    fn operation(op: PatchOp, path: &str, value: Value) -> PatchOperation {
        PatchOperation {
            op,
            path: path.split('/').map(str::to_owned).collect(),
            value,
        }
    }

    #[test]
    fn connectivity_stays_while_somebody_relies_on_it() {
        let address = [operation(
            PatchOp::Replace,
            "address",
            json!("52:54:00:AA:00:04"),
        )];
        let extra = [operation(PatchOp::Remove, "extra/a", Value::Null)];
        let id = PortId::default();
        let node = node_with_port(Provision::Enroll);
        assert_eq!(
            patch_port(&node, id, &address).unwrap().address,
            "52:54:00:aa:00:04"
        );
        let node = node_with_port(Provision::Active);
        assert_eq!(
            patch_port(&node, id, &address).unwrap_err().name(),
            "conflict"
        );
        assert!(patch_port(&node, id, &extra).unwrap().extra.is_empty());
        let other = PortId("6523b921-218d-4849-a3bb-3ab765c2fcdc".parse().unwrap());
        assert_eq!(
            patch_port(&node, other, &extra).unwrap_err().name(),
            "not_found"
        );
    }

    #[test]
    fn an_address_can_not_be_removed_and_a_port_not_moved() {
        let node = node_with_port(Provision::Enroll);
        for wrong in [
            operation(PatchOp::Remove, "address", Value::Null),
            operation(PatchOp::Add, "node_uuid", json!(NODE)),
            operation(PatchOp::Add, "internal_info", json!({})),
            operation(PatchOp::Add, "name/x", json!(1)),
        ] {
            assert_eq!(
                patch_port(&node, PortId::default(), &[wrong])
                    .unwrap_err()
                    .name(),
                "bad_value"
            );
        }
    }

    #[test]
    fn fields_younger_than_the_request_are_found() {
        let document = json!({"address": "x", "name": "p"});
        assert_eq!(
            too_new(document.as_object().unwrap(), 87),
            Some(("name", 88))
        );
        assert_eq!(too_new(document.as_object().unwrap(), 88), None);
        let patch = [operation(PatchOp::Add, "category", json!("c"))];
        assert_eq!(patch_too_new(&patch, 100), Some(("category", 101)));
    }
}
