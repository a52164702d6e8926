//! What the driver can be asked, and the call in progress: plain data.

use serde::{Deserialize, Serialize};

use super::state::PowerState;

/// What the driver is asked to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DriverRequest {
    /// See whether the machine can be managed; answers with its power state.
    Verify,
    /// Off, then on, so that the ramdisk boots.
    RebootToRamdisk,
    /// Boot from disk from now on.
    BootFromDisk,
    /// See whether the machine has gone off by itself.
    ReadPower,
    /// On.
    PowerOn,
    /// Off.
    PowerOff,
    /// Off, then on.
    Reboot,
    /// Boot from disk from now on; off, then on.
    RebootToInstance,
    /// Off, by asking the operating system.
    SoftPowerOff,
    /// Off, by asking the operating system, then on.
    SoftReboot,
    /// Boot from what the row says.
    SetBootDevice,
    /// Boot in the mode the row says.
    SetBootMode,
    /// Secure boot as the row says.
    SetSecureBoot,
    /// Have in the virtual drives what the row says.
    SetMedia,
    /// The console as the row says.
    SetConsole,
    /// A non-maskable interrupt.
    InjectNmi,
    /// Carry out the step that the row says is at work.
    HardwareStep,
}

impl DriverRequest {
    /// The word for logs and texts.
    pub fn name(self) -> &'static str {
        match self {
            DriverRequest::Verify => "verify",
            DriverRequest::RebootToRamdisk => "reboot to ramdisk",
            DriverRequest::BootFromDisk => "boot from disk",
            DriverRequest::ReadPower => "read power",
            DriverRequest::PowerOn => "power on",
            DriverRequest::PowerOff => "power off",
            DriverRequest::Reboot => "reboot",
            DriverRequest::RebootToInstance => "reboot to instance",
            DriverRequest::SoftPowerOff => "soft power off",
            DriverRequest::SoftReboot => "soft reboot",
            DriverRequest::SetBootDevice => "set boot device",
            DriverRequest::SetBootMode => "set boot mode",
            DriverRequest::SetSecureBoot => "set secure boot",
            DriverRequest::SetMedia => "set virtual media",
            DriverRequest::SetConsole => "set console",
            DriverRequest::InjectNmi => "inject NMI",
            DriverRequest::HardwareStep => "hardware step",
        }
    }

    /// True for what an operator asked of the machine, power aside, whatever state the node is in.
    pub fn is_management(self) -> bool {
        matches!(
            self,
            DriverRequest::SetBootDevice
                | DriverRequest::SetBootMode
                | DriverRequest::SetSecureBoot
                | DriverRequest::SetMedia
                | DriverRequest::SetConsole
                | DriverRequest::InjectNmi
        )
    }

    /// False for what is not to be asked a second time when nobody knows whether the first time was heard.
    pub fn may_be_repeated(self) -> bool {
        self != DriverRequest::InjectNmi
    }

    /// The power state a good answer leaves the machine in, where the request is about power.
    pub fn ends_in(self) -> Option<PowerState> {
        match self {
            DriverRequest::PowerOn
            | DriverRequest::Reboot
            | DriverRequest::SoftReboot
            | DriverRequest::RebootToInstance
            | DriverRequest::RebootToRamdisk => Some(PowerState::On),
            DriverRequest::PowerOff | DriverRequest::SoftPowerOff => Some(PowerState::Off),
            DriverRequest::Verify
            | DriverRequest::BootFromDisk
            | DriverRequest::ReadPower
            | DriverRequest::SetBootDevice
            | DriverRequest::SetBootMode
            | DriverRequest::SetSecureBoot
            | DriverRequest::SetMedia
            | DriverRequest::SetConsole
            | DriverRequest::InjectNmi
            | DriverRequest::HardwareStep => None,
        }
    }
}

/// Work of the driver in progress; repeated after a restart, since every request names what shall be, not what to press.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct DriverCall {
    /// Number within the node; answers to older calls are ignored.
    pub number: u64,
    /// What is asked.
    pub request: DriverRequest,
}
