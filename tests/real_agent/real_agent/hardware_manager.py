"""What the agent finds when it looks at its hardware: one NIC and one disk.

The agent loads this plugin by its entry point and prefers it to its generic
manager, which still offers the deploy, clean and service steps.  Whatever
would read the real machine or act on it is answered here instead.
"""

import os

from ironic_python_agent import config  # noqa: F401  registers the options
from ironic_python_agent import disk_utils
from ironic_python_agent import errors
from ironic_python_agent import hardware

from real_agent.disk import Disk
from real_agent.machine import Machine

_stock = hardware.GenericHardwareManager


class FileDiskManager(hardware.HardwareManager):
    HARDWARE_MANAGER_NAME = "FileDiskManager"
    HARDWARE_MANAGER_VERSION = "1"

    # Which disk an image goes to, root device hints included, is the agent's
    # own decision over our list of disks.
    get_os_install_device = _stock.get_os_install_device
    list_block_devices_check_skip_list = _stock.list_block_devices_check_skip_list
    get_skip_list_from_node_for_disks = _stock.get_skip_list_from_node_for_disks
    get_skip_list_from_node_for_raids = _stock.get_skip_list_from_node_for_raids
    _raid_root_device_mapping = {}

    def __init__(self):
        self.machine = Machine.load()
        self.disk = Disk(self.machine.disk, self.machine.disk_bytes)

    def evaluate_hardware_support(self):
        return hardware.HardwareSupport.SERVICE_PROVIDER

    def list_network_interfaces(self):
        # A documentation address: inspection skips NICs with a loopback one.
        return [hardware.NetworkInterface("nic0", self.machine.mac, ipv4_address="192.0.2.1",
                                          has_carrier=True)]

    def list_block_devices(self, include_partitions=False, all_serial_and_wwn=False):
        return [hardware.BlockDevice(name=self.machine.disk, model="plain file",
                                     size=self.machine.disk_bytes, rotational=False,
                                     serial=self.machine.serial, logical_sectors=512,
                                     physical_sectors=512)]

    def get_cpus(self):
        return hardware.CPU("pretended", "1000", 1, "x86_64", flags=[], socket_count=1)

    def get_memory(self):
        return hardware.Memory(total=2 << 30, physical_mb=2048)

    def get_system_vendor_info(self):
        return hardware.SystemVendorInfo(
            product_name="plain file machine", manufacturer="upbeat tests",
            serial_number=self.machine.serial,
            firmware=hardware.SystemFirmware("upbeat tests", "1", "01/01/2026"))

    def get_boot_info(self):
        return hardware.BootInfo(current_boot_mode=self.machine.boot_mode,
                                 pxe_interface=self.machine.mac)

    def get_bmc_address(self):
        return None

    def get_bmc_v6address(self):
        return None

    def get_bmc_mac(self):
        raise errors.IncompatibleHardwareMethodError()

    def get_usb_devices(self):
        return []

    def collect_lldp_data(self, interface_names=None):
        return {}

    def get_service_steps(self, node, ports):
        return [{"step": "leave_note", "interface": "deploy", "priority": 0,
                 "reboot_requested": False, "abortable": True,
                 "argsinfo": {"text": {"description": "what it shall say", "required": True}}}]

    def leave_note(self, node, ports, text):
        """A step that does no harm to a machine in use, and leaves a trace."""
        path = os.path.join(self.machine.workdir, "note")
        with open(path, "w") as file:
            file.write(text)
        return f"left at {path}"

    def full_sync(self):
        """The kernel writes the file to the host's disk in its own time."""

    def erase_devices(self, node, ports):
        with open(self.machine.disk, "wb"):
            pass
        self.disk.create()

    def erase_devices_metadata(self, node, ports):
        disk_utils.destroy_disk_metadata(self.machine.disk, node["uuid"])

    erase_devices_express = erase_devices_metadata
