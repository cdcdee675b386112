"""From a dictionary to a trained model, its answers, its errors and an image of its attention."""

import collections
import html.parser
import json
import math
import pathlib
import random
import shutil
import subprocess
import tempfile
import unittest
import xml.etree.ElementTree

import program
from program import SMALL, as_pairs, edit_distance, read_safetensors, settings

# Overfits 200 words in about 30 epochs.
BY_HEART = SMALL | {"model.hidden": 64, "model.attention_depth": 32, "model.dropout": 0.0,
                    "train.label_smoothing": 0.0, "train.epochs": 45, "train.warmup_steps": 50}

MARKUP = "</script><b>&amp;\"'<!--"


class Dictionary(program.Case):
    """A model that has overfitted 200 words, for all classes below."""

    shared = None

    @classmethod
    def setUpClass(cls):
        if Dictionary.shared is None:
            Dictionary.learn()

    @staticmethod
    def learn():
        cls = Dictionary
        words = program.dictionary_words()
        cls.shared = pathlib.Path(tempfile.mkdtemp(prefix="attend-test-"))
        unittest.addModuleCleanup(shutil.rmtree, cls.shared)
        chosen = random.Random(2).sample(sorted(words), 400)
        cls.words = {word: words[word][:1] for word in chosen[:200]}
        # Unseen words with all their pronunciations, so that there are errors, and ambiguous words.
        several = [word for word in words if len(words[word]) > 1][:50]
        cls.unseen = {word: words[word] for word in chosen[200:] + several}
        (cls.shared / "train.tsv").write_text(as_pairs(cls.words))
        (cls.shared / "test.tsv").write_text(as_pairs(cls.unseen))
        cls.training = program.attend("train", "--data", "train.tsv", "--valid", "train.tsv",
                                      "--out", "model", "--json", *settings(BY_HEART),
                                      cwd=cls.shared)
        assert cls.training.returncode == 0, cls.training.stderr
        cls.model = cls.shared / "model"

    def predict(self, words, *options):
        stdin = "".join(f"{word}\n" for word in words)
        return self.succeed("predict", self.model, *options, stdin=stdin).stdout.splitlines()


class Train(Dictionary):
    def test_words_by_heart(self):
        report = json.loads(self.training.stdout)
        self.assertLess(report["valid_token_error_rate"], 0.02)
        self.assertEqual(report["model"], "model")
        self.assertEqual(report["steps"], 10 * BY_HEART["train.epochs"])
        self.assertGreater(report["seconds"], 0)

    def test_one_line_of_metrics_a_validation(self):
        records = program.read_metrics(self.model)
        self.assertEqual([record["epoch"] for record in records],
                         list(range(1, BY_HEART["train.epochs"] + 1)))
        self.assertEqual([record["step"] for record in records],
                         [10 * record["epoch"] for record in records])
        for record in records:
            self.assertEqual(set(record), {"step", "epoch", "train_loss", "valid_loss",
                                           "metric", "valid_metric", "best", "learning_rate",
                                           "skipped_steps", "rollbacks",
                                           "pairs_per_second", "seconds"})
        best = min(records, key=lambda record: record["valid_metric"])
        self.assertEqual(best["valid_metric"],
                         json.loads(self.training.stdout)["valid_token_error_rate"])
        self.assertLess(records[-1]["train_loss"], 0.1 * records[0]["train_loss"])

    def test_progress_in_plain_lines(self):
        lines = self.training.stderr.splitlines()
        self.assertIn("200 training", lines[0])
        for line in lines[1:]:
            self.assertRegex(line, r"^epoch \d+ step \d+/450 loss [\d.]+ \d+ pairs/s .*left$")
        self.assertNotIn("\r", self.training.stderr)


class Predict(Dictionary):
    def test_answers_in_order(self):
        words = list(self.words)
        random.Random(3).shuffle(words)
        answers = self.predict(words)
        self.assertEqual(len(answers), len(words))
        edits = sum(edit_distance(answer.split(), self.words[word][0].split())
                    for word, answer in zip(words, answers))
        tokens = sum(len(targets[0].split()) for targets in self.words.values())
        self.assertLess(edits / tokens, 0.02)

    def test_answer_depends_on_its_line_alone(self):
        words = list(self.words)[:40]
        alone = [self.predict([word])[0] for word in words[:3]]
        self.assertEqual(self.predict(words)[:3], alone)
        self.assertEqual(self.predict(words, "--threads", "3")[:3], alone)

    def test_streams(self):
        command = [program.PROGRAM, "predict", str(self.model)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                              env=program.environment()) as run:
            for word in list(self.words)[:3]:
                run.stdin.write(word + "\n")
                run.stdin.flush()
                # The answer arrives while the input is open.
                self.assertEqual(run.stdout.readline(), self.predict([word])[0] + "\n")
            run.stdin.close()
            self.assertEqual(run.wait(), 0)

    def test_nbest(self):
        words = list(self.unseen)[:5]
        rows = [line.split("\t") for line in self.predict(words, "--beam", "4", "--nbest", "3")]
        self.assertEqual([row[0] for row in rows], [word for word in words for _ in range(3)])
        best = self.predict(words, "--beam", "4")
        for i in range(len(words)):
            answers = rows[3 * i:3 * i + 3]
            self.assertEqual(answers[0][1], best[i])
            self.assertEqual(len({answer[1] for answer in answers}), 3)
            scores = [float(answer[2]) for answer in answers]
            self.assertEqual(scores, sorted(scores, reverse=True))

    def test_json(self):
        words = list(self.unseen)[:5]
        best = self.predict(words, "--beam", "2")
        lines = self.predict(words, "--beam", "2", "--nbest", "2", "--json")
        for word, answer, line in zip(words, best, lines):
            record = json.loads(line)
            self.assertEqual(set(record), {"source", "predictions", "cut", "unknown"})
            self.assertEqual((record["source"], record["cut"]), (word, False))
            self.assertEqual(len(record["predictions"]), 2)
            self.assertEqual(record["predictions"][0]["target"], answer)
            for prediction in record["predictions"]:
                self.assertEqual(set(prediction),
                                 {"target", "score", "log_probability", "complete"})
                self.assertLessEqual(prediction["log_probability"], 0)


class Evaluate(Dictionary):
    def evaluate(self, data, *options):
        return json.loads(self.succeed("evaluate", self.model, "--data", data, "--json",
                                       *options).stdout)

    def test_rates_are_those_of_the_answers(self):
        report = self.evaluate(self.shared / "test.tsv", "--beam", "2", "--references", "merged")
        answers = self.predict(self.unseen, "--beam", "2")
        totals = collections.Counter()
        by_length = collections.defaultdict(collections.Counter)
        for (word, targets), answer in zip(self.unseen.items(), answers):
            # The nearest pronunciation counts, or the first one of several.
            edits, length = min(((edit_distance(answer.split(), target.split()),
                                  len(target.split())) for target in targets),
                                key=lambda pair: pair[0])
            counts = {"examples": 1, "edits": edits, "symbols": length, "wrong": edits > 0}
            totals.update(counts)
            by_length[len(word)].update(counts)
        self.assertGreater(totals["wrong"], 0)
        self.assert_rates(report, totals)
        self.assertEqual(report["sources"], len(self.unseen))
        self.assertEqual(report["references"], sum(map(len, self.unseen.values())))
        self.assertEqual([part["source_length"] for part in report["by_length"]],
                         sorted(by_length))
        for part in report["by_length"]:
            self.assert_rates(part, by_length[part["source_length"]])

    def assert_rates(self, report, counts):
        self.assertEqual(report["examples"], counts["examples"])
        self.assertAlmostEqual(report["token_error_rate"], counts["edits"] / counts["symbols"], 12)
        self.assertAlmostEqual(report["sequence_error_rate"], counts["wrong"] / counts["examples"],
                               12)

    def test_keys(self):
        (self.folder / "test.tsv").write_text(as_pairs(self.words))
        report = self.evaluate(self.folder)
        self.assertEqual(set(report), {"token_error_rate", "sequence_error_rate", "loss",
                                       "perplexity", "examples", "sources", "references", "beam",
                                       "decode_seconds", "by_length", "known_loss",
                                       "unknown_tokens"})
        self.assertLess(report["token_error_rate"], 0.02)
        self.assertEqual((report["examples"], report["beam"]), (200, 1))
        self.assertAlmostEqual(report["perplexity"], math.exp(report["loss"]), 9)

    def test_loss_is_the_probability_of_the_answer(self):
        word = next(iter(self.unseen))
        record = json.loads(self.predict([word], "--json")[0])["predictions"][0]
        self.assertTrue(record["complete"])
        data = self.write("one.tsv", f"{word}\t{record['target']}\n")
        tokens = len(record["target"].split()) + 1
        # Both sum single-precision logarithms of up to `tokens` steps.
        self.assertAlmostEqual(-record["log_probability"], self.evaluate(data)["loss"] * tokens, 4)

    def test_text(self):
        text = self.succeed("evaluate", self.model, "--data", self.shared / "train.tsv").stdout
        for name in ("token error rate", "sequence error rate", "loss", "perplexity", "examples"):
            self.assertRegex(text, rf"(?m)^{name} +[\d.]+")


class Tags(html.parser.HTMLParser):
    """Counts elements."""

    def __init__(self, text):
        super().__init__()
        self.counts = collections.Counter()
        self.addresses = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.counts[tag] += 1
        self.addresses += [value for name, value in attributes if name in ("src", "href")]


class Explain(Dictionary):
    def explain(self, text, name):
        run = self.succeed("explain", self.model, text, "--out", name)
        self.assertEqual(run.stdout, "")
        return (self.folder / name).read_bytes()

    def test_json(self):
        word = next(iter(self.words))
        record = json.loads(self.explain(word, "map.json"))
        self.assertEqual(set(record), {"title", "source", "target", "weights"})
        self.assertEqual(record["source"], list(word))
        self.assertEqual(" ".join(record["target"]), self.predict([word])[0])
        self.assertEqual(len(record["weights"]), len(record["target"]))
        for row in record["weights"]:
            self.assertEqual(len(row), len(word))
            self.assertTrue(all(0 <= weight <= 1 for weight in row))
            # A softmax in single precision over at most eight tokens.
            self.assertAlmostEqual(sum(row), 1, delta=8 * 2**-23)
        printed = self.succeed("explain", self.model, word, "--json").stdout
        self.assertEqual(json.loads(printed), record)

    def test_pictures(self):
        word = next(iter(self.words))
        svg = xml.etree.ElementTree.fromstring(self.explain(word, "map.svg"))
        self.assertEqual(svg.tag, "{http://www.w3.org/2000/svg}svg")
        png = self.explain(word, "map.png")
        self.assertEqual(png[:8], b"\x89PNG\r\n\x1a\n")
        self.assertEqual(png[-8:-4], b"IEND")
        page = self.explain(word, "map.html").decode()
        self.assertTrue(page.lower().startswith("<!doctype html>"))
        # A self-contained file that loads nothing.
        for address in Tags(page).addresses:
            self.assertRegex(address, "^(data:|#)")
        self.assertNotRegex(page, r"@import|url\((?!#|data:)")

    def test_terminal(self):
        word = next(iter(self.words))
        text = self.succeed("explain", self.model, word).stdout
        self.assertNotIn("\x1b", text)
        for phoneme in self.predict([word])[0].split():
            self.assertRegex(text, rf"(?m)^\s*{phoneme}\s")
        self.assertTrue(all(len(line) <= 80 for line in text.splitlines()))

    def test_markup_is_escaped(self):
        self.assertEqual(json.loads(self.explain(MARKUP, "map.json"))["source"], list(MARKUP))
        xml.etree.ElementTree.fromstring(self.explain(MARKUP, "map.svg"))
        plain = Tags(self.explain("a" * len(MARKUP), "plain.html").decode())
        marked = Tags(self.explain(MARKUP, "marked.html").decode())
        for tag in ("script", "b", "style", "svg", "body"):
            self.assertEqual(marked.counts[tag], plain.counts[tag], tag)
        self.explain(MARKUP, "map.png")


class Inspect(Dictionary):
    def test_json(self):
        record = json.loads(self.succeed("inspect", self.model, "--json").stdout)
        _, tensors = read_safetensors(self.model / "weights.safetensors")
        self.assertEqual({part["name"]: part["shape"] for part in record["parameters"]},
                         {name: shape for name, (_, shape, _) in tensors.items()})
        self.assertEqual(record["parameter_count"],
                         sum(math.prod(shape) for _, shape, _ in tensors.values()))
        self.assertEqual(record["history"], program.read_metrics(self.model))
        self.assertEqual(record["config"]["model.hidden"], 64)
        for side in ("source", "target"):
            lines = (self.model / f"{side}.vocab").read_text().splitlines()
            self.assertEqual(record[f"{side}_tokens"], len(lines))

    def test_text(self):
        text = self.succeed("inspect", self.model).stdout
        for name in ("model.hidden", "attention", "output.bias", "valid loss", "best"):
            self.assertIn(name, text)


class Mechanisms(program.Case):
    """Every score trains, also with the other cell and with other units."""

    def train(self, **changes):
        self.write("pairs.tsv", program.PAIRS)
        self.succeed("train", "--data", "pairs.tsv", "--valid", "pairs.tsv", "--out", "model",
                     *settings(SMALL | {"train.epochs": 2} | changes))
        return program.read_metrics(self.folder / "model")

    def test_every_score(self):
        for score in ("dot", "scaled_dot", "general", "cosine", "location"):
            with self.subTest(score):
                records = self.train(**{"model.score": score, "model.cell": "lstm"})
                self.assertLess(records[-1]["train_loss"], records[0]["train_loss"])
                weights = json.loads(self.succeed("explain", "model", "bab", "--json").stdout)
                for row in weights["weights"]:
                    self.assertAlmostEqual(sum(row), 1, delta=1e-5)
                shutil.rmtree(self.folder / "model")

    def test_without_attention(self):
        records = self.train(**{"model.score": "none"})
        self.assertLess(records[-1]["train_loss"], records[0]["train_loss"])
        self.assertEqual(len(self.succeed("predict", "model", stdin="bab\ndad\n").stdout
                             .splitlines()), 2)
        self.succeed("explain", "model", "bab", "--out", "map.svg")
        self.assertIn("occlusion", (self.folder / "map.svg").read_text())


if __name__ == "__main__":
    program.main()
