//! `manual-management`: a person presses the buttons; the conductor only notes what it asked for.

use super::{Answering, Driver};
use crate::node::{DriverAnswer, DriverRequest, Node, PowerState};

/// Takes every request as done by somebody, and leaves a line in the log for them.
pub struct Manual;

impl Driver for Manual {
    fn call(&self, node: &Node, request: DriverRequest) -> Answering {
        let (power, wish) = match request {
            DriverRequest::RebootToRamdisk => (
                Some(PowerState::On),
                "reboot the machine into the ramdisk by hand",
            ),
            DriverRequest::RebootToInstance => (
                Some(PowerState::On),
                "make the machine boot from its disk and reboot it by hand",
            ),
            DriverRequest::Reboot => (Some(PowerState::On), "reboot the machine by hand"),
            DriverRequest::PowerOn => (Some(PowerState::On), "switch the machine on by hand"),
            DriverRequest::PowerOff => (Some(PowerState::Off), "switch the machine off by hand"),
            DriverRequest::BootFromDisk => (None, "make the machine boot from its disk by hand"),
            DriverRequest::Verify | DriverRequest::ReadPower => (node.power.state, ""),
            // The hardware type offers none of these, so nobody asks.
            DriverRequest::SoftPowerOff
            | DriverRequest::SoftReboot
            | DriverRequest::SetBootDevice
            | DriverRequest::SetBootMode
            | DriverRequest::SetSecureBoot
            | DriverRequest::SetMedia
            | DriverRequest::SetConsole
            | DriverRequest::InjectNmi
            | DriverRequest::HardwareStep => {
                let why = format!("a person has no way for \"{}\"", request.name());
                return Box::pin(std::future::ready(Err(why)));
            }
        };
        if !wish.is_empty() {
            tracing::info!(node.id = %node.id, node.name = node.attributes.name, "{wish}");
        }
        Box::pin(std::future::ready(Ok(DriverAnswer { power })))
    }
}
