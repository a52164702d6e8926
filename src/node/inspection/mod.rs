//! What an inspection makes of a node: checks the agent's findings, takes over what the node is to know, keeps the whole.
//!
//! Pure. Findings are what anybody on the provisioning network may have written, so nothing of them is believed: sizes are limited,
//! what has the wrong form is passed over, and only what the hooks name reaches the node.
//!
//! ```text
//! findings ─▶ checks (ramdisk-error, validate-interfaces) ─▶ hooks, in the order of the setting ─▶ inspection rules ─▶ node
//! ```
//! All of it happens to a copy: an inspection that fails on its way leaves the node as it was.

pub mod bmc;
mod hooks;
mod interfaces;
mod lldp;
mod ports;
mod properties;
pub mod rules;

use serde_json::{Value, json};

use self::interfaces::Interface;
use self::rules::Rule;
use super::effect::Severity;
use super::state::{Node, Object, PortId};
use super::turn::Turn;
use super::values::mac_address;
use crate::timestamp::Timestamp;

pub use self::hooks::{AddPorts, Hook, KeepPorts, Settings};

/// What an agent posted, with what was found out about it before.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Findings {
    /// The document, as it came.
    pub data: Object,
    /// UUIDs for ports that may have to be made: one for each interface of the document.
    pub fresh_ids: Vec<PortId>,
    /// Addresses of the document that ports of other nodes have.
    pub taken: Vec<String>,
    /// The inspection rules there are, older ones first.
    pub rules: Vec<Rule>,
}

/// More NICs than any machine has; each may become a port.
const INTERFACES_MAX: usize = 256;

/// A text of the findings that is longer is no name and no sentence.
const TEXT_BYTES_MAX: usize = 4096;

/// What the hooks and rules work on.
struct Inspected<'a> {
    /// The copy of the node.
    node: Node,
    now: Timestamp,
    settings: &'a Settings,
    /// An object.
    inventory: Value,
    /// What else the agent sent, and what is made of all of it.
    plugin_data: Object,
    interfaces: Vec<Interface>,
    /// The address of the NIC the machine was booted from.
    pxe_mac: Option<String>,
    fresh_ids: Vec<PortId>,
    taken: Vec<String>,
    /// For the node's history.
    notes: Vec<(Severity, String)>,
}

impl Inspected<'_> {
    fn note(&mut self, severity: Severity, text: String) {
        const NOTES_MAX: usize = 50;
        if self.notes.len() < NOTES_MAX {
            self.notes.push((severity, shortened(&text)));
        }
    }
}

/// Takes the findings over.
///
/// # Errors
/// What is wrong with them, in words for an operator; the node is as it was.
pub(super) fn take_over(turn: &mut Turn<'_>, findings: Findings) -> Result<(), String> {
    let Findings {
        data: mut plugin_data,
        fresh_ids,
        taken,
        rules,
    } = findings;
    // A whole log of the ramdisk in base64: too big to be kept with the node.
    plugin_data.remove("logs");
    ramdisk_error(&plugin_data)?;
    let mut inventory = plugin_data
        .remove("inventory")
        .filter(Value::is_object)
        .ok_or("the agent sent no inventory")?;
    let dropped = drop_odd_parts(&mut inventory);
    let mut inspected = Inspected {
        node: turn.node.clone(),
        now: turn.now.at,
        settings: &turn.now.limits.inspection,
        pxe_mac: interfaces::pxe_mac(&inventory, &plugin_data),
        inventory,
        plugin_data,
        interfaces: Vec::new(),
        fresh_ids,
        taken,
        notes: Vec::new(),
    };
    if !dropped.is_empty() {
        let text = format!(
            "of the inventory {} had another form than agents give it and was dropped",
            dropped.join(", ")
        );
        inspected.note(Severity::Error, text);
    }
    interfaces::validate(&mut inspected)?;
    for hook in &inspected.settings.hooks {
        hook.run(&mut inspected);
    }
    rules::apply(&mut inspected, rules)?;
    turn.node = inspected.node;
    for (severity, text) in inspected.notes {
        turn.note(severity, "inspection", text);
    }
    turn.inventory =
        Some(json!({"inventory": inspected.inventory, "plugin_data": inspected.plugin_data}));
    Ok(())
}

/// Takes out the parts that have another form than agents give them: clients that read inventories can't read those.
fn drop_odd_parts(inventory: &mut Value) -> Vec<&'static str> {
    const OBJECTS: [&str; 4] = ["cpu", "memory", "boot", "system_vendor"];
    let Some(inventory) = inventory.as_object_mut() else {
        return Vec::new();
    };
    let mut dropped = Vec::new();
    for name in OBJECTS.into_iter().chain(["disks"]) {
        let fits = match inventory.get(name) {
            None | Some(Value::Null) => true,
            Some(part) if name == "disks" => part
                .as_array()
                .is_some_and(|disks| disks.iter().all(Value::is_object)),
            Some(part) => part.is_object(),
        };
        if !fits {
            inventory.remove(name);
            dropped.push(name);
        }
    }
    dropped
}

/// Hook `ramdisk-error`: what the ramdisk says went wrong.
fn ramdisk_error(data: &Object) -> Result<(), String> {
    match data.get("error") {
        None | Some(Value::Null) => Ok(()),
        Some(Value::String(text)) if text.is_empty() => Ok(()),
        Some(Value::String(text)) => Err(format!("the ramdisk reports: {}", shortened(text))),
        Some(other) => Err(format!(
            "the ramdisk reports: {}",
            shortened(&other.to_string())
        )),
    }
}

/// A text that is no longer than a sentence may be.
fn shortened(text: &str) -> String {
    if text.len() <= TEXT_BYTES_MAX {
        return text.to_owned();
    }
    let mut end = TEXT_BYTES_MAX;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{} ...", text.get(..end).unwrap_or_default())
}

/// How many interfaces a document tells of: so many ports may have to be made.
pub fn interfaces_in(data: &Object) -> usize {
    let inventory = data.get("inventory");
    let interfaces = inventory.and_then(|inventory| inventory.get("interfaces"));
    interfaces.and_then(Value::as_array).map_or(0, Vec::len)
}

/// What a document says by which its node can be found: the MAC addresses of its machine, each once.
pub fn addresses_in(data: &Object) -> Vec<String> {
    let inventory = data.get("inventory").unwrap_or(&Value::Null);
    let interfaces = inventory["interfaces"].as_array();
    let mut addresses: Vec<String> = interfaces
        .into_iter()
        .flatten()
        .filter_map(|interface| interface["mac_address"].as_str())
        .filter_map(mac_address)
        .collect();
    addresses.sort();
    addresses.dedup();
    addresses
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
