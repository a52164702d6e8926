"""Decides about every external command of the agent.

The agent starts programs through ``oslo_concurrency.processutils.execute``.
``Guard.install`` puts itself there.  A command is then either

* answered from here, if it would act on the machine or needs a block device;
* run, if the program is in ``_ALLOWED`` and *each* of its arguments has one of
  the forms listed there, where a path is the disk or lies in the work directory;
* refused, as if the program were not installed, and noted in events.jsonl.

An audit hook of the interpreter refuses whatever tries to start a process by
any other way.  All this is the second fence: the sandbox, made by the
launcher, holds without it.
"""

import errno
import os
import re
import sys
import threading

from oslo_concurrency import processutils

_FILE = r"(?P<path>/.+)"
_COUNT = r"\d+"

# Program -> the forms its arguments may have (whole-string regular
# expressions).  The group `path` must be the disk or in the work directory.
_ALLOWED = {
    "dd": [r"if=/dev/zero", r"if=" + _FILE, r"of=" + _FILE, r"bs=\d+[kKMG]?",
           r"(count|seek|skip)=\d+", r"oflag=direct", r"conv=[a-z]+(,[a-z]+)*"],
    "hexdump": [_FILE, r"-[sne]", _COUNT, r'"0x%08x"'],
    "parted": [_FILE, r"-[sma]", r"--", r"--script", r"unit|print|mkpart|mklabel",
               r"optimal|primary|fat32|gpt|msdos|MiB|B", r"-?\d+(MiB|B)?"],
    "partprobe": [_FILE, r"-[ds]"],
    "qemu-img": [_FILE, r"info|convert", r"-[nOtSfW]", r"raw|qcow2|host_device",
                 r"directsync|unsafe|writeback|none", r"--output=json", _COUNT],
    "sgdisk": [_FILE, r"-[venuZ]", r"0:-\d+MB:0", r"0:[0-9a-f-]{36}"],
    "wipefs": [_FILE, r"--force", r"--all"],
}

_STARTS_A_PROCESS = ("subprocess.Popen", "os.system", "os.exec", "os.fork", "os.forkpty",
                     "os.posix_spawn", "os.spawn", "pty.spawn")


class Guard:
    """All decisions for one machine.

    machine: the settings; disk: its `disk.Disk`; run: what starts a program
    that is allowed (``processutils.execute`` as it came).
    """

    def __init__(self, machine, disk, run=processutils.execute):
        self.machine = machine
        self.disk = disk
        self._run = run
        self._allowing = threading.local()
        done = self._done
        self._answers = {
            "sync": done, "udevadm": done, "fuser": done, "partx": done, "mount": done,
            "umount": done, "hwclock": done, "blockdev": self._blockdev, "lsblk": self._lsblk,
            "test": self._test, "poweroff": self._power, "reboot": self._power,
        }

    def install(self):
        """Stand between the agent and the machine, for the rest of this process."""
        processutils.execute = self.execute
        sys.addaudithook(self._audit)

    def execute(self, *command, **options):
        """Stands in for ``processutils.execute``: same arguments, same answers."""
        command = [str(word) for word in command]
        words = _without_environment(command)
        if options.get("shell") or not words:
            self._refuse(command)
        program, args = os.path.basename(words[0]), words[1:]

        if program == "partprobe" and "-d" not in args:
            answer = ""  # it would tell the kernel about a block device
        elif program == "dd" and (target := self._partition_written(args)):
            answer = self._write_partition(target, args)
        elif program in self._answers:
            answer = self._answers[program](program, args)
        elif program in _ALLOWED and all(self._fits(program, arg) for arg in args):
            return self._start(program, args, options)
        else:
            self._refuse(command)
        return (answer.encode(), b"") if options.get("binary") else (answer, "")

    # -- run ---------------------------------------------------------------

    def _fits(self, program, arg):
        for form in _ALLOWED[program]:
            if match := re.fullmatch(form, arg):
                path = match.groupdict().get("path")
                if path is None or self._is_ours(path):
                    return True
        return False

    def _is_ours(self, path):
        path, workdir = os.path.realpath(path), os.path.realpath(self.machine.workdir)
        return path.startswith(workdir + os.sep)

    def _start(self, program, args, options):
        self._allowing.now = True
        try:
            return self._run(program, *_for_a_file(program, args), **options)
        finally:
            self._allowing.now = False

    # -- answer ------------------------------------------------------------

    def _done(self, _program, _args):
        return ""

    def _power(self, program, _args):
        self.machine.go_down(program)
        return ""

    def _blockdev(self, program, args):
        answers = {"--getsize64": f"{self.disk.size}\n", "--getss": "512\n", "--flushbufs": ""}
        if len(args) != 2 or args[1] != self.disk.path or args[0] not in answers:
            self._refuse([program, *args])
        return answers[args[0]]

    def _test(self, _program, args):
        number = self.disk.number_of(args[-1])
        if args[:-1] != ["-e"] or number not in self.disk.partitions():
            raise processutils.ProcessExecutionError(exit_code=1, cmd="test " + " ".join(args))
        return ""

    def _lsblk(self, _program, args):
        """What `lsblk --pairs` says of the disk and its partitions.

        Only columns that can be known without a kernel are filled in.  A query
        about anything but the disk finds nothing.
        """
        if self.disk.path not in args:
            return ""
        name = os.path.basename(self.disk.path)
        rows = [{"NAME": name, "KNAME": name, "TYPE": "disk"}]
        if "--nodeps" not in args:
            rows += [{"NAME": f"{name}{part.number}", "KNAME": f"{name}{part.number}",
                      "TYPE": "part", "PARTUUID": part.uuid}
                     for part in self.disk.partitions().values()]
        columns = _lsblk_columns(args)
        return "".join(" ".join(f'{column}="{row.get(column, "")}"' for column in columns) + "\n"
                       for row in rows)

    def _partition_written(self, args):
        """The partition that a dd command writes to, or None."""
        return next((number for arg in args if arg.startswith("of=")
                     and (number := self.disk.number_of(arg[3:]))), None)

    def _write_partition(self, number, args):
        source = next((arg[3:] for arg in args if arg.startswith("if=")), "")
        if not self._is_ours(source) or number not in self.disk.partitions():
            self._refuse(["dd", *args])
        self.disk.write_partition(number, source)
        return ""

    # -- refuse ------------------------------------------------------------

    def _refuse(self, command):
        self.machine.note("refused", command=command)
        raise FileNotFoundError(errno.ENOENT, "not available to this agent",
                                "".join(command[:1]))

    def _audit(self, event, args):
        if event in _STARTS_A_PROCESS and not getattr(self._allowing, "now", False):
            self.machine.note("refused", command=[event, repr(args[:2])])
            raise PermissionError(errno.EPERM, f"{event} outside of the guard")


def _without_environment(command):
    """`env A=b program ...` -> `program ...`"""
    if command[:1] != ["env"]:
        return command
    start = 1
    while start < len(command) and re.fullmatch(r"[A-Z_]+=\S*", command[start]):
        start += 1
    return command[start:]


def _for_a_file(program, args):
    """Make arguments meant for a block device fit a file."""
    if program == "dd":
        args = [arg for arg in args if arg != "oflag=direct"]
        flags = [arg[5:] for arg in args if arg.startswith("conv=")]
        return [arg for arg in args if not arg.startswith("conv=")] + [
            "conv=" + ",".join([*flags, "notrunc"])]
    if program == "qemu-img" and args[:1] == ["convert"]:
        other = {"host_device": "raw", "directsync": "unsafe"}
        return ["convert", "-n", *(other.get(arg, arg) for arg in args[1:])]
    return args


def _lsblk_columns(args):
    for position, arg in enumerate(args):
        if arg in ("--output", "-Po"):
            return args[position + 1].upper().split(",")
        if match := re.fullmatch(r"-[A-Za-z]*o([A-Z,]+)", arg):
            return match[1].split(",")
    return ["NAME", "KNAME", "TYPE", "UUID", "PARTUUID", "LABEL"]
