//! What an agent tells about its machine before it looks its node up.
//!
//! The agent process calls [`data`] and posts it through `api`. The real agent does so whenever it was booted with an
//! address to post to; whether anybody wanted to know is the conductor's affair, and 404 is a usual answer.

use serde_json::{Value, json};

use super::machine::Machine;
use super::write::DEVICE;

const GIB: u64 = 1 << 30;
const MEMORY_GIB: u64 = 16;
const DISK_GIB: u64 = 64;

/// The body of `POST /v1/continue_inspection`.
pub(crate) fn data(machine: &Machine) -> Value {
    let addresses = machine.addresses();
    let first = addresses.first();
    let serial = machine.mac.replace(':', "");
    let interfaces: Vec<Value> = addresses
        .iter()
        .enumerate()
        .map(|(number, address)| interface(number, address))
        .collect();
    let disk = disk(&serial);
    let boot_mode = if machine.world.options.is_uefi {
        "uefi"
    } else {
        "bios"
    };
    json!({
        "inventory": {
            "interfaces": interfaces,
            "cpu": {
                "model_name": "Simulated CPU", "frequency": "2400.0", "count": 8, "architecture": "x86_64",
                "flags": ["fpu", "vmx"], "socket_count": 1,
            },
            "disks": [disk],
            "memory": {"total": MEMORY_GIB * GIB, "physical_mb": MEMORY_GIB * 1024},
            "bmc_address": null,
            "bmc_v6address": null,
            "system_vendor": {
                "product_name": "Simulated machine", "serial_number": serial, "manufacturer": "Upbeat",
                "firmware": {"vendor": "Upbeat", "version": "1.0", "build_date": "01/01/2026"},
            },
            "boot": {"current_boot_mode": boot_mode, "pxe_interface": first},
            "hostname": format!("machine-{serial}"),
        },
        "root_disk": disk,
        "boot_interface": first,
        "configuration": {
            "collectors": ["default"],
            "managers": [{"name": "generic_hardware_manager", "version": "1.2"}],
        },
        "error": null,
    })
}

/// Only the first is plugged into a network.
fn interface(number: usize, address: &str) -> Value {
    let is_plugged = number == 0;
    json!({
        "name": format!("eth{number}"),
        "mac_address": address,
        "ipv4_address": is_plugged.then_some("192.0.2.10"),
        "ipv6_address": null,
        "has_carrier": is_plugged,
        "lldp": null,
        "vendor": "0x1af4",
        "product": "0x0001",
        "client_id": null,
        "biosdevname": null,
        "speed_mbps": if is_plugged { json!(10_000) } else { Value::Null },
        "pci_address": format!("0000:00:{:02x}.0", 3 + number),
        "driver": "virtio_net",
    })
}

fn disk(serial: &str) -> Value {
    json!({
        "name": DEVICE,
        "model": "Simulated disk",
        "size": DISK_GIB * GIB,
        "rotational": false,
        "wwn": format!("0x5000{serial}"),
        "serial": format!("disk-{serial}"),
        "vendor": "Upbeat",
        "wwn_with_extension": format!("0x5000{serial}"),
        "wwn_vendor_extension": null,
        "hctl": "0:0:0:0",
        "by_path": "/dev/disk/by-path/pci-0000:00:1f.2-ata-1",
        "logical_sectors": 512,
        "physical_sectors": 4096,
        "tran": "sata",
    })
}
