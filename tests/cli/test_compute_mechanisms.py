"""Every row of `attend mechanisms` run by `attend compute`, against plain Python loops."""

import unittest

import arrays
import compute_case
import program
import reference
from compute_case import DEPTHS, DIFFERENCE_TOLERANCE, TABLES

# Tensors of biases and modules for one head, with shapes that do not follow from the problem's
# sizes. Five queries and keys of depth 4, values of depth 4.
SHAPES = {"alibi_slopes": (), "buckets_table": (32,), "relative_keys_table": (33, 4),
          "content_to_position_table": (32, 4), "position_to_content_table": (32, 4),
          "grid_table": (15, 15), "offset": (), "sink": (), "centre_W_p": (3, 4),
          "centre_v_p": (3,), "Delta": (2,), "alpha": (), "sandwich_factors": (), "scalable_scale": (),
          "forget_gates": (5,), "cope_table": (16, 4), "fire_W_1": (32,), "fire_b_1": (32,),
          "fire_W_2": (32,), "fire_b_2": (), "kernel": (3, 5), "mix": (1, 1, 1)}
# Numbers that must be positive.
POSITIVE = {"kerple_log_p": 0.7, "kerple_log_a": 1.3, "kerple_power_p": 1.4,
            "kerple_power_a": 0.3, "fire_c": 0.4, "fire_threshold": 2.5}
# Parameters with a range.
WITHIN = {"entmax_alpha": 1.6}
# A length between the bounds of yarn and llama3 for one of the frequencies.
GIVEN = {"width": 5.0, "block": 2.0, "count": 2.0, "window": 2.0, "segment": 2.0, "share": 0.5, "factor": 4.0, "length": 1000.0,
         "layout": [[1.0, 0.0, 1.0], [1.0, 1.0, 0.0], [0.0, 1.0, 1.0]]}
# Mechanisms that are smooth, so that finite differences apply: one of each kind.
DIFFERENTIATED = ["local_p", "location_sensitive", "coverage", "monotonic", "convolution", "t5",
                  "shaw", "disentangled", "rope", "linformer", "learned_positions", "temperature", "sink",
                  "sigmoid", "sparsemax", "entmax", "linear", "differential", "latent", "nsa", "selective",
                  "attention_residuals", "infini", "multi_token",
                  "forget", "kerple_log", "kerple_power", "sandwich", "cope", "fire", "yarn",
                  "partial_rope", "adaptive_entmax", "softpick", "scalable_softmax", "stick_breaking"]

# Texts that the steps of a row must contain.
STEPS = {"local_p": ["Centres p", "Bias gaussian B"], "coverage": ["Query 2",
         "Term of the past"], "monotonic": ["Stopping probabilities", "Query 3"],
         "rope": ["Queries, changed"], "sparsemax": ["Thresholds t"],
         "linear": ["Running sums M", "Row sums z", "Mapped keys"],
         "temperature": ["Divided scores S / T"], "sink": ["Sink"],
         "differential": ["Parameter factor", "Queries, changed"], "latent": ["Keys, changed"],
         "forget": ["Bias forget B"], "yarn": ["Queries, changed"],
         "hard": ["Probabilities P"], "alibi": ["Bias alibi B", "Scores with bias"]}


class MechanismsTest(compute_case.ComputeCase):
    def mechanism_problem(self, row):
        """As problem(), for a mechanism with five queries and keys."""
        sizes = dict(DEPTHS, query_depth=4, key_depth=4, depth=4)
        parameters = {}
        for parameter in row["parameters"]:
            name = parameter["name"]
            if name in GIVEN or name in POSITIVE or name in WITHIN:
                parameters[name] = {**GIVEN, **POSITIVE, **WITHIN}[name]
            elif name in SHAPES:
                parameters[name] = self.numbers(*SHAPES[name])
            elif not name.startswith("gaussian_"):  # these are predicted
                axes = [axis for axis in parameter["shape"].split(", ") if axis]
                parameters[name] = self.numbers(*(sizes[axis] for axis in axes))
        return {"query": self.numbers(5, 4), "key": self.numbers(5, 4),
                "value": self.numbers(5, 4), "parameters": parameters}

    def test_every_mechanism_matches_the_loops(self):
        for row in TABLES["mechanisms"]:
            inputs = self.mechanism_problem(row)
            got, steps = self.compute(inputs, "--mechanism", row["name"], "--scores", "--weights",
                                      "--steps", printed=True)
            wanted = reference.mechanism(
                row["name"], row["choices"], inputs["query"], inputs["key"], inputs["value"],
                inputs["parameters"])
            self.assertEqual(got.keys(), wanted.keys())
            for name, lists in wanted.items():
                self.assert_close(got[name], lists, where=f"{row['name']} {name}")
            self.check_steps(row, steps, wanted["context"])

    def check_steps(self, row, steps, context):
        for text in [row["title"], row["formula"], "Context C = W V", *STEPS.get(row["name"], [])]:
            self.assertIn(text, steps, row["name"])
        # The last step is the result, with four decimals.
        lines = steps.split("Context C = W V")[1].splitlines()[1:6]
        for line, numbers in zip(lines, context):
            for cell, number in zip(line.split(), numbers):
                self.assertAlmostEqual(float(cell), number, delta=5.1e-5, msg=row["name"])

    def test_gradients_of_mechanisms_match_finite_differences(self):
        upstream = self.numbers(5, 4)
        for row in TABLES["mechanisms"]:
            if row["name"] not in DIFFERENTIATED:
                continue
            inputs = self.mechanism_problem(row)

            def value(changed, row=row):
                context = reference.mechanism(
                    row["name"], row["choices"], changed["query"], changed["key"],
                    changed["value"], changed["parameters"])["context"]
                return sum(reference.dot(g, c) for g, c in zip(upstream, context))

            got = self.compute(inputs, "--mechanism", row["name"], "--grad",
                               self.npy("grad.npy", upstream))
            flat_inputs = {name: inputs[name] for name in ("query", "key", "value")}
            flat_inputs.update(inputs["parameters"])
            self.assertEqual(
                set(got), {"context", "lse"} | {"grad_" + name for name in flat_inputs})
            for name, lists in flat_inputs.items():
                if name in GIVEN:
                    continue
                self.assert_close(
                    got["grad_" + name], self.differences(inputs, name, lists, value),
                    DIFFERENCE_TOLERANCE, f"{row['name']} {name}")

    def test_choices_override_the_mechanism(self):
        inputs = {name: self.numbers(5, 4) for name in ("query", "key", "value")}
        inputs["parameters"] = {"buckets_table": self.numbers(8), "alibi_slopes": 0.5,
                                "dense_bias": self.numbers(5, 5)}
        got = self.compute(
            inputs, "--mechanism", "sparsemax", "--score", "dot", "--scope", "causal",
            "--bias", "alibi + buckets:8", "--bias", "dense", "--normaliser", "sigmoid",
            "--soft-cap", "2", "--weights", "--scores")
        wanted = reference.mechanism(
            "", {"score": "dot", "scope": "causal", "bias": "alibi + buckets:8 + dense",
                 "normaliser": "sigmoid"},
            inputs["query"], inputs["key"], inputs["value"], inputs["parameters"], soft_cap=2.0)
        for name, lists in wanted.items():
            self.assert_close(got[name], lists, where=name)

    def test_mixed_and_remembered_scores_take_no_other_choices(self):
        for row in TABLES["mechanisms"]:
            if row["name"] not in ("multi_token", "infini"):
                continue
            inputs = self.mechanism_problem(row)
            for options in (["--normaliser", "sparsemax"], ["--soft-cap", "0.1"], ["--scope", "window:1"],
                            ["--scope", "all"], ["--bias", "alibi"]):
                done = self.run_compute(inputs, "--mechanism", row["name"], *options, "--out", self.path("none.npz"))
                self.assertEqual(done.returncode, 2, f"{row['name']} {options}: {done.stderr}")
                self.assertIn("takes scope causal without padding", done.stderr)

    def test_alibi_has_the_slopes_of_the_paper(self):
        inputs = {name: self.numbers(1, 8, 3, 2) for name in ("query", "key", "value")}
        got = self.compute(inputs, "--bias", "alibi", "--weights")
        for h in range(8):
            wanted = reference.attend(
                *(inputs[name][0][h] for name in ("query", "key", "value")),
                bias=lambda i, j, q, h=h: -2.0 ** -(h + 1) * abs(i - j))
            # The slopes are powers of two, which are exact in float32.
            self.assert_close(got["weights"][0][h], wanted["weights"])

    def test_draws_follow_the_seed(self):
        inputs = {name: self.numbers(40, 3) for name in ("query", "key", "value")}
        draws = {seed: self.compute(inputs, "--normaliser", "hard", "--seed", seed, "--weights")[
            "weights"] for seed in (0, 1, 1, 2)}
        again = self.compute(inputs, "--normaliser", "hard", "--seed", 1, "--weights")["weights"]
        self.assertEqual(draws[1], again)
        self.assertNotEqual(draws[1], draws[2])
        largest = reference.attend(inputs["query"], inputs["key"], inputs["value"],
                                   normaliser="hard")["weights"]
        self.assertEqual(draws[0], largest)
        for row in draws[2]:
            self.assertEqual(sorted(row), [0.0] * 39 + [1.0])


if __name__ == "__main__":
    program.main()
