"""Settings and results of training: batches, metrics, kept weights, curves, recipes."""

import json
import os
import pathlib
import pty
import shutil
import struct
import subprocess
import tempfile
import unittest

import program
from program import PAIRS, SMALL, settings

QUICK = SMALL | {"train.epochs": 3, "train.keep_checkpoints": 2}


def train(*options, **changes):
    return ["train", "--data", "pairs.tsv", "--valid", "pairs.tsv", "--out", "model",
            *settings(QUICK | changes), *options]


class Trained(program.Case):
    """A trained model for the tests below."""

    @classmethod
    def setUpClass(cls):
        cls.shared = pathlib.Path(tempfile.mkdtemp(prefix="attend-test-"))
        cls.addClassCleanup(shutil.rmtree, cls.shared)
        (cls.shared / "pairs.tsv").write_text(PAIRS)
        run = program.attend(*train("--json", **{"train.epochs": 4}), cwd=cls.shared)
        assert run.returncode == 0, run.stderr
        cls.report = json.loads(run.stdout)

    def setUp(self):
        super().setUp()
        shutil.copytree(self.shared, self.folder, dirs_exist_ok=True)
        self.model = self.folder / "model"

    def test_reports_what_was_skipped(self):
        self.assertEqual(self.report["skipped_steps"], 0)
        self.assertEqual(self.report["rollbacks"], 0)

    def test_average_of_the_last(self):
        steps = sorted(int(path.stem.split("-")[1]) for path in self.model.glob("weights-*"))
        report = json.loads(self.succeed("average", "model", "--last", "5", "--out", "mean",
                                         "--json").stdout)
        self.assertEqual(report, {"model": "mean", "steps": steps})
        self.assertEqual(len(steps), 2)
        _, mean = program.read_safetensors(self.folder / "mean" / "weights.safetensors")
        both = [program.read_safetensors(self.model / f"weights-{step}.safetensors")[1]
                for step in steps]
        for name, (_, _, data) in mean.items():
            count = len(data) // 4
            floats = [struct.unpack(f"<{count}f", each[name][2]) for each in both]
            found = struct.unpack(f"<{count}f", data)
            for a, b, value in zip(*floats, found):
                self.assertAlmostEqual(value, (a + b) / 2, 6)
        self.assertEqual(self.succeed("predict", "mean", stdin="bab\n").returncode, 0)
        self.refuse("average", "model", "--out", "mean", names=["mean", "new folder"])
        for step in steps:
            (self.model / f"weights-{step}.safetensors").unlink()
        self.refuse("average", "model", "--out", "other", names=["keep_checkpoints"])

    def test_curves(self):
        curves = (self.model / "curves.svg").read_text()
        self.assertIn("validation loss", curves)
        self.assertTrue(curves.startswith("<svg") or curves.startswith("<?xml"))

    def test_inspect_shows_the_metric(self):
        self.assertRegex(self.succeed("inspect", "model").stdout, r"valid metric.*\n.* \d+\.\d\d %")


class Options(program.Case):
    def setUp(self):
        super().setUp()
        self.write("pairs.tsv", PAIRS)

    def test_two_files_and_bleu(self):
        pairs = [line.split("\t") for line in PAIRS.splitlines()]
        self.write("p.in", "".join(source + "\n" for source, _ in pairs))
        self.write("p.out", "".join(target + "\n" for _, target in pairs))
        files = ["--data", "p.in", "--target", "p.out", "--valid", "p.in", "--valid-target",
                 "p.out"]
        run = self.succeed("train", *files, "--out", "model", "--json", *settings(QUICK), "--set",
                           "train.metric=bleu")
        records = program.read_metrics(self.folder / "model")
        self.assertEqual({record["metric"] for record in records}, {"bleu"})
        best = json.loads(run.stdout)["valid_bleu"]
        self.assertEqual(best, max(record["valid_metric"] for record in records))
        self.refuse("train", "--data", "p.in", "--target", "p.none", "--out", "other",
                    names=["p.none"])
        self.refuse("train", *files[:-2], "--out", "other", names=["--valid-target"])

    def test_tokens_steps_and_loss(self):
        changes = {"train.batch_tokens": 60, "train.steps": 7, "train.validate_steps": 3,
                   "train.metric": "loss", "train.schedule": "inverse_sqrt",
                   "train.accumulate": 2}
        self.succeed(*train(**changes))
        records = program.read_metrics(self.folder / "model")
        self.assertEqual([record["step"] for record in records], [3, 6, 7])
        for record in records:
            self.assertEqual(record["valid_metric"], record["valid_loss"])

    def test_streamed(self):
        stream = {"train.shuffle_buffer": 16}
        self.refuse("train", "--data", "pairs.tsv", "--out", "model", *settings(QUICK | stream),
                    names=["--valid", "train.shuffle_buffer"])
        run = self.succeed(*train("--json", **stream, **{"train.epochs": 24}))
        self.assertLess(json.loads(run.stdout)["valid_token_error_rate"], 0.3)
        self.assertEqual(program.read_metrics(self.folder / "model")[-1]["epoch"], 24)

    def test_streamed_in_two_parts(self):
        """Stopped in the middle of an epoch with a half-empty buffer."""
        changes = {"train.shuffle_buffer": 16, "train.steps": 8, "train.schedule": "constant"}
        self.succeed(*train(**changes))
        whole = self.folder / "whole"
        (self.folder / "model").rename(whole)
        self.succeed(*train(**changes | {"train.steps": 5}))
        self.succeed("train", "--data", "pairs.tsv", "--valid", "pairs.tsv", "--out", "model",
                     "--resume", "--set", "train.steps=8")
        _, one = program.read_safetensors(whole / "checkpoint.safetensors")
        _, two = program.read_safetensors(self.folder / "model/checkpoint.safetensors")
        self.assertEqual(one, two)

    def test_begins_from_another_model(self):
        self.succeed(*train(**{"train.epochs": 20}))
        more = self.write("more.tsv", PAIRS + "zaz\tZ A Z\n")
        first = program.read_metrics(self.folder / "model")
        vocabulary = (self.folder / "model/source.vocab").read_text()
        for choice, told, tokens in (("extend", "begin with new weights", vocabulary + "z\n"),
                                     ("keep", "are read as <unk>", vocabulary)):
            run = self.succeed("train", "--data", more, "--valid", "pairs.tsv", "--out", choice,
                               "--init", "model", "--init-vocabulary", choice,
                               *settings(QUICK | {"train.epochs": 1}))
            self.assertRegex(run.stderr, r"(\d+) of \1 weights begin as in model")
            self.assertRegex(run.stderr, f"1 of 18 source tokens are not in model, and {told}.*: 'z'")
            self.assertRegex(run.stderr, f"1 of 18 target tokens are not in model, and {told}.*: 'Z'")
            second = program.read_metrics(self.folder / choice)
            self.assertLess(second[0]["train_loss"], 0.8 * first[0]["train_loss"])
            self.assertEqual((self.folder / choice / "source.vocab").read_text(), tokens)
        self.refuse(*train("--resume", "--init-vocabulary", "keep"), names=["--init-vocabulary requires --init"])
        self.refuse("train", "--data", "pairs.tsv", "--valid", "pairs.tsv", "--out", "third",
                    "--init", "model", "--source-units", "line", *settings(QUICK),
                    names=["--init model", "data.source_units"])

    def test_tells_why_it_ended(self):
        run = self.succeed(*train())
        self.assertRegex(run.stderr, r"trained 9 steps in [\d:]+, ended by train.epochs = 3; best")
        run = self.succeed(*train("--resume"))
        self.assertIn("nothing was left to train: 9 steps before, ended by train.epochs = 3; raise",
                      run.stderr)
        outcome = json.loads(self.succeed(*train("--resume", "--json")).stdout)
        self.assertEqual((outcome["steps"], outcome["steps_before"], outcome["ended_by"]),
                         (9, 9, "train.epochs"))
        shutil.rmtree(self.folder / "model")
        # A rate too small to learn anything.
        run = self.succeed(*train(**{"train.patience": 1, "train.learning_rate": 1e-9,
                                     "train.epochs": 9}))
        self.assertIn("ended by train.patience = 1: validations after the warm-up no longer improved "
                      "token error", run.stderr)

    def test_a_dump_changes_nothing(self):
        """For a training that resumes, and for one initialised from another model."""
        self.succeed(*train())
        before = program.contents(self.folder)
        run = self.succeed("train", "--out", "model", "--resume", "--dump-config", "--set",
                           "train.epochs=9")
        self.assertIn("\nhidden = 32\n", run.stdout)
        self.assertIn("\nepochs = 9\n", run.stdout)
        run = self.succeed("train", "--init", "model", "--dump-config")
        self.assertIn('\ntarget_units = "space"\n', run.stdout)
        self.assertEqual(program.contents(self.folder), before)

    def test_init_reads_as_its_model(self):
        """Settings that do not affect the weights can be set; other changes are refused."""
        self.succeed(*train("--set", "data.references=merged"))
        before = program.contents(self.folder)
        for key, wrong, right in [("lowercase", "true", "false"), ("normalise", '"nfd"', '"nfc"'),
                                  ("tokenise", "true", "false"), ("source_units", '"space"', '"char"'),
                                  ("target_units", '"line"', '"space"')]:
            run = self.attend("train", "--data", "pairs.tsv", "--out", "other", "--init", "model",
                              "--set", f"data.{key}={json.loads(wrong)}".lower())
            self.assertEqual(run.returncode, 2, run.stderr)
            self.assertEqual(run.stderr.splitlines()[-1],
                             f"attend: data.{key} = {wrong}, and the weights of --init model were "
                             f"trained with {right}; leave it out")
        self.assertEqual(program.contents(self.folder), before)
        for references in [[], ["--set", "data.references=each"]]:
            run = self.succeed("train", "--init", "model", "--dump-config", *references)
            wanted = "each" if references else "merged"
            self.assertIn(f'\nreferences = "{wanted}"\n', run.stdout)

    def test_a_limit_of_files(self):
        """One line, and no half-written files."""
        command = train("--resume")
        run = self.attend(*command, file_size=20000)
        self.assertEqual(run.returncode, 2, run.stderr)
        self.assertRegex(run.stderr.splitlines()[-1],
                         r"\Aattend: model/\S+: cannot be written: it has \d+ bytes.*ulimit -f")
        self.assertEqual([path.name for path in (self.folder / "model").iterdir()
                          if path.name.startswith(".")], [])
        self.succeed(*command)
        run = self.attend("explain", "model", "bab", "--out", "page.html", file_size=20000)
        self.assertEqual(run.returncode, 2, run.stderr)
        self.assertIn("page.html: cannot be written", run.stderr)
        self.assertFalse((self.folder / "page.html").exists())
        with open(self.folder / "answers", "wb") as out:
            run = subprocess.run([program.PROGRAM, "mechanisms", "--markdown"], stdout=out,
                                 stderr=subprocess.PIPE, env=program.environment(), text=True,
                                 preexec_fn=lambda: program.resource.setrlimit(
                                     program.resource.RLIMIT_FSIZE, (2000, 2000)))
        self.assertEqual((run.returncode, run.stderr),
                         (1, "attend: standard output cannot be written\n"))

    def pairs_of(self, task):
        if task == "classification":
            return PAIRS.replace(" A ", " ").replace(" ", "")
        return PAIRS

    def test_configurations_for_tasks(self):
        for task in ("images", "speech", "recommendation"):
            text = self.succeed("init", task).stdout
            self.assertIn("--config FILE", text)
            self.write("media.toml", text)
            shown = self.succeed("train", "--config", "media.toml", "--dump-config").stdout
            self.assertTrue(text.endswith(shown))
        for task in ("translation", "pronunciation", "classification", "language_model"):
            self.succeed("init", task, "--out", f"{task}.toml")
            text = (self.folder / f"{task}.toml").read_text()
            self.assertIn(f"--config {task}.toml", text)
            shown = self.succeed("train", "--config", f"{task}.toml", "--dump-config").stdout
            self.assertTrue(text.endswith(shown))
            data = f"{task}.txt" if task == "language_model" else f"{task}.tsv"
            self.write(data, self.pairs_of(task))
            self.succeed("train", "--data", data, "--valid", data, "--out", task, "--config",
                         f"{task}.toml", "--set", "train.steps=2")
            self.succeed("predict", task, stdin="bab dad\n")
        self.refuse("init", "translation", "--out", "translation.toml", names=["translation.toml"])
        self.refuse("init", "translatoin", names=["did you mean translation?"])

    def test_strict(self):
        """Examples that are too long are cut or left out with a remark, or refused."""
        short = {"model.maximum_source_length": 5}
        self.write("long.tsv", PAIRS + "babababa\tB A B\n")
        files = ["--data", "long.tsv", "--valid", "pairs.tsv"]
        self.refuse("train", *files, "--out", "model", "--strict", *settings(QUICK | short),
                    names=["long.tsv", "'babababa' has 8 tokens", "maximum_source_length = 5"])
        answer = " ".join("B" * 26)
        self.write("answers.tsv", PAIRS + f"bab\t{answer}\n")
        self.refuse("train", "--data", "pairs.tsv", "--valid", "answers.tsv", "--out", "model",
                    "--strict", *settings(QUICK | short), names=["26 tokens, over 25"])
        run = self.attend("train", *files, "--out", "streamed", "--strict",
                          *settings(QUICK | short | {"train.shuffle_buffer": 4}))
        self.assertEqual(run.returncode, 2)
        self.assertIn("'babababa' has 8 tokens", run.stderr)
        run = self.succeed("train", *files, "--out", "model", *settings(QUICK | short))
        self.assertIn("1 sources are cut to their first 5 tokens", run.stderr)
        run = self.succeed("evaluate", "model", "--data", "long.tsv")
        self.assertIn("long.tsv: 1 sources are cut to their first 5 tokens", run.stderr)
        for command in (["evaluate", "model", "--data", "long.tsv"],
                        ["explain", "model", "babababa"], ["predict", "model"]):
            self.refuse(*command, "--strict", stdin="babababa\n",
                        names=["'babababa'", "over 5 tokens"])
        self.assertEqual(self.succeed("predict", "model", "--strict",
                                      stdin="babab\n").stderr, "")

    def test_recipes(self):
        self.refuse("train", "--recipe", "cmudct", names=["cmudct", "did you mean cmudict?"])
        self.assertIn("hidden = 256",
                      self.succeed("train", "--recipe", "cmudict", "--dump-config").stdout)
        (self.folder / "recipes").mkdir()
        self.write("recipes/mine.toml", "train.epochs = 77\n")
        self.assertIn("epochs = 77",
                      self.succeed("train", "--recipe", "mine", "--dump-config").stdout)

    def test_tensorboard(self):
        self.write("taken", "")
        self.refuse(*train(**{"train.tensorboard": "taken/events"}),
                    names=["train.tensorboard taken/events", "choose another"])
        self.succeed(*train(**{"train.tensorboard": "events"}))
        self.assertEqual(len(list((self.folder / "events").glob("events.out.tfevents.*"))), 1)
        self.assertEqual(list((self.folder / "model").glob("*tfevents*")), [])

    def test_plot_on_a_terminal(self):
        ours, theirs = pty.openpty()
        run = subprocess.Popen([program.PROGRAM, *map(str, train())], cwd=self.folder,
                               stderr=theirs, env=program.environment() | {"TERM": "xterm"})
        os.close(theirs)
        shown = b""
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            shown += part
        os.close(ours)
        self.assertEqual(run.wait(), 0)
        text = shown.decode()
        self.assertRegex(text, r"validation [▁▂▃▄▅▆▇█]{3} \d")
        self.assertIn("\033[2A", text)


if __name__ == "__main__":
    program.main()
