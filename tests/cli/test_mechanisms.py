"""`attend mechanisms`: the table as text and as JSON."""

import json
import unittest

import arrays


class MechanismsTest(unittest.TestCase):
    def test_json(self):
        done = arrays.run("mechanisms", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        table = json.loads(done.stdout)
        self.assertEqual(set(table), {"scores", "scopes", "biases", "normalisers"})
        scores = {row["name"]: row for row in table["scores"]}
        self.assertLessEqual(
            {"dot", "scaled_dot", "general", "additive", "cosine", "location"}, set(scores)
        )
        for row in table["scores"]:
            self.assertEqual(set(row), {"name", "formula", "source", "family", "parameters"})
        self.assertEqual(scores["general"]["parameters"], [{
            "name": "W", "shape": ["query_depth", "key_depth"], "required": True,
            "meaning": "the bilinear form"}])
        self.assertEqual([p["name"] for p in scores["additive"]["parameters"]],
                         ["v", "W_q", "W_k", "b"])
        self.assertEqual([row["name"] for row in table["scopes"]],
                         ["all", "causal", "window", "dilated", "prefix", "global", "key_lengths",
                          "segments", "blocks", "mask"])
        for row in table["scopes"]:
            self.assertEqual(set(row), {"name", "syntax", "meaning"})
        self.assertEqual([row["name"] for row in table["biases"]],
                         ["dense", "alibi", "buckets", "relative_keys", "gaussian", "grid"])
        for row in table["biases"]:
            self.assertEqual(set(row), {"name", "formula", "source", "parameters"})
            for parameter in row["parameters"]:
                self.assertEqual(set(parameter), {"name", "shape", "meaning"})
        self.assertEqual([row["name"] for row in table["normalisers"]],
                         ["softmax", "sigmoid", "none", "sparsemax", "entmax15",
                          "linear"])

    def test_text_says_the_same(self):
        table = json.loads(arrays.run("mechanisms", "--json").stdout)
        text = arrays.run("mechanisms").stdout
        for row in table["scores"]:
            for word in (row["name"], row["formula"], row["source"]):
                self.assertIn(word, text)
            for parameter in row["parameters"]:
                self.assertIn(f"{parameter['name']} [{', '.join(parameter['shape'])}]", text)
        for row in table["scopes"] + table["biases"] + table["normalisers"]:
            self.assertIn(row["name"], text)

    def test_help_has_examples(self):
        for command in ("compute", "mechanisms"):
            done = arrays.run(command, "--help")
            self.assertEqual(done.returncode, 0)
            self.assertIn("Example", done.stdout)


if __name__ == "__main__":
    unittest.main()
