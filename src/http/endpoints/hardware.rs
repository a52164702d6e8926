//! What is managed of a node's machine from outside: boot, media, BIOS, firmware, console, RAID, virtual interfaces.

use super::endpoint::{Endpoint, TooOld, delete, get, post, put};
use super::parameter::{DETAIL, FIELDS, Holds, Parameter, parameter};
use crate::http::{bios, drivers, machine_states, management, media, vifs};

const REGISTRY: &[Parameter] = &[
    parameter(
        "detail",
        Holds::Bool,
        74,
        "Show what each setting can hold; not together with fields.",
    ),
    parameter("fields", Holds::Texts, 74, "Only these fields."),
];

const DEVICE_TYPES: &[Parameter] = &[parameter(
    "device_types",
    Holds::Texts,
    89,
    "Only these drives; without it, all.",
)];

const BOOT_DEVICE: &[Parameter] = &[
    parameter("boot_device", Holds::Text, 1, "The device.").required(),
    parameter(
        "persistent",
        Holds::Bool,
        1,
        "For every boot, not only for the next one.",
    ),
];

const BOOT_MODE: &[Parameter] =
    &[parameter("target", Holds::OneOf(&["bios", "uefi"]), 76, "The mode.").required()];

const SECURE_BOOT: &[Parameter] = &[parameter("target", Holds::Bool, 76, "On or off.").required()];

const CONSOLE: &[Parameter] = &[parameter("enabled", Holds::Bool, 1, "On or off.").required()];

const MEDIA: &[Parameter] = &[
    parameter(
        "device_type",
        Holds::OneOf(&["cdrom", "disk", "floppy"]),
        89,
        "The drive.",
    )
    .required(),
    parameter("image_url", Holds::Text, 89, "Where the image lies.").required(),
    parameter(
        "image_download_source",
        Holds::Text,
        89,
        "How the machine is to get at it.",
    ),
];

/// The rows.
pub const ENDPOINTS: &[Endpoint] = &[
    get(
        "/v1/nodes/{node}/management/boot_device",
        "Shows the boot device.",
        |r, of| Box::pin(management::boot_device(r, of.first())),
    )
    .shows("BootDevice"),
    put(
        "/v1/nodes/{node}/management/boot_device",
        "Sets the boot device.",
        |r, of| Box::pin(management::set_boot_device(r, of.first())),
    )
    .arguments(&[BOOT_DEVICE])
    .status(204)
    .errors(&[409]),
    get(
        "/v1/nodes/{node}/management/boot_device/supported",
        "Lists the boot devices there are.",
        |r, of| Box::pin(management::boot_devices(r, of.first())),
    )
    .shows("BootDevices"),
    put(
        "/v1/nodes/{node}/management/inject_nmi",
        "Injects a non-maskable interrupt.",
        |r, of| Box::pin(management::inject_nmi(r, of.first())),
    )
    .since(29)
    .status(204)
    .errors(&[409]),
    put(
        "/v1/nodes/{node}/states/boot_mode",
        "Sets the boot mode.",
        |r, of| Box::pin(machine_states::set_boot_mode(r, of.first())),
    )
    .since(76)
    .arguments(&[BOOT_MODE])
    .errors(&[409]),
    put(
        "/v1/nodes/{node}/states/secure_boot",
        "Sets secure boot.",
        |r, of| Box::pin(machine_states::set_secure_boot(r, of.first())),
    )
    .since(76)
    .arguments(&[SECURE_BOOT])
    .errors(&[409]),
    get(
        "/v1/nodes/{node}/states/console",
        "Shows the console.",
        |r, of| Box::pin(machine_states::console(r, of.first())),
    )
    .shows("Console"),
    put(
        "/v1/nodes/{node}/states/console",
        "Switches the console.",
        |r, of| Box::pin(machine_states::set_console(r, of.first())),
    )
    .arguments(&[CONSOLE])
    .errors(&[409]),
    put(
        "/v1/nodes/{node}/states/raid",
        "Says which RAID is wanted.",
        |r, of| Box::pin(machine_states::set_target_raid(r, of.first())),
    )
    .since(12)
    .too_old(TooOld::NotAcceptable("raid"))
    .takes("TargetRaidConfig")
    .status(204)
    .errors(&[409]),
    get(
        "/v1/nodes/{node}/vifs",
        "Lists the virtual network interfaces of a node.",
        |r, of| Box::pin(vifs::list(r, of.first())),
    )
    .since(28)
    .shows("Vifs"),
    post(
        "/v1/nodes/{node}/vifs",
        "Attaches a virtual network interface.",
        |r, of| Box::pin(vifs::attach(r, of.first())),
    )
    .since(28)
    .takes("Vif")
    .status(204)
    .errors(&[409]),
    delete(
        "/v1/nodes/{node}/vifs/{vif}",
        "Detaches a virtual network interface.",
        |r, of| Box::pin(vifs::detach(r, of.first(), of.second())),
    )
    .since(28)
    .errors(&[409]),
    get(
        "/v1/nodes/{node}/vmedia",
        "Lists the virtual drives and what is in them.",
        |r, of| Box::pin(media::list(r, of.first())),
    )
    .since(93)
    .shows("VirtualMedia"),
    post(
        "/v1/nodes/{node}/vmedia",
        "Puts an image into a virtual drive.",
        |r, of| Box::pin(media::insert(r, of.first())),
    )
    .since(89)
    .arguments(&[MEDIA])
    .status(204)
    .errors(&[409]),
    delete(
        "/v1/nodes/{node}/vmedia",
        "Empties virtual drives.",
        |r, of| Box::pin(media::eject(r, of.first())),
    )
    .since(89)
    .query(&[DEVICE_TYPES])
    .may_take("DeviceTypes")
    .errors(&[409]),
    get(
        "/v1/nodes/{node}/bios",
        "Lists the BIOS settings of a node.",
        |r, of| Box::pin(bios::list(r, of.first())),
    )
    .since(40)
    .query(&[REGISTRY])
    .lists("bios", "BiosSetting"),
    get(
        "/v1/nodes/{node}/bios/{setting}",
        "Shows a BIOS setting.",
        |r, of| Box::pin(bios::show(r, of.first(), of.second())),
    )
    .since(40)
    .shows("NamedBiosSetting"),
    get(
        "/v1/nodes/{node}/firmware",
        "Lists the firmware of a node.",
        |r, of| Box::pin(bios::firmware(r, of.first())),
    )
    .since(86)
    .query(&[FIELDS, DETAIL])
    .lists("firmware", "FirmwareComponent"),
    get(
        "/v1/drivers/{driver}/raid/logical_disk_properties",
        "What can be said of a logical disk.",
        |r, of| Box::pin(drivers::logical_disk_properties(r, of.first())),
    )
    .since(12)
    .too_old(TooOld::NotAcceptable("raid"))
    .shows("LogicalDiskProperties"),
];
