//! The hardware types a node can be driven by: names, interfaces and defaults; and, in the files below, what is recorded and asked
//! of a machine from outside. Data and pure rules; what the drivers do stands in `crate::driver`.

pub mod bios;
pub mod boot;
pub mod firmware;
pub(super) mod flow;
pub mod media;
pub mod raid;
pub mod recorded;
pub mod steps;
mod subscriptions;
pub mod vendor;

pub use flow::HardwareRequest;

use super::state::{Attributes, PowerState};

/// A driver's answer to a call that went well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DriverAnswer {
    /// The power state as the driver now knows it; none if it can't see the machine.
    pub power: Option<PowerState>,
}

/// One kind of interface of a hardware type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interface {
    /// `boot`, `deploy`, `power`, ...
    pub kind: &'static str,
    /// The implementation a node gets unless it asks for another.
    pub default: &'static str,
    /// All implementations this hardware type can use.
    pub enabled: &'static [&'static str],
}

/// A hardware type: the value of a node's `driver`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HardwareType {
    /// Its name.
    pub name: &'static str,
    /// Whether its driver can see by itself that a machine has gone off.
    pub sees_power: bool,
    /// Whether its driver can switch a machine by itself; otherwise a person does.
    pub switches_power: bool,
    /// Whether its driver can ask the operating system to go off.
    pub has_soft_power: bool,
    /// Its interfaces.
    pub interfaces: &'static [Interface],
}

/// The thirteen kinds of interfaces of the API, in the order of its documents.
pub const INTERFACE_KINDS: [&str; 13] = [
    "bios",
    "boot",
    "console",
    "deploy",
    "firmware",
    "inspect",
    "management",
    "network",
    "power",
    "raid",
    "rescue",
    "storage",
    "vendor",
];

macro_rules! interfaces {
    ($($kind:literal: $default:literal $(or $other:literal)*),+ $(,)?) => {
        &[$(Interface { kind: $kind, default: $default, enabled: &[$default $(, $other)*] }),+]
    };
}

/// Every hardware type of this version.
pub const HARDWARE_TYPES: &[HardwareType] = &[
    HardwareType {
        name: "fake-hardware",
        sees_power: false,
        switches_power: true,
        has_soft_power: true,
        interfaces: interfaces![
            "bios": "fake" or "no-bios",
            "boot": "fake" or "ipxe" or "pxe",
            "console": "fake" or "no-console",
            "deploy": "direct" or "custom-agent" or "ramdisk",
            "firmware": "fake" or "no-firmware",
            "inspect": "agent" or "no-inspect",
            "management": "fake" or "noop",
            "network": "noop",
            "power": "fake",
            "raid": "fake" or "agent" or "no-raid",
            "rescue": "agent" or "no-rescue",
            "storage": "noop",
            "vendor": "fake" or "no-vendor",
        ],
    },
    HardwareType {
        name: "manual-management",
        sees_power: false,
        switches_power: false,
        has_soft_power: false,
        interfaces: interfaces![
            "bios": "no-bios",
            "boot": "pxe" or "ipxe",
            "console": "no-console",
            "deploy": "direct" or "custom-agent" or "ramdisk",
            "firmware": "no-firmware",
            "inspect": "agent" or "no-inspect",
            "management": "noop",
            "network": "noop",
            "power": "manual",
            "raid": "no-raid" or "agent",
            "rescue": "agent" or "no-rescue",
            "storage": "noop",
            "vendor": "no-vendor",
        ],
    },
];

/// The hardware type called `name`.
pub fn hardware_type(name: &str) -> Option<&'static HardwareType> {
    let known = HARDWARE_TYPES.iter();
    #[cfg(test)]
    let known = known.chain([&SEES_POWER]);
    known.into_iter().find(|known| known.name == name)
}

/// True if a node with these attributes has `implementation` for the interface `kind`.
pub fn uses(attributes: &Attributes, kind: &str, implementation: &str) -> bool {
    attributes
        .interfaces
        .get(kind)
        .is_some_and(|chosen| chosen == implementation)
}

/// No driver of this version sees a machine's power, but flows are written, and tested, for those that do.
#[cfg(test)]
const SEES_POWER: HardwareType = HardwareType {
    name: "sees-power",
    sees_power: true,
    switches_power: true,
    has_soft_power: false,
    interfaces: &[],
};
