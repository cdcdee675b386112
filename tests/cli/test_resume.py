"""Training that is stopped and killed goes on as if nothing had been, to the same bytes."""

import json
import pathlib
import random
import shutil
import signal
import subprocess
import tempfile
import time

import program
from program import PAIRS, SMALL, read_safetensors, settings

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


def outcome(model):
    """All that training leaves, without the times it took."""
    metadata, tensors = read_safetensors(model / "checkpoint.safetensors")
    metadata.pop("seconds")
    records = program.read_metrics(model)
    for record in records:
        record.pop("seconds")
        record.pop("pairs_per_second")
    rest = {path.name: path.read_bytes() for path in model.iterdir()
            if path.name not in ("checkpoint.safetensors", "metrics.jsonl")
            and "tfevents" not in path.name}
    return {"metadata": metadata, "tensors": tensors, "metrics": records, **rest}


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
        cls.expected = outcome(cls.shared / "model")

    def setUp(self):
        super().setUp()
        shutil.copy(self.shared / "pairs.tsv", self.folder)
        shutil.copy(self.shared / "long.toml", self.folder)
        self.model = self.folder / "model"

    def start(self):
        return subprocess.Popen([program.PROGRAM, *train_arguments("long.toml")], cwd=self.folder,
                                stderr=subprocess.PIPE, text=True, env=program.environment())

    def wait_for_training(self, run):
        """Reads up to the first line of progress."""
        for line in run.stderr:
            if line.startswith("epoch "):
                return
        self.fail("training ended before its first step")

    def assert_done(self):
        found = outcome(self.model)
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
                else:
                    self.wait_for_training(run)
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
            self.wait_for_training(run)
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
                self.write("model/.attend-1-0.tmp", b"half")
                run = self.start()
                self.wait_for_training(run)
                run.terminate()
                _, errors = run.communicate(timeout=60)
                self.assertEqual(run.returncode, 143, errors)
        self.finish()

    def test_finished_training_stays_finished(self):
        shutil.copytree(self.shared / "model", self.model)
        self.finish()

    def test_more_epochs(self):
        shutil.copytree(self.shared / "model", self.model)
        epochs = LONG["train.epochs"] + 2
        self.succeed(*train_arguments("long.toml", "--set", f"train.epochs={epochs}"))
        self.assertEqual([record["epoch"] for record in program.read_metrics(self.model)],
                         list(range(1, epochs + 1)))


class Seeds(program.Case):
    def train(self, **changes):
        self.write("pairs.tsv", PAIRS)
        self.succeed("train", "--data", "pairs.tsv", "--valid", "pairs.tsv", "--out", "model",
                     *settings(SHORT | changes))
        result = outcome(self.folder / "model")
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
