//! Boot devices: which there are, and what may be chosen. Data and pure rules.

use crate::node::refused::Refused;
use crate::node::state::{Attributes, Node};
use crate::node::values::bad;

use super::recorded::BootDevice;
use super::uses;

/// What a fake machine can boot from.
const OF_FAKE: &[&str] = &["bios", "cdrom", "disk", "pxe", "safe"];
/// What a person can be asked to choose where no driver can.
const OF_NOOP: &[&str] = &["disk", "pxe"];

/// What a node with these attributes can boot from.
pub fn supported_boot_devices(attributes: &Attributes) -> &'static [&'static str] {
    if uses(attributes, "management", "fake") {
        OF_FAKE
    } else if uses(attributes, "management", "noop") {
        OF_NOOP
    } else {
        &[]
    }
}

/// From what the machine boots, where the conductor can know it.
pub fn boot_device(node: &Node) -> Option<&BootDevice> {
    node.hardware
        .boot_device
        .as_ref()
        .filter(|_| uses(&node.attributes, "management", "fake"))
}

/// Whether the machine can boot from it.
///
/// # Errors
/// [`Refused::BadValue`] naming those it can boot from.
pub fn check_boot_device(attributes: &Attributes, device: &str) -> Result<(), Refused> {
    let supported = supported_boot_devices(attributes);
    if supported.contains(&device) {
        return Ok(());
    }
    Err(bad(
        "boot_device",
        &format!(
            "{device:?} is not supported by this node; it can boot from {}",
            supported.join(", ")
        ),
    ))
}
