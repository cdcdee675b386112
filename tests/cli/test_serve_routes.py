"""attend serve: what the programs of others ask, answered as at the prompt."""

import json
import math
import pathlib
import shutil
import tempfile

import program
from program import settings
from test_classify import SMALL as CLASSIFIER
from test_classify import as_tsv, reviews
from test_language_model import SMALL as TEXT
from test_language_model import text
from test_serve import Server
from test_tagger import SMALL as TAGGER
from test_tagger import sentences

# What each is trained on, and how; two epochs are enough to tell answers apart.
MODELS = {"reviews": ("reviews.tsv", as_tsv(reviews(200, 1)), CLASSIFIER),
          "places": ("places.tsv", as_tsv(sentences(100, 1)), TAGGER),
          "text": ("text.txt", text(60, 1), TEXT)}


class Routes(program.Case):
    """One server with a model of each kind, for all the tests below."""

    @classmethod
    def setUpClass(cls):
        cls.shared = pathlib.Path(tempfile.mkdtemp(prefix="attend-test-"))
        cls.addClassCleanup(shutil.rmtree, cls.shared)
        for name, (data, lines, small) in MODELS.items():
            (cls.shared / data).write_text(lines)
            run = program.attend("train", "--data", data, "--out", name,
                                 *settings(small | {"train.epochs": 2}), cwd=cls.shared)
            assert run.returncode == 0, run.stderr
        cls.server = Server(*MODELS, "--port", 0, "--threads", 1, cwd=cls.shared)
        cls.addClassCleanup(cls.server.end)

    def answer(self, path, **fields):
        status, _, body = self.server.ask("POST", path, fields)
        self.assertEqual(status, 200, body)
        return json.loads(body)

    def refusal(self, path, status, **fields):
        """The error's object, or what it is of another form."""
        found, _, body = self.server.ask("POST", path, fields)
        self.assertEqual(found, status, body)
        return json.loads(body)["error"]

    def predicted(self, model, texts, *options):
        """What predict --json prints for the texts."""
        run = program.attend("predict", model, "--json", *options, cwd=self.shared,
                             stdin="".join(f"{text}\n" for text in texts))
        self.assertEqual(run.returncode, 0, run.stderr)
        return [json.loads(line) for line in run.stdout.splitlines()]

    def test_labels_of_texts(self):
        texts = ["the film was great", "dull plot", "zzz", ""]
        answers = self.answer("/v1/classify", model="reviews", texts=texts)
        self.assertEqual(answers["model"], "reviews")
        printed = self.predicted("reviews", texts, "--beam", 2, "--nbest", 2)
        for found, told in zip(answers["answers"], printed, strict=True):
            self.assertEqual([one["target"] for one in found["predictions"]],
                             [one["target"] for one in told["predictions"]])
            for one, other in zip(found["predictions"], told["predictions"]):
                self.assertEqual(one["probability"], math.exp(other["log_probability"]))
            for key in ("source", "cut", "unknown"):
                self.assertEqual(found[key], told[key])
        self.assertEqual(answers["answers"][3]["predictions"], [])
        first = answers["answers"][0]["predictions"]
        self.assertAlmostEqual(sum(one["probability"] for one in first), 1, 5)
        best = self.answer("/v1/classify", model="reviews", texts=texts[:1], nbest=1)
        self.assertEqual(best["answers"][0]["predictions"], first[:1])

    def test_labels_of_tokens(self):
        (line,), (answer,) = (self.predicted("places", ["in Oslo again"], "--details"),
                              self.answer("/v1/classify", model="places",
                                          texts=["in Oslo again"])["answers"])
        (told,) = line["predictions"]
        self.assertEqual(
            answer["predictions"],
            [{"source_token": token, "target": label, "probability": math.exp(logarithm)}
             for token, label, logarithm in zip(line["source_tokens"], told["tokens"],
                                                told["log_probabilities"], strict=True)])
        self.assertEqual(self.refusal("/v1/classify", 422, model="places", texts=["in Oslo"],
                                      nbest=2)["param"], "nbest")

    def test_models_without_labels_have_none(self):
        error = self.refusal("/v1/classify", 422, model="text", texts=["the"])
        self.assertEqual(error["param"], "model")
        self.assertIn("/v1/predict", error["message"])


if __name__ == "__main__":
    program.main()
