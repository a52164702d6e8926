"""What the agent may and may not do to the machine it runs on.

    target/real-agent/venv/bin/python -m unittest discover -s tests/real_agent

Needs parted, gdisk, qemu-utils and bubblewrap.  Where the sandbox cannot be
made its tests are skipped, or fail if UPBEAT_REQUIRE_REAL_AGENT=1.
"""

import contextlib
import io
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from unittest import mock

from oslo_concurrency import processutils

from ironic_python_agent import config  # noqa: F401  registers the options
from ironic_python_agent import disk_utils
from ironic_python_agent import partition_utils
from ironic_python_agent import utils

from real_agent import launcher
from real_agent.disk import Disk
from real_agent.guard import Guard
from real_agent.machine import EXIT_CODES, Machine

SIZE = 64 << 20


class Case(unittest.TestCase):
    def setUp(self):
        self.workdir = tempfile.mkdtemp(prefix="real-agent-")
        self.addCleanup(shutil.rmtree, self.workdir)
        self.machine = Machine("52:54:00:00:00:01", self.workdir, SIZE)
        self.disk = Disk(self.machine.disk, SIZE)
        self.disk.create()
        self.guard = Guard(self.machine, self.disk)
        patch = mock.patch.object(processutils, "execute", self.guard.execute)
        patch.start()
        self.addCleanup(patch.stop)

    def file(self, name, content):
        path = os.path.join(self.workdir, name)
        with open(path, "wb") as file:
            file.write(content)
        return path

    def on_disk(self, offset, length):
        with open(self.disk.path, "rb") as file:
            file.seek(offset)
            return file.read(length)

    def partition(self, label):
        subprocess.run(["parted", "-s", self.disk.path, "mklabel", label,
                        "mkpart", "primary", "1MiB", "8MiB"], check=True,
                       capture_output=True)

    def events(self):
        with open(os.path.join(self.workdir, "events.jsonl")) as file:
            return [json.loads(line) for line in file]


class Refusals(Case):
    def test_commands_that_reach_beyond_the_work_directory(self):
        disk, other = self.disk.path, "/dev/sda"
        os.symlink("/etc/hostname", os.path.join(self.workdir, "link"))
        commands = [
            # another disk, in every disguise
            ["dd", "if=/dev/zero", f"of={other}", "count=1"],
            ["dd", f"if={other}", f"of={disk}"],
            ["dd", "if=/dev/zero", f"of={disk}/../../../../dev/sda"],
            ["dd", "if=/dev/zero", "of=../../dev/sda"],
            ["dd", "if=/dev/zero", f"of={self.workdir}/link"],
            ["wipefs", "--all", other],
            ["wipefs", "--force", "--all", disk, other],
            ["sgdisk", "-Z", other],
            ["sgdisk", "-Z", f"--backup={other}", disk],
            ["parted", "-s", other, "mklabel", "gpt"],
            ["partprobe", "-d", "-s", other],
            ["hexdump", "-s", "0", "-n", "4", "/etc/shadow"],
            ["qemu-img", "convert", "-O", "host_device", disk, other],
            ["qemu-img", "info", "--output=json", 'json:{"driver":"raw","file.filename":"/dev/sda"}'],
            ["qemu-img", "info", f"nbd:unix:{self.workdir}/socket"],
            ["qemu-img", "convert", "-O", "raw", "http://127.0.0.1/x", disk],
            ["env", "LC_ALL=C", "qemu-img", "info", other],
            ["blockdev", "--setro", disk],
            ["blockdev", "--getsize64", other],
            # the machine
            ["ip", "link", "set", "lo", "down"],
            ["shutdown", "-h", "now"], ["systemctl", "poweroff"], ["ipmitool", "power", "off"],
            ["modprobe", "loop"], ["mdadm", "--stop", "/dev/md0"], ["mkfs.ext4", disk],
            ["chroot", "/", "reboot"], ["sh", "-c", "reboot"], ["env", "reboot", "-f", "x=y;sh"][:1],
            ["env", "LC_ALL=C"], [],
        ]
        run = mock.Mock()
        guard = Guard(self.machine, self.disk, run)
        for command in commands:
            with self.subTest(command), self.assertRaises(FileNotFoundError):
                guard.execute(*command)
        for line in ("echo o > /proc/sysrq-trigger", "hexdump"):
            with self.assertRaises(FileNotFoundError):
                guard.execute(line, shell=True)
        run.assert_not_called()
        self.assertEqual({"refused"}, {event["event"] for event in self.events()})
        self.assertEqual(len(commands) + 2, len(self.events()))

    def test_power_ends_the_process_and_nothing_else(self):
        run = mock.Mock()
        guard = Guard(self.machine, self.disk, run)
        for command in ("poweroff", "reboot", "/sbin/poweroff"):
            with mock.patch("threading.Timer") as timer:
                self.assertEqual(("", ""), guard.execute(command))
            _delay, end, args = timer.call_args.args
            self.assertIs(os._exit, end)
            self.assertEqual([EXIT_CODES[os.path.basename(command)]], args)
        run.assert_not_called()

    def test_no_process_starts_past_the_guard(self):
        # In a process of its own: an audit hook cannot be taken away again.
        program = """if True:
            import os, subprocess, sys
            from oslo_concurrency import processutils
            from real_agent.disk import Disk
            from real_agent.guard import Guard
            from real_agent.machine import Machine
            machine = Machine("52:54:00:00:00:01", sys.argv[1], 1 << 20)
            disk = Disk(machine.disk, 1 << 20)
            Guard(machine, disk).install()
            for start in (lambda: subprocess.run(["true"]), lambda: os.system("true"),
                          lambda: os.execv("/bin/true", ["true"]), os.fork,
                          lambda: os.posix_spawn("/bin/true", ["true"], {})):
                try:
                    start()
                except PermissionError:
                    print("refused")
            print(processutils.execute("hexdump", "-s", "0", "-n", "4", disk.path)[0][:7])
        """
        done = subprocess.run([sys.executable, "-c", program, self.workdir], text=True,
                              capture_output=True, cwd=os.path.dirname(__file__), timeout=60)
        self.assertEqual(["refused"] * 5 + ["0000000"], done.stdout.split(), done.stderr)


class Disks(Case):
    def test_ends_where_a_device_would(self):
        with self.assertRaisesRegex(OSError, "No space left on device"):
            with self.disk.open() as device:
                device.seek(SIZE - 3)
                device.write(b"abcdef")
        self.assertEqual(SIZE, os.path.getsize(self.disk.path))
        self.assertEqual(b"abc", self.on_disk(SIZE - 3, 3))

    def test_opening_it_does_not_empty_it(self):
        with self.disk.open() as device:
            device.write(b"first")
        with self.disk.open() as device:
            device.write(b"F")
        self.assertEqual(b"First", self.on_disk(0, 5))

    def test_knows_its_partitions_and_no_others(self):
        path = self.disk.path
        self.assertEqual(2, self.disk.number_of(path + "2"))
        self.assertEqual(12, self.disk.number_of("/dev/disk.img12"))
        for device in (path, "/dev/sda1", path + "x", path + "/1", "/dev/disk.img"):
            self.assertIsNone(self.disk.number_of(device), device)
        self.assertEqual({}, self.disk.partitions())
        for label in ("msdos", "gpt"):
            self.partition(label)
            (part,) = self.disk.partitions().values()
            self.assertEqual((1, 1 << 20, 7 << 20), (part.number, part.start, part.size), label)
        listed = subprocess.run(["sgdisk", "-i", "1", path], text=True, capture_output=True).stdout
        self.assertIn(part.uuid.upper(), listed)


class StockCode(Case):
    """The agent's own functions, with nothing between them and the guard."""

    def test_wipe_takes_the_partition_table_and_keeps_the_size(self):
        self.partition("gpt")
        self.assertEqual(1, len(disk_utils.list_partitions(self.disk.path)))
        disk_utils.destroy_disk_metadata(self.disk.path, "node")
        self.assertEqual({}, self.disk.partitions())
        self.assertEqual(bytes(1024), self.on_disk(0, 1024))
        self.assertEqual(SIZE, os.path.getsize(self.disk.path))

    def test_images_are_written_byte_for_byte_and_keep_the_size(self):
        content = os.urandom(1 << 20)
        raw, qcow2 = self.file("image.raw", content), os.path.join(self.workdir, "image.qcow2")
        subprocess.run(["qemu-img", "convert", "-O", "qcow2", raw, qcow2], check=True)
        for path, how in ((raw, {"is_raw": True}), (qcow2, {"source_format": "qcow2"})):
            with self.subTest(path):
                with self.disk.open() as device:
                    device.write(bytes(1 << 20))
                disk_utils.populate_image(path, self.disk.path, out_format="host_device",
                                          cache="directsync", out_of_order=True, **how)
                self.assertEqual(content, self.on_disk(0, 1 << 20))
                self.assertEqual(SIZE, os.path.getsize(self.disk.path))

    def test_config_drive_lands_in_its_partition(self):
        drive = self.file("drive", b"config-2" * 1000)
        self.partition("msdos")
        disk_utils.dd(drive, partition_utils.disk_utils.partition_index_to_path(self.disk.path, 1))
        self.assertEqual(b"config-2" * 1000, self.on_disk(1 << 20, 8000))
        for target in ("2", "9"):  # no such partition: nothing may be written
            with self.assertRaises(FileNotFoundError):
                disk_utils.dd(drive, self.disk.path + target)
        with self.assertRaises(FileNotFoundError):
            disk_utils.dd("/etc/hostname", self.disk.path + "1")

    def test_partition_by_uuid(self):
        self.partition("gpt")
        (part,) = self.disk.partitions().values()
        self.assertEqual("/dev/disk.img1", partition_utils.get_partition(self.disk.path, part.uuid))
        utils.execute("test", "-e", "/dev/disk.img1")
        with self.assertRaises(processutils.ProcessExecutionError):
            utils.execute("test", "-e", "/dev/disk.img2")


class Launcher(Case):
    def arguments(self, *more):
        return ["real-agent", "--api-url", "http://127.0.0.1:1", "--mac", "52:54:00:00:00:01",
                "--port", "9", "--workdir", os.path.join(self.workdir, "agent"), *more]

    def refused(self, *more):
        error = io.StringIO()
        with mock.patch.object(sys, "argv", self.arguments(*more)), \
                mock.patch("os.execve") as execve, contextlib.redirect_stderr(error), \
                self.assertRaises(SystemExit) as end:
            launcher.main()
        execve.assert_not_called()
        self.assertEqual(2, end.exception.code)
        return error.getvalue()

    def test_does_not_start_without_the_sandbox(self):
        with mock.patch("shutil.which", return_value=None):
            self.assertIn("apt-get install bubblewrap", self.refused())

    def test_does_not_write_where_others_have_files(self):
        for workdir in ("/", "/etc", os.path.dirname(__file__)):
            self.assertIn("holds files of others", self.refused("--workdir", workdir))

    def test_says_what_is_wrong_with_an_argument(self):
        for more, words in ((("--mac", "1"), "MAC address"), (("--disk-size", "0"), "size like"),
                            (("--set", "x"), "OPT=VALUE"), (("--set", "a b=c"), "OPT=VALUE")):
            self.assertIn(words, self.refused(*more))

    def test_listens_on_loopback_whatever_is_asked(self):
        with mock.patch.object(sys, "argv", self.arguments("--set", "listen_host=0.0.0.0")), \
                mock.patch("os.execve") as execve, \
                mock.patch("shutil.which", return_value="/usr/bin/bwrap"):
            launcher.main()
        self.assertEqual("/usr/bin/bwrap", execve.call_args.args[0])
        with open(os.path.join(self.workdir, "agent", "agent.conf")) as file:
            self.assertIn("listen_host = 127.0.0.1\n", file.readlines())


class Sandbox(Case):
    """Without the guard: what the kernel alone refuses to anything in there."""

    def inside(self, script):
        done = subprocess.run(launcher._sandbox(self.workdir) + ["bash", "-c", script], text=True,
                              capture_output=True, timeout=60)
        return done.stdout + done.stderr

    def setUp(self):
        super().setUp()
        if self.inside("echo works") != "works\n":
            reason = "bubblewrap is missing or cannot make a sandbox here"
            if os.environ.get("UPBEAT_REQUIRE_REAL_AGENT") == "1":
                self.fail(reason)
            self.skipTest(reason)

    def test_only_the_work_directory_can_be_written_to(self):
        for path in ("/etc/x", "/usr/x", "/var/lib/x", os.path.dirname(__file__) + "/x",
                     sys.prefix + "/x", "/sys/power/state", "/proc/sys/kernel/sysrq",
                     "/proc/sysrq-trigger", "/proc/self/oom_score_adj"):
            with self.subTest(path):
                self.assertNotIn("WRITTEN", self.inside(f"echo 1 > {path} && echo WRITTEN"))
        self.assertEqual("WRITTEN\n", self.inside("echo yes > here && echo WRITTEN"))
        with open(os.path.join(self.workdir, "here")) as file:
            self.assertEqual("yes\n", file.read())

    def test_there_are_no_devices_and_none_can_be_made(self):
        devices = self.inside("find /dev -type b; cat /proc/1/comm")
        self.assertEqual("bwrap\n", devices)
        self.assertIn("Operation not permitted", self.inside("mknod disk b 8 0"))
        self.assertIn("failed", self.inside("mount -t tmpfs none /mnt || echo failed"))

    def test_nobody_in_there_has_a_capability(self):
        self.assertRegex(self.inside("grep CapEff /proc/self/status"), r"CapEff:\s+0+\n")

    def test_sockets_of_other_programs_are_out_of_sight(self):
        with tempfile.TemporaryDirectory() as elsewhere, \
                socket.socket(socket.AF_UNIX) as listening:
            path = os.path.join(elsewhere, "socket")
            listening.bind(path)
            self.assertEqual("gone\n", self.inside(f"test -e {path} || echo gone"))
        self.assertEqual("", self.inside("find /run -type s"))

    def test_other_processes_are_out_of_reach(self):
        with subprocess.Popen(["sleep", "60"]) as other:
            self.assertIn("No such process", self.inside(f"kill -9 {other.pid}"))
            other.kill()

    def test_nothing_in_there_outlives_its_parent(self):
        # A sleep of a length of its own, to be found in the process table.
        length = f"{600 + os.getpid() / 1e7:.7f}"
        parent = "import subprocess, sys; subprocess.Popen(sys.argv[1:]); sys.stdin.read()"
        command = launcher._sandbox(self.workdir) + ["sleep", length]
        with subprocess.Popen([sys.executable, "-c", parent, *command],
                              stdin=subprocess.PIPE) as process:
            self.eventually(lambda: running(["sleep", length]))
            process.kill()
        self.eventually(lambda: not running(["sleep", length]))

    def eventually(self, condition):
        end = time.monotonic() + 20
        while not condition():
            self.assertLess(time.monotonic(), end, "it never came true")
            time.sleep(0.05)


def running(command):
    """Whether a process with exactly this command line is there."""
    wanted = "\0".join(command).encode() + b"\0"
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as file:
            if file.read() == wanted:
                return True
    return False


if __name__ == "__main__":
    unittest.main()
