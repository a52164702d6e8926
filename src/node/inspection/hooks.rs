//! The inspection hooks there are, and the settings they follow.

use super::{Inspected, lldp, ports, properties};

/// What is made of findings (`[inspector]` of the configuration).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// In the order in which they run.
    pub hooks: Vec<Hook>,
    /// For which NICs ports are made.
    pub add_ports: AddPorts,
    /// Which of the node's ports stay.
    pub keep_ports: KeepPorts,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            hooks: vec![
                Hook::RamdiskError,
                Hook::ValidateInterfaces,
                Hook::Ports,
                Hook::Architecture,
            ],
            add_ports: AddPorts::Pxe,
            keep_ports: KeepPorts::All,
        }
    }
}

/// For which NICs ports are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddPorts {
    /// The one the machine was booted from; all, where that is not known.
    Pxe,
    /// Those that had an IP address.
    Active,
    /// All.
    All,
    /// None.
    Disabled,
}

impl AddPorts {
    /// Each with its name in the configuration.
    pub const ALL: [(&'static str, AddPorts); 4] = [
        ("pxe", AddPorts::Pxe),
        ("active", AddPorts::Active),
        ("all", AddPorts::All),
        ("disabled", AddPorts::Disabled),
    ];

    /// Its name in the configuration.
    pub fn name(self) -> &'static str {
        let named = AddPorts::ALL.iter().find(|(_, one)| *one == self);
        named.map_or("", |(name, _)| name)
    }
}

/// Which of a node's ports stay after an inspection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeepPorts {
    /// All.
    All,
    /// Those whose NICs were found.
    Present,
    /// Those for whose NICs a port would have been made.
    Added,
}

impl KeepPorts {
    /// Each with its name in the configuration.
    pub const ALL: [(&'static str, KeepPorts); 3] = [
        ("all", KeepPorts::All),
        ("present", KeepPorts::Present),
        ("added", KeepPorts::Added),
    ];

    /// Its name in the configuration.
    pub fn name(self) -> &'static str {
        let named = KeepPorts::ALL.iter().find(|(_, one)| *one == self);
        named.map_or("", |(name, _)| name)
    }
}

/// One thing that is made of findings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hook {
    /// An error of the ramdisk ends the inspection. Always on, and first.
    RamdiskError,
    /// The NICs are checked, and kept in the plugin data. Always on, and second.
    ValidateInterfaces,
    /// NICs become ports.
    Ports,
    /// Property `cpu_arch`.
    Architecture,
    /// Capability `boot_mode`.
    BootMode,
    /// Capabilities `cpu_vt`, `cpu_aes`, ...
    CpuCapabilities,
    /// Property `memory_mb`.
    Memory,
    /// Property `local_gb`.
    RootDevice,
    /// Which switch port each port is plugged into, as the switch says.
    LocalLinkConnection,
    /// What the switches say, in the plugin data.
    ParseLldp,
}

impl Hook {
    /// Each with its name in the configuration, which is Ironic's.
    pub const ALL: [(&'static str, Hook); 10] = [
        ("ramdisk-error", Hook::RamdiskError),
        ("validate-interfaces", Hook::ValidateInterfaces),
        ("ports", Hook::Ports),
        ("architecture", Hook::Architecture),
        ("boot-mode", Hook::BootMode),
        ("cpu-capabilities", Hook::CpuCapabilities),
        ("memory", Hook::Memory),
        ("root-device", Hook::RootDevice),
        ("local-link-connection", Hook::LocalLinkConnection),
        ("parse-lldp", Hook::ParseLldp),
    ];

    /// Its name in the configuration.
    pub fn name(self) -> &'static str {
        let named = Hook::ALL.iter().find(|(_, one)| *one == self);
        named.map_or("", |(name, _)| name)
    }

    pub(super) fn run(self, inspected: &mut Inspected<'_>) {
        match self {
            // Before all others.
            Hook::RamdiskError | Hook::ValidateInterfaces => {}
            Hook::Ports => ports::update(inspected),
            Hook::Architecture => properties::architecture(inspected),
            Hook::BootMode => properties::boot_mode(inspected),
            Hook::CpuCapabilities => properties::cpu_capabilities(inspected),
            Hook::Memory => properties::memory(inspected),
            Hook::RootDevice => properties::root_device(inspected),
            Hook::LocalLinkConnection => lldp::local_link_connection(inspected),
            Hook::ParseLldp => lldp::parse(inspected),
        }
    }
}
