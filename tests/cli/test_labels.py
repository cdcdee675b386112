"""Several labels at once: learned from a CSV, answered, measured, explained, served and refused."""

import csv
import io
import json
import math
import pathlib
import random
import shutil
import tempfile

import program
from program import settings
from test_serve import Server

SMALL = {"model.type": "classifier", "data.target": "labels", "model.depth": 16, "model.pooling": "fixed_mlp",
         "model.attention_depth": 8, "model.word_dropout": 0, "model.output_dropout": 0, "train.replicas": 1,
         "train.batch": 20, "train.warmup_steps": 10, "train.epochs": 25, "train.learning_rate": 2e-2,
         "train.weight_average": 0.9, "train.patience": 0}

TOPICS = {"goal": "sport", "match": "sport", "vote": "world politics", "law": "world politics", "bank": "money",
          "price": "money"}
NOISE = "the a of it was".split()


def rows(count, seed):
    """Texts with none to three words that determine labels."""
    chance = random.Random(seed)
    for _ in range(count):
        words = chance.sample(sorted(TOPICS), chance.randint(0, 3))
        text = words + chance.choices(NOISE, k=chance.randint(1, 4))
        chance.shuffle(text)
        labels = sorted({TOPICS[word] for word in words})
        chance.shuffle(labels)
        yield " ".join(text), labels


def as_csv(pairs, separator="|"):
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(["text", "topics"])
    writer.writerows((text, separator.join(labels)) for text, labels in pairs)
    return out.getvalue()


class Labels(program.Case):
    """A model that has learned the labels of words, for all tests below."""

    @classmethod
    def setUpClass(cls):
        cls.shared = pathlib.Path(tempfile.mkdtemp(prefix="attend-test-"))
        cls.addClassCleanup(shutil.rmtree, cls.shared)
        cls.test = list(rows(100, 3))
        for part, pairs in (("train", rows(300, 1)), ("valid", rows(60, 2)), ("test", cls.test)):
            (cls.shared / f"{part}.csv").write_text(as_csv(pairs))
        cls.training = program.attend("train", "--data", "train.csv", "--valid", "valid.csv", "--out", "model",
                                      "--json", *settings(SMALL), cwd=cls.shared)
        assert cls.training.returncode == 0, cls.training.stderr
        cls.model = cls.shared / "model"

    def test_training_reports_f1(self):
        self.assertGreater(json.loads(self.training.stdout)["valid_micro_f1"], 0.98)

    def test_predicts_any_number_of_labels(self):
        lines = self.succeed("predict", self.model, stdin="the vote was a goal\nit was the\n\nbank\n").stdout
        self.assertEqual(lines, "sport|world politics\n\n\nmoney\n")
        answer, = json.loads(self.succeed("predict", self.model, "--json", "--details", stdin="the law\n").stdout)[
            "predictions"]
        self.assertEqual(answer["target"], "world politics")
        self.assertEqual(answer["tokens"], ["world politics"])
        labels = {one["label"]: one["probability"] for one in answer["labels"]}
        self.assertEqual(list(labels)[0], "world politics")
        self.assertEqual(set(labels), set(TOPICS.values()))
        logarithm = sum(math.log(max(p, 1 - p)) for p in labels.values())
        self.assertAlmostEqual(answer["log_probability"], logarithm, places=4)
        both = self.succeed("predict", self.model, self.model, stdin="the vote was a goal\n").stdout
        self.assertEqual(both, "sport|world politics\n", "the mean of two that are one")
        for options in (["--beam", "2"], ["--samples", "2"], ["--prefixes"]):
            self.refuse("predict", self.model, *options, stdin="a\tb\n", names=["the model answers a set of labels"])

    def test_evaluates(self):
        answers = self.succeed("predict", self.model, stdin="".join(f"{text}\n" for text, _ in self.test)).stdout
        answered = [set(line.split("|")) - {""} for line in answers.split("\n")[:-1]]
        wanted = [set(labels) for _, labels in self.test]
        right = sum(len(a & b) for a, b in zip(answered, wanted, strict=True))
        run = self.succeed("evaluate", self.model, "--data", self.shared / "test.csv", "--json")
        figures = json.loads(run.stdout)
        self.assertAlmostEqual(figures["micro_f1"], 2 * right / sum(map(len, answered + wanted)))
        self.assertAlmostEqual(figures["exact_match"], sum(map(set.__eq__, answered, wanted)) / len(wanted))
        self.assertGreater(figures["macro_f1"]["f1"], 0.98)
        self.assertEqual(set(figures["macro_f1"]["labels"]), set(TOPICS.values()))
        self.assertLess(figures["loss"], 3 * math.log(2))
        self.assertNotIn("confusion", figures)
        text = self.succeed("evaluate", self.model, "--data", self.shared / "test.csv").stdout
        self.assertRegex(text, r"(?m)^micro f1 +\d+\.\d\d %$")
        self.assertRegex(text, r"(?m)^loss +\d\.\d+ nats per source$")
        self.assertRegex(text, r"(?m)^label sport: F1 ")
        self.succeed("evaluate", self.model, "--data", self.shared / "test.csv", "--scores", "scores")
        scores = (self.folder / "scores").read_text().splitlines()
        mean = -sum(float(line.split("\t")[2]) for line in scores) / len(scores)
        self.assertAlmostEqual(mean, figures["loss"], places=4)

    def test_a_label_that_training_lacks_is_wrong(self):
        self.write("odd.csv", as_csv([("goal", ["sport", "art"]), ("vote", ["world politics"])]))
        run = self.succeed("evaluate", self.model, "--data", "odd.csv", "--json")
        self.assertIn("'art' in odd.csv:2", run.stderr)
        figures = json.loads(run.stdout)
        self.assertEqual(figures["exact_match"], 0.5)
        self.assertAlmostEqual(figures["micro_f1"], 4 / 5)

    def test_bad_targets_are_refused_at_their_line(self):
        good = as_csv(rows(30, 5))
        for target, problem in (("sport||money", "has an empty label"), ("|", "has an empty label"),
                                ("sport|sport", "has label 'sport' twice")):
            self.write("bad.csv", good + f"goal,{target}\n")
            for command in (["train", "--data", "bad.csv", "--out", "new", *settings(SMALL)],
                            ["evaluate", self.model, "--data", "bad.csv"]):
                self.refuse(*command, names=["bad.csv:32", problem])
        run = self.attend("evaluate", self.model, "--data", "bad.csv", "--json", "--skip-bad")
        self.assertEqual(run.returncode, 1)
        self.assertEqual(json.loads(run.stdout)["examples"], 30)
        self.refuse("train", "--data", "bad.csv", "--out", "new", *settings(SMALL | {"train.label_smoothing": 0.1}),
                    names=["train.label_smoothing", "set it to 0"])
        run = self.attend("data", "check", "bad.csv", "--set", "data.target=labels", "--json")
        self.assertEqual(run.returncode, 1)
        checked, = json.loads(run.stdout)["files"]
        self.assertEqual([odd["kind"] for odd in checked["odd"] if odd["kind"] == "malformed"], ["malformed"])
        self.assertEqual(set(checked["labels"]), set(TOPICS.values()))

    def test_other_separators(self):
        short = SMALL | {"train.epochs": 1, "data.label_separator": "; "}
        self.write("train.csv", as_csv(rows(60, 1), "; "))
        self.succeed("train", "--data", "train.csv", "--out", "other", *settings(short))
        config = json.loads(self.succeed("inspect", "other", "--json").stdout)
        self.assertEqual(config["config"]["data.label_separator"], "; ")
        self.assertEqual(config["target_tokens"], 4 + 3)
        self.succeed("train", "--data", "train.csv", "--out", "other", "--resume", "--set", "train.epochs=2")

    def test_explains_one_label(self):
        def explained(*options):
            return json.loads(self.succeed("explain", self.model, "the vote was a goal", "--json", *options).stdout)

        for label, word in (("sport", "goal"), ("world politics", "vote")):
            picture = explained("--target", label, "--method", "occlusion")
            self.assertEqual(picture["target"], [label])
            scores = dict(zip(picture["source"], picture["scores"][0]))
            self.assertEqual(max(scores, key=scores.get), word)
        self.assertIn(explained()["target"], (["sport"], ["world politics"]))
        self.succeed("explain", self.model, "it was the", "--out", "page.html")
        self.assertIn("occlusion", (self.folder / "page.html").read_text())
        self.refuse("explain", self.model, "goal", "--target", "sport|money", names=["2 labels", "give one"])
        self.refuse("explain", self.model, "goal", "--target", "art", names=["'art'"])
        self.refuse("explain", self.model, "goal", "--against", "money", names=["leave it out"])
        self.succeed("faithfulness", self.model, "--data", self.shared / "test.csv", "--examples", "5")

    def test_serves_the_probabilities(self):
        server = Server("model", "--port", 0, "--threads", 1, cwd=self.shared)
        self.addCleanup(server.end)

        def answer(path, **fields):
            status, _, body = server.ask("POST", path, fields)
            self.assertEqual(status, 200, body)
            return json.loads(body)

        predicted, = answer("/v1/predict", texts=["the law"])["answers"]
        labels = predicted["predictions"][0]["labels"]
        classified, = answer("/v1/classify", texts=["the law"])["answers"]
        self.assertEqual([{"label": one["target"], "probability": one["probability"]}
                          for one in classified["predictions"]], labels)
        best, = answer("/v1/classify", texts=["the law"], nbest=1)["answers"]
        self.assertEqual(best["predictions"], classified["predictions"][:1])
        scores = answer("/predict", inputs="the law")
        self.assertEqual([one["label"] for one in scores], [one["label"] for one in labels])
        self.assertAlmostEqual(scores[0]["score"], labels[0]["probability"], places=6)
        for path in "/predict", "/":
            self.assertEqual(answer(path, inputs="the law", parameters={"top_k": 1}), scores[:1])
        picture, = answer("/v1/explain", text="the law", target="money")["explanations"]
        self.assertEqual(picture["target"], ["money"])


if __name__ == "__main__":
    program.main()
