"""Counts and prints the cases of a comparison of `./dev conform`. The script of each row uses it.

The last line of a script is `N agree, N differ` or `N agree, N explained, N differ`; its exit code is 1 if a case
differs. A known difference with a reason counts as explained and does not fail the row. For each omitted part, a script
prints `LEFT OUT  PART: REASON`. If its peers are not packages of PyPI, it prints `versions NAME VERSION, ..`.
"""

import argparse
import math
import re

LAST_LINE = re.compile(r"^(\d+) agree,(?: (\d+) explained,)? (\d+) differ$", re.MULTILINE)
VERSIONS = re.compile(r"^versions (.+)$", re.MULTILINE)
SAID = ("explained ", "DIFFERS ", "LEFT OUT ")  # beginnings of lines that ./dev conform shows
SHOWN = 300


def arguments(description, **defaults):
    """Parser of the options of every script: the program and the seed of its random inputs."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--program", default=defaults.get("program", "build/release/attend"))
    parser.add_argument("--seed", type=int, default=1)
    return parser


def largest_difference(ours, theirs):
    """Largest difference of two numbers or (nested) lists of numbers; infinite if their shapes differ."""
    if isinstance(theirs, (list, tuple)):
        if not isinstance(ours, (list, tuple)) or len(ours) != len(theirs):
            return math.inf
        return max((largest_difference(a, b) for a, b in zip(ours, theirs)), default=0.0)
    if not isinstance(ours, (int, float)) or isinstance(ours, bool):
        return math.inf
    if ours == theirs or (math.isnan(ours) and math.isnan(theirs)):
        return 0.0
    difference = abs(ours - theirs)
    return math.inf if math.isnan(difference) else difference


class Report:
    """The cases of one script."""

    def __init__(self, explained=None):
        """`explained`: reason of a known difference by the name of its case."""
        self.reasons = explained or {}
        self.agreeing, self.explained, self.differing = 0, 0, 0

    def compare(self, name, ours, theirs, tolerance=None):
        """Counts one case: numbers within `tolerance` of each other, or equal values if it is None."""
        if tolerance is None:
            self.state(name, ours == theirs, f"ours {ours!r}, theirs {theirs!r}")
        else:
            difference = largest_difference(ours, theirs)
            self.state(name, difference <= tolerance, f"difference {difference:.3g}, allowed {tolerance:.3g}")

    def state(self, name, agrees, detail):
        """Counts one case; `detail` is printed with it."""
        detail = detail if len(detail) <= SHOWN else detail[:SHOWN] + ".."
        if agrees:
            self.agreeing += 1
            print(f"agrees    {name}: {detail}", flush=True)
        elif name in self.reasons:
            self.explained += 1
            print(f"explained {name}: {self.reasons[name]}", flush=True)
        else:
            self.differing += 1
            print(f"DIFFERS   {name}: {detail}", flush=True)

    def finish(self):
        """Prints the last line and returns the exit code."""
        explained = f" {self.explained} explained," if self.explained else ""
        print(f"{self.agreeing} agree,{explained} {self.differing} differ", flush=True)
        return 1 if self.differing or not self.agreeing else 0
