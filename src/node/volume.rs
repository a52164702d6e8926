//! Volume connectors and targets: how a machine reaches storage over the network, and which volumes are for it.
//!
//! Pure. They may change or go only while the machine is off.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use thin_vec::ThinVec;

use super::event::Event;
use super::fields::{Field, Holds, field, required};
use super::parts::{Part, PartChange, PartKind};
use super::refused::Refused;
use super::state::{Node, Object, PowerState};
use super::values::{bad, text_of};

/// What a machine is known by to a storage system.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct VolumeConnector {
    /// What kind of name that is: `iqn`, `ip`, `mac`, `wwnn`, `wwpn`, `port` or `portgroup`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The name; unique together with the kind.
    pub connector_id: String,
    /// Free for the operator.
    pub extra: Object,
}

/// A volume that a machine uses.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct VolumeTarget {
    /// How it is reached, for example `iscsi`.
    pub volume_type: String,
    /// Its name in the storage system.
    pub volume_id: String,
    /// 0 is booted from; unique within the node.
    pub boot_index: i64,
    /// How it is reached in detail; may hold secrets.
    pub properties: Object,
    /// Free for the operator.
    pub extra: Object,
}

const CONNECTOR_TYPES: [&str; 7] = ["iqn", "ip", "mac", "wwnn", "wwpn", "port", "portgroup"];

fn connector_type(name: &str, value: &Value) -> Result<Value, Refused> {
    let text = text_of(name, value, 255)?;
    if CONNECTOR_TYPES.contains(&text) {
        return Ok(value.clone());
    }
    Err(bad(
        name,
        &format!(
            "{text:?} is not known; use one of {}",
            CONNECTOR_TYPES.join(", ")
        ),
    ))
}

impl PartKind for VolumeConnector {
    const NAME: &'static str = "Volume connector";
    const FIELDS: &'static [Field] = &[
        required("type", 1, Holds::Checked(connector_type)),
        required("connector_id", 1, Holds::Text(255)),
        field("extra", 1, Holds::Object),
    ];

    fn of(node: &Node) -> &ThinVec<Part<VolumeConnector>> {
        &node.volume_connectors
    }

    fn of_mut(node: &mut Node) -> &mut ThinVec<Part<VolumeConnector>> {
        &mut node.volume_connectors
    }

    fn event(change: PartChange<VolumeConnector>) -> Event {
        Event::VolumeConnector(change)
    }

    fn claim(&self) -> Option<(&'static str, String)> {
        Some((
            "connector_id",
            format!("{} of type {}", self.connector_id, self.kind),
        ))
    }

    fn may_become(
        node: &Node,
        old: Option<&Part<VolumeConnector>>,
        _: &Part<VolumeConnector>,
    ) -> Result<(), Refused> {
        match old {
            Some(_) => check_is_off(node, "Changing a volume connector"),
            None => Ok(()),
        }
    }

    fn may_go(node: &Node, _: &Part<VolumeConnector>) -> Result<(), Refused> {
        check_is_off(node, "Deleting a volume connector")
    }
}

impl PartKind for VolumeTarget {
    const NAME: &'static str = "Volume target";
    const FIELDS: &'static [Field] = &[
        required("volume_type", 1, Holds::Text(64)),
        required("volume_id", 1, Holds::Text(255)),
        required("boot_index", 1, Holds::Number(0, i32::MAX as i64)),
        field("properties", 1, Holds::Object),
        field("extra", 1, Holds::Object),
    ];

    fn of(node: &Node) -> &ThinVec<Part<VolumeTarget>> {
        &node.volume_targets
    }

    fn of_mut(node: &mut Node) -> &mut ThinVec<Part<VolumeTarget>> {
        &mut node.volume_targets
    }

    fn event(change: PartChange<VolumeTarget>) -> Event {
        Event::VolumeTarget(change)
    }

    fn may_become(
        node: &Node,
        old: Option<&Part<VolumeTarget>>,
        new: &Part<VolumeTarget>,
    ) -> Result<(), Refused> {
        if old.is_some() {
            check_is_off(node, "Changing a volume target")?;
        }
        let index = new.is.boot_index;
        let is_taken = node
            .volume_targets
            .iter()
            .any(|other| other.id != new.id && other.is.boot_index == index);
        if is_taken {
            return Err(Refused::Conflict {
                text: format!(
                    "The node has a volume target with boot_index {index} already; it must be unique within the node."
                ),
            });
        }
        Ok(())
    }

    fn may_go(node: &Node, _: &Part<VolumeTarget>) -> Result<(), Refused> {
        check_is_off(node, "Deleting a volume target")
    }
}

fn check_is_off(node: &Node, what: &str) -> Result<(), Refused> {
    if node.power.state == Some(PowerState::Off) {
        return Ok(());
    }
    Err(Refused::Unsupported {
        what: format!(
            "{what} is possible only while the node's power_state is \"power off\"; it is {}.",
            node.power
                .state
                .map_or("not known".to_owned(), |state| format!(
                    "\"{}\"",
                    state.name()
                ))
        ),
    })
}
