"""The first process inside the sandbox: puts the guard up, then is the agent."""

import builtins
import io
import os
import resource
import signal

from real_agent.disk import Disk
from real_agent.guard import Guard
from real_agent.machine import Machine

DOWNLOAD_BYTES_MAX = 1 << 30


def main():
    machine = Machine.load()
    disk = Disk(machine.disk, machine.disk_bytes)
    disk.create()
    # Whoever writes: no file gets much larger than the disk.
    resource.setrlimit(resource.RLIMIT_FSIZE, [disk.size + DOWNLOAD_BYTES_MAX] * 2)
    Guard(machine, disk).install()

    from ironic_python_agent import agent
    from ironic_python_agent import hardware
    from ironic_python_agent import utils
    from ironic_python_agent.cmd import agent as command
    from ironic_python_agent.extensions import rescue
    from ironic_python_agent.extensions import standby

    def open_like_a_device(path, mode="r", *args, **kwargs):
        if path == disk.path and mode == "wb+":
            return disk.open()
        return builtins.open(path, mode, *args, **kwargs)

    # Raw images are streamed into open(device, "wb+").
    standby.open = open_like_a_device
    # Where the stock agent leaves it is a folder that ramdisks are built with. That
    # it can't write /etc/.rescued here is a warning to it, no more.
    rescue.PASSWORD_FILE = os.path.join(machine.workdir, "rescue-password")
    # Lock-down takes every network interface down and then sleeps for ever.
    agent.IronicPythonAgent._lockdown_system = lambda self: machine.go_down("lockdown")
    # The logs a conductor may ask for are the agent's own; the stock code would
    # gather the journal, udev and block devices of the host.
    hardware.GenericHardwareManager.collect_system_logs = lambda self, io_dict, file_list: None
    utils.is_journalctl_present = lambda: True
    utils.get_journalctl_output = lambda lines=None, units=None: _whole(machine.log)

    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    machine.note("start", mac=machine.mac, disk=machine.disk)
    command.run()


def _whole(path):
    with open(path, "rb") as file:
        return io.BytesIO(file.read())


if __name__ == "__main__":
    main()
