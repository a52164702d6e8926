"""Start one agent in a sandbox: `real-agent --help`.

The process becomes bubblewrap, with the agent as its child: end it by ending
that process; when its parent ends, it ends too.  It does not start without
bubblewrap.  In the work directory: agent.log, events.jsonl (start, power,
refused commands), disk.img, tmp/ (downloads).

exit codes: 21 powered off, 22 rebooted, 23 locked down; 2 wrong use;
anything else: the agent failed, see agent.log
"""

import argparse
import os
import re
import shutil
import sys

from real_agent.machine import SETTINGS_VARIABLE, Machine

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def main():
    parser = _parser()
    args = parser.parse_args()
    bwrap = shutil.which("bwrap")
    if not bwrap:
        parser.error("bwrap is missing, and the agent runs in its sandbox only: "
                     "apt-get install bubblewrap")
    workdir = os.path.realpath(args.workdir)
    problem = _unfit(workdir)
    if problem:
        parser.error(f"--workdir {workdir} {problem}; name a new directory")

    os.makedirs(os.path.join(workdir, "tmp"), exist_ok=True)
    machine = Machine(args.mac.lower(), workdir, args.disk_size, args.boot_mode)
    settings = os.path.join(workdir, "machine.json")
    machine.save(settings)
    config = _write_config(machine, args)
    os.execve(bwrap, _sandbox(workdir) + [
        sys.executable, "-m", "real_agent.inside", "--config-file", config,
    ], {
        "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": workdir,
        "TMPDIR": os.path.join(workdir, "tmp"),
        "LC_ALL": "C.UTF-8",
        SETTINGS_VARIABLE: settings,
    })


def _parser():
    parser = argparse.ArgumentParser(
        prog="real-agent", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--api-url", required=True, help="the conductor: http://127.0.0.1:6385")
    parser.add_argument("--mac", required=True, type=_mac, help="the address it looks itself up by")
    parser.add_argument("--port", required=True, type=int,
                        help="its command API, on 127.0.0.1; each agent needs its own")
    parser.add_argument("--workdir", required=True,
                        help="a new directory, or one of an earlier run (the disk is kept)")
    parser.add_argument("--disk-size", type=_size, default=_size("5G"),
                        help="5G (sparse) if not given; below 4G the node needs a root device hint")
    parser.add_argument("--boot-mode", choices=("bios", "uefi"), default="bios",
                        help="what it says it was booted with")
    parser.add_argument("--tls", action="store_true",
                        help="HTTPS with a certificate of its own, sent in the heartbeats")
    parser.add_argument("--set", action="append", default=[], type=_option, metavar="OPT=VALUE",
                        help="any other option of the agent's [DEFAULT] section")
    return parser


def _sandbox(workdir):
    """Read-only everything, no devices, no capabilities, no other processes.

    /run and /tmp are hidden because the sockets of other programs live there;
    the Python environment is put back in case it lies under one of them.
    """
    command = ["bwrap", "--ro-bind", "/", "/", "--dev", "/dev",
               "--tmpfs", "/run", "--tmpfs", "/tmp", "--tmpfs", "/var/log",
               "--proc", "/proc", "--remount-ro", "/proc"]
    for path in dict.fromkeys((sys.base_prefix, sys.prefix)):
        command += ["--ro-bind", path, path]
    return command + [
        "--bind", workdir, workdir, "--chdir", workdir,
        "--unshare-pid", "--unshare-ipc", "--unshare-uts",
        "--cap-drop", "ALL", "--new-session", "--die-with-parent"]


def _write_config(machine, args):
    options = {
        "api_url": args.api_url,
        "listen_host": "127.0.0.1", "listen_port": args.port,
        "advertise_host": "127.0.0.1", "advertise_port": args.port,
        "enable_auto_tls": args.tls,
        "disk_wait_attempts": 0,
        "image_download_connection_retries": 1,
        "image_download_connection_retry_interval": 1,
        "debug": True, "log_file": machine.log, "use_stderr": False,
        **dict(args.set),
    }
    # Not open to discussion: nobody else can reach it.
    options["listen_host"] = "127.0.0.1"
    path = os.path.join(machine.workdir, "agent.conf")
    with open(path, "w") as file:
        file.write("[DEFAULT]\n")
        file.writelines(f"{name} = {value}\n" for name, value in options.items())
    return path


def _unfit(workdir):
    """Why the agent must not get this directory to write to, or None."""
    if os.path.exists(workdir) and not os.path.isdir(workdir):
        return "is not a directory"
    if os.path.isdir(workdir) and os.listdir(workdir):
        if not os.path.exists(os.path.join(workdir, "machine.json")):
            return "holds files of others"
    if workdir[-1:].isspace() or any(char in workdir for char in "\n%$"):
        return "has characters in its name that the agent's configuration cannot hold"
    return None


def _mac(text):
    if not re.fullmatch(r"([0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}", text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a MAC address like 52:54:00:00:00:01")
    return text


def _size(text):
    match = re.fullmatch(r"(\d+)([KMG]?)", text.upper())
    if not match or int(match[1]) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a size like 64M or 5G")
    return int(match[1]) * _UNITS[match[2]]


def _option(text):
    name, equals, value = text.partition("=")
    if not equals or not re.fullmatch(r"[a-z_]+", name) or "\n" in value:
        raise argparse.ArgumentTypeError(f"{text!r} is not OPT=VALUE")
    return name, value


if __name__ == "__main__":
    main()
