"""Shared by the tests of `attend compute`: files of random numbers, the program's arrays, finite
differences."""

import copy
import json
import os
import random
import tempfile
import unittest

import arrays

# The loops sum in another order: a few dozen roundings of numbers of a few units.
TOLERANCE = 1e-12
# Central differences with this step have errors of h^2 and of rounding / h.
STEP = 6e-6
DIFFERENCE_TOLERANCE = 1e-8

DEPTHS = {"query_depth": 3, "key_depth": 2, "attention_depth": 4, "keys": 5, "filters": 2,
          "filter_width": 3, "features": 6, "shortened": 3, "length": 6, "value_depth": 4, "queries": 5, "3": 3}
TABLES = json.loads(arrays.run("mechanisms", "--json").stdout)



class FilesTest(unittest.TestCase):
    """Random numbers, and files of them in a folder of the test."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.random = random.Random(5)

    def path(self, name):
        return os.path.join(self.folder, name)

    def numbers(self, *shape):
        if not shape:
            return self.random.gauss(0, 1)
        return [self.numbers(*shape[1:]) for _ in range(shape[0])]

    def npy(self, name, lists, descr="<f8"):
        arrays.write_npy(self.path(name), arrays.flat(lists), descr)
        return self.path(name)

    def json(self, name, lists):
        with open(self.path(name), "w", encoding="utf-8") as file:
            json.dump(lists, file)
        return self.path(name)


class ComputeCase(FilesTest):
    def run_compute(self, inputs, *options):
        arguments = ["compute"]
        for option in ("query", "key", "value"):
            arguments += ["--" + option, self.npy(option + ".npy", inputs[option])]
        for name, value in inputs.get("parameters", {}).items():
            arguments += ["--param", f"{name}={self.npy('p_' + name + '.npy', value)}"]
        return arrays.run(*arguments, *options)

    def compute(self, inputs, *options, printed=False):
        """Returns the arrays of `attend compute` as nested lists; if `printed`, also its output."""
        out = self.path("out.npz")
        done = self.run_compute(inputs, *options, "--out", out)
        self.assertEqual(done.returncode, 0, done.stderr)
        found, _ = arrays.read_npz(out)
        lists = {name: arrays.nested(array) for name, array in found.items()}
        return (lists, done.stdout) if printed else lists

    def assert_close(self, got, wanted, tolerance=TOLERANCE, where=""):
        got_shape, got_values = arrays.flat(got)
        wanted_shape, wanted_values = arrays.flat(wanted)
        self.assertEqual(got_shape, wanted_shape, where)
        for a, b in zip(got_values, wanted_values):
            if a != b:  # equal infinities have no difference
                self.assertLessEqual(abs(a - b), tolerance * (1 + abs(b)), where)

    def differences(self, inputs, name, lists, value):
        shape, numbers = arrays.flat(lists)
        slopes = []
        for i in range(len(numbers)):
            ends = []
            for offset in (STEP, -STEP):
                moved = list(numbers)
                moved[i] += offset
                changed = copy.deepcopy(inputs)
                target = changed if name in changed else changed["parameters"]
                target[name] = arrays.nested((shape, moved))
                ends.append(value(changed))
            slopes.append((ends[0] - ends[1]) / (2 * STEP))
        return arrays.nested((shape, slopes))
