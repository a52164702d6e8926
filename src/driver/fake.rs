//! `fake-hardware`: machines that exist only in the minds of those who test.

use std::sync::Arc;

use super::{Answering, Driver};
use crate::node::{DriverAnswer, DriverRequest, Node, PowerState};

/// Told of every power change: the node's UUID, its MAC addresses, and what its switch is told. A reboot comes as off, then on.
/// Never blocks.
pub type PowerHook = Arc<dyn Fn(&str, &[String], Switch) + Send + Sync>;

/// What the switch of a machine is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Switch {
    /// Off.
    Off,
    /// On, to boot from the disk if there is something on it.
    On,
    /// On, to boot the ramdisk this time.
    OnToRamdisk,
}

impl Switch {
    /// Whether the machine has power afterwards.
    pub fn is_on(self) -> bool {
        self != Switch::Off
    }
}

/// Says yes to everything, at once, and passes power changes on to whoever plays the machines.
pub struct Fake {
    hook: Option<PowerHook>,
}

impl Fake {
    /// A driver without machines, or with those behind `hook`.
    pub fn new(hook: Option<PowerHook>) -> Fake {
        Fake { hook }
    }

    fn switch(&self, node: &Node, to: Switch) {
        if let Some(hook) = &self.hook {
            let addresses: Vec<String> =
                node.ports.iter().map(|port| port.address.clone()).collect();
            hook(&node.id.to_string(), &addresses, to);
        }
    }
}

impl Driver for Fake {
    fn call(&self, node: &Node, request: DriverRequest) -> Answering {
        let power = match request {
            DriverRequest::RebootToRamdisk => {
                self.switch(node, Switch::Off);
                self.switch(node, Switch::OnToRamdisk);
                Some(PowerState::On)
            }
            DriverRequest::RebootToInstance | DriverRequest::Reboot | DriverRequest::SoftReboot => {
                self.switch(node, Switch::Off);
                self.switch(node, Switch::On);
                Some(PowerState::On)
            }
            DriverRequest::PowerOn => {
                self.switch(node, Switch::On);
                Some(PowerState::On)
            }
            DriverRequest::PowerOff | DriverRequest::SoftPowerOff => {
                self.switch(node, Switch::Off);
                Some(PowerState::Off)
            }
            DriverRequest::Verify | DriverRequest::ReadPower => {
                Some(node.power.state.unwrap_or(PowerState::Off))
            }
            // The row says how such a machine is set up; there is nothing else to set.
            DriverRequest::BootFromDisk
            | DriverRequest::SetBootDevice
            | DriverRequest::SetBootMode
            | DriverRequest::SetSecureBoot
            | DriverRequest::SetMedia
            | DriverRequest::SetConsole
            | DriverRequest::InjectNmi
            | DriverRequest::HardwareStep => None,
        };
        Box::pin(std::future::ready(Ok(DriverAnswer { power })))
    }
}
