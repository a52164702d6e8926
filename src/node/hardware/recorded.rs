//! What is recorded of a machine besides its power: as last set, or last known. Stored in the node's row, so that a restart of the
//! conductor is not noticed. Data only.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::node::state::Object;
use crate::timestamp::Timestamp;

/// What is recorded of a node's machine.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Hardware {
    /// From what it boots; none if that was never set.
    pub boot_device: Option<BootDevice>,
    /// Whether its console is on.
    pub console_enabled: bool,
    /// What lies in its virtual drives, by kind of drive (`cdrom`, `disk`, `floppy`).
    pub media: BTreeMap<String, Media>,
    /// The virtual network interfaces that were attached, in the order they were.
    pub vifs: Vec<Vif>,
    /// Whom its BMC tells of what happens to it, in the order they asked for it.
    pub subscriptions: Vec<Subscription>,
    /// The BIOS settings that are no longer as the machine came, by name.
    pub bios_changes: BTreeMap<String, BiosChange>,
    /// The firmware that is no longer as the machine came, by component.
    pub firmware_changes: BTreeMap<String, FirmwareChange>,
    /// Its RAID as it is; empty if none was made.
    pub raid_config: Object,
    /// Its RAID as it shall be; empty if none is wanted.
    pub target_raid_config: Object,
    /// What the driver call in progress replaces, to be put back if it fails.
    pub undo: Option<Undo>,
}

/// From what a machine boots.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BootDevice {
    /// `pxe`, `disk`, ...
    pub device: String,
    /// Always, not only at the next boot.
    pub persistent: bool,
}

/// What lies in a virtual drive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Media {
    /// The address of the image.
    pub image_url: String,
    /// How it gets to the machine, if that was said: `http`, `local`, `swift`.
    pub download_source: Option<String>,
}

/// A virtual network interface of the instance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Vif {
    /// Its name, given by whoever attached it.
    pub id: String,
    /// What else was said of it.
    #[serde(default)]
    pub info: Object,
}

/// An event subscription.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subscription {
    /// Its name with the BMC.
    pub id: String,
    /// The address events are sent to.
    pub destination: String,
    /// What is told with each event, for whoever receives it.
    pub context: String,
    /// How events are sent: `Redfish`.
    pub protocol: String,
    /// The kinds of events that are sent.
    pub event_types: Vec<String>,
}

/// A BIOS setting with another value than the machine came with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BiosChange {
    /// The value.
    pub value: String,
    /// When it was set.
    pub at: Timestamp,
}

/// Firmware with another version than the machine came with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FirmwareChange {
    /// The version.
    pub version: String,
    /// When it was flashed.
    pub at: Timestamp,
}

/// What was recorded before a driver call that is still in progress.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Undo {
    /// The boot device.
    BootDevice(Option<BootDevice>),
    /// The boot mode.
    BootMode(Option<String>),
    /// Secure boot.
    SecureBoot(Option<bool>),
    /// The virtual drives.
    Media(BTreeMap<String, Media>),
    /// The console.
    Console(bool),
}
