"""Language models and encoders: trained sufficiently, then used to continue or fill in texts."""

import gzip
import json
import math
import pathlib
import random
import shutil
import signal
import tempfile
import unittest

import program
from program import counting, settings

SMALL = {"model.type": "lm", "model.depth": 32, "model.feed_forward": 64, "model.layers": 2,
         "model.context": 32, "model.dropout": 0, "train.replicas": 1, "train.batch": 16,
         "train.warmup_steps": 20, "train.learning_rate": 5e-3, "train.weight_average": 0.9,
         "train.patience": 0}

# Each word determines the next one; the next line is one of two at random.
LINES = ["the cat sat on a mat\n", "my dog ran to you\n"]


def text(lines, seed):
    return "".join(random.Random(seed).choices(LINES, k=lines))


def check_resume(case, data, values):
    """Trains whole, and stopped and resumed; the weights must be equal."""
    short = SMALL | {"train.epochs": 2, "train.checkpoint_seconds": 0, "model.dropout": 0.1} | values
    files = ("--data", data, "--valid", data)
    case.succeed("train", *files, "--out", "whole", *settings(short))
    train = ["train", *files, "--out", "parts", "--resume", *settings(short)]
    run = case.attend(*train, env=counting(case.folder / "parts", signal=signal.SIGTERM, number=3,
                                           change="rename parts/checkpoint.safetensors"))
    case.assertEqual(run.returncode, 128 + signal.SIGTERM, run.stderr)
    case.succeed(*train)
    whole, parts = ((case.folder / name / "weights.safetensors").read_bytes() for name in ("whole", "parts"))
    case.assertEqual(whole, parts)


class Text(program.Case):
    """A model that has learned two lines, for all tests below."""

    @classmethod
    def setUpClass(cls):
        cls.shared = pathlib.Path(tempfile.mkdtemp(prefix="attend-test-"))
        cls.addClassCleanup(shutil.rmtree, cls.shared)
        (cls.shared / "text.txt").write_text(text(1000, 1))
        (cls.shared / "rest.txt").write_text(text(100, 2))
        cls.training = program.attend("train", "--data", "text.txt", "--out", "model", "--json",
                                      *settings(SMALL | {"train.epochs": 8}), cwd=cls.shared)
        assert cls.training.returncode == 0, cls.training.stderr
        cls.model = cls.shared / "model"

    def test_it_learned(self):
        data = text(1000, 1)
        # The text is split at the beginning of the line nearest to nine tenths.
        begins = [i + 1 for i, letter in enumerate(data) if letter == "\n"]
        cut = min(begins, key=lambda begin: abs(begin - len(data) * 9 // 10))
        self.assertIn(f"a text of {cut} bytes, {len(data) - cut}",
                      self.training.stderr)
        # One random choice, ln 2, per line of 20 tokens; a window begins within a line.
        figures = json.loads(self.training.stdout)
        self.assertLess(figures["valid_loss"], 0.3)
        self.assertGreater(figures["valid_loss"], math.log(2) / 21)

    def test_skips_lines_that_cannot_be_read(self):
        good = text(20, 3)
        self.write("good.txt", good)
        self.write("bad.txt", f"{good}the c".encode() + b"\xff\n\0\n")
        figures = []
        for name, options, code in (("good.txt", (), 0), ("bad.txt", ("--skip-bad",), 1)):
            run = self.attend("evaluate", self.model, "--data", name, "--json", *options)
            self.assertEqual(run.returncode, code, run.stderr)
            figures.append(json.loads(run.stdout))
        self.assertEqual(*figures)
        for message in ("bad.txt:21: ", "bad.txt:22: ", "bad.txt: 2 lines cannot be read"):
            self.assertIn(f"attend: {message}", run.stderr)
        self.refuse("evaluate", self.model, "--data", "bad.txt", names=["bad.txt:21: "])
        for kind in "lm", "encoder":
            command = ["train", "--data", "bad.txt", "--valid", "good.txt", *settings(
                {"model.type": kind, "model.depth": 4, "model.feed_forward": 4, "model.layers": 1,
                 "model.heads": 1, "train.replicas": 1, "train.steps": 1})]
            self.refuse(*command, "--out", "stopped", names=["bad.txt:21: "])
            run = self.attend(*command, "--out", f"skipping-{kind}", "--skip-bad")
            self.assertEqual(run.returncode, 1, run.stderr)
            self.assertIn("bad.txt: 2 lines cannot be read and are left out\n", run.stderr)

    def test_tells_another_normal_form(self):
        self.write("nfd.txt", text(20, 3).replace("a", "a\u0303"))
        command = ["train", "--valid", self.shared / "rest.txt", *settings(SMALL | {"train.steps": 1})]
        run = self.succeed(*command, "--data", "nfd.txt", "--out", "of-nfd")
        self.assertIn("attend: nfd.txt: is not in the normal form of answers "
                      "(data.normalise = nfc)\n", run.stderr)
        for name, data in (("none", "nfd.txt"), ("nfc", self.shared / "rest.txt")):
            run = self.succeed(*command, "--data", data, "--out", name, "--set",
                               f"data.normalise={name}")
            self.assertNotIn("normal form", run.stderr)

    def test_counts_what_it_does_not_know(self):
        self.write("odd.txt", text(20, 3).replace("cat", "XYZ"))
        odd = (self.folder / "odd.txt").read_text().count("XYZ") * 3
        figures = json.loads(self.succeed("evaluate", self.model, "--data", "odd.txt",
                                          "--json").stdout)
        self.assertEqual(figures["unknown_tokens"], odd)
        self.assertGreater(odd, 0)
        self.assertAlmostEqual(figures["bits_per_byte"], figures["known_loss"] / math.log(2), 9)
        self.assertNotAlmostEqual(figures["known_loss"], figures["loss"], 3)
        run = self.succeed("train", "--data", self.shared / "rest.txt", "--valid", "odd.txt",
                           "--out", "counted", *settings(SMALL | {"train.steps": 1}))
        self.assertIn(f"attend: validation: {odd} of {(self.folder / 'odd.txt').stat().st_size} "
                      "tokens are unknown to the model\n", run.stderr)
        self.assertIn(f"unknown tokens       {odd:6}; without them",
                      self.succeed("evaluate", self.model, "--data", "odd.txt").stdout)

    def test_evaluates(self):
        figures = json.loads(self.succeed("evaluate", self.model, "--data",
                                          self.shared / "rest.txt", "--json").stdout)
        rest = text(100, 2)
        self.assertEqual(figures["tokens"], len(rest))
        self.assertEqual(figures["bytes"], len(rest))
        self.assertGreater(figures["loss"], math.log(2) / 21)
        # With half a context before the predicted tokens there is less to guess than without.
        self.assertLess(figures["loss"], figures["window_loss"])
        self.assertLess(figures["loss"], 0.1)
        self.assertAlmostEqual(figures["perplexity"], math.exp(figures["loss"]), places=4)
        self.assertAlmostEqual(figures["bits_per_byte"], figures["loss"] / math.log(2), places=4)
        (self.folder / "rest.gz").write_bytes(gzip.compress(rest.encode()))
        again = json.loads(self.succeed("evaluate", self.model, "--data", "rest.gz",
                                        "--json").stdout)
        self.assertEqual(again, figures)
        shown = self.succeed("evaluate", self.model, "--data", "rest.gz").stdout
        self.assertIn(f"{figures['loss']:.4f} nats per token", shown)

    def test_goes_on_beyond_its_context(self):
        answer = json.loads(self.succeed("predict", self.model, "--json", "--maximum-length", 100,
                                         stdin="the cat sa\n").stdout)["predictions"][0]["target"]
        whole = "the cat sa" + answer
        self.assertEqual(len(answer), 100)
        self.assertTrue(all(line + "\n" in LINES for line in whole.split("\n")[:-1]), whole)

    def test_draws(self):
        drawn = {self.succeed("predict", self.model, "--seed", seed, "--maximum-length", 22,
                              stdin="the cat sat on a ma\n").stdout for seed in range(8)}
        self.assertGreater(len(drawn), 1)
        again = [self.succeed("predict", self.model, "--seed", 3, "--top-k", 2, "--maximum-length",
                              22, stdin="my dog ran\n\nthe\n").stdout for _ in range(2)]
        self.assertEqual(again[0], again[1])

    def test_lines_together_as_alone(self):
        lines = ["the c", "my dog", "my d", "you are so long that only the end is read of it all"]
        together = self.succeed("predict", self.model, "--maximum-length", 12, "--json",
                                stdin="".join(line + "\n" for line in lines))
        self.assertIn("line 4: cut to the last 16 tokens", together.stderr)
        for line, answer in zip(lines, together.stdout.splitlines()):
            alone = self.succeed("predict", self.model, "--maximum-length", 12, "--json",
                                 stdin=line + "\n").stdout
            self.assertEqual(json.loads(alone)["predictions"][0]["target"],
                             json.loads(answer)["predictions"][0]["target"])

    def test_shows_what_it_looked_at(self):
        self.succeed("explain", self.model, "the cat", "--maximum-length", 9, "--out", "map.json")
        shown = json.loads((self.folder / "map.json").read_text())
        self.assertEqual(shown["source"], list("the cat"))
        self.assertEqual("".join(shown["target"]), " sat on a")
        for row in shown["weights"]:
            self.assertLessEqual(sum(row), 1.0001)

    def test_a_stopped_training_goes_on_to_the_same_bits(self):
        check_resume(self, self.shared / "rest.txt", {"model.positions": "rotary"})

    def test_two_models_measure_as_one(self):
        one = json.loads(self.succeed("evaluate", self.model, "--data", self.shared / "rest.txt",
                                      "--json").stdout)
        two = json.loads(self.succeed("evaluate", self.model, self.model, "--data",
                                      self.shared / "rest.txt", "--json").stdout)
        self.assertAlmostEqual(one["loss"], two["loss"], places=4)


class Recurrences(program.Case):
    """Models with linear recurrences."""

    def train(self, out, values, *more):
        self.write("text.txt", text(1000, 1))
        return self.succeed("train", "--data", "text.txt", "--out", out, "--json", *more,
                            *settings(SMALL | {"train.epochs": 5} | values))

    def test_a_text_is_learned_continued_and_shown(self):
        run = self.train("model", {"model.layer": "gated_delta"})
        self.assertLess(json.loads(run.stdout)["valid_loss"], 0.3)
        for search in ((), ("--beam", 3)):
            answer = self.succeed("predict", "model", "--maximum-length", 100, *search,
                                  stdin="the cat sa\n").stdout
            whole = "the cat sa" + answer
            self.assertTrue(all(line + "\n" in LINES for line in whole.split("\n")[:-2]), whole)
        details = json.loads(self.succeed("predict", "model", "--json", "--details",
                                          stdin="the cat sa\n").stdout)
        self.assertNotIn("weights", details["predictions"][0])
        self.succeed("explain", "model", "the cat", "--maximum-length", 9, "--out", "map.json")
        shown = json.loads((self.folder / "map.json").read_text())
        self.assertEqual("".join(shown["target"]), " sat on a")
        self.assertTrue(any(weight < 0 for row in shown["weights"] for weight in row))
        self.refuse("explain", "model", "the cat", "--method", "rollout",
                    names=["method rollout: weights may be negative"])

    def test_layers_alternate(self):
        run = self.train("model", {"model.layer": "kda,attention", "model.positions": "none"})
        self.assertLess(json.loads(run.stdout)["valid_loss"], 0.3)
        details = json.loads(self.succeed("predict", "model", "--json", "--details",
                                          stdin="the cat sa\n").stdout)
        self.assertIn("weights", details["predictions"][0])

    def test_a_stopped_training_goes_on_to_the_same_bits(self):
        self.write("text.txt", text(100, 1))
        check_resume(self, "text.txt", {"model.layer": "gated_delta"})

    def test_other_names_are_refused(self):
        self.write("text.txt", text(50, 1))
        for values, names in (
                ({"model.layer": "gated-delta"}, ["model.layer", "did you mean gated_delta?"]),
                ({"model.layer": "kda,"}, ["model.layer", "''"]),
                ({"model.layer": ""}, ["model.layer", "''"]),
                ({"model.layer": "gla", "model.type": "encoder", "model.heads": 1},
                 ["model.heads is 1", "even"])):
            with self.subTest(**values):
                chosen = {key: value for key, value in SMALL.items() if key != "model.context"}
                self.refuse("train", "--data", "text.txt", "--out", "none",
                            *settings(chosen | values), names=names)


class Texts(program.Case):
    """Other tokens, other files."""

    QUICK = SMALL | {"train.epochs": 1, "model.depth": 16, "model.layers": 1, "model.heads": 2}

    def train(self, data, values, *more):
        return self.succeed("train", "--data", data, "--out", "model", *more,
                            *settings(self.QUICK | values))

    def test_words_bytes_and_pieces(self):
        self.write("text.txt", "Zoë läuft\n" * 200)
        self.succeed("data", "bpe", "train", "text.txt", "--merges", 6, "--out", "codes")
        for units, extra, tokens in (("space", {}, 4 + 3), ("byte", {}, 4 + 256),
                                      ("bpe", {"data.bpe": "codes"}, None)):
            told = self.train("text.txt", extra, "--source-units", units, "--target-units",
                              units).stderr
            if tokens:
                self.assertIn(f"; {tokens} tokens", told)
            figures = json.loads(self.succeed("evaluate", "model", "--data", "text.txt",
                                              "--json").stdout)
            self.assertEqual(figures["bytes"], len("Zoë läuft\n".encode()) * 200)
            self.assertTrue(math.isfinite(figures["loss"]))
            self.succeed("predict", "model", "--maximum-length", 5, stdin="Zoë\n")
            self.succeed("inspect", "model")
            shutil.rmtree(self.folder / "model")

    def test_pairs_are_learned_as_prompts_and_answers(self):
        words = sorted({"".join(random.Random(i).choices("abc", k=4)) for i in range(300)})
        self.write("pairs.tsv", "".join(f"{word}\t{word.upper()}\n" for word in words))
        self.train("pairs.tsv", {"train.epochs": 60, "model.depth": 32}, "--valid", "pairs.tsv")
        figures = json.loads(self.succeed("evaluate", "model", "--data", "pairs.tsv",
                                          "--json").stdout)
        self.assertLess(figures["token_error_rate"], 0.2)

    def test_a_folder_of_texts(self):
        for name in ("train", "valid", "test"):
            self.write(f"{name}.txt", text(50, 1))
        self.train(self.folder, {})
        self.succeed("evaluate", "model", "--data", self.folder)

    def test_what_does_not_fit_is_told(self):
        self.write("text.txt", text(50, 1))
        self.write("bad.txt", b"a good line\nb\xff\n")
        self.write("empty.txt", "")
        self.write("short.txt", "\n")
        for data, values, names in (
                ("none.txt", {}, ["none.txt", "no such file"]),
                ("bad.txt", {}, ["bad.txt:2"]),
                ("empty.txt", {}, ["empty.txt", "is empty"]),
                ("short.txt", {}, ["short.txt", "too short"]),
                ("text.txt", {"train.metric": "bleu"}, ["train.metric", "loss"]),
                ("text.txt", {"train.shuffle_buffer": 5}, ["train.shuffle_buffer"]),
                ("text.txt", {"data.joint_vocabulary": "false"}, ["data.joint_vocabulary = true"]),
                ("text.txt", {"data.source_units": "byte"}, ["data.target_units the same value"]),
                ("text.txt", {"model.context": 2}, ["model.context"]),
                ("text.txt", {"model.encoder_layers": 2}, ["model.encoder_layers"])):
            with self.subTest(data=data, **values):
                self.refuse("train", "--data", data, "--out", "none",
                            *settings(self.QUICK | values), names=names)


# All words of a line determine its kind (one of three) and thereby its label.
KINDS = {"sea": "wave fish salt boat tide foam".split(),
         "wood": "leaf deer moss oak fern bark".split(),
         "town": "tram shop roof lamp cafe yard".split()}


def kinds(count, seed):
    chance = random.Random(seed)
    return [(" ".join(chance.choices(KINDS[kind], k=chance.randint(3, 7))), kind)
            for kind in chance.choices(sorted(KINDS), k=count)]


class Masked(program.Case):
    """An encoder that has learned which words occur together, and a classifier initialised from it."""

    SMALL = {"model.type": "encoder", "model.depth": 16, "model.feed_forward": 32,
             "model.layers": 2, "model.heads": 2, "model.dropout": 0, "train.replicas": 1,
             "train.batch": 25, "train.warmup_steps": 20, "train.learning_rate": 5e-3,
             "train.weight_average": 0.9, "train.patience": 0}

    @classmethod
    def setUpClass(cls):
        cls.shared = pathlib.Path(tempfile.mkdtemp(prefix="attend-test-"))
        cls.addClassCleanup(shutil.rmtree, cls.shared)
        (cls.shared / "lines.txt").write_text("".join(f"{line}\n\n" for line, _ in kinds(500, 1)))
        (cls.shared / "rest.txt").write_text("".join(f"{line}\n" for line, _ in kinds(100, 2)))
        (cls.shared / "few.tsv").write_text("".join(f"{line}\t{kind}\n"
                                                    for line, kind in kinds(12, 3)))
        (cls.shared / "test.tsv").write_text("".join(f"{line}\t{kind}\n"
                                                     for line, kind in kinds(100, 4)))
        cls.training = program.attend("train", "--data", "lines.txt", "--out", "model", "--json",
                                      *settings(cls.SMALL | {"train.epochs": 15,
                                                             "data.lowercase": "true"}),
                                      cwd=cls.shared)
        assert cls.training.returncode == 0, cls.training.stderr
        cls.model = cls.shared / "model"

    def test_it_learned(self):
        # One of six words; without context it would be one of 18.
        figures = json.loads(self.succeed("evaluate", self.model, "--data",
                                          self.shared / "rest.txt", "--json").stdout)
        self.assertLess(figures["perplexity"], 9)
        self.assertGreater(figures["perplexity"], 5)
        self.assertEqual(figures["examples"], 100)
        self.assertEqual(figures["tokens"], sum(len(line.split()) for line, _ in kinds(100, 2)))
        self.assertIn("masked", self.succeed("evaluate", self.model, "--data",
                                                self.shared / "rest.txt").stdout)

    def test_is_not_asked_for_what_it_does_not_know(self):
        lines = [line for line, _ in kinds(100, 2)]
        known = self.shared / "rest.txt"
        # Lines of only unknown words come last, so that the random numbers are the same.
        self.write("odd.txt", "".join(f"{line}\n" for line in [*lines, "xyz zyx", "zzz"]))
        wanted, found = (json.loads(self.succeed("evaluate", self.model, "--data", name,
                                                 "--json").stdout) for name in (known, "odd.txt"))
        self.assertEqual(wanted["unknown_tokens"], 0)
        self.assertEqual(found, wanted | {"unknown_tokens": 3, "tokens": wanted["tokens"] + 3,
                                          "examples": 102})
        told = self.succeed("evaluate", self.model, "--data", "odd.txt").stdout
        self.assertRegex(told, r"unknown tokens +3; they are not masked\n")
        self.write("none.txt", "xyz zyx\n")
        self.refuse("evaluate", self.model, "--data", "none.txt", names=["none of the 2 tokens"])

    def test_fills_in_what_it_does_not_know(self):
        answer = self.succeed("predict", self.model, stdin="wave ??? tide foam\noak\n").stdout
        first, second = answer.splitlines()
        self.assertEqual(second, "oak")
        self.assertEqual(first.split()[0::2], ["wave", "tide"])
        self.assertIn(first.split()[1], KINDS["sea"])
        self.succeed("explain", self.model, "wave ??? tide foam", "--out", "map.json")
        shown = json.loads((self.folder / "map.json").read_text())
        self.assertEqual(len(shown["weights"]), 4)

    def test_begins_a_classifier(self):
        chosen = {key: value for key, value in self.SMALL.items() if key != "model.type"}
        chosen |= {"model.type": "classifier", "model.pooling": "class", "train.batch": 4,
                   "train.epochs": 12, "model.word_dropout": 0, "model.output_dropout": 0,
                   "train.learning_rate": 2e-3}
        accuracy = {}
        for name, init in (("begun", ["--init", self.model]), ("alone", [])):
            run = self.succeed("train", "--data", self.shared / "few.tsv", "--valid",
                               self.shared / "few.tsv", "--out", name, *init, *settings(chosen))
            accuracy[name] = json.loads(self.succeed("evaluate", name, "--data",
                                                     self.shared / "test.tsv",
                                                     "--json").stdout)["accuracy"]
            if init:
                self.assertRegex(run.stderr, r"[0-9]+ of [0-9]+ weights begin as in")
        self.assertGreater(accuracy["begun"], 0.75)
        self.assertGreater(accuracy["begun"], accuracy["alone"])
        # It reads texts like the encoder.
        self.write("shouted.tsv", "".join(f"{line.upper()}\t{kind}\n"
                                          for line, kind in kinds(100, 4)))
        shouted = json.loads(self.succeed("evaluate", "begun", "--data", "shouted.tsv",
                                          "--json").stdout)
        self.assertEqual(shouted["accuracy"], accuracy["begun"])

    def test_what_does_not_fit_is_told(self):
        self.write("text.txt", "a b\nb a\n" * 20)
        for values, names in (({"model.layers": 0}, ["model.layers is 0"]),
                              ({"train.metric": "bleu"}, ["train.metric", "loss"]),
                              ({"data.source_units": "byte"}, ["data.target_units the same value"]),
                              ({"model.masked_share": 0}, ["model.masked_share"])):
            self.refuse("train", "--data", "text.txt", "--out", "none",
                        *settings(self.SMALL | values), names=names)
        self.refuse("evaluate", self.model, self.model, "--data", self.shared / "rest.txt",
                    names=["one at a time"])


if __name__ == "__main__":
    program.main()
