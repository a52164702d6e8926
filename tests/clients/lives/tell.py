"""How a life is told: what was done, what came back, what was expected.

A life is one script. It asks a `Life` to compare what it sees with what should be; the first surprise of a kind that
makes all that follows pointless ends it, others are counted. The exit status is 0 if all was as expected.
"""

import re
import sys
import time


class Ended(Exception):
    """Nothing that would follow makes sense any more."""


class Has:
    """Stands for any text with this in it, or any list with this item in it."""

    def __init__(self, part):
        self.part = part

    def __eq__(self, other):
        if isinstance(other, (str, list, tuple, dict)):
            return self.part in other
        return False

    def __repr__(self):
        return f"something with {self.part!r}"


class Matches:
    """Stands for any text of this form."""

    def __init__(self, pattern):
        self.pattern = re.compile(pattern)

    def __eq__(self, other):
        return isinstance(other, str) and self.pattern.search(other) is not None

    def __repr__(self):
        return f"text like /{self.pattern.pattern}/"


class OneOf:
    """Stands for any of these."""

    def __init__(self, *values):
        self.values = values

    def __eq__(self, other):
        return other in self.values

    def __repr__(self):
        return " or ".join(map(repr, self.values))


class Anything:
    """Stands for whatever is there, but not for nothing."""

    def __eq__(self, other):
        return other not in (None, "", {}, [])

    def __repr__(self):
        return "anything"


ANYTHING = Anything()
UUID = Matches(r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
TIME = Matches(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")


class Life:
    """One story. Use it with `with`; leaving it prints the sum and ends the process."""

    def __init__(self, title):
        self.title = title
        self.compared = 0
        self.surprises = []
        self.began = time.monotonic()
        self.did = ""

    def __enter__(self):
        print(f"=== {self.title}")
        return self

    def __exit__(self, kind, error, _trace):
        if kind is Ended:
            print("  The rest is left out: it would make no sense.")
        elif kind is not None:
            self.surprise(f"{kind.__name__}: {error}")
        took = time.monotonic() - self.began
        count = len(self.surprises)
        print(f"\n=== {self.title}: {self.compared} things compared in {took:.1f} s, {count} not as expected")
        for did, surprise in self.surprises:
            print(f"  {did}\n    {surprise}")
        sys.stdout.flush()
        if kind not in (None, Ended):
            return False
        sys.exit(1 if self.surprises else 0)

    def chapter(self, title):
        print(f"\n--- {title}")

    def part(self, tell, *what):
        """A part that other parts don't need: what ends it does not end the life."""
        try:
            tell(self, *what)
        except Ended:
            print("  The rest of this part is left out.")
        except Exception as error:  # Something is not there that should be: others can be looked at nevertheless.
            self.surprise(f"{type(error).__name__}: {error}")

    def does(self, what):
        """Says what is done next."""
        self.did = what
        print(f"\n{what}", flush=True)

    def saw(self, text):
        """Says what came back, shortened."""
        lines = str(text).rstrip().splitlines()
        for line in lines[:30]:
            print(f"  {line[:200]}")
        if len(lines) > 30:
            print(f"  ... ({len(lines)} lines)")

    def expect(self, name, seen, wanted, must=False):
        """Compares one thing. With `must` a surprise ends the life."""
        self.compared += 1
        if wanted == seen:
            print(f"  ok    {name} = {shortened(seen)}")
            return True
        self.surprise(f"{name}: expected {wanted!r}, got {shortened(seen)}")
        if must:
            raise Ended
        return False

    def surprise(self, what):
        self.surprises.append((self.did, what))
        print(f"  WRONG {what}", flush=True)


def shortened(value):
    text = repr(value)
    return text if len(text) <= 160 else text[:157] + "..."
