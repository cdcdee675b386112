"""attend compare trains a model with several mechanisms; attend gradients analyses the models."""

import json
import random
import xml.etree.ElementTree

import program
from program import SMALL, settings

# Copying words letter by letter is easy with attention and hard with a fixed context.
LETTERS = "abcdefgh"
ROWS = "none,bahdanau,luong_general"
TINY = SMALL | {"train.epochs": 12, "model.dropout": 0.0, "train.label_smoothing": 0.0,
                "model.hidden": 32, "train.replicas": 2}


def copies(seed, count):
    draw = random.Random(seed)
    words = sorted({"".join(draw.choices(LETTERS, k=draw.randint(2, 14))) for _ in range(count)})
    return "".join(f"{word}\t{' '.join(word.upper())}\n" for word in words)


class Compare(program.Case):
    def setUp(self):
        super().setUp()
        (self.folder / "data").mkdir()
        for seed, (name, count) in enumerate({"train": 600, "valid": 40, "test": 80}.items()):
            self.write(f"data/{name}.tsv", copies(seed, count))

    def compare(self, *options, rows=ROWS, seeds=2):
        return self.succeed("compare", "--data", "data", "--out", "runs", "--mechanisms", rows,
                            "--seeds", seeds, *settings(TINY), *options)

    def test_the_same_budget_for_every_row(self):
        run = self.compare("--json")
        figures = {row["mechanism"]: row for row in json.loads(run.stdout)["mechanisms"]}
        self.assertEqual(list(figures), ROWS.split(","))
        examples = len((self.folder / "data/test.tsv").read_text().splitlines())
        for row in figures.values():
            self.assertEqual(len(row["token_error_rates"]), 2)
            self.assertEqual(sum(part["examples"] for part in row["by_length"]), examples)
            # The rates of the parts combine to the overall rate.
            whole = sum(part["examples"] * part["sequence_error_rates"][0]
                        for part in row["by_length"]) / examples
            self.assertAlmostEqual(whole, row["sequence_error_rates"][0])
        steps = {name: program.read_metrics(self.folder / f"runs/{name}-1")[-1]["step"]
                 for name in figures}
        self.assertEqual(len(set(steps.values())), 1, steps)
        # Copying is easy with attention and hard without.
        self.assertLess(max(figures["bahdanau"]["token_error_rates"]),
                        0.7 * min(figures["none"]["token_error_rates"]))
        self.check_files(figures)
        self.check_goes_on(run.stdout)
        self.check_gradients()

    def check_files(self, figures):
        runs = self.folder / "runs"
        table = (runs / "comparison.md").read_text().splitlines()
        self.assertEqual([line.split("|")[1].strip() for line in table[2:]], list(figures))
        self.assertEqual({line.count("|") for line in table}, {table[0].count("|")})
        self.assertIn("±", table[2])
        self.assertEqual({row["mechanism"]: row for row in
                          json.loads((runs / "comparison.json").read_text())["mechanisms"]}, figures)
        svg = xml.etree.ElementTree.parse(runs / "comparison.svg")
        texts = [element.text for element in svg.iter() if element.tag.endswith("text")]
        for name in figures:
            self.assertIn(name, texts)

    def check_goes_on(self, first):
        # All models are trained: the same command only measures, with the same figures.
        again = self.compare("--json")
        self.assertEqual(again.stdout, first)
        self.assertNotIn("epoch", again.stderr)
        self.refuse("compare", "--data", "data", "--out", "runs", "--mechanisms", ROWS,
                    "--seeds", "2", *settings(TINY | {"train.epochs": 13}),
                    names=["other settings", "runs"])

    def check_gradients(self):
        models = ["runs/none-1", "runs/bahdanau-1"]
        run = self.succeed("gradients", *models, "--data", "data", "--json", "--out", "g.svg")
        flows = {(flow["model"], flow["trained"]): flow
                 for flow in json.loads(run.stdout)["models"]}
        self.assertEqual(set(flows), {(name, trained) for name in ("none-1", "bahdanau-1")
                                      for trained in (False, True)})
        states = flows["none-1", True]["states"]
        for flow in flows.values():
            self.assertEqual(flow["states"], states)
            self.assertTrue(all(norm > 0 for norm in flow["norms"]))
        self.assertEqual(states, sorted(states, reverse=True))
        # Before training, little of the loss reaches a state far from the single fixed context.
        none, attention = (flows[name, False]["norms"] for name in ("none-1", "bahdanau-1"))
        self.assertLess(none[8] / none[0], 0.2)
        self.assertGreater(attention[8] / attention[0], 0.5)
        self.assertIn("none-1, untrained", (self.folder / "g.svg").read_text())
        self.assertRegex(self.succeed("gradients", *models, "--data", "data").stdout,
                         r"(?m)^ *0( +\S+){4}$")

    def test_refuses_before_training(self):
        options = ["compare", "--data", "data", "--out", "runs"]
        self.refuse(*options, "--mechanisms", "none,bahdanu", names=["bahdanu", "bahdanau"])
        self.refuse(*options, "--mechanisms", "none,none", names=["none", "twice"])
        self.refuse(*options, "--mechanisms", "performer", names=["performer"])
        self.refuse(*options, "--set", "model.hiden=3", names=["model.hidden"])
        self.refuse(*options, "--seeds", "0", names=["--seeds"])
        labels = [*options, "--set", "model.type=classifier"]
        self.refuse(*labels, "--mechanisms", "self,linear",
                    names=["--mechanisms self", "model.layers = 0", "uses no mechanism"])
        self.refuse(*labels, "--set", "model.layers=1", "--mechanisms", "self,none",
                    names=["--mechanisms none", "classifier", "leave out none"])
        self.refuse(*options, "--set", "model.type=lm", "--set", "model.layer=gla", "--mechanisms", "self,alibi",
                    names=["model.layer = gla"])
        self.refuse(*options, "--set", "model.score=none", "--mechanisms", "bahdanau,luong_dot",
                    names=["model.score = none", "uses no mechanism"])
        self.refuse("compare", "--data", "nowhere", "--out", "runs", names=["nowhere"])
        self.refuse("compare", "--data", "data", "--out", "data", names=["data", "new folder"])
        self.refuse("gradients", "nowhere", "--data", "data", names=["nowhere"])
        self.refuse("gradients", "data", "--data", "data", "--out", "x.png", names=["x.png"])


if __name__ == "__main__":
    program.main()
