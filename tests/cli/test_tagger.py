"""A label per token: from sentences in columns to labels, their accuracy and explanations."""

import json
import math
import pathlib
import random
import shutil
import signal
import tempfile

import program
from program import counting, settings, training_outcome

SMALL = {"model.type": "tagger", "model.depth": 16, "model.feed_forward": 24, "model.heads": 2,
         "train.replicas": 1, "train.batch": 20, "train.warmup_steps": 10,
         "train.learning_rate": 1e-2, "train.weight_average": 0.9, "train.patience": 0}

PLACES, TIMES = "Ghent Oslo Turin Lyon".split(), "May June noon Monday".split()
OTHERS = "the train was late again and nobody knew why".split()


def sentences(count, seed):
    """Returns (tokens, labels): words after "in" are labelled, a second one as inside."""
    chance = random.Random(seed)
    found = {}
    while len(found) < count:
        tokens, labels = [], []
        while len(tokens) < 8:
            if chance.random() < 0.4:
                kind, words = chance.choice([("P", PLACES), ("T", TIMES)])
                inside = chance.randint(0, 1)
                tokens += ["in", *chance.choices(words, k=1 + inside), chance.choice(OTHERS)]
                labels += ["O", f"B-{kind}", *[f"I-{kind}"] * inside, "O"]
            else:
                # Elsewhere the same words have no label.
                tokens.append(chance.choice(OTHERS + PLACES + TIMES))
                labels.append("O")
        found[" ".join(tokens)] = " ".join(labels)
    return list(found.items())


def as_tsv(rows):
    return "".join(f"{tokens}\t{labels}\n" for tokens, labels in rows)


def as_columns(rows):
    lines = ["-DOCSTART- X O", ""]
    for tokens, labels in rows:
        lines += [f"{token} X {label}" for token, label in zip(tokens.split(), labels.split())]
        lines.append("")
    return "\n".join(lines)


class Sentences(program.Case):
    """A tagger that has learned the rule, for all tests below."""

    @classmethod
    def setUpClass(cls):
        cls.shared = pathlib.Path(tempfile.mkdtemp(prefix="attend-test-"))
        cls.addClassCleanup(shutil.rmtree, cls.shared)
        cls.test = sentences(50, 2)
        (cls.shared / "train.conll").write_text(as_columns(sentences(300, 1)))
        (cls.shared / "valid.conll").write_text(as_columns(sentences(40, 3)))
        (cls.shared / "test.conll").write_text(as_columns(cls.test))
        (cls.shared / "test.tsv").write_text(as_tsv(cls.test))
        cls.training = program.attend(
            "train", "--data", "train.conll", "--valid", "valid.conll", "--out", "model", "--json",
            *settings(SMALL | {"train.epochs": 30, "model.dropout": 0}), cwd=cls.shared)
        assert cls.training.returncode == 0, cls.training.stderr
        cls.model = cls.shared / "model"

    def test_tokens_that_are_not_read_are_wrong(self):
        words = ["in", "Ghent"] * 300
        self.write("long.tsv", as_tsv([(" ".join(words), " ".join(["O", "B-P"] * 300))]))
        run = self.succeed("evaluate", self.model, "--data", "long.tsv", "--json", "--metric",
                           "span_f1,token_accuracy,accuracy,f1")
        figures = json.loads(run.stdout)
        self.assertIn("the 88 tokens after these have no label and count as wrong", run.stderr)
        self.assertEqual(figures["unread_tokens"], 88)
        self.assertLessEqual(figures["span_f1"]["recall"], 256 / 300)
        self.assertLessEqual(figures["token_accuracy"], 512 / 600)
        self.assertEqual(figures["accuracy"], figures["token_accuracy"])
        self.assertEqual(set(figures["f1"]["labels"]) - {"I-P", "B-T", "I-T"}, {"O", "B-P"})

    def test_a_label_that_training_lacks_is_wrong(self):
        self.write("odd.tsv", "in Ghent\tO B-NEW\nin Oslo\tO B-P\n")
        run = self.succeed("evaluate", self.model, "--data", "odd.tsv", "--json", "--metric",
                           "span_f1,token_accuracy")
        self.assertIn("'B-NEW' in odd.tsv:1", run.stderr)
        self.assertLessEqual(json.loads(run.stdout)["token_accuracy"], 0.75)
        self.assertLess(json.loads(run.stdout)["loss"], 10)

    def test_a_header_is_pointed_out(self):
        rows = as_tsv(sentences(40, 7))
        self.write("plain.tsv", rows)
        for stream in (0, 8):
            self.write("headed.tsv", "words\ttags\n" + rows)
            for name, told in (("headed", True), ("plain", False)):
                run = self.succeed("train", "--data", f"{name}.tsv", "--valid", "plain.tsv", "--out",
                                   f"{name}{stream}", "--source-units", "space", *settings(SMALL | {
                                       "train.steps": 1, "train.shuffle_buffer": stream}))
                self.assertEqual("headed.tsv: label 'tags' is only in the first line, 'words'; if "
                                 "that is a header" in run.stderr, told, run.stderr)

    def test_training_tells_accuracy(self):
        self.assertGreater(json.loads(self.training.stdout)["valid_token_accuracy"], 0.97)

    def test_evaluates(self):
        answers = self.succeed("predict", self.model, stdin="".join(
            f"{tokens}\n" for tokens, _ in self.test)).stdout.splitlines()
        pairs = [(a, b) for answer, (_, labels) in zip(answers, self.test)
                 for a, b in zip(answer.split(), labels.split(), strict=True)]
        right = sum(a == b for a, b in pairs) / len(pairs)
        self.assertGreater(right, 0.97)
        for name in "test.tsv", "test.conll":
            figures = json.loads(self.succeed("evaluate", self.model, "--data", self.shared / name,
                                              "--json").stdout)
            self.assertAlmostEqual(figures["token_accuracy"], right)
            self.assertEqual(figures["examples"], len(self.test))
            self.assertNotIn("token_error_rate", figures)
            self.assertEqual(figures["unknown_tokens"], 0)
        text = self.succeed("evaluate", self.model, "--data", self.shared / "test.tsv").stdout
        self.assertRegex(text, r"token accuracy +\d+\.\d\d %\n")

    def test_skips_lines_of_another_number_of_labels(self):
        good, bad = as_tsv(self.test[:8]), "in Oslo\tO\n"
        self.write("bad.tsv", good + bad)
        self.write("good.tsv", good)
        figures = []
        for name, options, code in (("good.tsv", (), 0), ("bad.tsv", ("--skip-bad",), 1)):
            run = self.attend("evaluate", self.model, "--data", name, "--json", *options)
            self.assertEqual(run.returncode, code, run.stderr)
            figures.append(json.loads(run.stdout))
            del figures[-1]["decode_seconds"]
        self.assertEqual(*figures)
        self.assertIn("bad.tsv:9: 1 labels", run.stderr)
        self.assertIn("bad.tsv: 1 lines cannot be read and are left out\n", run.stderr)
        for buffer in 0, 5:
            run = self.attend("train", "--data", "bad.tsv", "--valid", "good.tsv", "--out",
                              f"of-{buffer}", "--skip-bad", *settings(SMALL | {
                                  "train.epochs": 1, "train.shuffle_buffer": buffer}))
            self.assertEqual(run.returncode, 1, run.stderr)
            self.assertEqual(run.stderr.count("bad.tsv:9: 1 labels"), 1, run.stderr)

    def test_answers_each_token(self):
        lines = ["in Oslo", "Oslo", "xyzzy in Turin again", ""]
        answers = self.succeed("predict", self.model, stdin="\n".join(lines) + "\n").stdout
        self.assertEqual(answers.split("\n")[0], "O B-P")
        self.assertEqual([len(answer.split()) for answer in answers.splitlines()], [2, 1, 4, 0])
        line = self.succeed("predict", self.model, "--json", "--details", "--beam", "3", "--nbest",
                            "3", stdin="in Oslo\n").stdout
        answer = json.loads(line)
        self.assertEqual(len({each["target"] for each in answer["predictions"]}), 3)
        best = answer["predictions"][0]
        self.assertTrue(best["complete"])
        self.assertEqual(best["tokens"], ["O", "B-P"])
        self.assertAlmostEqual(best["log_probability"], sum(best["log_probabilities"]), places=5)
        self.assertEqual([len(row) for row in best["weights"]], [2, 2])

    def test_scores_what_it_answers(self):
        run = self.succeed("evaluate", self.model, "--data", self.shared / "test.tsv", "--scores",
                           "scores.tsv", "--json")
        lines = (self.folder / "scores.tsv").read_text().splitlines()
        total = -sum(float(line.split("\t")[2]) for line in lines)
        tokens = sum(len(labels.split()) for _, labels in self.test)
        self.assertAlmostEqual(json.loads(run.stdout)["loss"], total / tokens, places=4)

    def test_shows_what_a_label_saw(self):
        picture = json.loads(self.succeed("explain", self.model, "the train in Oslo", "--method",
                                          "gradient", "--json").stdout)
        self.assertEqual(picture["target"], ["O", "O", "O", "B-P"])
        self.assertEqual(len(picture["source"]), 4)
        self.succeed("explain", self.model, "the train in Oslo", "--target", "O O O O")
        self.refuse("explain", self.model, "the train in Oslo", "--target", "O O",
                    names=["2 labels", "4 tokens"])
        self.refuse("explain", self.model, "in Oslo", "--target", "O X", names=["'X'", "'B-P'"])

    def test_cuts_labels_with_their_tokens(self):
        shutil.copy(self.shared / "train.conll", self.folder)
        run = self.succeed("train", "--data", "train.conll", "--out", "short", *settings(
            SMALL | {"model.maximum_source_length": 3, "train.steps": 2}))
        self.assertIn("are cut to their first 3 tokens", run.stderr)
        run = self.succeed("predict", "short", stdin="a b c d\n")
        self.assertEqual(len(run.stdout.split()), 3)
        self.succeed("evaluate", "short", "--data", "train.conll")

    def test_begins_as_an_encoder(self):
        self.write("lines.txt", "".join(f"{tokens}\n" for tokens, _ in self.test))
        kept = {key: value for key, value in SMALL.items() if key != "model.type"} | {
            "model.layers": 1, "train.steps": 3}
        self.succeed("train", "--data", "lines.txt", "--out", "encoder", *settings(
            kept | {"model.type": "encoder"}))
        run = self.succeed("train", "--data", self.shared / "train.conll", "--valid",
                           self.shared / "valid.conll", "--init", "encoder", "--out", "tagged",
                           *settings(kept | SMALL | {"model.recurrent_layers": 0}))
        self.assertRegex(run.stderr, r"\d+ of \d+ weights begin as in encoder")
        again = self.succeed("train", "--data", self.shared / "train.conll", "--valid",
                             self.shared / "valid.conll", "--init", "tagged", "--out", "again",
                             *settings(kept | SMALL | {"model.recurrent_layers": 0}))
        self.assertRegex(again.stderr, r"(\d+) of \1 weights begin as in tagged")


class Characters(program.Case):
    """Letters with labels of one character, such as residues and their structure."""

    def test_a_label_for_each_character(self):
        chance = random.Random(4)
        rows = []
        for _ in range(200):
            word = "".join(chance.choices("abc", k=12))
            # "=" if the letter before is the same.
            rows.append((word, "".join("=" if i and word[i - 1] == c else "_"
                                       for i, c in enumerate(word))))
        self.write("train.tsv", as_tsv(rows))
        self.succeed("train", "--data", "train.tsv", "--source-units", "char", "--target-units",
                     "char", "--out", "model", *settings(SMALL | {"train.epochs": 20}))
        self.assertEqual(self.succeed("predict", "model", stdin="abbacc\n").stdout, "__=__=\n")
        # Training texts are shorter, so that some labels of this one may be wrong.
        labels = self.succeed("predict", "model", stdin="abbacc" * 11 + "\n").stdout.strip()
        self.succeed("explain", "model", "abbacc" * 11, "--out", "track.txt")
        lines = (self.folder / "track.txt").read_text().splitlines()
        self.assertEqual(lines[0], "     1  " + "abbacc" * 10)
        self.assertEqual(lines[1].strip(), labels[:60])
        self.assertEqual(lines[4:6], ["    61  abbacc", "        " + labels[60:]])
        self.refuse("explain", "model", "ab", "--target", "_", "--out", "track.txt",
                    names=["1 labels", "2 tokens"])


class Resumed(program.Case):
    def test_a_kill_changes_nothing(self):
        self.write("train.conll", as_columns(sentences(60, 1)))
        train = ["train", "--data", "train.conll", "--valid", "train.conll", "--out", "model",
                 "--resume", *settings(SMALL | {"train.epochs": 3})]
        self.succeed(*train)
        model = self.folder / "model"
        expected = training_outcome(model)
        shutil.rmtree(model)
        run = self.attend(*train, env=counting(model, signal=signal.SIGKILL, number=2,
                                               change="rename model/checkpoint.safetensors"))
        self.assertEqual(run.returncode, -signal.SIGKILL, run.stderr)
        self.succeed(*train)
        self.assertEqual(training_outcome(model), expected)


class BadInput(program.Case):
    def refuse_training(self, name, content, names, *options):
        self.write(name, content)
        self.refuse("train", "--data", name, "--valid", name, "--out", "model", *options,
                    *settings(SMALL), names=names)

    def test_labels_that_do_not_fit(self):
        self.refuse_training("t.tsv", "a b\tX Y\na b c\tX Y\n",
                             ["t.tsv:2", "2 labels", "3 tokens", "'a b c'"])
        self.refuse_training("few.conll", "a X\nb Y\n\nc\n", ["few.conll:4", "'c'"])
        self.refuse_training("more.conll", "a X\nb Y Z\n", ["more.conll:2", "3 columns"])
        self.refuse_training("columns.conll", "a X\nb Y\n", ["columns.conll", "column 3"],
                             "--source-column", "3", "--target-column", "2")
        self.write("train.tsv", as_tsv(sentences(20, 4)))
        self.write("odd.tsv", "Oslo\tB-X\n")
        self.refuse("train", "--data", "train.tsv", "--valid", "odd.tsv", "--out", "model", *settings(SMALL),
                    names=["odd.tsv:1", "'B-X'", "no label of the validation data"], told=r"[^\n]+\n")

    def test_sequences_of_a_file_that_is_none(self):
        self.write("p.fasta", ">one\nMKT\n>two\nMK7\n")
        self.refuse("train", "--data", "p.fasta", "--out", "model", *settings(
            {"model.type": "encoder"}), names=["p.fasta:4", "'7'"])

    def test_images_are_refused(self):
        self.refuse_training("i.tsv", "a.png\tX\n", ["a.png"], "--source-units", "image")


class Sequences(program.Case):
    def test_an_encoder_learns_from_residues(self):
        chance = random.Random(6)
        self.write("p.fasta", "".join(f">{i}\n{''.join(chance.choices('ACDE', k=30))}\n"
                                      for i in range(40)))
        run = self.succeed("train", "--data", "p.fasta", "--source-units", "char",
                           "--target-units", "char", "--out", "model", "--json", *settings(
                               {key: value for key, value in SMALL.items() if key != "model.type"}
                               | {"model.type": "encoder", "model.layers": 1, "train.steps": 5}))
        self.assertTrue(math.isfinite(json.loads(run.stdout)["valid_loss"]))
        tokens = (self.folder / "model/source.vocab").read_text().split()
        self.assertEqual(set(tokens[4:]), set("ACDE"))


if __name__ == "__main__":
    program.main()
