"""Training in several processes: the same result as in one, and every failure is reported."""

import json
import os
import shutil
import signal
import socket
import subprocess

import program
from program import PAIRS, SMALL, settings

TRAINING = SMALL | {"model.dropout": 0, "train.steps": 12, "train.validate_steps": 4,
                    "train.precision": "float32"}


NEVER = 100000  # seconds, steps or epochs: no test reaches it
ENDLESS = {"train.steps": NEVER, "train.epochs": NEVER}
PATIENCE = 20  # seconds until a running process is scheduled, even on a busy machine


class ProcessCase(program.Case):
    def setUp(self):
        super().setUp()
        self.write("pairs.tsv", PAIRS)

    def command(self, out, *more, **changes):
        valid = [] if "--valid" in more else ["--valid", "pairs.tsv"]
        return ["train", "--data", "pairs.tsv", *valid, "--out", out, *settings(TRAINING | changes), *more]

    def start(self, *command, before=(), **environment):
        """`before`: command that starts the program."""
        return subprocess.Popen([*before, program.PROGRAM, *map(str, command)], cwd=self.folder,
                                env=program.environment() | environment, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def meeting(self):
        """Returns the variables of two or more processes that meet at a port reserved for the test.

        The system does not assign the port while a socket is bound to it. Rank 0 can listen there, because
        both sockets set SO_REUSEADDR.
        """
        held = socket.socket()
        self.addCleanup(held.close)
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("", 0))
        # Rank 0 listens at the port after the variable's.
        return {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(held.getsockname()[1] - 1)}

    def finish(self, process):
        """Waits for the process; returns its standard error."""
        return process.communicate(timeout=300)[1]

    def children(self, process):
        """Returns {rank: process} of the children of a process."""
        found = subprocess.run(["pgrep", "-P", str(process.pid)], capture_output=True, text=True).stdout.split()
        ranks = {}
        for child in found:
            with open(f"/proc/{child}/environ", "rb") as file:
                variables = dict(entry.split(b"=", 1) for entry in file.read().split(b"\0") if entry)
            ranks[int(variables[b"RANK"])] = int(child)
        return ranks

    def weights(self, folder):
        return (self.folder / folder / "weights.safetensors").read_bytes()

    def wait_for_validation(self, process):
        """Reads until the first validation; later output remains unread."""
        told = b""
        while not told.endswith(b"| valid loss"):
            byte = os.read(process.stderr.fileno(), 1)
            self.assertTrue(byte, told)
            told += byte


class Processes(ProcessCase):
    def test_train_as_one_process_with_as_many_replicas(self):
        self.succeed(*self.command("one", **{"train.replicas": 2}))
        self.succeed(*self.command("two", "--processes", 2))
        one, two = (program.read_metrics(self.folder / name) for name in ("one", "two"))
        self.assertEqual([record["step"] for record in one], [record["step"] for record in two])
        for a, b in zip(one, two):
            self.assertAlmostEqual(a["valid_loss"], b["valid_loss"], 5)
            self.assertAlmostEqual(a["train_loss"], b["train_loss"], 5)
        run = self.succeed(*self.command("again", "--processes", 2, "--json"))
        self.assertEqual(json.loads(run.stdout)["steps"], 12)
        self.assertEqual(self.weights("two"), self.weights("again"))

    def test_one_that_is_killed_ends_all_and_they_go_on(self):
        settled = {"train.schedule": "constant", "train.checkpoint_seconds": 0}
        process = self.start(*self.command("parts", "--processes", 3, "--timeout", NEVER, **settled | ENDLESS))
        self.wait_for_validation(process)
        children = self.children(process)
        self.assertEqual(sorted(children), [1, 2])
        os.kill(children[2], signal.SIGKILL)
        error = self.finish(process)
        self.assertEqual(process.returncode, 1, error)
        self.assertIn("rank 2 was ended by signal 9", error)
        for child in children.values():
            self.assertFalse(os.path.exists(f"/proc/{child}/exe"), "a process is left")
        metadata, _ = program.read_safetensors(self.folder / "parts" / "checkpoint.safetensors")
        settled |= ENDLESS | {"train.steps": int(metadata["step"]) + 8}
        for folder in ("parts", "whole"):
            self.succeed(*self.command(folder, "--processes", 3, "--resume", **settled))
        self.assertEqual(self.weights("parts"), self.weights("whole"))

    def test_other_numbers_of_processes_go_on(self):
        """Training continues with the same examples: the results before and after are similar."""
        train = {"train.steps": 24, "train.validate_steps": 12, "train.schedule": "constant"}
        self.succeed(*self.command("whole", **train))
        self.succeed(*self.command("parts", "--processes", 2, **train | {"train.steps": 11}))
        run = self.succeed(*self.command("parts", "--processes", 3, "--resume", **train))
        self.assertIn("was taken by 2 processes of 1 replica, and 3 processes of 1 replica continue",
                      run.stderr)
        whole, parts = (program.read_metrics(self.folder / name) for name in ("whole", "parts"))
        self.assertEqual([record["step"] for record in parts], [11, 12, 24])
        self.assertAlmostEqual(parts[-1]["valid_loss"], whole[-1]["valid_loss"], 4)

    def test_share_the_positions_of_sequences(self):
        """The steps equal the steps of one process, including dropout."""
        train = {"model.dropout": 0.1, "train.sequence_parallel": "true", "train.replicas": 1}
        transformer = {key: TRAINING[key] for key in TRAINING if key.startswith("train.")} | {
            "model.type": "transformer", "model.depth": 16, "model.heads": 2,
            "model.attention_dropout": 0.1} | train
        command = ["train", "--data", "pairs.tsv", "--valid", "pairs.tsv"]
        self.succeed(*command, "--out", "one", *settings(transformer))
        self.succeed(*command, "--out", "three", *settings(transformer), "--processes", 3)
        one, three = (program.read_metrics(self.folder / name) for name in ("one", "three"))
        self.assertEqual([record["step"] for record in three], [4, 8, 12])
        for a, b in zip(one, three):
            self.assertAlmostEqual(a["valid_loss"], b["valid_loss"], 5)
            self.assertAlmostEqual(a["train_loss"], b["train_loss"], 5)
        self.refuse(*self.command("model", "--processes", 2, **train),
                    names=["train.sequence_parallel", "transformer"])
        self.refuse(*command, "--out", "model", "--processes", 2,
                    *settings(transformer | {"train.replicas": 2}), names=["train.replicas=1"])

    def test_a_folder_that_is_not_shared(self):
        train = {"train.steps": 8, "train.validate_steps": 4}
        self.succeed(*self.command("model", **train))
        folders, meeting = ["model", "elsewhere"], self.meeting()
        ranks = [self.start(*self.command(folders[rank], "--resume", **train | {"train.steps": 12}),
                            RANK=str(rank), WORLD_SIZE="2", **meeting) for rank in range(2)]
        errors = [self.finish(rank) for rank in ranks]
        self.assertEqual(ranks[1].returncode, 2, errors)
        self.assertIn("--out elsewhere: rank 1 finds no config.toml there", errors[1])
        self.assertNotEqual(ranks[0].returncode, 0)
        self.assertIn("rank 0 of 2: rank 1 is gone", errors[0])

    def test_one_that_hangs_ends_all_in_time(self):
        process = self.start(*self.command("model", "--processes", 2, "--timeout", PATIENCE, **ENDLESS))
        self.wait_for_validation(process)
        child = self.children(process)[1]
        os.kill(child, signal.SIGSTOP)
        error = self.finish(process)
        self.assertEqual(process.returncode, 1, error)
        self.assertIn("rank 0 of 2: rank 1 is gone or not answering", error)
        self.assertFalse(os.path.exists(f"/proc/{child}/exe"), "a process is left")

    def test_a_signal_saves_and_stops_all(self):
        process = self.start(*self.command("model", "--processes", 2, "--resume", **ENDLESS))
        self.wait_for_validation(process)
        process.send_signal(signal.SIGTERM)
        error = self.finish(process)
        self.assertEqual(process.returncode, 128 + signal.SIGTERM, error)
        self.assertIn("everything is saved", error)

    def test_processes_meet_at_a_port(self):
        self.succeed(*self.command("two", "--processes", 2))
        meeting = self.meeting()
        ranks = [self.start(*self.command("port"), RANK=str(rank), WORLD_SIZE="2", **meeting)
                 for rank in range(2)]
        for rank in ranks:
            error = self.finish(rank)
            self.assertEqual(rank.returncode, 0, error)
        self.assertEqual(self.weights("port"), self.weights("two"))

    def test_what_differs_is_named(self):
        """Also for processes that meet in a file, like the processes of a starter."""
        self.write("other.tsv", PAIRS[:-20])
        file = {"ATTEND_MEETING": str(self.folder / "meeting")}
        for meeting, changes, valid, named in ((self.meeting(), {"train.batch": 21}, "pairs.tsv", "batch = 21"),
                                               (file, {}, "other.tsv", "'validation data ")):
            with self.subTest(named):
                commands = self.command("model"), self.command("model", "--valid", valid, **changes)
                ranks = [self.start(*commands[rank], RANK=str(rank), WORLD_SIZE="2", **meeting)
                         for rank in range(2)]
                errors = [self.finish(rank) for rank in ranks]
                self.assertEqual([rank.returncode for rank in ranks], [2, 2], errors)
                self.assertIn("rank 1 was given other settings or data", errors[1])
                self.assertIn(named, errors[1])
                shutil.rmtree(self.folder / "model")

    def test_a_rank_twice(self):
        meeting = self.meeting()
        ranks = [self.start(*self.command(f"model-{i}", "--timeout", NEVER), RANK="0" if i == 0 else "1",
                            WORLD_SIZE="3", **meeting) for i in range(3)]
        # One of the two with rank 1 reports it; the others wait for rank 2.
        first = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT).si_pid
        (ended,) = [rank for rank in ranks[1:] if rank.pid == first]
        self.assertIn("two processes", self.finish(ended))
        self.assertEqual(ended.returncode, 2)
        for rank in ranks:
            if rank is not ended:
                self.assertIsNone(rank.poll())
                rank.kill()
                self.finish(rank)

    def test_bad_input_is_told_once(self):
        self.write("bad.tsv", "no tab\n")
        wrong_data = ["bad.tsv" if word == "pairs.tsv" else word for word in self.command("model")]
        self.write("few.tsv", "ab\tA B\nba\tB A\n")
        few = ["few.tsv" if word == "pairs.tsv" else word for word in self.command("model")]
        for command, names in ((self.command("model", **{"model.hiden": 3}), ["model.hiden"]),
                               (few, ["few.tsv", "2 examples", "3 processes"]),
                               (wrong_data, ["bad.tsv:1"]),
                               (self.command("pairs.tsv"), ["pairs.tsv"])):
            with self.subTest(names=names):
                self.refuse(*command, "--processes", 3, names=names)

    def refuse_environment(self, *names, **environment):
        process = self.start(*self.command("model"), **environment)
        error = self.finish(process)
        self.assertEqual(process.returncode, 2, error)
        self.assertEqual(error.count("\n"), 1)
        for name in names:
            self.assertIn(name, error)
        self.assertFalse((self.folder / "model").exists())

    def test_a_folder_to_meet_in_that_is_not_there(self):
        process = self.start(*self.command("model"), "--processes", 3, TMPDIR="/nowhere")
        self.assertRegex(self.finish(process), r"\Aattend: /nowhere: .*TMPDIR.*\n\Z")
        self.assertEqual(process.returncode, 2)

    def test_environments_that_do_not_fit(self):
        self.refuse_environment("MASTER_ADDR", "rank 0 of 2", RANK="0", WORLD_SIZE="2")
        self.refuse_environment("RANK", "WORLD_SIZE", RANK="2", WORLD_SIZE="2")
        self.refuse_environment("RANK", "'two'", RANK="two", WORLD_SIZE="2")
        self.refuse_environment("RANK is missing", WORLD_SIZE="2")
        self.refuse_environment("MASTER_PORT", RANK="0", WORLD_SIZE="2", MASTER_ADDR="127.0.0.1",
                                MASTER_PORT="70000")
        self.refuse_environment("SLURM_PROCID", SLURM_STEP_NUM_TASKS="2", SLURM_PROCID="7")
        # mpirun in a Slurm step with one process.
        self.refuse_environment("MASTER_ADDR", "rank 1 of 2", OMPI_COMM_WORLD_RANK="1",
                                OMPI_COMM_WORLD_SIZE="2", SLURM_STEP_NUM_TASKS="1", SLURM_PROCID="0")
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1] - 1
            self.refuse_environment(f"127.0.0.1:{port + 1}", RANK="0", WORLD_SIZE="2",
                                    MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))


if __name__ == "__main__":
    program.main()
