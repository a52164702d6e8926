//! `fake-hardware`: machines that exist only in the minds of those who test.

use std::sync::Arc;

use super::{Answering, Driver};
use crate::node::{DriverAnswer, DriverRequest, Node, PowerState};

/// Told of every power change: the node's UUID, its MAC addresses, and whether it is on now. A reboot comes as off, then on.
pub type PowerHook = Arc<dyn Fn(&str, &[String], bool) + Send + Sync>;

/// Says yes to everything, at once, and passes power changes on to whoever plays the machines.
pub struct Fake {
    hook: Option<PowerHook>,
}

impl Fake {
    /// A driver without machines, or with those behind `hook`.
    pub fn new(hook: Option<PowerHook>) -> Fake {
        Fake { hook }
    }

    fn switch(&self, node: &Node, on: bool) {
        if let Some(hook) = &self.hook {
            let addresses: Vec<String> =
                node.ports.iter().map(|port| port.address.clone()).collect();
            hook(&node.id.to_string(), &addresses, on);
        }
    }
}

impl Driver for Fake {
    fn call(&self, node: &Node, request: DriverRequest) -> Answering {
        let power = match request {
            DriverRequest::RebootToRamdisk
            | DriverRequest::RebootToInstance
            | DriverRequest::Reboot
            | DriverRequest::SoftReboot => {
                self.switch(node, false);
                self.switch(node, true);
                Some(PowerState::On)
            }
            DriverRequest::PowerOn => {
                self.switch(node, true);
                Some(PowerState::On)
            }
            DriverRequest::PowerOff | DriverRequest::SoftPowerOff => {
                self.switch(node, false);
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
