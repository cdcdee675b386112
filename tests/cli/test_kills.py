"""Commands that are killed at random moments, and run again, end as if nobody had killed them.

ATTEND_KILLS says how many kills, ATTEND_SEED from which seed their moments are drawn.
"""

import collections
import contextlib
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import program
from program import PAIRS, SMALL, contents, settings, training_outcome
from test_media import write_bars

KILLS = int(os.environ.get("ATTEND_KILLS", 20))
SEED = int(os.environ.get("ATTEND_SEED", random.randrange(1 << 32)))

# A checkpoint after each step, so that many kills fall on one that is being written.
TINY = SMALL | {"train.checkpoint_seconds": 0, "train.validate_steps": 4, "model.hidden": 16,
                "train.keep_checkpoints": 2}
STREAMED = TINY | {"train.replicas": 2, "train.precision": "bfloat16", "train.shuffle_buffer": 16,
                   "train.schedule": "plateau", "train.plateau_patience": 1, "train.steps": 30,
                   "train.batch": 8}
HELD = TINY | {"train.batch_tokens": 60, "train.accumulate": 2, "train.steps": 20}
TRAIN = ["train", "--data", "pairs.tsv", "--valid", "pairs.tsv"]


def one_file(path):
    return {path.name: path.read_bytes()}


def comparison_outcome(runs):
    """All that compare leaves, without the minutes that its runs took."""
    table = json.loads((runs / "comparison.json").read_text())
    for row in table["mechanisms"]:
        row.pop("minutes")
    lines = (runs / "comparison.md").read_text().splitlines()
    found = {"comparison.json": table,
             "comparison.md": [re.sub(r"[^|]*\|$", "", line) for line in lines],
             **one_file(runs / "comparison.svg"), **one_file(runs / "compare.toml")}
    folders = {path.name: training_outcome(path) for path in runs.iterdir() if path.is_dir()}
    return found | folders | {"names": sorted(path.name for path in runs.iterdir())}


def stage_of_training(model):
    """How far it had come; for the figures alone."""
    if not (model / "config.toml").exists():
        return "before the description" if model.exists() else "before the folder"
    if not (model / "checkpoint.safetensors").exists():
        return "before the first checkpoint"
    if list(model.glob(".attend-*.tmp")):
        return "in a file"
    return "behind the curves" if (model / "curves.svg").exists() else "between files"


def stage_of_folder(folder):
    if not folder.exists():
        return "before the folder"
    return "in a file" if list(folder.rglob(".attend-*.tmp")) else "between files"


class Killed(program.Case):
    @classmethod
    def setUpClass(cls):
        """What the commands read, and a model that others go on from."""
        cls.shared = pathlib.Path(tempfile.mkdtemp(prefix="attend-test-"))
        cls.addClassCleanup(shutil.rmtree, cls.shared)
        print(f"{KILLS} kills, ATTEND_SEED={SEED}", file=sys.stderr, flush=True)
        (cls.shared / "pairs.tsv").write_text(PAIRS)
        (cls.shared / "data").mkdir()
        for part in ("train", "valid", "test"):
            (cls.shared / "data" / f"{part}.tsv").write_text(PAIRS)
        write_bars(cls.shared, "train", 300, 1)
        run = program.attend(*TRAIN, "--out", "base", *settings(STREAMED | {"train.steps": 10}),
                             cwd=cls.shared)
        assert run.returncode == 0, run.stderr

    def begin_anew(self):
        for path in self.folder.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        shutil.copytree(self.shared, self.folder, dirs_exist_ok=True)
        if self.prepare:
            self.prepare()

    def finished(self, run, errors):
        """Whether a command that was not killed came to its end."""
        # A command may refuse an --out that is finished already.
        done = run.returncode == 0 or (self.refuses_when_done and self.out.exists()
                                       and "is there already" in errors)
        self.assertTrue(done, f"{run.args}: {run.returncode}: {errors}")
        found = self.outcome(self.out)
        self.assertEqual(set(found), set(self.expected))
        for name, value in self.expected.items():
            self.assertEqual(found[name], value, name)
        self.begin_anew()

    def start(self):
        self.before = self.changed()
        return subprocess.Popen([program.PROGRAM, *map(str, self.command)], cwd=self.folder,
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                env=program.environment())

    def wait_for_writing(self, run):
        """Waits until the folder has changed, or the command has ended."""
        while run.poll() is None and self.changed() == self.before:
            time.sleep(0.001)

    def changed(self):
        return self.out.stat().st_mtime_ns if self.out.exists() else None

    def kill_one(self, run, moments):
        """Kills the command, or one that it has started; returns whether that ended it, and its errors."""
        children = subprocess.run(["pgrep", "-P", str(run.pid)], capture_output=True,
                                  text=True).stdout.split()
        victim = moments.choice([run.pid, *map(int, children)])
        with contextlib.suppress(ProcessLookupError):
            os.kill(victim, signal.SIGKILL)
        # Up to the end of all, who hold the other end of its standard error.
        _, errors = run.communicate()
        if victim != run.pid and run.returncode != 0:
            self.assertIn(run.returncode, (1, 2), errors)
            self.assertIn("was ended by signal 9", errors)
            return True, errors
        return run.returncode == -signal.SIGKILL, errors

    def measure(self):
        """The seconds until the command begins to write, and until its end."""
        start = time.monotonic()
        run = self.start()
        self.wait_for_writing(run)
        loaded = time.monotonic() - start
        _, errors = run.communicate()
        self.assertEqual(run.returncode, 0, errors)
        return loaded, time.monotonic() - start

    def check(self, share, command, out, outcome, *, prepare=None, stage=stage_of_folder,
              refuses_when_done=False):
        """`share` of the kills fall on the command, after each of which it is run again."""
        self.command, self.out, self.outcome = command, self.folder / out, outcome
        self.prepare, self.refuses_when_done = prepare, refuses_when_done
        self.begin_anew()
        loaded, duration = self.measure()
        self.expected = outcome(self.out)
        self.begin_anew()
        moments = random.Random(f"{SEED} {self.id()}")
        stages, ends = collections.Counter(), 0
        while stages.total() < round(KILLS * share):
            run = self.start()
            try:
                # Every fourth time to its end; otherwise half the time while it writes.
                patience = moments.uniform(0, duration)
                if moments.random() < 1 / 4:
                    patience = None
                elif moments.random() < 1 / 2:
                    self.wait_for_writing(run)
                    patience = moments.uniform(0, duration - loaded)
                _, errors = run.communicate(timeout=patience)
            except subprocess.TimeoutExpired:
                was_ended, errors = self.kill_one(run, moments)
                if was_ended:
                    stages[stage(self.out)] += 1
                    continue
            self.finished(run, errors)
            ends += 1
        run = self.start()
        _, errors = run.communicate(timeout=300)
        self.finished(run, errors)
        print(f"{command[0]}: {duration:.2f} s, of which {loaded:.2f} until it writes; "
              f"{ends + 1} times to its end; kills "
              + ", ".join(f"{stage}: {count}" for stage, count in sorted(stages.items())),
              file=sys.stderr, flush=True)

    def test_training_from_a_stream(self):
        self.check(0.2, [*TRAIN, "--out", "model", "--resume", *settings(STREAMED)], "model",
                   training_outcome, stage=stage_of_training)

    def test_training_in_processes(self):
        self.check(0.25, [*TRAIN, "--out", "model", "--resume", "--processes", 2,
                          *settings(STREAMED | {"train.replicas": 1})], "model", training_outcome,
                   stage=stage_of_training)

    def test_training_that_begins_from_a_model(self):
        self.check(0.15, [*TRAIN, "--out", "model", "--init", "base", "--resume", *settings(HELD)],
                   "model", training_outcome, stage=stage_of_training)

    def test_training_that_goes_on(self):
        def prepare():
            (self.folder / "base").rename(self.folder / "model")
            (self.folder / "model" / "curves.svg").unlink()
        self.check(0.15, [*TRAIN, "--out", "model", "--resume", *settings(STREAMED)], "model",
                   training_outcome, prepare=prepare, stage=stage_of_training)

    def test_average(self):
        self.check(0.05, ["average", "base", "--out", "mean"], "mean", contents,
                   refuses_when_done=True)

    def test_data(self):
        self.check(0.05, ["data", "digits", "--images", "train-images.gz", "--labels",
                         "train-labels", "--out", "rows", "--count", 30000, "--valid", 3000],
                   "rows", contents)

    def test_compare(self):
        self.check(0.15, ["compare", "--data", "data", "--out", "runs", "--mechanisms",
                          "none,bahdanau", "--seeds", 1, *settings(STREAMED | {"train.steps": 12})],
                   "runs", comparison_outcome)


if __name__ == "__main__":
    program.main()
