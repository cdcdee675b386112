"""Bad input: exit code 2, one line that names the error and a remedy, and no files written."""

import os
import subprocess

import program
from program import PAIRS, SMALL, settings


class Data(program.Case):
    def setUp(self):
        super().setUp()
        self.write("good.tsv", PAIRS)

    def refuse_data(self, content, *names):
        """Refused as training data, as validation data and in a folder."""
        if content is not None:
            self.write("bad.tsv", content)
        for data in (["--data", "bad.tsv", "--valid", "good.tsv"],
                     ["--data", "good.tsv", "--valid", "bad.tsv"]):
            self.refuse("train", *data, "--out", "model", names=["bad.tsv", *names])

    def test_missing_file(self):
        self.refuse_data(None, "no such file")
        self.refuse("train", "--data", ".", "--out", "model", names=["train.tsv", "no such file"])

    def test_empty_file(self):
        self.refuse_data("", "is empty", "a source, a TAB and a target")

    def test_line_without_tab(self):
        self.refuse_data("ab\tA B\nab A B\n", "bad.tsv:2", "no TAB")

    def test_line_with_two_tabs(self):
        self.refuse_data("ab\tA B\nab\tA B\tC\n", "bad.tsv:2", "more than one TAB")

    def test_empty_side(self):
        self.refuse_data("ab\tA B\nab\t\n", "bad.tsv:2", "target", "empty")
        self.refuse_data("\tA B\n", "bad.tsv:1", "source", "empty")

    def test_invalid_utf8(self):
        self.refuse_data(b"ab\tA B\na\xff\tA B\n", "bad.tsv:2", "UTF-8", "byte 2", "0xff")

    def test_utf16(self):
        self.refuse_data("ab\tA B\n".encode("utf-16-le"), "bad.tsv:1", "UTF-16")

    def test_line_of_10_mb(self):
        self.refuse_data(b"ab\tA B\n" + b"a" * 10_000_000 + b"\tA\n", "bad.tsv:2", "split it")

    def test_one_class_of_tokens(self):
        self.write("bad.tsv", "ab\tA A\nb\tA\n")
        self.refuse("train", "--data", "bad.tsv", "--valid", "good.tsv", "--out", "model",
                    names=["bad.tsv", "'A'", "at least two"])

    def test_folder_and_special_file(self):
        os.mkfifo(self.folder / "pipe")
        for name, problem in ((".", "train.tsv"), ("pipe", "not a regular file")):
            run = self.attend("train", "--data", name, "--valid", "good.tsv", "--out", "model")
            self.assertEqual(run.returncode, 2)
            self.assertIn(problem, run.stderr)
            self.assertFalse((self.folder / "model").exists())

    def test_too_few_to_set_some_aside(self):
        self.write("bad.tsv", "ab\tA B\n")
        self.refuse("train", "--data", "bad.tsv", "--out", "model", names=["bad.tsv", "--valid"])

    def test_dictionary(self):
        self.refuse("data", "cmudict", "none.dict", "--out", "data", names=["none.dict"])
        self.write("bad.dict", "word W ER D\nother\n")
        self.refuse("data", "cmudict", "bad.dict", "--out", "data", names=["bad.dict:2"])


class Settings(program.Case):
    def setUp(self):
        super().setUp()
        self.write("good.tsv", PAIRS)

    def refuse_training(self, *arguments, names):
        self.refuse("train", "--data", "good.tsv", "--valid", "good.tsv", "--out", "model",
                    *arguments, names=names)

    def test_assignments(self):
        for assignment, *names in (
                ("model.hiden=32", "unknown key", "did you mean model.hidden?"),
                ("train.batch=-1", "train.batch", "from 0 to"),
                ("train.learning_rate=nan", "train.learning_rate", "a number"),
                ("train.epochs=99999999999999999999", "train.epochs", "an integer"),
                ("model.hidden=wide", "model.hidden", "an integer"),
                ("model.hidden=33", "model.hidden", "even"),
                ("model.score=aditive", "one of", "did you mean additive?"),
                ("train.batch", "key=value"),
                ("train=1", "a table of settings")):
            with self.subTest(assignment):
                self.refuse_training("--set", assignment, names=names)

    def test_normalisers_that_train_nothing(self):
        for kind in ("transformer", "lm", "encoder", "classifier", "vit"):
            for normaliser in ("hard", "monotonic_hard"):
                with self.subTest(kind, normaliser=normaliser):
                    self.refuse_training("--set", f"model.type={kind}", "--set", "model.layers=1"
                                         if kind != "transformer" else "model.encoder_layers=1",
                                         "--set", f"model.normaliser={normaliser}",
                                         names=[f"model.normaliser is {normaliser}", "gradient",
                                                "take softmax"])
        for normaliser in ("hard", "linear", "monotonic", "monotonic_hard"):
            with self.subTest(normaliser):
                self.refuse_training("--set", "model.type=classifier",
                                     "--set", "model.pooling=fixed_dot",
                                     "--set", f"model.pooling_normaliser={normaliser}",
                                     names=["model.pooling_normaliser", normaliser, "softmax"])
        self.refuse_training("--set", "model.type=transformer",
                             "--set", "model.source_normaliser=hard",
                             names=["model.source_normaliser is hard", "take softmax"])

    def test_files(self):
        for content, *names in (
                ("[train]\nlerning_rate = 1\n", "bad.toml:2", "did you mean train.learning_rate?"),
                ("[model]\n\nhidden = 'big'\n", "bad.toml:3", "model.hidden", "an integer"),
                ("[model]\nhidden = [1, 2]\n", "bad.toml:2", "an array"),
                ("[model]\ndropout = 2.0\n", "bad.toml:2", "model.dropout", "from -1 to 0.95"),
                ("[model]\nhidden = 2\nhidden = 4\n", "bad.toml:3", "TOML"),
                ("[model\n", "bad.toml:1", "TOML"),
                (b"[model]\ncell = \"\xff\"\n", "bad.toml:2", "TOML")):
            with self.subTest(content):
                self.write("bad.toml", content)
                self.refuse_training("--config", "bad.toml", names=names)
        self.refuse_training("--config", "none.toml", names=["none.toml", "no such file"])

    def test_units(self):
        self.refuse_training("--source-units", "chars", names=["data.source_units", "char?"])

    def test_unknown_command_and_options(self):
        self.refuse("tran", names=["'tran'", "did you mean train?"])
        self.refuse("tran", "--data", "data", names=["'tran'", "did you mean train?"])
        self.refuse(names=["--help"])
        self.refuse("train", "--dat", "x", names=["--dat", "--help"])
        self.refuse("predict", names=["model", "--help"])
        self.refuse("predict", "model", "--beam", "0", names=["--beam", "0", "--help"])

    def test_missing_options(self):
        self.refuse("train", "--out", "model", names=["--data"])
        self.refuse("train", "--data", "good.tsv", names=["--out"])


class Output(program.Case):
    def setUp(self):
        super().setUp()
        self.write("good.tsv", PAIRS)

    def refuse_out(self, out, *names):
        self.refuse("train", "--data", "good.tsv", "--valid", "good.tsv", "--out", out,
                    names=[out, *names])

    def test_folder_that_is_no_model(self):
        (self.folder / "photos").mkdir()
        self.write("photos/holiday.jpg", b"\xff\xd8")
        self.refuse_out("photos", "no model", "new folder")
        self.write("photos/training.toml", "")
        self.refuse_out("photos", "no model", "new folder")

    def test_file(self):
        self.write("model", "")
        self.refuse_out("model", "name a folder to write into")

    def test_folder_that_cannot_be_made(self):
        self.write("file", "")
        self.refuse_out("file/model", "cannot be created")

    def test_empty_folder_is_welcome(self):
        (self.folder / "model").mkdir()
        self.succeed("train", "--data", "good.tsv", "--valid", "good.tsv", "--out", "model",
                     *settings(SMALL | {"train.epochs": 1}))

    def test_standard_output_that_is_full(self):
        if not os.path.exists("/dev/full"):
            program.skip("no /dev/full here")
        with open("/dev/full", "w") as full:
            run = subprocess.run([program.PROGRAM, "train", "--dump-config"], stdout=full,
                                 stderr=subprocess.PIPE, text=True)
        self.assertEqual(run.returncode, 1)
        self.assertRegex(run.stderr, r"\Aattend: standard output[^\n]*\n\Z")



class Paths(program.Case):
    """Paths that the system does not allow to read, for example folders of another user."""

    def test_are_named_by_every_command(self):
        self.write("good.tsv", PAIRS)
        os.symlink("loop", self.folder / "loop")
        self.write("q.json", "[[1]]")
        for command in (["predict", "loop"], ["embed", "loop"], ["evaluate", "loop", "--data", "good.tsv"],
                        ["explain", "loop", "a"], ["inspect", "loop"], ["average", "loop", "--out", "x"],
                        ["export", "loop", "--out", "x"], ["import", "loop", "--out", "x"],
                        ["faithfulness", "loop", "--data", "good.tsv"], ["gradients", "loop", "--data", "good.tsv"],
                        ["data", "check", "loop"], ["serve", "loop", "--port", "0"],
                        ["train", "--data", "loop", "--out", "x"],
                        ["train", "--data", "good.tsv", "--out", "loop"],
                        ["train", "--data", "good.tsv", "--out", "x", "--init", "loop"],
                        ["compare", "--data", "loop", "--out", "x"],
                        ["init", "classification", "--out", "loop/x"],
                        ["compute", "--query", "loop", "--key", "q.json", "--value", "q.json"]):
            run = self.attend(*command)
            self.assertEqual(run.returncode, 2, f"{command}: {run.stderr}")
            last = run.stderr.splitlines()[-1]
            self.assertRegex(last, r"^attend: .*loop\b", command)
            self.assertNotIn("filesystem error", last, command)
        run = self.attend("train", "--data", "good.tsv", "--out", "a" * 260)
        self.assertEqual(run.returncode, 2, run.stderr)
        self.assertIn("a" * 260, run.stderr)

    def test_files_that_cannot_be_written_are_refused_before_the_work(self):
        for command in (["evaluate", "m", "--data", "d", "--scores"], ["explain", "m", "a", "--out"],
                        ["faithfulness", "m", "--data", "d", "--out"], ["gradients", "m", "--data", "d", "--out"],
                        ["init", "classification", "--out"], ["data", "sets", "--out"], ["data", "recall", "--out"],
                        ["data", "interactions", "--out"], ["data", "bpe", "train", "d", "--out"],
                        ["compute", "--query", "q", "--key", "q", "--value", "q", "--out"],
                        ["compute", "--query", "q", "--key", "q", "--value", "q", "--graph"]):
            self.refuse(*command, "none/x.svg", names=["the folder none does not exist; create it first"])

    def test_a_file_that_standard_output_goes_to(self):
        self.write("good.tsv", PAIRS)
        self.succeed("train", "--data", "good.tsv", "--valid", "good.tsv", "--out", "model",
                     *settings(SMALL | {"train.steps": 1}))
        for name in ("/dev/stdout", "both", "both-link"):
            if name == "both-link":
                os.symlink("both", self.folder / name)
            with open(self.folder / "both", "w") as file:
                run = subprocess.run([program.PROGRAM, "evaluate", "model", "--data", "good.tsv",
                                      "--scores", name], cwd=self.folder, env=program.environment(),
                                     stdout=file, stderr=subprocess.PIPE, text=True)
            self.assertEqual(run.returncode, 2, run.stderr)
            self.assertIn(f"{name}: is already open as standard output", run.stderr)


if __name__ == "__main__":
    program.main()
