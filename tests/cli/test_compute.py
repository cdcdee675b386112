"""`attend compute` against plain Python loops and finite differences."""

import json
import math
import os
import unittest

import arrays
import compute_case
import program
import reference
from compute_case import DEPTHS, DIFFERENCE_TOLERANCE, TABLES

SCOPES = {
    "all": lambda i, j: True,
    "causal": lambda i, j: j <= i,
    "window:1": lambda i, j: abs(i - j) <= 1,
    "window:2,0": lambda i, j: 0 <= i - j <= 2,
}


def score_table():
    return TABLES["scores"]


class ComputeTest(compute_case.ComputeCase):
    def problem(self, row):
        """Returns random inputs for a row of the table, with every parameter."""
        depths = dict(DEPTHS)
        axes = {axis for parameter in row["parameters"] for axis in parameter["shape"]}
        if "query_depth" not in axes:
            depths["query_depth"] = depths["key_depth"]
        if "key_depth" not in axes:
            depths["key_depth"] = depths["query_depth"]
        if "key_depth" not in axes:
            depths["key_depth"] = depths["query_depth"]
        return {
            "query": self.numbers(4, depths["query_depth"]),
            "key": self.numbers(5, depths["key_depth"]),
            "value": self.numbers(5, 2),
            "parameters": {
                parameter["name"]: self.numbers(*(depths[axis] for axis in parameter["shape"]))
                for parameter in row["parameters"]
            },
        }

    def test_every_score_and_scope_matches_the_loops(self):
        for row in score_table():
            inputs = self.problem(row)
            # Starting the program is slow; the operator's own tests cover every score and scope.
            scopes = SCOPES if row["name"] == "additive" else ("window:2,0",)
            for scope in scopes:
                got = self.compute(
                    inputs, "--score", row["name"], "--scope", scope, "--scores", "--weights"
                )
                wanted = reference.attend(
                    inputs["query"], inputs["key"], inputs["value"], row["name"],
                    inputs["parameters"], SCOPES[scope],
                )
                self.assertEqual(got.keys(), wanted.keys())
                for name, lists in wanted.items():
                    self.assert_close(got[name], lists, where=f"{row['name']} {scope} {name}")

    def test_gradients_match_finite_differences(self):
        upstream = self.numbers(4, 2)
        for row in score_table():
            inputs = self.problem(row)

            def value(changed, score=row["name"]):
                context = reference.attend(
                    changed["query"], changed["key"], changed["value"], score,
                    changed["parameters"], SCOPES["causal"],
                )["context"]
                return sum(reference.dot(g, c) for g, c in zip(upstream, context))

            got = self.compute(
                inputs, "--score", row["name"], "--scope", "causal",
                "--grad", self.npy("grad.npy", upstream),
            )
            flat_inputs = {name: inputs[name] for name in ("query", "key", "value")}
            flat_inputs.update(inputs["parameters"])
            self.assertEqual(
                set(got), {"context", "lse"} | {"grad_" + name for name in flat_inputs}
            )
            for name, lists in flat_inputs.items():
                self.assert_close(
                    got["grad_" + name], self.differences(inputs, name, lists, value),
                    DIFFERENCE_TOLERANCE, f"{row['name']} {name}",
                )

    def test_batches_heads_lengths_and_masks(self):
        inputs = {
            "query": self.numbers(2, 4, 3, 2),
            "key": self.numbers(2, 2, 5, 2),
            "value": self.numbers(2, 2, 5, 3),
        }
        lengths = [0, 4]
        mask = [[(i + j) % 3 > 0 for j in range(5)] for i in range(3)]
        flat_mask = (3, 5), [entry for row in mask for entry in row]
        arrays.write_npy(self.path("mask.npy"), flat_mask, "|b1")
        got = self.compute(
            inputs, "--key-lengths", self.npy("n.npy", lengths, "<i4"),
            "--mask", self.path("mask.npy"), "--scope", "causal", "--scope", "window:1",
            "--weights", "--grad", self.npy("g.npy", self.numbers(2, 4, 3, 3)),
        )
        for b in range(2):
            for h in range(4):
                wanted = reference.attend(
                    inputs["query"][b][h], inputs["key"][b][h // 2], inputs["value"][b][h // 2],
                    allows=lambda i, j, b=b: i - 1 <= j <= i and mask[i][j] and j < lengths[b],
                )
                for name in ("context", "lse", "weights"):
                    self.assert_close(got[name][b][h], wanted[name], where=f"{name} {b} {h}")
        # Batch entry 0 has no key: its gradients are 0, not NaN.
        for name in ("grad_query", "grad_key", "grad_value"):
            self.assertEqual(set(arrays.flat(got[name][0])[1]), {0.0}, name)

    def test_edges_of_a_graph(self):
        inputs = {name: self.numbers(1, 1, 3 if name == "query" else 4, 2)
                  for name in ("query", "key", "value")}
        pairs = [[3, 0, 1, 2], [2, 0, 2, 0]]  # query 1 sees no key
        for file in (self.npy("e.npy", pairs, "<i8"), self.json("e.json", pairs)):
            got = self.compute(inputs, "--edges", file, "--weights",
                               "--grad", self.npy("g.npy", self.numbers(1, 1, 3, 2)))
            wanted = reference.attend(
                inputs["query"][0][0], inputs["key"][0][0], inputs["value"][0][0],
                allows=lambda i, j: (j, i) in list(zip(*pairs)))
            for name in ("context", "lse", "weights"):
                self.assert_close(got[name][0][0], wanted[name], where=name)
            self.assertEqual(set(got["grad_query"][0][0][1]), {0.0})

    def test_queries_stand_where_they_are_aligned(self):
        slope, lengths, of_queries = 0.5, [5, 3], [2, 1]
        inputs = {name: self.numbers(2, 1, 2 if name == "query" else 5, 2)
                  for name in ("query", "key", "value")}
        for moved, starts in (
            (("--align", "last"), [3, 3]),
            (("--align", "last", "--key-lengths", self.npy("n.npy", lengths, "<i8"),
              "--query-lengths", self.npy("m.npy", of_queries, "<i8")), [3, 2]),
            (("--query-offsets", self.npy("o.npy", [4, 1], "<i8")), [4, 1]),
        ):
            got = self.compute(
                inputs, "--scope", "causal", "--bias", "alibi", "--param", f"alibi_slopes={slope}",
                "--weights", *moved,
            )
            for b in range(2):
                bound = "--key-lengths" in moved
                queries = of_queries[b] if bound else 2
                for i in range(2):
                    keys = min(starts[b] + i + 1, lengths[b] if bound else 5)
                    scores = [
                        reference.dot(inputs["query"][b][0][i], inputs["key"][b][0][j]) / 2**0.5
                        - slope * abs(starts[b] + i - j) for j in range(keys)
                    ] if i < queries else []
                    powers = [math.exp(s) for s in scores]
                    wanted = [p / sum(powers) for p in powers] + [0.0] * (5 - len(scores))
                    self.assert_close(got["weights"][b][0][i], wanted, where=f"{moved} {b} {i}")

    def test_steps_stand_where_queries_are_aligned(self):
        zeros = {name: self.npy(name + ".npy", [[0.0]] * (1 if name == "query" else 3))
                 for name in ("query", "key", "value")}
        done = arrays.run("compute", *(word for name, path in zeros.items()
                                       for word in ("--" + name, path)),
                          "--bias", "alibi", "--param", "alibi_slopes=1", "--align", "last", "--steps")
        self.assertEqual(done.returncode, 0, done.stderr)
        steps = done.stdout[done.stdout.index("Bias alibi B"):].splitlines()
        self.assertEqual([float(word) for word in steps[1].split()], [-2.0, -1.0, 0.0])

    def test_three_axes(self):
        inputs = {name: self.numbers(2, 3, 2) for name in ("query", "key", "value")}
        mask = [[[True, b == 0, False]] for b in range(2)]
        got = self.compute(inputs, "--mask", self.npy("m.npy", mask, "|b1"))
        for b in range(2):
            wanted = reference.attend(
                inputs["query"][b], inputs["key"][b], inputs["value"][b],
                allows=lambda i, j, b=b: mask[b][0][j],
            )
            self.assert_close(got["context"][b], wanted["context"])

    def test_dtype_is_that_of_the_inputs(self):
        lists = self.numbers(3, 2)
        for descr, lse, precision in (
            ("<f8", "<f8", 2**-53), ("<f4", "<f4", 2**-24), ("<f2", "<f4", 2**-11)
        ):
            path = self.npy("x.npy", lists, descr)
            with open(path, "rb") as file:
                data = file.read()
            stored = arrays.nested(
                ((3, 2), [v[0] for v in arrays.struct.iter_unpack(
                    "<" + arrays.FORMATS[descr], data[-6 * int(descr[2]):])])
            )
            out = self.path("out.npz")
            done = arrays.run("compute", "--query", path, "--key", path, "--value", path,
                              "--out", out)
            self.assertEqual(done.returncode, 0, done.stderr)
            found, descrs = arrays.read_npz(out)
            self.assertEqual(descrs, {"context": descr, "lse": lse})
            wanted = reference.attend(stored, stored, stored)
            self.assert_close(arrays.nested(found["context"]), wanted["context"], 32 * precision)

    def test_json_in_and_out(self):
        inputs = {"query": [[1, 0], [0, 2]], "key": [[1, 0], [0, 1]], "value": [[1, 2], [3, 4.5]]}
        paths = {name: self.json(name + ".json", lists) for name, lists in inputs.items()}
        options = [word for name, path in paths.items() for word in ("--" + name, path)]
        mask = self.json("mask.json", [[1, 1], [0, 0]])
        done = arrays.run("compute", *options, "--mask", mask, "--scores", "--weights",
                          "--score", "cosine", "--param", "beta=2.5")
        self.assertEqual(done.returncode, 0, done.stderr)
        got = json.loads(done.stdout)
        wanted = reference.attend(inputs["query"], inputs["key"], inputs["value"], "cosine",
                                  {"beta": 2.5}, lambda i, j: i == 0)
        self.assertEqual(got["lse"][1], "-inf")
        self.assertEqual(got["scores"][1], ["-inf", "-inf"])
        for name, lists in wanted.items():
            shape, values = arrays.flat(got[name])
            self.assert_close(arrays.nested((shape, [float(v) for v in values])), lists)

    def test_summary(self):
        inputs = {name: self.npy(name + ".npy", self.numbers(3, 2)) for name in
                  ("query", "key", "value")}
        options = [word for name, path in inputs.items() for word in ("--" + name, path)]
        out = self.path("out.npz")
        done = arrays.run("compute", *options, "--scope", "causal", "--out", out, "--json")
        self.assertEqual(json.loads(done.stdout), {
            "mechanism": "", "score": "scaled_dot", "scope": ["causal"], "bias": [],
            "normaliser": "softmax", "dtype": "float64", "out": out,
            "arrays": {"context": {"dtype": "float64", "shape": [3, 2]},
                       "lse": {"dtype": "float64", "shape": [3]}},
        })
        done = arrays.run("compute", *options, "--out", out)
        self.assertEqual(done.stdout, f"{out}: context [3, 2], lse [3]\n")

    def steps(self, shape, *options):
        path = self.npy("x.npy", self.numbers(*shape))
        done = arrays.run("compute", "--query", path, "--key", path, "--value", path, "--steps",
                          *options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_steps(self):
        text = self.steps((3, 4), "--scope", "causal")
        titles = [line for line in text.splitlines() if line and not line.startswith(" ")]
        self.assertEqual(titles[0], "score scaled_dot: q . k / sqrt(D)   (Vaswani et al. 2017, eq. 1)")
        self.assertEqual([title.split(":")[0] for title in titles[1:]], [
            "Queries Q [3, 4]", "Keys K [3, 4]", "Values V [3, 4]", "Scores S = Q K^T [3, 3]",
            "Scaled scores S / sqrt(D), D = 4, [3, 3]", "Scores in scope [3, 3]",
            "Weights W [3, 3]", "Context C = W V [3, 4]"])
        self.assertIn("-inf", text)
        weights = text.split("Weights W")[1].splitlines()[1:4]
        for i, row in enumerate(weights):
            numbers = [float(cell) for cell in row.split()]
            # Three numbers with four decimals.
            self.assertAlmostEqual(sum(numbers), 1, delta=1.5e-4)
            self.assertEqual(numbers[i + 1:], [0.0] * (2 - i))

    def test_steps_of_every_score(self):
        for row in score_table():
            inputs = self.problem(row)
            arguments = ["compute", "--score", row["name"], "--steps"]
            for name in ("query", "key", "value"):
                arguments += ["--" + name, self.npy(name + ".npy", inputs[name])]
            for name, value in inputs["parameters"].items():
                arguments += ["--param", f"{name}={self.npy('p_' + name + '.npy', value)}"]
            done = arrays.run(*arguments)
            self.assertEqual(done.returncode, 0, done.stderr)
            for parameter in row["parameters"]:
                self.assertIn("Parameter " + parameter["name"], done.stdout)
            self.assertIn(row["formula"], done.stdout)
            self.assertIn("Context C = W V", done.stdout)

    def test_steps_of_large_and_empty_inputs(self):
        text = self.steps((2, 4, 60, 20))
        self.assertIn("batch element 1 of 2, head 1 of 4", text)
        self.assertIn("Queries Q [60, 20]", text)
        self.assertLess(max(map(len, text.splitlines())), 120)
        self.assertLess(len(text.splitlines()), 100)
        arrays.write_npy(self.path("empty.npy"), ((0, 3, 2), []))
        empty = self.path("empty.npy")
        done = arrays.run("compute", "--query", empty, "--key", empty, "--value", empty, "--steps")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("the batch is empty", done.stdout)


class MisuseTest(compute_case.FilesTest):
    """One line, exit code 2, nothing written."""

    def refuse(self, message, *options, inputs=None):
        paths = {"query": self.npy("q.npy", self.numbers(3, 2)),
                 "key": self.npy("k.npy", self.numbers(4, 2)),
                 "value": self.npy("v.npy", self.numbers(4, 2))}
        paths.update(inputs or {})
        arguments = [word for name, path in paths.items() for word in ("--" + name, path)]
        out = self.path("out.npz")
        done = arrays.run("compute", *arguments, *options, *(
            () if "--out" in options else ("--out", out)))
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertIn(message, done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertFalse(os.path.exists(out))

    def test_files(self):
        missing = self.path("missing.npy")
        self.refuse("missing.npy: no such file", inputs={"query": missing})
        text = self.json("text.txt", [1])
        self.refuse("must end in .npy or .json", inputs={"key": text})
        whole = self.npy("whole.npy", [[1, 2]], "<i8")
        self.refuse("whole.npy: has dtype int64; save it as float32 or float64",
                    inputs={"query": whole})
        single = self.npy("single.npy", [[1, 2]], "<f4")
        self.refuse("save both alike", inputs={"query": single})
        words = self.json("words.json", [[True, False]])
        self.refuse("words.json: holds true and false; give numbers",
                    inputs={"query": words})
        ragged = self.json("ragged.json", [[1, 2], [3]])
        self.refuse("ragged.json:1:", inputs={"query": ragged})
        with open(self.path("cut.npy"), "wb") as file:
            file.write(b"\x93NUMPY\x01\x00")
        self.refuse("cut.npy: is truncated", inputs={"query": self.path("cut.npy")})

    def test_shapes(self):
        self.refuse("queries have depth 3, keys depth 2",
                    inputs={"query": self.npy("q3.npy", self.numbers(3, 3))})
        for name in ("query", "key", "value"):
            for shape, content in (("4", [1, 2, 3, 4]), ("", 1)):
                self.refuse(f"the {name} has shape [{shape}]; it must have 2, 3 or 4 axes",
                            inputs={name: self.json("flat.json", content)})
        self.refuse("all axes but the last must match",
                    inputs={"value": self.npy("v5.npy", self.numbers(5, 2))})
        self.refuse("--grad: has shape [2, 2], the context [3, 2]",
                    "--grad", self.npy("g.npy", self.numbers(2, 2)))
        self.refuse("does not broadcast", "--mask", self.npy("m.npy", [[1, 0]] * 2, "|u1"))
        self.refuse("between 0 and the number of keys 4, got 5 to 5",
                    "--key-lengths", self.npy("n.npy", [5], "<i8"))

    def test_options(self):
        self.refuse("no score is called 'scaled_dit'; did you mean", "--score", "scaled_dit")
        self.refuse("parameter W [query_depth, key_depth] is missing: the bilinear form; give it as "
                    "--param W=FILE", "--score", "general")
        self.refuse("--param 'W': score scaled_dot has no parameters", "--param", "W=1")
        self.refuse("--param 'betta': nothing takes it; did you mean beta?", "--score", "cosine",
                    "--param", "betta=1")
        self.refuse("no mechanism is called 'badanau'; did you mean bahdanau?",
                    "--mechanism", "badanau")
        self.refuse("parameter v [attention_depth] is missing", "--mechanism", "bahdanau")
        self.refuse("no bias is called 'alibbi'; did you mean alibi?", "--bias", "alibbi")
        self.refuse("bias alibi is named twice", "--bias", "alibi", "--bias", "alibi")
        self.refuse("parameter buckets_table [", "--bias", "buckets:32")
        self.refuse("bias buckets:32: its table is one of buckets:2", "--bias", "buckets:32",
                    "--param", f"buckets_table={self.npy('b.npy', [1.0, 2.0])}")
        self.refuse("missing.npy: no such file", "--bias", "dense",
                    "--param", f"dense_bias={self.path('missing.npy')}")
        self.refuse("no normaliser is called 'softmx'; did you mean softmax?",
                    "--normaliser", "softmx")
        self.refuse("it must be a number from 1e-18 to 1e+18", "--normaliser", "temperature:-1")
        self.refuse("--seed -1: a seed is 0 or more", "--seed", "-1")
        self.refuse("--soft-cap -1: a cap is 0 or more", "--soft-cap", "-1")
        self.refuse("--soft-cap", "--soft-cap", "warm")
        self.refuse("write only around:D", "--scope", "around:x")
        self.refuse("give --param centre_W_p=FILE", "--scope", "around:2")
        self.refuse("E", "--mechanism", "linformer")
        self.refuse("a projection of the keys has shape [2, 3]; 4 keys need [shortened, 4]",
                    "--mechanism", "linformer",
                    "--param", f"E={self.npy('e.npy', self.numbers(2, 3))}")
        self.refuse("positions has shape [2, 2]", "--mechanism", "learned_positions",
                    "--param", f"positions={self.npy('p.npy', self.numbers(2, 2))}")
        layout = ("--mechanism", "block_sparse", "--param",
                  f"layout={self.npy('layout.npy', [[1.0, 0.0], [1.0, 1.0]])}")
        for number, told in (("2.5", "2.5"), ("nan", "nan"), ("inf", "inf"), ("0", "0"),
                             ("-1", "-1"), ("1e30", "1e+30")):
            self.refuse(f"parameter block is {told}; it must be a whole number, 1 or more",
                        *layout, "--param", f"block={number}")
        two = self.npy("two.npy", [2.0, 3.0])
        self.refuse("parameter block has shape [2]; it is one whole number", *layout, "--param",
                    f"block={two}")
        self.refuse("parameter layout holds other numbers than 0 and 1", "--mechanism",
                    "block_sparse", "--param", f"layout={two}", "--param", "block=2")
        self.refuse("parameter width is 1.5; it must be a whole number", "--mechanism",
                    "convolution", *(word for one in (f"alpha=1", f"Delta={two}", "width=1.5")
                                     for word in ("--param", one)))
        self.refuse("--soft-cap inf: a cap is 0 or more", "--soft-cap", "inf")
        self.refuse("align is 'end'; it must be first or last", "--align", "end")
        self.refuse("query offsets are whole numbers",
                    "--query-offsets", self.npy("o.npy", [1.0], "<f8"))
        self.refuse("between 0 and the number of queries 3, got 5 to 5",
                    "--query-lengths", self.npy("n5.npy", [5], "<i8"))
        self.refuse("no scope is called 'future'", "--scope", "future")
        self.refuse("write NAME=FILE or NAME=NUMBER", "--param", "W")
        self.refuse("--param 'beta': is given twice", "--score", "cosine", "--param", "beta=1",
                    "--param", "beta=2")
        self.refuse("key lengths are whole numbers",
                    "--key-lengths", self.npy("f.npy", [1.0], "<f8"))
        self.refuse("a mask holds true and false, or 1 and 0",
                    "--mask", self.npy("m2.npy", [[2, 0, 1, 1]], "|u1"))
        self.refuse("edges are whole numbers of shape [2, edges]",
                    "--edges", self.npy("e1.npy", [0, 1], "<i8"))
        self.refuse("pair 1 has source 9", "--edges", self.npy("e2.npy", [[0, 9], [0, 1]], "<i8"))
        self.refuse("name it so", "--out", self.path("out.zip"))
        self.refuse("the folder", "--out", os.path.join(self.folder, "nowhere", "out.npz"))

    def test_out_is_wanted_for_npy(self):
        path = self.npy("x.npy", [[1.0]])
        done = arrays.run("compute", "--query", path, "--key", path, "--value", path)
        self.assertEqual(done.returncode, 2)
        self.assertIn("--out is missing", done.stderr)
        done = arrays.run("compute", "--query", path, "--key", path, "--value", path, "--json")
        self.assertEqual(json.loads(done.stdout), {"context": [[1.0]], "lse": [1.0]})


if __name__ == "__main__":
    program.main()
