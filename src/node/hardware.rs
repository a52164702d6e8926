//! The hardware types a node can be driven by: names, interfaces and defaults. Data only; what the drivers do stands in
//! `crate::driver`.

use super::state::PowerState;

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
        interfaces: interfaces![
            "bios": "no-bios",
            "boot": "fake",
            "console": "no-console",
            "deploy": "direct",
            "firmware": "no-firmware",
            "inspect": "no-inspect",
            "management": "fake",
            "network": "noop",
            "power": "fake",
            "raid": "no-raid",
            "rescue": "no-rescue",
            "storage": "noop",
            "vendor": "no-vendor",
        ],
    },
    HardwareType {
        name: "manual-management",
        sees_power: false,
        switches_power: false,
        interfaces: interfaces![
            "bios": "no-bios",
            "boot": "pxe",
            "console": "no-console",
            "deploy": "direct",
            "firmware": "no-firmware",
            "inspect": "no-inspect",
            "management": "noop",
            "network": "noop",
            "power": "manual",
            "raid": "no-raid",
            "rescue": "no-rescue",
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

/// No driver of this version sees a machine's power, but flows are written, and tested, for those that do.
#[cfg(test)]
const SEES_POWER: HardwareType = HardwareType {
    name: "sees-power",
    sees_power: true,
    switches_power: true,
    interfaces: &[],
};
