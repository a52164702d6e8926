"""openstacksdk, called as a program of a user calls it.

How to reach the API is in the environment (`OS_AUTH_TYPE`, `OS_ENDPOINT`, ...); nothing of the library is replaced.
"""

import warnings

import openstack
from openstack import exceptions

from tell import Ended, shortened

# Longer than anything here takes.
SECONDS_MAX = 60


class Sdk:
    """Calls functions of the library and compares what they return."""

    def __init__(self, life):
        warnings.simplefilter("ignore")
        self.life = life
        self.connection = openstack.connect()
        self.api = self.connection.baremetal

    def call(self, name, /, *arguments, must=True, **named):
        """A call that must succeed; returns what it returns, generators as lists."""
        self.told(name, arguments, named)
        try:
            result = self.function(name)(*arguments, **named)
            if hasattr(result, "__next__"):
                result = list(result)
        except exceptions.SDKException as error:
            self.life.expect(name, f"{type(error).__name__}: {error}", "no error", must)
            return None
        self.life.expect(name, "done", "done")
        return result

    def get(self, name, /, *arguments, must=True, **wanted):
        """A call that returns one thing; compares these attributes of it."""
        thing = self.call(name, *arguments, must=must)
        return self.compare(thing, **wanted)

    def make(self, name, given, /, **wanted):
        """A call that makes one thing of what is given; compares these attributes of it."""
        return self.compare(self.call(name, **given), **wanted)

    def list(self, name, /, *arguments, rows=None, **named):
        """A call that returns many things; compares their number."""
        things = self.call(name, *arguments, **named) or []
        if rows is not None:
            self.life.expect("things", len(things), rows)
        return things

    def refused(self, kind, says, name, /, *arguments, **named):
        """A call that must raise this kind of error, with these words."""
        self.told(name, arguments, named)
        try:
            result = self.function(name)(*arguments, **named)
            if hasattr(result, "__next__"):
                result = list(result)
        except exceptions.SDKException as error:
            self.life.expect("the error", type(error).__name__, kind)
            self.life.expect("the reason", str(error), says)
            return
        self.life.expect("the error", shortened(result), kind)

    def compare(self, thing, /, **wanted):
        if thing is None:
            raise Ended
        for name, value in wanted.items():
            seen = thing.get(name) if isinstance(thing, dict) else getattr(thing, name)
            self.life.expect(name, seen, value)
        return thing

    def function(self, name):
        # Some belong to the connection itself, across all services.
        return getattr(self.api, name, None) or getattr(self.connection, name)

    def told(self, name, arguments, named):
        words = [shortened(getattr(argument, "id", argument)) for argument in arguments]
        words += [f"{key}={shortened(getattr(value, 'id', value))}" for key, value in named.items()]
        self.life.does(f">>> {name}({', '.join(words)})")
