"""`attend mechanisms`: the table as text and as JSON."""

import json
import pathlib
import re
import shutil
import tempfile
import unittest

import arrays
import program

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"


class MechanismsTest(unittest.TestCase):
    def table(self):
        done = arrays.run("mechanisms", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_json(self):
        table = self.table()
        self.assertEqual(set(table), {"mechanisms", "scores", "scopes", "biases", "normalisers",
                                      "recurrences"})
        self.assertGreater(len(table["mechanisms"]), 40)
        for row in table["mechanisms"]:
            self.assertEqual(set(row), {
                "name", "title", "source", "year", "changes", "parent", "used_by", "formula", "queries",
                "memory", "choices", "decoder_query", "parameters", "time", "space", "carries", "cache",
                "paths", "module", "refusal", "command"})
            self.assertEqual(set(row["choices"]), {"score", "scope", "bias", "normaliser"})
        scores = {row["name"]: row for row in table["scores"]}
        self.assertLessEqual(
            {"dot", "scaled_dot", "general", "additive", "cosine", "location"}, set(scores)
        )
        for row in table["scores"]:
            self.assertEqual(set(row), {"name", "formula", "source", "family", "looks_back",
                                        "parameters"})
        self.assertEqual(scores["general"]["parameters"], [{
            "name": "W", "shape": ["query_depth", "key_depth"], "required": True,
            "meaning": "the bilinear form"}])
        self.assertEqual([p["name"] for p in scores["additive"]["parameters"]],
                         ["v", "W_q", "W_k", "b"])
        self.assertLessEqual({"all", "causal", "window", "around"},
                             {row["name"] for row in table["scopes"]})
        for row in table["scopes"]:
            self.assertEqual(set(row), {"name", "syntax", "meaning"})
        self.assertEqual([row["name"] for row in table["biases"]],
                         ["dense", "alibi", "kerple_log", "kerple_power", "sandwich", "forget",
                          "cope", "fire", "content_to_position", "position_to_content", "buckets",
                          "relative_keys", "gaussian", "grid", "offset", "sink"])
        for row in table["biases"]:
            self.assertEqual(set(row), {"name", "formula", "source", "parameters"})
            for parameter in row["parameters"]:
                self.assertEqual(set(parameter), {"name", "shape", "meaning"})
        self.assertLessEqual({"softmax", "sigmoid", "none", "sparsemax", "entmax15", "monotonic"},
                             {row["name"] for row in table["normalisers"]})
        for row in table["normalisers"]:
            self.assertEqual(set(row), {"name", "syntax", "formula", "source", "looks_back"})
        self.assertEqual([row["name"] for row in table["recurrences"]],
                         ["linear", "retention", "mamba2", "gla", "rwkv6", "delta", "gated_delta", "kda"])
        for row in table["recurrences"]:
            self.assertEqual(set(row), {"name", "title", "formula", "source", "year", "parent", "used_by",
                                        "decay", "delta", "bonus", "strength", "unit_keys"})

    def test_text_says_the_same(self):
        table = self.table()
        done = arrays.run("mechanisms")
        self.assertLessEqual(max(map(len, done.stdout.splitlines())), 100)
        text = " ".join(done.stdout.split())
        for row in table["mechanisms"] + table["scores"]:
            for word in (row["name"], row["formula"], row["source"]):
                self.assertIn(word, text)
        for row in table["scores"]:
            for parameter in row["parameters"]:
                self.assertIn(f"{parameter['name']} [{', '.join(parameter['shape'])}]", text)
        for row in table["scopes"] + table["biases"] + table["normalisers"]:
            self.assertIn(row["name"], text)

    def test_since_a_year(self):
        table = self.table()
        for year in (2014, 2021, 2024, 2100):
            some = json.loads(arrays.run("mechanisms", "--json", "--since", str(year)).stdout)
            text = " ".join(arrays.run("mechanisms", "--since", str(year)).stdout.split())
            for kind in ("mechanisms", "recurrences"):
                self.assertEqual(some[kind], [row for row in table[kind] if row["year"] >= year])
                for row in table[kind]:
                    self.assertEqual(row["formula"] in text, row["year"] >= year or any(
                        row["formula"] in other["formula"] for other in some[kind]), row["name"])
            self.assertEqual(some["scores"], table["scores"])
        for arguments in (("--since", "2024", "--markdown"), ("bahdanau", "--since", "2024"), ("--since", "0")):
            self.assertEqual(arrays.run("mechanisms", *arguments).returncode, 2)

    def test_one_in_full(self):
        # Starting the program is slow: one row of each kind.
        kinds = {(bool(row["refusal"]), bool(row["parameters"]), bool(row["carries"]), row["module"]): row
                 for row in self.table()["mechanisms"]}
        self.assertGreater(len(kinds), 4)
        for row in kinds.values():
            done = arrays.run("mechanisms", row["name"])
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertLessEqual(max(map(len, done.stdout.splitlines())), 100)
            text = " ".join(done.stdout.split())
            for word in ("title", "source", "formula", "queries", "memory", "time", "command",
                         "refusal"):
                self.assertIn(row[word], text)
            for parameter in row["parameters"]:
                self.assertIn(f"{parameter['name']} [{parameter['shape']}]", text)
        done = arrays.run("mechanisms", "bahdanau", "--json")
        self.assertEqual(json.loads(done.stdout), self.table()["mechanisms"][0])

    def test_bad_input(self):
        done = arrays.run("mechanisms", "bahdenau")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("did you mean bahdanau?", done.stderr)
        self.assertEqual(arrays.run("mechanisms", "--json", "--markdown").returncode, 2)
        with tempfile.TemporaryDirectory() as folder:
            pair = pathlib.Path(folder) / "pair.json"
            for text, message in (
                (None, "pair.json"), ("{", "is not a JSON object"), ("{}", "has no \"source\""),
                ('{"source": ["a", 1]}', "not words"),
                ('{"source": ["a", "b"], "target": ["c", "d"], "annotations": [[1], [2]],'
                 ' "states": [[1]], "weights": [[1]]}', "of its words"),
            ):
                if text is not None:
                    pair.write_text(text)
                done = arrays.run("mechanisms", "--pictures", folder)
                self.assertEqual((done.returncode, done.stdout), (2, ""), text)
                self.assertIn(message, done.stderr)
                self.assertEqual(done.stderr.count("\n"), 1)

    def test_page_is_what_the_program_prints(self):
        printed = arrays.run("mechanisms", "--markdown")
        self.assertEqual(printed.returncode, 0, printed.stderr)
        page = DOCS / "mechanisms.md"
        self.assertEqual(
            page.read_text(encoding="utf-8"), printed.stdout,
            "run attend mechanisms --markdown > docs/mechanisms.md")
        pictures = set(re.findall(r"mechanisms/(\w+)\.svg", printed.stdout))
        self.assertLessEqual({row["name"] for row in self.table()["mechanisms"]}, pictures)
        self.assertEqual(pictures, {path.stem for path in (DOCS / "mechanisms").glob("*.svg")},
                         "run attend mechanisms --pictures docs/mechanisms")

    def test_pictures_are_drawn_from_the_pair(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            shutil.copy(DOCS / "mechanisms" / "pair.json", folder)
            done = arrays.run("mechanisms", "--pictures", folder)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual({path.name for path in folder.iterdir()},
                             {path.name for path in (DOCS / "mechanisms").iterdir()})
            for path in folder.glob("*.svg"):
                self.assertLess(path.stat().st_size, 20000 if path.stem == "family" else 6000, path.name)
            # The fit approximates the weights of the trained model, which has bahdanau's form.
            pair = json.loads((folder / "pair.json").read_text(encoding="utf-8"))
            self.assertLess(self.largest_difference(
                (folder / "bahdanau.svg").read_text(encoding="utf-8"), pair["weights"]), 0.1)

    def largest_difference(self, svg, weights):
        """Returns the largest difference of weights and the twenty levels of a picture's cells, by row."""
        cells = {}
        for level, path in re.findall(r'<path class="l(\d+)" d="([^"]*)"', svg):
            for x, y in re.findall(r"M([\d.]+) ([\d.]+)h", path):
                cells[float(y), float(x)] = int(level) / 19
        flat = [weight for row in weights for weight in row]
        self.assertEqual(len(cells), len(flat))
        return max(abs(cells[place] - weight) for place, weight in zip(sorted(cells), flat))

    def test_help_has_examples(self):
        for command in ("compute", "mechanisms"):
            done = arrays.run(command, "--help")
            self.assertEqual(done.returncode, 0)
            self.assertIn("Example", done.stdout)


if __name__ == "__main__":
    program.main()
