"""Sampled answers, prefixes, ensembles and scores of answers."""

import json
import math
import pathlib
import random
import shutil
import tempfile
import unittest

import program
from program import PAIRS, SMALL, settings

SOURCES = [line.split("\t")[0] for line in PAIRS.splitlines()]
TARGETS = [line.split("\t")[1] for line in PAIRS.splitlines()]


class Models(program.Case):
    """Two models that have not fully learned their data, for the tests below."""

    shared = None

    @classmethod
    def setUpClass(cls):
        if Models.shared is None:
            Models.learn()

    @staticmethod
    def learn():
        cls = Models
        cls.shared = pathlib.Path(tempfile.mkdtemp(prefix="attend-test-"))
        unittest.addModuleCleanup(shutil.rmtree, cls.shared)
        cls.data = cls.shared / "pairs.tsv"
        cls.data.write_text(PAIRS)
        cls.models = []
        for seed in (1, 2):
            chosen = SMALL | {"train.epochs": 6, "train.seed": seed}
            run = program.attend("train", "--data", "pairs.tsv", "--valid", "pairs.tsv", "--out",
                                 f"model{seed}", *settings(chosen), cwd=cls.shared)
            assert run.returncode == 0, run.stderr
            cls.models.append(cls.shared / f"model{seed}")

    def predict(self, models, *options, lines=SOURCES):
        stdin = "".join(f"{line}\n" for line in lines)
        return self.succeed("predict", *models, *options, stdin=stdin).stdout.splitlines()

    def details(self, models, *options, lines=SOURCES):
        return [json.loads(line) for line in
                self.predict(models, "--json", "--details", *options, lines=lines)]

    def evaluate(self, models, *options):
        return json.loads(self.succeed("evaluate", *models, "--data", self.data, "--json",
                                       *options).stdout)


class Ensembles(Models):
    def test_probabilities_are_the_means(self):
        # Every answer begins with the target, so that all models see the same tokens.
        lines = [f"{source}\t{target}" for source, target in zip(SOURCES, TARGETS)]
        one, two, both = (self.details(models, "--prefixes", "--maximum-length", "1", lines=lines)
                          for models in ([self.models[0]], [self.models[1]], self.models))
        for first, second, mean, target in zip(one, two, both, TARGETS):
            parts = [record["predictions"][0] for record in (first, second, mean)]
            count = len(target.split())
            for part in parts:
                self.assertEqual(part["tokens"][:count], target.split())
            logs = [part["log_probabilities"][:count] for part in parts]
            for a, b, c in zip(*logs):
                # Single-precision logarithms.
                self.assertAlmostEqual(c, math.log((math.exp(a) + math.exp(b)) / 2), 5)

    def test_of_one_model_twice_is_the_model(self):
        model = self.models[0]
        self.assertEqual(self.predict([model, model], "--beam", "3"),
                         self.predict([model], "--beam", "3"))
        self.assertAlmostEqual(self.evaluate([model, model])["loss"],
                               self.evaluate([model])["loss"], 5)

    def test_other_vocabularies_are_refused(self):
        other = PAIRS.replace("b", "q").replace("B", "Q")
        self.write("other.tsv", other)
        run = self.attend("train", "--data", "other.tsv", "--valid", "other.tsv", "--out", "other",
                          *settings(SMALL | {"train.epochs": 1}))
        self.assertEqual(run.returncode, 0, run.stderr)
        self.refuse("predict", self.models[0], "other", names=["other", "other vocabularies"],
                    stdin="aba\n")


class Company(Models):
    """An answer depends only on its line, not on other lines or on the number of threads."""

    def assert_alone(self, models, *options):
        """Compares all numbers of --details, digit by digit."""
        # Sources of many lengths, so that batches have many sizes.
        lines = [word[:length] for length in (1, 2, 3) for word in SOURCES] + ["".join(SOURCES[:4])]
        options = ["--json", "--details", *options]
        together = self.predict(models, *options, "--threads", "1", lines=lines)
        for threads in ("2", "8"):
            self.assertEqual(together, self.predict(models, *options, "--threads", threads,
                                                    lines=lines))
        order = random.Random(1).sample(range(len(lines)), len(lines))
        moved = self.predict(models, *options, "--threads", "2", lines=[lines[i] for i in order])
        self.assertEqual([together[i] for i in order], moved)
        for first in range(0, len(lines), 61):
            self.assertEqual(together[first:first + 1],
                             self.predict(models, *options, lines=lines[first:first + 1]))

    def test_of_greedy_search(self):
        self.assert_alone([self.models[0]])

    def test_of_beams(self):
        self.assert_alone([self.models[0]], "--beam", "5", "--nbest", "5", "--coverage-penalty",
                          "0.3")

    def test_of_an_ensemble(self):
        # A regression test: five or more logarithms were once summed in another order within a
        # batch.
        self.assert_alone([*self.models, *self.models, self.models[0]], "--beam", "3")

    def test_of_a_language_model_beyond_its_context(self):
        chosen = {"model.depth": 20, "model.heads": 2, "model.layers": 2, "model.feed_forward": 21,
                  "model.context": 16, "train.epochs": 2, "train.replicas": 1,
                  "train.warmup_steps": 10, "train.patience": 0}
        self.write("text.txt", "".join(line.replace("\t", " ") + "\n" for line in PAIRS.splitlines()))
        self.succeed("train", "--data", "text.txt", "--valid", "text.txt", "--out", "lm", *settings(
            chosen | {"model.type": "lm"}))
        self.assert_alone(["lm"], "--beam", "2", "--nbest", "2", "--minimum-length", "30",
                          "--maximum-length", "40")


class Draws(Models):
    def test_depend_on_the_seed_and_the_line_alone(self):
        options = ["--samples", "3", "--temperature", "2", "--seed", "7"]
        drawn = self.predict([self.models[0]], *options, "--threads", "1")
        self.assertEqual(len(drawn), 3 * len(SOURCES))
        self.assertEqual(drawn, self.predict([self.models[0]], *options, "--threads", "2"))
        few = self.predict([self.models[0]], *options, lines=SOURCES[:7])
        self.assertEqual([row.split("\t")[1] for row in few],
                         [row.split("\t")[1] for row in drawn[:21]])
        self.assertNotEqual(drawn, self.predict([self.models[0]], *options[:-1], "8"))

    def test_of_the_most_probable_token_are_greedy(self):
        greedy = self.predict([self.models[0]])
        self.assertEqual(self.predict([self.models[0]], "--top-k", "1"), greedy)
        self.assertEqual(self.predict([self.models[0]], "--top-p", "0.000001"), greedy)

    def test_take_no_beam(self):
        self.refuse("predict", self.models[0], "--samples", "2", "--beam", "2",
                    names=["--samples", "--beam"])
        self.refuse("predict", self.models[0], "--details", names=["--details", "--json"])


class Limits(Models):
    def test_lengths(self):
        lengths = [len(answer.split()) for answer in
                   self.predict([self.models[0]], "--minimum-length", "5", "--maximum-length", "6")]
        self.assertTrue(all(5 <= length <= 6 for length in lengths), lengths)
        cut = self.details([self.models[0]], "--maximum-length", "1", "--beam", "1")
        self.assertTrue(all(len(record["predictions"][0]["tokens"]) <= 1 for record in cut))

    def test_prefixes(self):
        lines = [f"{source}\tE {target.split()[1]}" for source, target in zip(SOURCES, TARGETS)]
        lines[0] = SOURCES[0]
        answers = self.predict([self.models[0]], "--prefixes", lines=lines)
        self.assertEqual(answers[0], self.predict([self.models[0]])[0])
        for answer, target in zip(answers[1:], TARGETS[1:]):
            self.assertEqual(answer.split()[1], target.split()[1])

        run = self.attend("predict", self.models[0], "--prefixes", stdin="aba\nbab\tB QQ\n")
        self.assertEqual(run.returncode, 2)
        self.assertEqual(len(run.stdout.splitlines()), 1)
        self.assertRegex(run.stderr, r"line 2: .*'QQ', which is not one of the")

    def test_a_limit_cuts_no_answer_that_fits(self):
        for beam in ("1", "5"):
            options = ["--beam", beam, "--minimum-length", "3"]
            free = self.details([self.models[0]], *options)
            longest = max(len(record["predictions"][0]["tokens"]) for record in free)
            self.assertEqual(free, self.details([self.models[0]], *options, "--maximum-length",
                                                longest))

    def test_cut_answers_are_counted(self):
        run = self.succeed("predict", self.models[0], "--maximum-length", "2", "--temperature", "2",
                           "--json", stdin="".join(f"{source}\n" for source in SOURCES))
        answers = [json.loads(line)["predictions"][0] for line in run.stdout.splitlines()]
        cut = sum(not answer["complete"] for answer in answers)
        self.assertTrue(0 < cut < len(SOURCES), cut)
        self.assertIn(f"attend: {cut} of {len(SOURCES)} answers are cut at the maximum length",
                      run.stderr)
        self.refuse("predict", self.models[0], "--minimum-length", "5", "--maximum-length", "2",
                    names=["minimum_length 5", "maximum_length 2"])
        run = self.succeed("predict", self.models[0], "--minimum-length", "40", stdin="bab\n")
        self.assertGreaterEqual(len(run.stdout.split()), 40)

    def test_details(self):
        for record in self.details([self.models[0]], "--beam", "3", "--nbest", "2"):
            self.assertEqual(record["source_tokens"], list(record["source"]))
            for answer in record["predictions"]:
                self.assertEqual(" ".join(answer["tokens"]), answer["target"])
                self.assertEqual(len(answer["log_probabilities"]),
                                 len(answer["tokens"]) + answer["complete"])
                self.assertAlmostEqual(sum(answer["log_probabilities"]),
                                       answer["log_probability"], 9)
                self.assertEqual(len(answer["weights"]), len(answer["tokens"]))
                for row in answer["weights"]:
                    self.assertAlmostEqual(sum(row), 1, 5)

    def test_coverage_and_length_penalties(self):
        options = ["--beam", "4", "--nbest", "4", "--length-penalty", "0.6", "--wu-length-penalty",
                   "--coverage-penalty", "0.2"]
        for record in self.details([self.models[0]], *options):
            for answer in record["predictions"]:
                length = (5 + len(answer["tokens"]) + 1) / 6
                score = answer["log_probability"] / length ** 0.6
                if answer["tokens"]:
                    score += 0.2 * sum(math.log(min(sum(column), 1))
                                       for column in zip(*answer["weights"]))
                # Sums of single-precision weights.
                self.assertAlmostEqual(answer["score"], score, 4)


class WhatIsNoToken(Models):
    def test_is_never_drawn(self):
        drawn = self.predict([self.models[0]], "--samples", "40", "--temperature", "4")
        tokens = {token for row in drawn for token in row.split("\t")[1].split()}
        self.assertGreater(len(tokens), 10)
        self.assertFalse(tokens & {"<pad>", "<s>", "</s>", "<unk>"})
        kept = self.predict([self.models[0]], "--samples", "40", "--temperature", "4", "--unknown",
                            "keep")
        tokens = {token for row in kept for token in row.split("\t")[1].split()}
        self.assertEqual(tokens & {"<pad>", "<s>", "</s>", "<unk>"}, {"<unk>"})

    def test_is_copied(self):
        options = ["--samples", "40", "--temperature", "4", "--seed", "3"]
        kept = self.details([self.models[0]], *options, "--unknown", "keep")
        copied = self.details([self.models[0]], *options, "--unknown", "copy")
        places = 0
        for one, other in zip(kept, copied):
            for a, b in zip(one["predictions"], other["predictions"]):
                for token, copy, row in zip(a["tokens"], b["tokens"], a["weights"]):
                    places += token == "<unk>"
                    self.assertEqual(copy, one["source_tokens"][row.index(max(row))]
                                     if token == "<unk>" else token)
        self.assertGreater(places, 0)

    def test_is_counted_in_sources(self):
        run = self.succeed("predict", self.models[0], "--json", stdin="bab\nbXbY\n\nZ\n")
        self.assertEqual([json.loads(line)["unknown"] for line in run.stdout.splitlines()],
                         [[], ["X", "Y"], [], ["Z"]])
        self.assertIn("attend: 3 of 8 source tokens are unknown to the model, first in line 2: 'X'\n",
                      run.stderr)
        self.assertNotIn("unknown", self.succeed("predict", self.models[0], stdin="bab\n").stderr)
        told = "3 of 8 source tokens are unknown to the model, first in line 2: 'X'\n"
        run = self.succeed("embed", self.models[0], stdin="bab\nbXbY\n\nZ\n")
        self.assertIn(f"attend: {told}", run.stderr)
        self.write("odd.tsv", "bab\tB A B\nbXbY\tB B\nZ\tB\n")
        run = self.succeed("evaluate", self.models[0], "--data", "odd.tsv")
        self.assertIn(f"attend: odd.tsv: {told}", run.stderr)

    def test_is_counted_in_validation(self):
        self.write("train.tsv", "bab\tB A B\nbub\tB U B\n")
        self.write("valid.tsv", "bab\tB A B\nbXbY\tB Q\n")
        command = ["train", "--data", "train.tsv", "--out", "counted", *settings(
            {"model.hidden": 4, "model.embedding": 4, "train.steps": 1, "train.replicas": 1})]
        run = self.succeed(*command, "--valid", "valid.tsv")
        for side, counts in (("source", "2 of 7"), ("target", "1 of 5")):
            self.assertIn(f"attend: validation: {counts} {side} tokens are unknown to the model\n",
                          run.stderr)
        self.assertEqual(run.stderr.count("unknown"), 2)


class BadLines(Models):
    LINES = b"bab\nbib\n\xff\nbub\n\xfe\n"

    def test_what_stands_before_them_is_answered(self):
        run = self.attend("predict", self.models[0], stdin=self.LINES)
        self.assertEqual(run.returncode, 2)
        self.assertEqual(run.stdout.splitlines(),
                         self.predict([self.models[0]], lines=["bab", "bib"]))
        self.assertRegex(run.stderr, r"attend: standard input, line 3: .*UTF-8.*\n\Z")

    def test_what_stands_before_them_has_its_vectors(self):
        wanted = self.succeed("embed", self.models[0], stdin="bab\nbib\n").stdout
        run = self.attend("embed", self.models[0], stdin=self.LINES)
        self.assertEqual((run.returncode, run.stdout), (2, wanted))
        self.assertRegex(run.stderr, r"attend: standard input, line 3: .*UTF-8.*\n\Z")
        run = self.attend("embed", self.models[0], "--strict", stdin=f"bab\nbib\n{'b' * 9999}\n")
        self.assertEqual((run.returncode, run.stdout), (2, wanted))

    def test_are_skipped_and_named(self):
        run = self.attend("predict", self.models[0], "--skip-bad", stdin=self.LINES)
        self.assertEqual(run.returncode, 1)
        first, second, fourth = self.predict([self.models[0]], lines=["bab", "bib", "bub"])
        self.assertEqual(run.stdout.splitlines(), [first, second, "", fourth, ""])
        for number in (3, 5):
            self.assertIn(f"attend: standard input, line {number}: ", run.stderr)
        self.assertIn("attend: 2 of 5 lines cannot be read; their answers are empty\n", run.stderr)
        run = self.attend("predict", self.models[0], "--skip-bad", "--json", stdin=self.LINES)
        records = [json.loads(line) for line in run.stdout.splitlines()]
        self.assertEqual(["error" in record for record in records],
                         [False, False, True, False, True])
        self.assertEqual(records[2]["predictions"], [])
        self.assertIn("UTF-8", records[2]["error"])
        self.assertEqual(self.attend("predict", self.models[0], "--skip-bad",
                                     stdin="bab\n").returncode, 0)

    def setUp(self):
        super().setUp()
        self.write("good.tsv", "bab\tB A B\nbub\tB U B\n")
        self.write("bad.tsv", b"bab\tB A B\nno TAB\n\xff\tB\nbub\tB U B\n")

    def test_of_data_are_left_out(self):
        good = self.succeed("evaluate", self.models[0], "--data", "good.tsv", "--json")
        run = self.attend("evaluate", self.models[0], "--data", "bad.tsv", "--json", "--skip-bad")
        self.assertEqual(run.returncode, 1)
        found, wanted = json.loads(run.stdout), json.loads(good.stdout)
        for figures in (found, wanted):
            del figures["decode_seconds"]
        self.assertEqual(found, wanted)
        for line in (2, 3):
            self.assertIn(f"attend: bad.tsv:{line}: ", run.stderr)
        self.assertIn("attend: bad.tsv: 2 lines cannot be read and are left out\n", run.stderr)
        command = ["train", "--data", "bad.tsv", "--valid", "good.tsv", "--out", "skipping", *settings(
            {"model.hidden": 4, "model.embedding": 4, "train.steps": 1, "train.replicas": 1})]
        run = self.attend(*command)
        self.assertEqual((run.returncode, "bad.tsv:2: no TAB" in run.stderr), (2, True), run.stderr)
        run = self.attend(*command, "--skip-bad")
        self.assertEqual(run.returncode, 1, run.stderr)
        self.assertIn("attend: bad.tsv: 2 lines cannot be read and are left out\n", run.stderr)
        self.assertIn("2 training and 2 validation examples", run.stderr)

    def test_a_stream_leaves_the_same_lines_out_of_every_epoch(self):
        values = {"model.hidden": 4, "model.embedding": 4, "train.epochs": 3, "train.batch": 1,
                  "train.replicas": 1, "train.shuffle_buffer": 2}
        files = [["--data", name, "--valid", "good.tsv"] for name in ("bad.tsv", "good.tsv")]
        run = self.attend("train", *files[0], "--out", "stopped", *settings(values))
        self.assertEqual((run.returncode, "bad.tsv:2: no TAB" in run.stderr), (2, True), run.stderr)
        skipping = self.attend("train", *files[0], "--out", "streamed", "--skip-bad",
                               *settings(values))
        self.assertEqual(skipping.returncode, 1, skipping.stderr)
        for line in (2, 3):
            self.assertEqual(skipping.stderr.count(f"bad.tsv:{line}: "), 1, skipping.stderr)
        self.assertIn("attend: bad.tsv: 2 lines cannot be read and are left out\n",
                      skipping.stderr)
        self.succeed("train", *files[1], "--out", "of_good", *settings(values))
        weights = [(self.folder / name / "weights.safetensors").read_bytes()
                   for name in ("streamed", "of_good")]
        self.assertEqual(*weights)


class Scores(Models):
    def test_sum_up_to_the_loss(self):
        loss = self.evaluate([self.models[0]], "--scores", "scores.tsv")["loss"]
        rows = [line.split("\t") for line in
                (self.folder / "scores.tsv").read_text().splitlines()]
        self.assertEqual([row[0] for row in rows], SOURCES)
        self.assertEqual([row[1] for row in rows], TARGETS)
        tokens = sum(len(target.split()) + 1 for target in TARGETS)
        # The output has six digits.
        self.assertAlmostEqual(-sum(float(row[2]) for row in rows) / tokens, loss, 4)

    def test_metrics_are_those_of_the_answers(self):
        metrics = "bleu,chrf,chrf++,token_error,accuracy,f1,bits_per_byte"
        figures = self.evaluate([self.models[0]], "--metric", metrics, "--tokenise", "none")
        answers = "".join(f"{line}\n" for line in self.predict([self.models[0]]))
        self.write("right.txt", "".join(f"{target}\n" for target in TARGETS))
        scored = json.loads(self.succeed("score", "--reference", "right.txt", "--metric",
                                         metrics.replace(",bits_per_byte", ""), "--tokenise",
                                         "none", "--json", stdin=answers).stdout)
        for name in ("bleu", "chrf", "chrf++", "token_error_rate", "accuracy", "f1"):
            self.assertEqual(figures[name], scored[name])
        tokens = sum(len(target.split()) + 1 for target in TARGETS)
        size = sum(len(target) + 1 for target in TARGETS)
        self.assertAlmostEqual(figures["bits_per_byte"],
                               figures["loss"] * tokens / math.log(2) / size, 9)
        ranges = figures["bleu_by_length"]
        self.assertEqual(sum(part["examples"] for part in ranges), len(SOURCES))
        self.assertEqual([part["bleu"] for part in ranges], [figures["bleu"]["score"]])
        text = self.succeed("evaluate", self.models[0], "--data", self.data, "--metric",
                            "bleu,f1").stdout
        self.assertRegex(text, r"BLEU\|nrefs:1\|case:mixed\|eff:no\|tok:13a\|smooth:exp\|version:"
                               r"attend = \d+\.\d\d [\d./]+ \(BP = ")


class Counting(Models):
    """Every line counts as often as it occurs, with any options."""

    def setUp(self):
        super().setUp()
        lines = PAIRS.splitlines()
        # One pair nine times, another pair three times, and one wrong target.
        self.lines = 9 * lines[:1] + 3 * lines[1:2] + [f"{SOURCES[0]}\t{TARGETS[1]}"] + lines[2:8]
        self.write("lines.tsv", "".join(f"{line}\n" for line in self.lines))

    def figures(self, *options):
        return json.loads(self.succeed("evaluate", self.models[0], "--data", "lines.tsv", "--json",
                                       *options).stdout)

    def test_each_line_counts(self):
        answers = self.predict([self.models[0]], lines=[line.split("\t")[0] for line in self.lines])
        targets = [line.split("\t")[1] for line in self.lines]
        wrong = sum(answer != target for answer, target in zip(answers, targets))
        told = self.figures("--metric", "sequence_error,accuracy")
        self.assertEqual((told["examples"], told["sources"], told["references"]), (19, 8, 19))
        self.assertAlmostEqual(told["sequence_error_rate"], wrong / 19, 12)
        self.assertEqual(told["by_length"][0]["examples"], 19)
        text = self.succeed("evaluate", self.models[0], "--data", "lines.tsv").stdout
        self.assertRegex(text, r"examples +19\nsources +8\ndecoded")

    def test_no_metric_changes_another(self):
        alone = self.figures("--metric", "token_error")
        beside = self.figures("--metric", "token_error,bleu,chrf,accuracy,perplexity")
        for name in ("token_error_rate", "loss", "examples", "sources", "by_length"):
            if name != "by_length":
                self.assertEqual(alone[name], beside[name], name)
        self.assertEqual([part["token_error_rate"] for part in alone["by_length"]],
                         [part["token_error_rate"] for part in beside["by_length"]])

    def test_references_are_merged_where_asked(self):
        told = self.figures("--references", "merged", "--metric", "sequence_error,bleu",
                            "--tokenise", "none")
        self.assertEqual((told["examples"], told["sources"], told["references"]), (8, 8, 19))
        self.assertIn("nrefs:var", told["bleu"]["signature"])
        text = self.succeed("evaluate", self.models[0], "--data", "lines.tsv", "--references",
                            "merged").stdout
        self.assertRegex(text, r"examples +8\nsources +8\nreferences +19, any of a source's is right\n")

    def test_a_training_says_that_it_merges(self):
        for references, told in (("each", "19 training and 60 validation examples;"),
                                 ("merged", "8 (19 lines, merged by source) training "
                                            "and 60 (60 lines, merged by source)")):
            run = self.succeed("train", "--data", "lines.tsv", "--valid", self.data, "--out",
                               references, *settings(SMALL | {"data.references": references,
                                                              "train.steps": 2}))
            self.assertIn(told, run.stderr)
        # Evaluation merges references if training did.
        told = json.loads(self.succeed("evaluate", "merged", "--data", "lines.tsv", "--json").stdout)
        self.assertEqual(told["examples"], 8)

    def test_lines_are_as_in_files(self):
        answers = self.succeed("predict", self.models[0], stdin="bab\nbab\n\n \t \n").stdout
        marked = self.succeed("predict", self.models[0],
                              stdin=b"\xef\xbb\xbfbab\r\nbab\n\n \t \n").stdout
        self.assertEqual(marked, answers)
        self.assertEqual(answers.splitlines()[2:], ["", ""], "white space asks nothing")
        run = self.attend("predict", self.models[0], stdin=b"bab\nb\0b\n")
        self.assertEqual(run.returncode, 2)
        self.assertEqual(run.stdout, answers.splitlines()[0] + "\n", "what came before is answered")
        self.assertIn("standard input, line 2: holds a NUL byte", run.stderr)

    def test_normal_forms(self):
        apart = "".join(f"{source}\t{target} e\u0301\n" for source, target in zip(SOURCES, TARGETS))
        self.write("nfd.tsv", apart)
        train = ["train", "--data", "nfd.tsv", "--valid", "nfd.tsv"]
        run = self.succeed(*train, "--out", "nfc", *settings(SMALL | {"train.steps": 2}))
        self.assertIn("nfd.tsv: 60 targets are not in the normal form of answers "
                      "(data.normalise = nfc)", run.stderr)
        for form, letter in (("nfd", "e\u0301"), ("none", "e\u0301"), ("nfc", "\u00e9")):
            chosen = SMALL | {"data.normalise": form, "train.epochs": 6}
            run = self.succeed(*train, "--out", f"in-{form}", *settings(chosen))
            self.assertEqual("normal form" in run.stderr, form == "nfc")
            composed = self.attend("predict", f"in-{form}", "--prefixes", stdin="bab\tB \u00e9\n")
            answers = self.succeed("predict", f"in-{form}", "--prefixes",
                                   stdin="bab\tB e\u0301\n").stdout
            self.assertTrue(answers.startswith(f"B {letter}"), form)
            if form == "none":
                self.assertEqual(composed.returncode, 2)
                self.assertIn("is not one of the", composed.stderr)
            else:
                self.assertEqual(composed.stdout, answers)
        # Both commands measure the unchanged texts.
        told = json.loads(self.succeed("evaluate", "in-nfc", "--data", "nfd.tsv", "--metric", "bleu",
                                       "--tokenise", "none", "--json").stdout)
        self.write("right.txt", "".join(line.split("\t")[1] + "\n" for line in apart.splitlines()))
        answers = "".join(f"{line}\n" for line in self.predict(["in-nfc"]))
        scored = json.loads(self.succeed("score", "--reference", "right.txt", "--tokenise", "none",
                                         "--json", stdin=answers).stdout)
        self.assertEqual(told["bleu"], scored["bleu"])


if __name__ == "__main__":
    program.main()
