"""Regression: numbers as targets, learned, predicted in their unit, measured and explained."""

import gzip
import json
import math
import pathlib
import random
import re
import shutil
import signal
import tempfile

import program
from program import counting, settings, training_outcome

MOLECULES = pathlib.Path(__file__).resolve().parents[3] / "shared" / "data" / "molecules"

SMALL = {"model.type": "classifier", "data.target": "number", "model.depth": 16,
         "model.pooling": "sum", "model.word_dropout": 0, "model.output_dropout": 0,
         "train.replicas": 1, "train.batch": 20, "train.warmup_steps": 10, "train.epochs": 20,
         "train.learning_rate": 1e-2, "train.weight_average": 0.9, "train.patience": 0}

# A number is the sum of the values of its words, in a unit far from 0 and 1.
WORTH = {"a": 100, "b": -250, "c": 50, "d": 0}


def worth(text):
    return 3000 + sum(WORTH[word] for word in text.split())


def rows(count, seed):
    chance = random.Random(seed)
    texts = [" ".join(chance.choices("abcd", k=chance.randint(1, 6))) for _ in range(count)]
    return [(text, worth(text)) for text in texts]


def as_tsv(pairs):
    return "".join(f"{text}\t{number}\n" for text, number in pairs)


class FarFromZero(program.Case):
    """Times, Julian dates, total energies: numbers with relative differences of millionths."""

    def test_learns_and_measures_them(self):
        for part, count, seed in (("train", 300, 1), ("valid", 60, 2), ("test", 60, 3)):
            self.write(f"{part}.tsv", as_tsv((text, 1_700_000_000 + number)
                                             for text, number in rows(count, seed)))
        self.succeed("train", "--data", ".", "--out", "model", *settings(SMALL))
        figures = json.loads(self.succeed("evaluate", "model", "--data", ".", "--json").stdout)
        self.assertGreater(figures["r2"], 0.99)
        answer = self.succeed("predict", "model", stdin="a b\n").stdout.strip()
        self.assertAlmostEqual(float(answer), 1_700_000_000 + worth("a b"), delta=60)
        self.assertRegex(answer, r"^17\d{8}\.\d{1,5}$")


class Numbers(program.Case):
    """A model that has learned the values of words, for all tests below."""

    @classmethod
    def setUpClass(cls):
        cls.shared = pathlib.Path(tempfile.mkdtemp(prefix="attend-test-"))
        cls.addClassCleanup(shutil.rmtree, cls.shared)
        for part, count, seed in (("train", 300, 1), ("valid", 60, 2), ("test", 100, 3)):
            (cls.shared / f"{part}.tsv").write_text(as_tsv(rows(count, seed)))
        cls.training = program.attend("train", "--data", cls.shared, "--out", "model", "--json",
                                      *settings(SMALL), cwd=cls.shared)
        assert cls.training.returncode == 0, cls.training.stderr
        cls.model = cls.shared / "model"

    def test_training_tells_the_error_in_the_unit(self):
        self.assertLess(json.loads(self.training.stdout)["valid_rmse"], 20)
        self.assertRegex(self.training.stderr, r"targets of mean \d+(\.\d+)? and deviation \d+")

    def test_predicts_numbers(self):
        lines = self.succeed("predict", self.model, stdin="a a\nb\n\nd c\n").stdout.split("\n")
        for text, line in (("a a", lines[0]), ("b", lines[1]), ("d c", lines[3])):
            self.assertAlmostEqual(float(line), worth(text), delta=30)
        self.assertEqual(lines[2], "")
        answer = json.loads(self.succeed("predict", self.model, "--json", stdin="a a\n").stdout)
        self.assertEqual(answer["predictions"], [{"target": lines[0], "number": float(lines[0])}])
        both = self.succeed("predict", self.model, self.model, stdin="a a\n").stdout
        self.assertEqual(both, lines[0] + "\n", "the mean of two that are one")

    def test_what_is_searched_for_is_no_number(self):
        for options in (["--beam", "2"], ["--samples", "2"], ["--prefixes"]):
            self.refuse("predict", self.model, *options, stdin="a\t1\n",
                        names=["the model answers a number"])

    def test_evaluates(self):
        figures = json.loads(self.succeed("evaluate", self.model, "--data", self.shared,
                                          "--json").stdout)
        test = rows(100, 3)
        lines = self.succeed("predict", self.model,
                             stdin="".join(f"{text}\n" for text, _ in test)).stdout.split()
        squares = [(float(line) - number) ** 2 for line, (_, number) in zip(lines, test)]
        self.assertAlmostEqual(figures["mse"], sum(squares) / len(squares), places=6)
        self.assertAlmostEqual(figures["rmse"], math.sqrt(sum(squares) / len(squares)), places=6)
        self.assertLess(figures["rmse"], 20)
        self.assertGreater(figures["r2"], 0.99)
        self.assertFalse({"loss", "perplexity", "known_loss", "accuracy"} & set(figures))
        text = self.succeed("evaluate", self.model, "--data", self.shared).stdout
        self.assertRegex(text, r"(?m)^rmse +\d+\.\d+")
        for options, name in ((["--metric", "perplexity"], "answers numbers"),
                              (["--scores", "scores"], "have no probabilities"),
                              (["--metric", "roc_auc"], "does not compare numbers"),
                              (["--metric", "rmse,accuracy"], "accuracy: does not compare numbers"),
                              (["--metric", "bleu"], "give some of mse, rmse")):
            self.refuse("evaluate", self.model, "--data", self.shared, *options, names=[name])
        self.assertFalse((self.folder / "scores").exists())

    def test_one_answer_has_no_r2(self):
        self.write("one.tsv", "a a\t2\n")
        run = self.succeed("evaluate", self.model, "--data", "one.tsv")
        self.assertNotIn("r2", run.stdout)
        self.assertIn("rmse", run.stdout)
        self.assertIn("one.tsv: [metrics] r2 needs two answers or more; it is left out", run.stderr)
        figures = json.loads(self.succeed("evaluate", self.model, "--data", "one.tsv",
                                          "--json").stdout)
        self.assertIsNone(figures["r2"])
        self.refuse("evaluate", self.model, "--data", "one.tsv", "--metric", "r2",
                    names=["r2 needs two answers"])

    def test_explains_the_number(self):
        def explained(text, method):
            return json.loads(self.succeed("explain", self.model, text, "--method", method,
                                           "--json").stdout)

        whole, without = (float(self.succeed("predict", self.model, stdin=line + "\n").stdout)
                          for line in ("a b c", "a c"))
        picture = explained("a b c", "occlusion")
        self.assertEqual(picture["source"], ["a", "b", "c"])
        self.assertEqual([float(target) for target in picture["target"]], [whole])
        scores = picture["scores"][0]
        config = json.loads(self.succeed("inspect", self.model, "--json").stdout)["config"]
        self.assertAlmostEqual(scores[1] * config["data.target_deviation"], whole - without,
                               delta=0.1)
        for method in ("gradient_x_input", "integrated_gradients", "occlusion"):
            scores = dict(zip("abc", explained("a b c", method)["scores"][0]))
            self.assertLess(scores["b"], 0, method)
            self.assertGreater(scores["a"], scores["c"], method)
        self.refuse("explain", self.model, "a", "--method", "gradient", "--evidence",
                    names=["evidence needs probabilities"])
        self.refuse("explain", self.model, "a", "--method", "gradient", "--target", "3",
                    names=["leave it out"])
        self.refuse("faithfulness", self.model, "--data", self.shared,
                    names=["evidence needs probabilities"])
        self.succeed("explain", self.model, "a b c", "--method", "gradient_x_input", "--out",
                     "page.html")
        self.assertIn("no probability to test the methods by",
                      (self.folder / "page.html").read_text())

    def test_inspects(self):
        config = json.loads(self.succeed("inspect", self.model, "--json").stdout)["config"]
        train = [number for _, number in rows(300, 1)]
        mean = sum(train) / len(train)
        deviation = math.sqrt(sum((number - mean) ** 2 for number in train) / len(train))
        self.assertAlmostEqual(config["data.target_mean"], mean)
        self.assertAlmostEqual(config["data.target_deviation"], deviation)

    def test_a_kill_changes_nothing(self):
        train = ["train", "--data", self.shared, "--out", "model", "--resume",
                 *settings(SMALL | {"train.epochs": 3, "train.checkpoint_seconds": 0})]
        self.succeed(*train)
        expected = training_outcome(self.folder / "model")
        shutil.rmtree(self.folder / "model")
        run = self.attend(*train, env=counting(self.folder / "model", signal=signal.SIGKILL, number=2,
                                               change="rename model/checkpoint.safetensors"))
        self.assertEqual(run.returncode, -signal.SIGKILL, run.stderr)
        self.succeed(*train)
        self.assertEqual(training_outcome(self.folder / "model"), expected)
        other = self.folder / "other"
        shutil.copytree(self.shared, other, ignore=shutil.ignore_patterns("model"))
        (other / "train.tsv").write_text(as_tsv((text, number + 1) for text, number in rows(300, 1)))
        train[train.index(self.shared)] = other
        self.refuse(*train, "--set", "train.epochs=4", told=r"(?:[^\n]+\n)*",
                    names=["other data"])

    def test_another_model_begins_with_its_weights(self):
        run = self.succeed("train", "--data", self.shared, "--out", "other", "--init", self.model,
                           *settings(SMALL | {"train.epochs": 1}))
        self.assertRegex(run.stderr, r"(\d+) of \1 weights begin as in")
        (self.folder / "labels.tsv").write_text("a b\thigh\nb c\tlow\n" * 20)
        labels = {key: value for key, value in SMALL.items() if key != "data.target"}
        run = self.succeed("train", "--data", "labels.tsv", "--valid", "labels.tsv", "--out",
                           "labels", "--init", self.model, *settings(labels | {"train.epochs": 1}))
        self.assertIn("weights begin as in", run.stderr)


class BadNumbers(program.Case):
    def refuse_training(self, text, names, **values):
        self.write("numbers.tsv", text)
        self.refuse("train", "--data", "numbers.tsv", "--valid", "numbers.tsv", "--out", "model",
                    *settings(SMALL | values), names=names)
        self.assertFalse((self.folder / "model").exists())

    def test_targets_that_are_none(self):
        for target in ("high", "inf", "nan", "1e999", "1,5"):
            self.refuse_training(f"a\t1\nb\t{target}\nc\t2\n",
                                 names=["numbers.tsv:2", f"'{target}' is not a finite number"])
            self.refuse_training(f"a\t1\nb\t{target}\nc\t2\n", names=["numbers.tsv:2"],
                                 **{"train.shuffle_buffer": 10})
        self.refuse_training("a\t1\nb\t1.0\n", names=["every training target is the number 1"])

    def test_a_bad_line_can_be_left_out(self):
        self.write("numbers.tsv", as_tsv(rows(30, 1)) + "a\thigh\n")
        run = self.attend("train", "--data", "numbers.tsv", "--valid", "numbers.tsv", "--out",
                          "model", "--skip-bad", *settings(SMALL | {"train.epochs": 1}))
        self.assertIn("numbers.tsv:31: target 'high' is not a finite number", run.stderr)
        self.assertTrue((self.folder / "model" / "weights.safetensors").exists())

    def test_settings_that_say_nothing_of_numbers(self):
        for values, name in (({"train.label_smoothing": 0.1}, "set it to 0"),
                             ({"train.metric": "accuracy"}, "data.target is number"),
                             ({"data.target_units": "char"}, "one whole line"),
                             ({"data.joint_vocabulary": "true"}, "one whole line"),
                             ({"model.type": "lm", "model.pooling": None}, "classifier")):
            chosen = {key: value for key, value in (SMALL | values).items() if value is not None}
            chosen = {key: value for key, value in chosen.items()
                      if chosen["model.type"] == "classifier" or not re.match("model.[^t]", key)}
            self.write("numbers.tsv", "a\t1\nb\t2\n")
            self.refuse("train", "--data", "numbers.tsv", "--valid", "numbers.tsv", "--out", "model",
                        *settings(chosen), names=[name])
            self.assertFalse((self.folder / "model").exists())
        self.refuse("train", "--data", "numbers.tsv", "--valid", "numbers.tsv", "--out", "model",
                    *settings({"model.type": "classifier", "train.metric": "rmse"}),
                    names=["set data.target = number"])

    def test_a_folder_that_was_changed(self):
        self.write("numbers.tsv", as_tsv(rows(40, 1)))
        self.succeed("train", "--data", "numbers.tsv", "--valid", "numbers.tsv", "--out", "model",
                     *settings(SMALL | {"train.epochs": 1}))
        config = self.folder / "model" / "config.toml"
        text = config.read_text()
        config.write_text(re.sub(r"(?m)^target_deviation = .*", "target_deviation = 0.0", text))
        self.refuse("predict", "model", stdin="a\n", names=["data.target_deviation is 0"])
        config.write_text(text.replace('target = "number"', 'target = "text"'))
        self.refuse("predict", "model", stdin="a\n", names=["config.toml"])


class Molecules(program.Case):
    def test_split_train_and_ask(self):
        molecules = ["CCO", "CCCl", "c1ccccc1", "CC(=O)O", "C[NH3+]", "CBr", "OCCO", "CCN",
                     "CC#N", "FC(F)F", "C1CCCCC1", "CCCCO"]
        lines = ["smiles,x,grams"] + [f"{molecule}{'C' * more},,{10 * len(molecule) + more}"
                                      for molecule in molecules for more in range(1, 5)]
        (self.folder / "all.csv.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
        self.succeed("data", "split", "all.csv.gz", "--source-column", "smiles",
                     "--target-column", "grams", "--seed", "3", "--out", "data")
        counts = [len((self.folder / "data" / f"{part}.tsv").read_text().splitlines())
                  for part in ("train", "valid", "test")]
        self.assertEqual(counts, [38, 5, 5])
        small = SMALL | {"data.source_units": "smiles", "train.epochs": 2}
        self.succeed("train", "--data", "data", "--out", "model", *settings(small))
        answer = self.succeed("predict", "model", stdin="ClCCC(=O)[O-]\n").stdout
        self.assertTrue(math.isfinite(float(answer)))
        picture = json.loads(self.succeed("explain", "model", "ClCC%12CC%12", "--json", "--method",
                                          "gradient_x_input").stdout)
        self.assertEqual(picture["source"], ["Cl", "C", "C", "%12", "C", "C", "%12"])
        self.refuse("predict", "model", stdin="C1CC\n",
                    names=["standard input, line 1", "ring 1 is opened and not closed"])
        self.refuse("explain", "model", "C(C", "--method", "gradient", names=["a branch"])

    def test_molecules_that_cannot_be_read(self):
        self.write("m.tsv", "CCO\t1\nC1CC\t2\n")
        self.refuse("train", "--data", "m.tsv", "--valid", "m.tsv", "--out", "model",
                    *settings(SMALL | {"data.source_units": "smiles"}),
                    names=["m.tsv:2", "ring 1 is opened and not closed; its other atom takes 1"])
        self.assertFalse((self.folder / "model").exists())

    def test_every_molecule_of_the_tables_is_read(self):
        if not MOLECULES.exists():
            program.skip(f"{MOLECULES} is not there")
        for name, target in (("esol", "measured log solubility in mols per litre"),
                             ("bbbp", "BBBP")):
            self.succeed("data", "split", MOLECULES / f"{name}.csv.gz", "--source-column",
                         "smiles", "--target-column", target, "--out", name)
            kind = {"data.target": "number"} if name == "esol" else {}
            small = {key: value for key, value in SMALL.items() if key != "data.target"}
            self.succeed("train", "--data", name, "--out", f"{name}-model",
                         *settings(small | kind | {"data.source_units": "smiles",
                                                   "train.steps": 2}))
        figures = json.loads(self.succeed("evaluate", "bbbp-model", "--data", "bbbp", "--metric",
                                          "roc_auc,average_precision", "--json").stdout)
        self.assertGreater(figures["roc_auc"], 0)
        self.assertGreater(figures["average_precision"], 0)


class Scores(program.Case):
    def test_the_area_is_that_of_the_second_label(self):
        self.write("labels.tsv", "good fine\tyes\nbad\tno\nfine good\tyes\nbad bad\tno\n" * 10)
        small = {key: value for key, value in SMALL.items() if key != "data.target"}
        self.succeed("train", "--data", "labels.tsv", "--valid", "labels.tsv", "--out", "model",
                     *settings(small | {"train.epochs": 5}))
        run = self.succeed("evaluate", "model", "--data", "labels.tsv", "--metric",
                           "roc_auc,accuracy", "--json")
        figures = json.loads(run.stdout)
        self.assertEqual(figures["roc_auc"], 1)
        self.assertEqual(figures["accuracy"], 1)

    def test_the_area_says_which_weights_are_best(self):
        small = {key: value for key, value in SMALL.items() if key != "data.target"} | {
            "train.metric": "roc_auc", "train.epochs": 5}
        self.write("labels.tsv", "good fine\tyes\nbad\tno\nfine good\tyes\nbad bad\tno\n" * 10)
        data = ("--data", "labels.tsv", "--valid", "labels.tsv")
        told = json.loads(self.succeed("train", *data, "--out", "model", *settings(small),
                                       "--json").stdout)
        self.assertEqual(told["valid_roc_auc"], 1)
        rows = [json.loads(row) for row in
                (self.folder / "model/metrics.jsonl").read_text().splitlines()]
        self.assertEqual(rows[0]["metric"], "roc_auc")
        best = [row["valid_metric"] for row in rows if row["best"]]
        self.assertEqual(best[-1], max(row["valid_metric"] for row in rows))
        self.write("three.tsv", "good\tyes\nbad\tno\nso so\tperhaps\n" * 10)
        self.refuse("train", "--data", "three.tsv", "--valid", "three.tsv", "--out", "refused",
                    *settings(small), names=["train.metric = roc_auc", "the data has 3"])
        self.assertFalse((self.folder / "refused").exists())
        for chosen in ({"model.type": "transformer", "train.metric": "roc_auc"},
                       small | {"data.target": "number"}):
            self.refuse("train", *data, "--out", "refused", *settings(chosen),
                        names=["train.metric = roc_auc"])


if __name__ == "__main__":
    program.main()
