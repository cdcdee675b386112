"""`attend recurrence` against plain Python loops and finite differences."""

import json
import math
import os
import random
import tempfile
import unittest

import arrays
import program

HEADS, TOKENS, DEPTH, VALUE_DEPTH = 2, 5, 3, 2


def rows():
    return json.loads(arrays.run("mechanisms", "--json").stdout)["recurrences"]


def loop(row, x):
    """Outputs [head][token][e] and last states [head][a][e] of nested lists."""
    outputs, states = [], []
    for head in range(HEADS):
        state = [list(numbers) for numbers in x["initial"][head]]
        outputs.append([])
        for t in range(TOKENS):
            query, key, value = (x[name][head][t] for name in ("query", "key", "value"))
            decay = [0.0] * DEPTH
            if row["decay"] == "head":
                decay = [x["decay"][head]] * DEPTH
            elif row["decay"] == "token":
                decay = [x["decay"][head][t]] * DEPTH
            elif row["decay"] == "row":
                decay = x["decay"][head][t]
            before = state
            state = [[math.exp(g) * s for s in numbers] for g, numbers in zip(decay, state)]
            strength = x["strength"][head][t] if row["strength"] else 1
            for e in range(VALUE_DEPTH):
                removed = sum(state[a][e] * key[a] for a in range(DEPTH)) if row["delta"] else 0
                for a in range(DEPTH):
                    state[a][e] += key[a] * strength * (value[e] - removed)
            read = state
            if row["bonus"]:
                read = [[before[a][e] + x["bonus"][head][a] * key[a] * strength * value[e] for e in range(VALUE_DEPTH)]
                        for a in range(DEPTH)]
            outputs[-1].append([sum(query[a] * read[a][e] for a in range(DEPTH)) / math.sqrt(DEPTH)
                                for e in range(VALUE_DEPTH)])
        states.append(state)
    return outputs, states


class RecurrenceTest(unittest.TestCase):
    def setUp(self):
        self.random = random.Random(3)
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def numbers(self, *sizes, draw=None):
        draw = draw or (lambda: self.random.gauss(0, 1))
        return [self.numbers(*sizes[1:], draw=draw) for _ in range(sizes[0])] if sizes else draw()

    def inputs(self, row):
        x = {name: self.numbers(HEADS, TOKENS, DEPTH) for name in ("query", "key")}
        x["value"] = self.numbers(HEADS, TOKENS, VALUE_DEPTH)
        x["initial"] = self.numbers(HEADS, DEPTH, VALUE_DEPTH)
        sizes = {"head": (HEADS,), "token": (HEADS, TOKENS), "row": (HEADS, TOKENS, DEPTH)}
        if row["decay"] != "none":
            x["decay"] = self.numbers(*sizes[row["decay"]], draw=lambda: -self.random.random())
        if row["strength"]:
            x["strength"] = self.numbers(HEADS, TOKENS, draw=self.random.random)
        if row["bonus"]:
            x["bonus"] = self.numbers(HEADS, DEPTH)
        return x

    def run_on(self, row, x, *options):
        command = ["recurrence", row["name"]]
        for name, value in x.items():
            path = os.path.join(self.folder.name, name + ".json")
            with open(path, "w", encoding="utf-8") as file:
                # The decays of heads and the bonus have no batch.
                whole = name == "bonus" or (name == "decay" and row["decay"] == "head")
                json.dump(value if whole else [value], file)
            command += ["--" + name, path]
        return arrays.run(*command, *options)

    def assert_close(self, got, wanted, where):
        if isinstance(wanted, list):
            self.assertEqual(len(got), len(wanted), where)
            for one, other in zip(got, wanted):
                self.assert_close(one, other, where)
        else:
            self.assertAlmostEqual(got, wanted, 9, where)

    def test_rows_equal_loops(self):
        for row in rows():
            x = self.inputs(row)
            done = self.run_on(row, x)
            self.assertEqual(done.returncode, 0, done.stderr)
            got = json.loads(done.stdout)
            outputs, states = loop(row, x)
            self.assert_close(got["output"][0], outputs, row["name"])
            self.assert_close(got["state"][0], states, row["name"])

    def test_gradients_equal_differences(self):
        for row in rows():
            if row["delta"] or row["bonus"]:
                self.check_gradients(row)

    def check_gradients(self, row):
        x = self.inputs(row)
        upstream = self.numbers(HEADS, TOKENS, VALUE_DEPTH)
        got = json.loads(self.run_on(row, x | {"grad": upstream}).stdout)

        def value():
            outputs = loop(row, x)[0]
            return sum(g * o for gs, os_ in zip(upstream, outputs) for g_, o_ in zip(gs, os_)
                       for g, o in zip(g_, o_))

        for name in x:
            flat, gradient = x[name], got["grad_" + name]
            if name != "bonus":
                gradient = gradient[0]
            while isinstance(flat[0], list):
                flat, gradient = flat[0], gradient[0]
            kept, step = flat[0], 1e-6
            flat[0] = kept + step
            above = value()
            flat[0] = kept - step
            below = value()
            flat[0] = kept
            self.assertAlmostEqual(gradient[0], (above - below) / (2 * step), 6, name)

    def test_weights_are_the_shares_of_the_values(self):
        row = next(row for row in rows() if row["name"] == "kda")
        x = self.inputs(row)
        x["initial"] = self.numbers(HEADS, DEPTH, VALUE_DEPTH, draw=lambda: 0.0)
        got = json.loads(self.run_on(row, x, "--weights").stdout)
        for head in range(HEADS):
            for t in range(TOKENS):
                weights = got["weights"][0][head][t]
                self.assertEqual(weights[t + 1:], [0] * (TOKENS - t - 1))
                for e in range(VALUE_DEPTH):
                    total = sum(w * x["value"][head][j][e] for j, w in enumerate(weights))
                    self.assertAlmostEqual(got["output"][0][head][t][e], total, 9)

    def test_bad_input_is_one_line(self):
        table = {row["name"]: row for row in rows()}
        x = self.inputs(table["gated_delta"])

        def refused(name, inputs, *texts, options=()):
            done = self.run_on(table[name] if name in table else {"name": name, "decay": "token"}, inputs, *options)
            self.assertEqual(done.returncode, 2, done.stdout)
            self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)
            for text in texts:
                self.assertIn(text, done.stderr)

        refused("gated_detla", x, "gated_delta")
        refused("gated_delta", {name: y for name, y in x.items() if name != "decay"}, "decay is missing")
        refused("linear", x, "decay is given; linear does not have it")
        refused("kda", x, "decay has 3 axes; kda has one decay per row, which takes 4")
        refused("gated_delta", x | {"decay": self.numbers(HEADS, TOKENS, draw=lambda: 0.5)}, "above 0")
        refused("gated_delta", x | {"grad": self.numbers(HEADS, TOKENS, 1)}, "the output has [1, 2, 5, 2]")
        refused("gated_delta", x | {"strength": self.numbers(HEADS, 4)}, "strength has shape [1, 2, 4]")
        refused("gated_delta", x, ".npz file; name it so", options=("--out", "result.txt"))


if __name__ == "__main__":
    program.main()
