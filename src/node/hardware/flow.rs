//! What operators ask of a machine from outside, power aside: checked, recorded, and handed to the driver.
//!
//! What was asked for stands in the row at once, and what it replaces beside it until the driver has answered: a failure puts that
//! back and shows in `last_error`. After a restart the driver is asked again for what the row says.

use super::media;
use super::recorded::{BootDevice, Hardware, Media, Undo, Vif};
use super::vendor::{self, VendorRequest};
use super::{boot, raid, uses};
use crate::node::driver_call::DriverRequest;
use crate::node::effect::{Severity, Step};
use crate::node::limits::BootMode;
use crate::node::outcome::Outcome;
use crate::node::refused::Refused;
use crate::node::state::{Node, Object};
use crate::node::turn::Turn;
use crate::node::values::bad;

/// More virtual interfaces than any instance has; they are stored with every change of the node.
const VIFS_MAX: usize = 256;

/// What an operator asks of a machine.
#[derive(Debug, Clone, PartialEq)]
pub enum HardwareRequest {
    /// Boot from this.
    BootDevice(BootDevice),
    /// Boot in this mode.
    BootMode(BootMode),
    /// Secure boot on or off.
    SecureBoot(bool),
    /// A non-maskable interrupt.
    InjectNmi,
    /// The console on or off.
    Console(bool),
    /// Put an image into a virtual drive.
    InsertMedia {
        /// The kind of drive.
        device_type: String,
        /// The image.
        media: Media,
    },
    /// Empty these virtual drives; all, if none is named.
    EjectMedia(Vec<String>),
    /// The RAID that is wanted; the empty one takes the wish back.
    TargetRaid(Object),
    /// Attach a virtual network interface.
    AttachVif(Vif),
    /// Detach one.
    DetachVif(String),
    /// What a vendor method that was checked already does.
    Vendor(VendorRequest),
}

/// Carries out what an operator asks.
pub(in crate::node) fn requested(turn: Turn<'_>, request: HardwareRequest) -> Step {
    if let Err(why) = check_support(&turn.node, &request) {
        return turn.refuse(why);
    }
    let state = turn.node.provision_state();
    if state.is_working() || turn.node.driver_call.is_some() {
        return turn.refuse(Refused::Busy { state });
    }
    match request {
        HardwareRequest::BootDevice(device) => set_boot_device(turn, device),
        HardwareRequest::BootMode(mode) => set_boot_mode(turn, mode),
        HardwareRequest::SecureBoot(on) => set_secure_boot(turn, on),
        HardwareRequest::InjectNmi => call(turn, DriverRequest::InjectNmi, None),
        HardwareRequest::Console(on) => set_console(turn, on),
        HardwareRequest::InsertMedia { device_type, media } => {
            let mut drives = turn.node.hardware.media.clone();
            drives.insert(device_type, media);
            set_media(turn, drives)
        }
        HardwareRequest::EjectMedia(types) => {
            let mut drives = turn.node.hardware.media.clone();
            drives.retain(|drive, _| !types.is_empty() && !types.contains(drive));
            if drives == turn.node.hardware.media {
                return turn.unchanged(Outcome::Unchanged);
            }
            set_media(turn, drives)
        }
        HardwareRequest::TargetRaid(target) => {
            if target == turn.node.hardware.target_raid_config {
                return turn.unchanged(Outcome::Unchanged);
            }
            changed(turn, |hardware| hardware.target_raid_config = target)
        }
        HardwareRequest::AttachVif(vif) => attach_vif(turn, vif),
        HardwareRequest::DetachVif(id) => detach_vif(turn, &id),
        HardwareRequest::Vendor(request) => vendor::requested(turn, request),
    }
}

/// The driver has answered, or has not for too long.
pub(in crate::node) fn answered(
    mut turn: Turn<'_>,
    request: DriverRequest,
    answer: Result<(), String>,
) -> Step {
    let undo = turn.node.hardware.undo.take();
    let Err(why) = answer else {
        return turn.done(Outcome::Changed);
    };
    match undo {
        Some(Undo::BootDevice(before)) => turn.node.hardware.boot_device = before,
        Some(Undo::BootMode(before)) => turn.node.attributes.boot_mode = before,
        Some(Undo::SecureBoot(before)) => turn.node.attributes.secure_boot = before,
        Some(Undo::Media(before)) => turn.node.hardware.media = before,
        Some(Undo::Console(before)) => turn.node.hardware.console_enabled = before,
        None => {}
    }
    turn.error("management", format!("{} failed: {why}", request.name()));
    turn.done(Outcome::Failed)
}

/// What a good answer to a flow's call says of what is recorded.
pub(in crate::node) fn carried_out(node: &mut Node, request: DriverRequest) {
    let (device, persistent) = match request {
        DriverRequest::RebootToRamdisk => ("pxe", false),
        DriverRequest::BootFromDisk => ("disk", true),
        _ => return,
    };
    node.hardware.boot_device = Some(BootDevice {
        device: device.to_owned(),
        persistent,
    });
}

/// What the machine can't do is refused whatever the node is at.
fn check_support(node: &Node, request: &HardwareRequest) -> Result<(), Refused> {
    let attributes = &node.attributes;
    let needs = |kind: &str, what: &str| {
        if uses(attributes, kind, "fake") {
            return Ok(());
        }
        let chosen = attributes
            .interfaces
            .get(kind)
            .map_or("none", String::as_str);
        Err(Refused::Unsupported {
            what: format!(
                "The driver {} can't {what} with {kind}_interface {chosen}.",
                attributes.driver
            ),
        })
    };
    match request {
        HardwareRequest::BootDevice(device) => boot::check_boot_device(attributes, &device.device),
        HardwareRequest::BootMode(_) => needs("management", "set the boot mode"),
        HardwareRequest::SecureBoot(_) => needs("management", "set secure boot"),
        HardwareRequest::InjectNmi => needs("management", "inject an NMI"),
        HardwareRequest::Console(_) => needs("console", "switch a console"),
        HardwareRequest::InsertMedia { device_type, media } => {
            needs("management", "insert virtual media")?;
            media::check_drive("device_type", device_type)?;
            media::check_media(media)
        }
        HardwareRequest::EjectMedia(types) => {
            needs("management", "eject virtual media")?;
            types
                .iter()
                .try_for_each(|drive| media::check_drive("device_types", drive))
        }
        HardwareRequest::TargetRaid(target) => {
            raid::check_interface(attributes)?;
            raid::check_target(target)
        }
        HardwareRequest::AttachVif(_)
        | HardwareRequest::DetachVif(_)
        | HardwareRequest::Vendor(_) => Ok(()),
    }
}

fn set_boot_device(mut turn: Turn<'_>, device: BootDevice) -> Step {
    if !uses(&turn.node.attributes, "management", "fake") {
        let line = format!("set the boot device to {} by hand", device.device);
        turn.note(Severity::Info, "management", line);
        return turn.done(Outcome::Changed);
    }
    let before = turn.node.hardware.boot_device.replace(device);
    call(
        turn,
        DriverRequest::SetBootDevice,
        Some(Undo::BootDevice(before)),
    )
}

fn set_boot_mode(mut turn: Turn<'_>, mode: BootMode) -> Step {
    turn.node.last_error = None;
    let before = turn
        .node
        .attributes
        .boot_mode
        .replace(mode.name().to_owned());
    call(
        turn,
        DriverRequest::SetBootMode,
        Some(Undo::BootMode(before)),
    )
}

fn set_secure_boot(mut turn: Turn<'_>, on: bool) -> Step {
    turn.node.last_error = None;
    let before = turn.node.attributes.secure_boot.replace(on);
    call(
        turn,
        DriverRequest::SetSecureBoot,
        Some(Undo::SecureBoot(before)),
    )
}

fn set_console(mut turn: Turn<'_>, on: bool) -> Step {
    let before = turn.node.hardware.console_enabled;
    if on == before {
        return turn.unchanged(Outcome::Unchanged);
    }
    turn.node.last_error = None;
    turn.node.hardware.console_enabled = on;
    call(turn, DriverRequest::SetConsole, Some(Undo::Console(before)))
}

fn set_media(mut turn: Turn<'_>, drives: std::collections::BTreeMap<String, Media>) -> Step {
    let before = std::mem::replace(&mut turn.node.hardware.media, drives);
    call(turn, DriverRequest::SetMedia, Some(Undo::Media(before)))
}

fn attach_vif(turn: Turn<'_>, vif: Vif) -> Step {
    if turn
        .node
        .hardware
        .vifs
        .iter()
        .any(|known| known.id == vif.id)
    {
        return turn.refuse(Refused::Conflict {
            text: format!("The VIF {} is already attached to this node.", vif.id),
        });
    }
    if turn.node.hardware.vifs.len() >= VIFS_MAX {
        return turn.refuse(Refused::Conflict {
            text: format!("The node has {VIFS_MAX} VIFs; detach one first."),
        });
    }
    let named = |key: &str| vif.info.get(key).and_then(|id| id.as_str());
    let has_port = |id: &str| turn.node.ports.iter().any(|port| port.id.to_string() == id);
    let has_group = |id: &str| {
        let mut groups = turn.node.portgroups.iter();
        groups.any(|group| group.id.to_string() == id)
    };
    let missing = named("port_uuid")
        .filter(|id| !has_port(id))
        .map(|id| bad("port_uuid", &format!("the node has no port {id}")))
        .or_else(|| {
            named("portgroup_uuid")
                .filter(|id| !has_group(id))
                .map(|id| bad("portgroup_uuid", &format!("the node has no portgroup {id}")))
        });
    if let Some(why) = missing {
        return turn.refuse(why);
    }
    changed(turn, |hardware| hardware.vifs.push(vif))
}

fn detach_vif(turn: Turn<'_>, id: &str) -> Step {
    if !turn.node.hardware.vifs.iter().any(|known| known.id == id) {
        return turn.refuse(bad("vif", &format!("{id} is not attached to this node")));
    }
    changed(turn, |hardware| {
        hardware.vifs.retain(|known| known.id != id)
    })
}

pub(super) fn changed(mut turn: Turn<'_>, change: impl FnOnce(&mut Hardware)) -> Step {
    change(&mut turn.node.hardware);
    turn.done(Outcome::Changed)
}

fn call(mut turn: Turn<'_>, request: DriverRequest, undo: Option<Undo>) -> Step {
    turn.node.hardware.undo = undo;
    turn.note(
        Severity::Info,
        "management",
        format!("{} asked for", request.name()),
    );
    turn.call_driver(request);
    turn.done(Outcome::DriverCalled)
}
