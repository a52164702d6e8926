"""The `baremetal` command, typed as a user types it.

Each command runs in a process of its own, forked from this one after the client's modules are loaded, because loading
them takes longer than all the rest. Nothing of the client is replaced. How to reach the API is in the environment
(`OS_AUTH_TYPE`, `OS_ENDPOINT`, ...), as for everybody.
"""

import contextlib
import io
import json
import os
import shlex
import signal
import sys
import tempfile
import time

from ironicclient import shell

# Longer than anything here takes; a command that hangs must not hang a whole run.
SECONDS_MAX = 120


class Cli:
    """Types commands and compares what they say."""

    def __init__(self, life):
        self.life = life
        with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
            shell.main(["help", "node", "list"])

    def do(self, typed, must=True):
        """A command that must succeed; returns what it printed."""
        self.life.does(f"$ baremetal {typed}")
        status, out, err = run(typed)
        self.life.saw(out or err)
        if status != 0 and out:
            self.life.saw(err)
        self.life.expect("exit status", status, 0, must)
        return out

    def show(self, typed, must=True, **wanted):
        """A command that prints one thing; compares the named columns and returns them all."""
        out = self.do(f"{typed} -f json", must)
        thing = named(parsed(out) or {})
        self.compare(thing, wanted)
        return thing

    def list(self, typed, rows=None, must=True, **wanted):
        """A command that prints a table; compares the number of rows and the columns of the first, returns all."""
        out = self.do(f"{typed} -f json", must)
        table = parsed(out)
        if not isinstance(table, list):
            self.life.expect("a table", out, "a list in JSON", must)
            return []
        table = [named(row) for row in table]
        if rows is not None:
            self.life.expect("rows", len(table), rows)
        if wanted:
            self.compare(table[0] if table else {}, wanted)
        return table

    def refused(self, typed, says):
        """A command that must fail, with these words. Without this option the client repeats whatever was answered 409."""
        typed = f"--max-retries 0 {typed}"
        self.life.does(f"$ baremetal {typed}")
        status, out, err = run(typed)
        self.life.saw(err or out)
        self.life.expect("exit status", status, 1)
        self.life.expect("the reason", err, says)

    def wait_for(self, node, must=True, **wanted):
        """Looks at a node until it is as wished; ends the life if that takes too long."""
        columns = " ".join({**wanted, "last_error": None})
        typed = f"node show {node} --fields {columns} -f json"
        self.life.does(f"$ until it is so: baremetal {typed}")
        deadline = time.monotonic() + SECONDS_MAX / 2
        while True:
            status, out, err = run(typed)
            seen = parsed(out) or {}
            is_so = all(seen.get(name) == value for name, value in wanted.items())
            if status != 0 or is_so or time.monotonic() > deadline:
                break
            time.sleep(0.1)
        self.life.saw(out or err)
        self.life.expect("exit status", status, 0, must)
        for name, value in wanted.items():
            self.life.expect(name, seen.get(name), value, must)
        return seen

    def compare(self, thing, wanted):
        for name, value in wanted.items():
            self.life.expect(name, thing.get(name), value)


def named(thing):
    """The same with one way to write names: columns are called now uuid, now UUID, now Provisioning State."""
    return {name.lower().replace(" ", "_"): value for name, value in thing.items()}


def parsed(out):
    try:
        return json.loads(out)
    except ValueError:
        return None


def run(typed):
    """Exit status, standard output and standard error of `baremetal <typed>`."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        sys.stdout.flush()
        sys.stderr.flush()
        child = os.fork()
        if child == 0:
            os.dup2(out.fileno(), 1)
            os.dup2(err.fileno(), 2)
            os._exit(in_child(shlex.split(typed)))
        _, ended = os.waitpid(child, 0)
        out.seek(0)
        err.seek(0)
        status = os.waitstatus_to_exitcode(ended)
        return status, out.read().decode(), err.read().decode()


def in_child(words):
    signal.alarm(SECONDS_MAX)
    # Which options there are depends on what was typed, and the client looks here.
    sys.argv = ["baremetal", *words]
    try:
        status = shell.main(words)
    except SystemExit as end:
        status = end.code
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return int(bool(status)) if not isinstance(status, int) else status
