"""Pairs of texts: learned from three columns, answered, measured, explained, and refused."""

import json
import pathlib
import random
import shutil
import tempfile

import program
from program import settings

SMALL = {"model.type": "classifier", "data.pairs": "always", "model.depth": 32, "model.layers": 2, "model.heads": 2,
         "model.pooling": "class", "model.word_dropout": 0, "train.replicas": 1, "train.batch": 20,
         "train.epochs": 12, "train.learning_rate": 5e-3}
COLOURS = "red blue green".split()


def rows(count, seed, names=("same", "other")):
    """Two texts with a colour each, and whether the colours are the same."""
    chance = random.Random(seed)
    lines = []
    for _ in range(count):
        one, two = chance.choice(COLOURS), chance.choice(COLOURS)
        lines.append(f"the {one} car\ta {two} {chance.choice(['car', 'bus'])}\t{names[one != two]}\n")
    return "".join(lines)


class Pairs(program.Case):
    """A model that has learned whether two texts name the same colour, for all tests below."""

    @classmethod
    def setUpClass(cls):
        cls.shared = pathlib.Path(tempfile.mkdtemp(prefix="attend-test-"))
        cls.addClassCleanup(shutil.rmtree, cls.shared)
        for part, count, seed in (("train", 400, 1), ("valid", 80, 2), ("test", 80, 3)):
            (cls.shared / f"{part}.tsv").write_text(rows(count, seed))
        training = program.attend("train", "--data", ".", "--out", "model", *settings(SMALL), cwd=cls.shared)
        assert training.returncode == 0, training.stderr
        cls.model = cls.shared / "model"

    def test_answers_and_measures_pairs(self):
        answers = self.succeed("predict", self.model, stdin="the red car\ta red bus\nthe red car\ta blue bus\n")
        self.assertEqual(answers.stdout.split(), ["same", "other"])
        measured = json.loads(self.succeed("evaluate", self.model, "--data", self.shared, "--json").stdout)
        self.assertGreater(measured["accuracy"], 0.95)

    def test_reads_two_columns_of_a_table(self):
        cells = [line.split("\t") for line in rows(80, 3).splitlines()]
        self.write("t.csv", "one,label,two\n" + "".join(f"{one},{label},{two}\n" for one, two, label in cells))
        self.write("t.jsonl", "".join(json.dumps(dict(zip(("one", "two", "label"), line))) + "\n" for line in cells))
        columns = ["--source-column", "one", "--source-column", "two", "--target-column", "label"]
        losses = [json.loads(self.succeed("evaluate", self.model, "--data", *data, "--json").stdout)["known_loss"]
                  for data in ([self.shared / "test.tsv"], ["t.csv", *columns], ["t.jsonl", *columns])]
        self.assertEqual(losses[1:], losses[:1] * 2)
        self.refuse("data", "check", "t.csv", *columns, names=["data.pairs = always"])
        self.refuse("evaluate", self.model, "--data", "t.csv", *columns[2:],
                    names=["t.csv:2", "give --source-column twice"])
        checked = self.succeed("data", "check", "t.csv", *columns, "--set", "data.pairs=always").stdout
        self.assertIn("the columns 'one, two' and 'label'", checked)
        self.succeed("data", "split", "t.csv", *columns, "--set", "data.pairs=always", "--out", "parts")
        lines = "".join((self.folder / "parts" / f"{part}.tsv").read_text() for part in ("train", "valid", "test"))
        self.assertEqual(sorted(lines.splitlines()), sorted(rows(80, 3).splitlines()))
        self.succeed("data", "split", "parts/train.tsv", "--set", "data.pairs=always", "--out", "again")

    def test_explains_a_pair_and_each_text_over_the_other(self):
        pair = "the red car\ta red bus"
        shown = json.loads(self.succeed("explain", self.model, pair, "--method", "integrated_gradients",
                                        "--json").stdout)
        self.assertEqual(len(shown["source"]), 7)
        self.succeed("explain", self.model, pair, "--out", "page.html")
        page = (self.folder / "page.html").read_text()
        for name in ("encoder 1, second text over the first text", "encoder 2, first text over the second text"):
            self.assertIn(name, page)

    def test_refuses_what_is_no_pair(self):
        for line, words in (("the red car", "the source is one text"), ("a\t ", "the second text of the pair is empty"),
                            ("\ta", "the first text of the pair is empty"), ("a\tb\tc", "several TABs")):
            self.refuse("predict", self.model, stdin=line + "\n", names=[words])
        for line, words in (("a\tsame", "bad.tsv:1: only one TAB"), ("a\tb\tc\tsame", "bad.tsv:1: more than two TABs"),
                            ("a\t \tsame", "bad.tsv:1: the second text")):
            self.write("bad.tsv", line + "\n")
            self.refuse("train", "--data", "bad.tsv", "--out", "bad", *settings(SMALL), names=[words])
            self.refuse("evaluate", self.model, "--data", "bad.tsv", names=[words])
        self.refuse("train", "--data", self.shared, "--out", "bad",
                    *settings({"data.pairs": "always", "model.type": "tagger"}),
                    names=["model.type tagger reads single texts"])

    def test_goes_on_after_bad_pairs(self):
        done = self.attend("predict", self.model, "--skip-bad", "--json",
                           stdin="the red car\nthe red car\ta red bus\n")
        self.assertEqual(done.returncode, 1, done.stderr)
        first, second = map(json.loads, done.stdout.splitlines())
        self.assertIn("one text", first["error"])
        self.assertEqual(second["predictions"][0]["target"], "same")

    def test_learns_probabilities(self):
        self.write("train.tsv", rows(400, 1, ("0.9", "0.1")))
        self.write("valid.tsv", rows(80, 2, ("0.9", "0.1")))
        self.succeed("train", "--data", ".", "--out", "scores", *settings({**SMALL, "data.target": "probability"}))
        answers = self.succeed("predict", "scores", stdin="the red car\ta red bus\nthe red car\ta blue bus\n")
        same, other = map(float, answers.stdout.split())
        self.assertAlmostEqual(same, 0.9, delta=0.05)
        self.assertAlmostEqual(other, 0.1, delta=0.05)
        self.write("bad.tsv", "a\tb\t1.5\n")
        self.refuse("evaluate", "scores", "--data", "bad.tsv", names=["bad.tsv:1", "not a number from 0 to 1"])


if __name__ == "__main__":
    program.main()
