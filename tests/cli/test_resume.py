"""Training that is stopped or killed continues to the same bytes as without interruption."""

import os
import pty
import re
import shutil
import signal
import subprocess
import sys

import program
from program import PAIRS, SMALL, counting, read_safetensors, settings, training_outcome

SHORT = SMALL | {"train.epochs": 6}
TRAIN = ["train", "--data", "pairs.tsv", "--valid", "pairs.tsv", "--out", "model"]


class Resume(program.Case):
    def setUp(self):
        super().setUp()
        self.write("pairs.tsv", PAIRS)
        self.model = self.folder / "model"

    def train(self, *options, **values):
        return [*TRAIN, *options, *settings(SHORT | values)]

    def test_signals_save_and_stop(self):
        """At a validation, and in a step without one."""
        train = self.train("--resume", **{"train.checkpoint_seconds": 0})
        self.succeed(*train)
        expected = training_outcome(self.model)
        shutil.rmtree(self.model)
        for signal_number, change, number in ((signal.SIGINT, "rename model/metrics.jsonl", 1),
                                              (signal.SIGTERM, "rename model/checkpoint.safetensors", 2),
                                              (signal.SIGHUP, "rename model/checkpoint.safetensors", 3),
                                              (signal.SIGUSR1, "rename model/checkpoint.safetensors", 4)):
            run = self.attend(*train, env=counting(self.model, signal=signal_number, change=change,
                                                   number=number))
            self.assertEqual(run.returncode, 128 + signal_number, run.stderr)
            self.assertRegex(run.stderr.splitlines()[-1], "the same command continues")
            steps = re.search(r"stopped at step (\d+)", run.stderr)[1]
            metadata, _ = read_safetensors(self.model / "checkpoint.safetensors")
            self.assertEqual(metadata["step"], steps)
        self.succeed(*train)
        self.assertEqual(training_outcome(self.model), expected)

    def test_a_closed_terminal(self):
        """The terminal sends SIGHUP and accepts no more output of training."""
        train = self.train("--resume", **{"train.epochs": 100000})
        pid, terminal = pty.fork()
        if pid == 0:
            os.chdir(self.folder)
            os.execve(program.PROGRAM, [program.PROGRAM, *map(str, train)], program.environment())
        shown = b""
        while b"epoch 2 " not in shown:
            shown += os.read(terminal, 65536)
        os.close(terminal)
        _, status = os.waitpid(pid, 0)
        self.assertEqual(os.waitstatus_to_exitcode(status), 128 + signal.SIGHUP)
        metadata, _ = read_safetensors(self.model / "checkpoint.safetensors")
        self.assertGreater(int(metadata["step"]), 0)

    def test_more_epochs(self):
        self.succeed(*self.train())
        epochs = SHORT["train.epochs"] + 2
        self.succeed(*self.train("--resume", **{"train.epochs": epochs}))
        self.assertEqual([record["epoch"] for record in program.read_metrics(self.model)],
                         list(range(1, epochs + 1)))

    def test_kill_before_the_first_checkpoint_keeps_init(self):
        self.succeed(*self.train(**{"train.epochs": 1}))
        self.model.rename(self.folder / "base")
        train = self.train("--init", "base", "--resume", **{"train.epochs": 1})
        run = self.attend(*train, env=counting(self.model, signal=signal.SIGKILL, number=1,
                                               change="rename model/checkpoint.safetensors"))
        self.assertEqual(run.returncode, -signal.SIGKILL, run.stderr)
        run = self.succeed(*train)
        self.assertIn("left before its first checkpoint", run.stderr)
        self.assertRegex(run.stderr, r"(\d+) of \1 weights begin as in base")

    def test_batches_of_another_size(self):
        """40 of the 60 pairs are in batches of 4, then 2 in batches of 1, then the other 18."""
        for stream, validated in (0, [(10, 1), (12, 1), (13, 1), (14, 2), (15, 3), (16, 4)]), \
                (16, [(10, 1), (12, 1), (14, 1), (16, 2)]):  # 16 are in memory at a time
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
        """Another process can neither start nor resume there; the error names the first process."""
        self.succeed(*self.train())
        expected = training_outcome(self.model)
        shutil.rmtree(self.model)
        # At this change the weights of the first validation are written.
        plan = counting(self.model, signal=signal.SIGSTOP, change="rename model/metrics.jsonl", number=2)
        first = subprocess.Popen([program.PROGRAM, *map(str, self.train())], cwd=self.folder,
                                 stderr=subprocess.PIPE, text=True, env=plan)
        self.addCleanup(first.kill)
        self.assertTrue(os.WIFSTOPPED(os.waitpid(first.pid, os.WUNTRACED)[1]))
        for command in self.train(), self.train("--resume"):
            run = self.attend(*command)
            self.assertEqual(run.returncode, 2, run.stderr)
            self.assertRegex(run.stderr, rf"\Aattend: model: process {first.pid} is writing there"
                                         r"[^\n]*another folder\n\Z")
        # Readers are not blocked; the answer of these weights does not matter.
        self.assertNotIn("writing", self.succeed("predict", "model", stdin="bab\n").stderr)
        first.send_signal(signal.SIGCONT)
        _, errors = first.communicate(timeout=300)
        self.assertEqual(first.returncode, 0, errors)
        self.assertEqual(training_outcome(self.model), expected)


# Holds the lock of the folder until its standard input ends.
HOLD = """import fcntl, sys
with open(".attend.lock", "w") as file:
    fcntl.lockf(file, fcntl.LOCK_EX)
    print(flush=True)
    sys.stdin.read()
"""


class Taken(program.Case):
    """A folder that another process writes to."""

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
        # A killed process's lock file blocks no other process.
        self.succeed("average", "model", "--out", "taken")
        self.assertNotIn(".attend.lock", [path.name for path in (self.folder / "taken").iterdir()])


class Seeds(program.Case):
    def train(self, **changes):
        self.write("pairs.tsv", PAIRS)
        self.succeed(*TRAIN, *settings(SMALL | {"train.epochs": 40} | changes))
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
