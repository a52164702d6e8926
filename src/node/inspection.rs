//! What an inspection makes of a node: checks the agent's findings, takes over what the node is to know, keeps the whole.
//!
//! Pure. The hooks run in the order in which `take_over` names them; what they do is what operators of the Bare Metal API expect:
//! an error of the ramdisk ends the inspection, NICs become ports, the processor's architecture becomes a property.

use serde_json::{Value, json};

use super::effect::Severity;
use super::state::{Object, Port, PortId};
use super::turn::Turn;
use super::values::mac_address;

/// What an agent posted, with what was decided about it before.
#[derive(Debug, Clone, PartialEq)]
pub struct Findings {
    /// The document, as it came.
    pub data: Object,
    /// UUIDs for ports that may have to be made: one for each interface of the document.
    pub fresh_ids: Vec<PortId>,
}

/// More NICs than any machine has; each may become a port.
const INTERFACES_MAX: usize = 256;

/// Takes the findings over.
///
/// # Errors
/// What is wrong with them, in words for an operator.
pub(super) fn take_over(turn: &mut Turn<'_>, findings: Findings) -> Result<(), String> {
    let Findings {
        mut data,
        fresh_ids,
    } = findings;
    // A whole log of the ramdisk in base64: too big to be kept with the node.
    data.remove("logs");
    ramdisk_error(&data)?;
    let inventory = data
        .remove("inventory")
        .filter(Value::is_object)
        .ok_or("the agent sent no inventory")?;
    let interfaces = valid_interfaces(&inventory)?;
    let pxe_mac = data
        .get("boot_interface")
        .and_then(Value::as_str)
        .or_else(|| inventory["boot"]["pxe_interface"].as_str())
        .and_then(pxe_mac);
    let mut described = Object::new();
    for interface in &interfaces {
        let mut whole = interface.whole.clone();
        let is_pxe = pxe_mac.as_ref() == Some(&interface.address);
        whole.insert("pxe_enabled".to_owned(), json!(is_pxe));
        described.insert(interface.name.clone(), Value::Object(whole));
    }
    make_ports(turn, &interfaces, pxe_mac.as_deref(), fresh_ids);
    set_architecture(turn, &inventory);
    data.insert(
        "all_interfaces".to_owned(),
        Value::Object(described.clone()),
    );
    data.insert("valid_interfaces".to_owned(), Value::Object(described));
    turn.inventory = Some(json!({"inventory": inventory, "plugin_data": data}));
    Ok(())
}

/// Hook `ramdisk-error`: what the ramdisk says went wrong.
fn ramdisk_error(data: &Object) -> Result<(), String> {
    match data.get("error") {
        None | Some(Value::Null) => Ok(()),
        Some(Value::String(text)) if text.is_empty() => Ok(()),
        Some(Value::String(text)) => Err(format!("the ramdisk reports: {text}")),
        Some(other) => Err(format!("the ramdisk reports: {other}")),
    }
}

/// A NIC as the agent found it.
struct Interface {
    name: String,
    address: String,
    whole: Object,
}

/// Hook `validate-interfaces`: those that have a name and a MAC address, each address once.
fn valid_interfaces(inventory: &Value) -> Result<Vec<Interface>, String> {
    let mut valid: Vec<Interface> = Vec::new();
    for interface in inventory["interfaces"].as_array().into_iter().flatten() {
        let Some(whole) = interface.as_object() else {
            continue;
        };
        let text = |key: &str| whole.get(key).and_then(Value::as_str);
        let (Some(name), Some(address)) = (text("name"), text("mac_address")) else {
            continue;
        };
        let Some(address) = mac_address(address) else {
            continue;
        };
        if name.is_empty() || name == "lo" || valid.iter().any(|other| other.address == address) {
            continue;
        }
        valid.push(Interface {
            name: name.to_owned(),
            address,
            whole: whole.clone(),
        });
    }
    if valid.is_empty() {
        return Err("the agent found no network interface with a MAC address".to_owned());
    }
    Ok(valid)
}

/// The kernel's way to tell the NIC it was booted from: `01-aa-bb-cc-dd-ee-ff`, or a plain MAC address.
fn pxe_mac(text: &str) -> Option<String> {
    let text = text.strip_prefix("01-").unwrap_or(text);
    mac_address(text)
}

/// Hook `ports`: a port for each NIC that has none, as the machine was booted from one of them and that is to be seen.
fn make_ports(
    turn: &mut Turn<'_>,
    interfaces: &[Interface],
    pxe: Option<&str>,
    fresh_ids: Vec<PortId>,
) {
    let now = turn.now.at;
    let mut made = Vec::new();
    for (interface, id) in interfaces.iter().zip(fresh_ids) {
        let is_pxe = pxe.is_none_or(|pxe| pxe == interface.address);
        let known = turn
            .node
            .ports
            .iter_mut()
            .find(|port| port.address == interface.address);
        match known {
            Some(port) => {
                if pxe.is_some() && port.pxe_enabled != is_pxe {
                    port.pxe_enabled = is_pxe;
                    port.updated_at = Some(now);
                }
            }
            None => {
                let mut port = Port::new(id, interface.address.clone(), now);
                port.pxe_enabled = is_pxe;
                made.push(interface.address.clone());
                turn.node.ports.push(port);
            }
        }
    }
    if !made.is_empty() {
        let line = format!("ports made for {}", made.join(", "));
        turn.note(Severity::Info, "inspection", line);
    }
}

/// Hook `architecture`
fn set_architecture(turn: &mut Turn<'_>, inventory: &Value) {
    let Some(architecture) = inventory["cpu"]["architecture"].as_str() else {
        return;
    };
    turn.node
        .attributes
        .properties
        .insert("cpu_arch".to_owned(), json!(architecture));
}

/// How many interfaces a document tells of: so many ports may have to be made.
pub fn interfaces_in(data: &Object) -> usize {
    let inventory = data.get("inventory");
    let interfaces = inventory.and_then(|inventory| inventory.get("interfaces"));
    interfaces.and_then(Value::as_array).map_or(0, Vec::len)
}

/// What a document says by which its node can be found: the MAC addresses of its machine.
pub fn addresses_in(data: &Object) -> Vec<String> {
    let inventory = data.get("inventory").unwrap_or(&Value::Null);
    let interfaces = inventory["interfaces"].as_array();
    interfaces
        .into_iter()
        .flatten()
        .filter_map(|interface| interface["mac_address"].as_str())
        .filter_map(mac_address)
        .collect()
}

/// Whether a document is one that an agent of an inspection sends.
///
/// # Errors
/// What is missing, in words for whoever wrote it.
pub fn check(data: &Object) -> Result<(), String> {
    let interfaces = data
        .get("inventory")
        .and_then(|inventory| inventory.get("interfaces"))
        .and_then(Value::as_array)
        .ok_or("inventory/interfaces: a list of network interfaces is needed.")?;
    if interfaces.len() > INTERFACES_MAX {
        return Err(format!(
            "inventory/interfaces: {} are more than the {INTERFACES_MAX} that are taken.",
            interfaces.len()
        ));
    }
    let has_address = |interface: &Value| interface["mac_address"].is_string();
    if !interfaces.iter().all(has_address) || interfaces.is_empty() {
        return Err(
            "inventory/interfaces: each needs a mac_address, and there must be one at least."
                .to_owned(),
        );
    }
    Ok(())
}
