"""Training that is stopped and killed goes on as if nothing had been, to the same bytes."""

import json
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import program
from program import PAIRS, SMALL, read_safetensors, settings, training_outcome

KILLS = 20

# With dropout, so that the masks must be the same too; several seconds on an idle core.
LONG = SMALL | {"train.epochs": 150, "train.checkpoint_seconds": 0.05}
SHORT = SMALL | {"train.epochs": 40, "train.checkpoint_seconds": 0.05}


def train_arguments(config, *options):
    return ["train", "--data", "pairs.tsv", "--valid", "pairs.tsv", "--out", "model", "--resume",
            "--config", config, *options]


def as_toml(values):
    """Dotted keys: TOML takes them as they are."""
    return "".join(f"{key} = {value}\n" for key, value in values.items())


class Resume(program.Case):
    @classmethod
    def setUpClass(cls):
        """Trains once without a stop."""
        cls.shared = pathlib.Path(tempfile.mkdtemp(prefix="attend-test-"))
        cls.addClassCleanup(shutil.rmtree, cls.shared)
        (cls.shared / "pairs.tsv").write_text(PAIRS)
        (cls.shared / "long.toml").write_text(as_toml(LONG))
        start = time.monotonic()
        run = program.attend(*train_arguments("long.toml", "--json"), cwd=cls.shared)
        assert run.returncode == 0, run.stderr
        cls.seconds = json.loads(run.stdout)["seconds"]
        cls.start_seconds = time.monotonic() - start - cls.seconds
        cls.expected = training_outcome(cls.shared / "model")

    def setUp(self):
        super().setUp()
        shutil.copy(self.shared / "pairs.tsv", self.folder)
        shutil.copy(self.shared / "long.toml", self.folder)
        self.model = self.folder / "model"

    def start(self):
        return subprocess.Popen([program.PROGRAM, *train_arguments("long.toml")], cwd=self.folder,
                                stderr=subprocess.PIPE, text=True, env=program.environment())

    def wait_for_training(self, run):
        """Reads up to the first line of progress; returns False where nothing was left to train."""
        errors = []
        for line in run.stderr:
            if line.startswith("epoch "):
                return True
            errors.append(line)
        self.assertEqual(run.wait(), 0, "".join(errors))
        return False

    def assert_done(self):
        found = training_outcome(self.model)
        self.assertEqual(set(found), set(self.expected))
        for name, value in self.expected.items():
            self.assertEqual(found[name], value, name)

    def finish(self):
        self.succeed(*train_arguments("long.toml"))
        self.assert_done()

    def assert_whole(self):
        """What a kill leaves is old or new, never half."""
        for name in ("weights", "checkpoint"):
            path = self.model / f"{name}.safetensors"
            if path.exists():
                read_safetensors(path)
        if (self.model / "metrics.jsonl").exists():
            steps = [record["step"] for record in program.read_metrics(self.model)]
            self.assertEqual(steps, sorted(set(steps)))

    def test_kills_at_random_moments(self):
        seed = random.randrange(1 << 32)
        moments = random.Random(seed)
        # So that about half of the training is left after all the kills.
        longest = self.seconds / KILLS
        kills = 0
        with self.subTest(seed=seed):
            while kills < KILLS:
                run = self.start()
                if kills % 2 == 0:
                    time.sleep(moments.uniform(0, self.start_seconds + longest))
                elif self.wait_for_training(run):
                    time.sleep(moments.uniform(0, longest))
                run.kill()
                run.communicate()
                if run.returncode == 0:
                    self.assert_done()
                    shutil.rmtree(self.model)
                    continue
                self.assertEqual(run.returncode, -signal.SIGKILL)
                kills += 1
                if self.model.exists():
                    self.assert_whole()
            self.finish()

    def test_signals_save_and_stop(self):
        for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            run = self.start()
            self.assertTrue(self.wait_for_training(run))
            time.sleep(self.seconds / 10)
            run.send_signal(number)
            _, errors = run.communicate(timeout=60)
            self.assertEqual(run.returncode, code, errors)
            self.assertIn("the same command goes on", errors.splitlines()[-1])
            self.assert_whole()
            self.assertTrue((self.model / "checkpoint.safetensors").exists())
        self.finish()

    def test_kill_before_the_first_step(self):
        """A start writes training.toml, the vocabularies, then config.toml."""
        files = ["training.toml", "source.vocab", "target.vocab", "config.toml"]
        for count in range(1, len(files) + 1):
            with self.subTest(files[:count]):
                shutil.rmtree(self.model, ignore_errors=True)
                self.model.mkdir()
                for name in files[:count]:
                    shutil.copy(self.shared / "model" / name, self.model)
                ended = subprocess.Popen(["true"])
                ended.wait()
                self.write(f"model/.attend-{ended.pid}-0.tmp", b"half")
                run = self.start()
                self.assertTrue(self.wait_for_training(run))
                run.terminate()
                _, errors = run.communicate(timeout=60)
                self.assertEqual(run.returncode, 143, errors)
        self.finish()

    def test_finished_training_stays_finished(self):
        shutil.copytree(self.shared / "model", self.model)
        self.finish()

    def test_kill_behind_the_last_checkpoint(self):
        shutil.copytree(self.shared / "model", self.model)
        (self.model / "curves.svg").unlink()
        self.finish()

    def test_more_epochs(self):
        shutil.copytree(self.shared / "model", self.model)
        epochs = LONG["train.epochs"] + 2
        self.succeed(*train_arguments("long.toml", "--set", f"train.epochs={epochs}"))
        self.assertEqual([record["epoch"] for record in program.read_metrics(self.model)],
                         list(range(1, epochs + 1)))


class AnotherCommand(program.Case):
    """Resumed with other settings, or in a folder that holds something else."""

    def setUp(self):
        super().setUp()
        self.write("pairs.tsv", PAIRS)
        self.model = self.folder / "model"

    def train(self, *options, **values):
        return ["train", "--data", "pairs.tsv", "--valid", "pairs.tsv", "--out", "model", *options,
                *settings(SHORT | values)]

    def test_kill_before_the_first_checkpoint_keeps_init(self):
        self.succeed(*self.train(**{"train.epochs": 2}))
        self.model.rename(self.folder / "base")
        train = self.train("--init", "base", "--resume", **{"train.epochs": 2})
        self.succeed(*train)
        expected = training_outcome(self.model)
        files = ["training.toml", "source.vocab", "target.vocab", "config.toml"]
        for count in range(1, len(files) + 1):
            with self.subTest(files[:count]):
                for path in self.model.iterdir():
                    if path.name not in files[:count]:
                        path.unlink()
                run = self.succeed(*train)
                self.assertIn("left before its first checkpoint", run.stderr)
                self.assertRegex(run.stderr, r"(\d+) of \1 weights begin as in base")
                self.assertEqual(training_outcome(self.model), expected)

    def test_batches_of_another_size(self):
        """40 of the 60 pairs come in batches of 4, then 2 in batches of 1, then the other 18."""
        for stream, validated in (0, [(10, 1), (12, 1), (13, 1), (14, 2), (15, 3), (16, 4)]), \
                (16, [(10, 1), (12, 1), (14, 1), (16, 2)]):  # in memory are 16 at a time
            with self.subTest(stream):
                values = {"train.epochs": 4, "train.shuffle_buffer": stream, "train.batch": 4}
                self.succeed(*self.train(**values | {"train.steps": 10}))
                for steps, change in (12, {"train.batch": 1}), (14, {"train.batch_tokens": 500}), \
                        (16, {"train.batch": 60}):
                    self.succeed(*self.train("--resume", **values | change
                                             | {"train.steps": steps}))
                self.assertEqual([(record["step"], record["epoch"])
                                  for record in program.read_metrics(self.model)], validated)
                shutil.rmtree(self.model)

    def test_settings_hold_from_there_on(self):
        self.succeed(*self.train(**{"train.steps": 4}))
        self.succeed("train", "--data", "pairs.tsv", "--valid", "pairs.tsv", "--out", "model",
                     "--resume", *settings({"train.batch": 7, "train.steps": 5}))
        settings_now = (self.model / "training.toml").read_text()
        self.assertIn("\nbatch = 7\n", settings_now)
        self.assertIn("\nsteps = 5\n", settings_now)

    def test_refuses_what_cannot_hold(self):
        self.succeed(*self.train(**{"train.steps": 4}))
        told = r"\d+ training and [^\n]*\n"
        self.refuse(*self.train("--resume", **{"train.seed": 2}),
                    names=["train.seed = 2", "begun with 1"], told=told)
        self.refuse(*self.train("--resume", **{"train.shuffle_buffer": 8}),
                    names=["train.shuffle_buffer = 8", "begun with 0"],
                    told=told.replace(r"\d+", "streamed"))
        (self.model / "checkpoint.safetensors").unlink()
        self.refuse(*self.train("--resume"), names=["checkpoint.safetensors", "--init model"])

    def test_a_folder_is_one_process_s(self):
        """Another may neither begin nor go on there; it names who is there."""
        self.succeed(*self.train())
        expected = training_outcome(self.model)
        shutil.rmtree(self.model)
        first = subprocess.Popen([program.PROGRAM, *map(str, self.train())], cwd=self.folder,
                                 stderr=subprocess.PIPE, text=True, env=program.environment())
        best = 0
        while best < 2:  # the weights of the first are written then
            best += "(best)" in first.stderr.readline()
        first.send_signal(signal.SIGSTOP)
        for command in self.train(), self.train("--resume"):
            run = self.attend(*command)
            self.assertEqual(run.returncode, 2, run.stderr)
            self.assertRegex(run.stderr, rf"\Aattend: model: process {first.pid} is writing there"
                                         r"[^\n]*another folder\n\Z")
        self.assertEqual(self.succeed("predict", "model", stdin="bab\n").stderr, "")
        first.send_signal(signal.SIGCONT)
        _, errors = first.communicate(timeout=120)
        self.assertEqual(first.returncode, 0, errors)
        self.assertEqual(training_outcome(self.model), expected)
        self.succeed(*self.train("--resume"))


# Holds the lock of the folder until its standard input ends.
HOLD = """import fcntl, sys
with open(".attend.lock", "w") as file:
    fcntl.lockf(file, fcntl.LOCK_EX)
    print(flush=True)
    sys.stdin.read()
"""


class Taken(program.Case):
    """A folder that another process writes into."""

    def test_every_command_that_fills_a_folder(self):
        self.write("pairs.tsv", PAIRS)
        train = ["train", "--data", "pairs.tsv", "--valid", "pairs.tsv", *settings(
            SHORT | {"train.epochs": 1, "train.keep_checkpoints": 1})]
        self.succeed(*train, "--out", "model")
        for name in ("data", "taken"):
            (self.folder / name).mkdir()
        for part in ("train", "valid", "test"):
            self.write(f"data/{part}.tsv", PAIRS)
        commands = train, ["average", "model"], ["compare", "--data", "data"]
        with subprocess.Popen([sys.executable, "-c", HOLD], cwd=self.folder / "taken",
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
            holder.stdout.readline()
            for command in commands:
                self.refuse(*command, "--out", "taken",
                            names=["taken: ", f"process {holder.pid} is writing", "wait"])
        # The lock file that a killed process left stops nobody.
        self.succeed("average", "model", "--out", "taken")
        self.assertNotIn(".attend.lock", [path.name for path in (self.folder / "taken").iterdir()])

    def test_average_that_was_killed(self):
        """It writes average.toml first and config.toml last."""
        self.write("pairs.tsv", PAIRS)
        self.succeed("train", "--data", "pairs.tsv", "--valid", "pairs.tsv", "--out", "model",
                     *settings(SHORT | {"train.epochs": 2, "train.keep_checkpoints": 2}))
        average = ["average", "model", "--out", "mean"]
        self.succeed(*average)
        whole = program.contents(self.folder / "mean")
        for name in ("config.toml", "target.vocab", "source.vocab", "weights.safetensors"):
            (self.folder / "mean/config.toml").unlink(missing_ok=True)
            (self.folder / "mean" / name).unlink(missing_ok=True)
            self.succeed(*average)
            self.assertEqual(program.contents(self.folder / "mean"), whole)
        self.refuse(*average, names=["mean", "new folder"])


class Seeds(program.Case):
    def train(self, **changes):
        self.write("pairs.tsv", PAIRS)
        self.succeed("train", "--data", "pairs.tsv", "--valid", "pairs.tsv", "--out", "model",
                     *settings(SHORT | changes))
        result = training_outcome(self.folder / "model")
        shutil.rmtree(self.folder / "model")
        return result

    def assert_learned(self, result):
        losses = [record["valid_loss"] for record in result["metrics"]]
        self.assertLess(losses[-1], 0.5 * losses[0])
        self.assertLess(result["metrics"][-1]["valid_metric"], 0.2)

    def test_same_seed_same_bytes(self):
        for replicas in (1, 2):
            with self.subTest(replicas=replicas):
                first = self.train(**{"train.replicas": replicas})
                self.assert_learned(first)
                self.assertEqual(self.train(**{"train.replicas": replicas}), first)

    def test_another_seed(self):
        one, two = (self.train(**{"train.seed": seed, "train.epochs": 1}) for seed in (1, 2))
        self.assertNotEqual(one["weights.safetensors"], two["weights.safetensors"])


if __name__ == "__main__":
    program.main()
