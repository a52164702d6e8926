"""The pretended machine: its settings, its journal, its exit codes.

The launcher writes the settings to a file; the processes inside the sandbox
read them from there (``REAL_AGENT_MACHINE`` names the file).
"""

import dataclasses
import json
import os
import threading
import time

SETTINGS_VARIABLE = "REAL_AGENT_MACHINE"

# How the process ends when the agent takes its machine away.
EXIT_CODES = {"poweroff": 21, "reboot": 22, "lockdown": 23}

# A machine that goes down still answers for a moment.
LAST_MOMENT_S = 0.5

_journal_lock = threading.Lock()


@dataclasses.dataclass(frozen=True)
class Machine:
    """Everything one agent needs to know about where it runs."""

    mac: str
    workdir: str  # absolute; the only directory that can be written to
    disk_bytes: int
    boot_mode: str = "bios"

    @property
    def disk(self):
        """The file that plays the disk.  The name has no digit at its end, so
        that the agent calls its partitions ``disk.img1``, ``disk.img2``..."""
        return os.path.join(self.workdir, "disk.img")

    @property
    def log(self):
        return os.path.join(self.workdir, "agent.log")

    @property
    def serial(self):
        return "file-" + self.mac.replace(":", "")

    def save(self, path):
        with open(path, "w") as file:
            json.dump(dataclasses.asdict(self), file)

    @classmethod
    def load(cls):
        with open(os.environ[SETTINGS_VARIABLE]) as file:
            return cls(**json.load(file))

    def note(self, event, **details):
        """Add a line to WORKDIR/events.jsonl."""
        line = json.dumps({"time": round(time.time(), 3), "event": event, **details})
        with _journal_lock, open(os.path.join(self.workdir, "events.jsonl"), "a") as file:
            file.write(line + "\n")

    def go_down(self, how):
        """End this process, a moment from now, with the exit code for `how`."""
        self.note(how, exit_code=EXIT_CODES[how])
        timer = threading.Timer(LAST_MOMENT_S, os._exit, [EXIT_CODES[how]])
        timer.daemon = True
        timer.start()
