"""A command that is killed at any moment and run again has the same result as without a kill.

A kill leaves a folder in the state between two changes. Each command is therefore run once while the folder
is copied at every change, and then again from each copy. `./dev soak` instead kills repeatedly at random
changes: ATTEND_KILLS is the number of kills, ATTEND_SEED the seed.
"""

import json
import os
import pathlib
import random
import re
import shutil
import signal
import tempfile

import program
from foreign import write_foreign
from program import PAIRS, SMALL, contents, counting, settings, training_outcome
from test_media import write_bars

KILLS = int(os.environ.get("ATTEND_KILLS", 0))
SEED = os.environ.get("ATTEND_SEED")

# A checkpoint after each step. The first step ends without a validation, the second with one.
TINY = SMALL | {"train.checkpoint_seconds": 0, "train.validate_steps": 2, "model.hidden": 8,
                "train.keep_checkpoints": 1, "train.steps": 40 if KILLS else 3}
STREAMED = TINY | {"train.replicas": 2, "train.precision": "bfloat16", "train.shuffle_buffer": 16,
                   "train.schedule": "plateau", "train.plateau_patience": 1, "train.batch": 8}
ONE_STEP = {} if KILLS else {"train.steps": 1, "train.keep_checkpoints": 0}
TRAIN = ["train", "--data", "pairs.tsv", "--valid", "pairs.tsv"]
DATA = ["data", "digits", "--images", "train-images.gz", "--labels", "train-labels", "--out",
        "rows", "--count", 300, "--valid", 30]


def comparison_outcome(runs):
    """Returns everything that compare writes, without the minutes of its runs."""
    table = json.loads((runs / "comparison.json").read_text())
    for row in table["mechanisms"]:
        row.pop("minutes")
    lines = (runs / "comparison.md").read_text().splitlines()
    found = {path.name: training_outcome(path) if path.is_dir() else path.read_bytes()
             for path in runs.iterdir()}
    return found | {"comparison.json": table,
                    "comparison.md": [re.sub(r"[^|]*\|$", "", line) for line in lines]}


def whole_files(events):
    """Returns the changes that name a file, one per file, and the changes that make folders.

    All files are written in the same way; tests of `data` and of one training use all changes.
    """
    return [(event, copy) for event, copy in events if "/.attend-" not in event]


def disown(folder):
    """Renames temporary files to belong to an ended process, in case its number is used again."""
    for path in folder.rglob(".attend-*.tmp"):
        path.rename(path.with_name(f".attend-{2**22 + 1}-0.tmp"))  # Linux has fewer processes


class Killed(program.Case):
    @classmethod
    def setUpClass(cls):
        """Makes the inputs of the commands, and a model to continue from."""
        cls.shared = pathlib.Path(tempfile.mkdtemp(prefix="attend-test-"))
        cls.addClassCleanup(shutil.rmtree, cls.shared)
        (cls.shared / "pairs.tsv").write_text(PAIRS)
        (cls.shared / "data").mkdir()
        for part in ("train", "valid", "test"):
            (cls.shared / "data" / f"{part}.tsv").write_text(PAIRS)
        write_bars(cls.shared, "train", 300, 1)
        write_foreign("BertModel", cls.shared / "theirs")
        run = program.attend(*TRAIN, "--out", "base", *settings(STREAMED | {"train.steps": 2}),
                             cwd=cls.shared)
        assert run.returncode == 0, run.stderr

    def begin(self, command, out, outcome, *, model=None, refuses_when_done=False):
        """`model`: the initial content of `out`."""
        self.command, self.outcome, self.refuses_when_done = command, outcome, refuses_when_done
        self.out, self.model = self.folder / "work" / out, model
        shutil.copytree(self.shared, self.folder / "work")
        self.begin_anew()

    def begin_anew(self):
        shutil.rmtree(self.out, ignore_errors=True)
        if self.model:
            shutil.copytree(self.shared / self.model, self.out)

    def run_command(self, **plan):
        # Temporary files of a killed process are removed with the folder of the test.
        return program.attend(*self.command, cwd=self.out.parent,
                              env=counting(self.out, **plan) | {"TMPDIR": str(self.folder)})

    def record(self):
        """Runs the command once; returns its changes, each with a copy of the folder at that time."""
        copies, events = self.folder / "copies", self.folder / "events"
        copies.mkdir()
        run = self.run_command(list=events, copies=copies)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.expected = self.outcome(self.out)
        return [(event, copies / f"{number}") for number, event
                in enumerate(events.read_text().splitlines(), 1)]

    def finish(self, run):
        """Checks that the command finished with the expected result."""
        done = run.returncode == 0 or (self.refuses_when_done and self.out.exists()
                                       and "exists already" in run.stderr)
        self.assertTrue(done, f"{run.args}: {run.returncode}: {run.stderr}")
        found = self.outcome(self.out)
        self.assertEqual(set(found), set(self.expected))
        for name, value in self.expected.items():
            self.assertEqual(found[name], value, name)

    def finish_from(self, events):
        for event, copy in events:
            with self.subTest(event, copy=copy.name):
                shutil.rmtree(self.out, ignore_errors=True)
                if copy.exists():
                    copy.rename(self.out)
                    disown(self.out)
                self.finish(self.run_command())

    def kill_at_random(self, changes, children, kills):
        draw = random.Random(f"{SEED} {self.id()}")
        self.begin_anew()
        while kills > 0:
            child = draw.randint(0, children)
            run = self.run_command(signal=signal.SIGKILL, number=draw.randint(1, changes), child=child)
            if run.returncode == -signal.SIGKILL or "was ended by signal 9" in run.stderr:
                kills -= 1
                disown(self.out)
            else:
                self.finish(run)
                self.begin_anew()
        self.finish(self.run_command())

    def check(self, share, *command, chosen=whole_files, children=0, **options):
        """Continues from each of the `chosen` changes, or after `share` of the random kills."""
        self.begin(*command, **options)
        events = self.record()
        if KILLS:
            self.kill_at_random(len(events), children, round(KILLS * share))
        else:
            self.finish_from(chosen(events))

    def test_training_from_a_stream(self):
        self.check(0.2, [*TRAIN, "--out", "model", "--resume", *settings(STREAMED)], "model",
                   training_outcome, chosen=list)

    def test_training_in_processes(self):
        self.check(0.25, [*TRAIN, "--out", "model", "--resume", "--processes", 2,
                          *settings(TINY | ONE_STEP)], "model", training_outcome, children=1)

    def test_training_that_begins_from_a_model(self):
        """Only up to its first checkpoint; later it continues like other trainings."""
        def start(events):
            return whole_files(events)[:7]
        self.check(0.15, [*TRAIN, "--out", "model", "--init", "base", "--resume",
                          *settings(TINY | ONE_STEP | {"train.accumulate": 2})], "model",
                   training_outcome, chosen=start)

    def test_training_that_goes_on(self):
        self.check(0.15, [*TRAIN, "--out", "model", "--resume", *settings(
            STREAMED | {"train.steps": 40 if KILLS else 4})], "model", training_outcome,
            model="base")

    def test_average(self):
        self.check(0.05, ["average", "base", "--out", "mean"], "mean", contents,
                   refuses_when_done=True)

    def test_import(self):
        self.check(0.01, ["import", "theirs", "--out", "ours"], "ours", contents, refuses_when_done=True)

    def test_export(self):
        run = program.attend("import", "theirs", "--out", "ours", cwd=self.shared)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.addCleanup(shutil.rmtree, self.shared / "ours")
        self.check(0.01, ["export", "ours", "--out", "written"], "written", contents,
                   refuses_when_done=True)

    def test_data(self):
        self.check(0.03, DATA, "rows", contents, chosen=list)

    def test_data_with_places(self):
        self.check(0.01, ["data", "digit-sums", *DATA[2:]], "rows", contents)

    def test_data_of_a_family(self):
        self.check(0.01, ["data", "contacts", "--out", "family", "--count", 300], "family", contents)

    def test_compare(self):
        """Its own files and the checkpoints; other tests cover the other changes of trainings."""
        def own(events):
            return [(event, copy) for event, copy in whole_files(events)
                    if event.count("/") < 2 or event.endswith("/checkpoint.safetensors")]
        self.check(0.15, ["compare", "--data", "data", "--out", "runs", "--mechanisms",
                          "none,bahdanau", "--seeds", 1, *settings(TINY | ONE_STEP)],
                   "runs", comparison_outcome, chosen=own)

    def test_another_process_is_killed(self):
        """Before the first step, and in a validation."""
        self.begin([*TRAIN, "--out", "model", "--resume", "--processes", 2, *settings(TINY)],
                   "model", training_outcome)
        self.record()
        self.begin_anew()
        for event in "create model", "rename model/metrics.jsonl":
            run = self.run_command(signal=signal.SIGKILL, change=event, number=1, child=1)
            self.assertEqual(run.returncode, 1, run.stderr)
            self.assertIn("rank 1 was ended by signal 9", run.stderr)
        self.finish(self.run_command())

    def test_what_a_kill_leaves(self):
        """A real kill leaves the same files as the copies, for each kind of change."""
        self.begin(DATA, "rows", contents)
        for event, copy in {event: (event, copy) for event, copy in self.record()}.values():
            self.begin_anew()
            run = self.run_command(signal=signal.SIGKILL, number=copy.name)
            self.assertEqual(run.returncode, -signal.SIGKILL, event)
            for folder in self.out, copy:
                disown(folder)
            self.assertEqual(contents(self.out), contents(copy), event)


if __name__ == "__main__":
    program.main()
