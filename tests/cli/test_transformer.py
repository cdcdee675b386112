"""A Transformer from pairs to answers: trained sufficiently, stopped, resumed and used."""

import json
import pathlib
import random
import shutil
import tempfile
import unittest

import program
from program import settings

SMALL = {"model.type": "transformer", "model.depth": 32, "model.feed_forward": 64,
         "model.encoder_layers": 1, "model.decoder_layers": 1, "model.dropout": 0,
         "data.joint_vocabulary": "true", "model.tied": "all",
         "data.source_units": "char", "data.target_units": "char",
         "train.replicas": 1, "train.batch": 50, "train.warmup_steps": 50,
         "train.learning_rate": 5e-3, "train.weight_average": 0.9, "train.patience": 0}


def reversed_words(count, seed):
    chance = random.Random(seed)
    words = set()
    while len(words) < count:
        words.add("".join(chance.choices("abcdef", k=chance.randint(2, 6))))
    return sorted(words)


def as_tsv(words):
    return "".join(f"{word}\t{word[::-1]}\n" for word in words)


class Reversal(program.Case):
    """A model that has learned to reverse words, which requires positions."""

    @classmethod
    def setUpClass(cls):
        cls.shared = pathlib.Path(tempfile.mkdtemp(prefix="attend-test-"))
        cls.addClassCleanup(shutil.rmtree, cls.shared)
        words = reversed_words(2200, 1)
        random.Random(2).shuffle(words)
        cls.test = words[2100:]
        (cls.shared / "train.tsv").write_text(as_tsv(words[:2000]))
        (cls.shared / "valid.tsv").write_text(as_tsv(words[2000:2100]))
        (cls.shared / "test.tsv").write_text(as_tsv(cls.test))
        cls.training = program.attend("train", "--data", cls.shared, "--out", "model", "--json",
                                      *settings(SMALL | {"train.epochs": 20}), cwd=cls.shared)
        assert cls.training.returncode == 0, cls.training.stderr
        cls.model = cls.shared / "model"

    def test_it_learned(self):
        # A guess from a word's set of letters would be wrong for most words.
        for beam in (1, 4):
            result = json.loads(self.succeed("evaluate", self.model, "--data", self.shared,
                                             "--beam", beam, "--json").stdout)
            self.assertLess(result["sequence_error_rate"], 0.1, beam)

    def test_predict_answers_each_line(self):
        lines = "\n".join(self.test[:20]) + "\n\n" + self.test[20] + "\n"
        alone = [self.succeed("predict", self.model, stdin=word + "\n").stdout.strip()
                 for word in self.test[:2]]
        answers = self.succeed("predict", self.model, stdin=lines).stdout.split("\n")
        self.assertEqual(answers[:2], alone)
        self.assertEqual(answers[20], "")
        self.assertEqual(len(answers), 23)

    def test_explain_shows_weights_of_every_letter(self):
        self.succeed("explain", self.model, "abcdef", "--out", "map.json")
        shown = json.loads((self.folder / "map.json").read_text())
        self.assertEqual(shown["source"], list("abcdef"))
        for row in shown["weights"]:
            self.assertEqual(len(row), 6)
            self.assertAlmostEqual(sum(row), 1, places=4)

    def test_a_stopped_training_goes_on_to_the_same_bits(self):
        short = SMALL | {"train.epochs": 2, "train.checkpoint_seconds": 0, "model.dropout": 0.1}
        self.succeed("train", "--data", self.shared, "--out", "whole", *settings(short))
        self.succeed("train", "--data", self.shared, "--out", "parts",
                     *settings(short | {"train.minutes": 1e-6}))
        self.succeed("train", "--data", self.shared, "--out", "parts", "--resume",
                     *settings({"train.minutes": 0}))
        whole, parts = ((self.folder / name / "weights.safetensors").read_bytes()
                        for name in ("whole", "parts"))
        self.assertEqual(whole, parts)

    def test_what_does_not_fit_is_told(self):
        for key, value, told in (("data.joint_vocabulary", "false", "data.joint_vocabulary"),
                                 ("model.heads", 5, "does not divide model.depth"),
                                 ("model.mechanism", "linformer", "take self"),
                                 ("model.cell", "gru", "model.cell")):
            self.refuse("train", "--data", self.shared, "--out", "none",
                        *settings(SMALL | {key: value}), names=[told])


if __name__ == "__main__":
    program.main()
