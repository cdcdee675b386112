"""Runs the program as a user would; shared by the tests of this folder."""

import json
import os
import pathlib
import re
import resource
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import cases  # noqa: E402

PROGRAM = os.environ.get("ATTEND_PROGRAM", "")
EVENTS = pathlib.Path(PROGRAM).resolve().parent / "libcount_events.so"
DICTIONARY = pathlib.Path("/usr/share/pocketsphinx/model/en-us/cmudict-en-us.dict")

# Trains an epoch in a fraction of a second.
SMALL = {"model.embedding": 16, "model.hidden": 32, "model.attention_depth": 16,
         "model.dropout": 0.1, "train.replicas": 1, "train.batch": 20, "train.warmup_steps": 10,
         "train.learning_rate": 1e-2, "train.weight_average": 0.9, "train.patience": 0}

# Enough data to train on if no real words are needed.
PAIRS = "".join(f"{a}{b}{a}\t{a.upper()} {b.upper()} {a.upper()}\n"
                for a in "bdfgklmnprst" for b in "aeiou")


def skip(reason):
    """Skips the test with a visible message."""
    print(f"\nSKIPPED: {reason}", file=sys.stderr, flush=True)
    raise unittest.SkipTest(reason)


def settings(values):
    """Returns the arguments for the settings in a dictionary."""
    return [part for key, value in values.items() for part in ("--set", f"{key}={value}")]


def environment():
    """Returns the caller's environment without variables for settings, colours, speed or ranks."""
    return {key: value for key, value in os.environ.items()
            if not key.startswith(("ATTEND_", "MASTER_", "OMPI_", "PMI_", "MPI_", "SLURM_", "TORCHELASTIC_"))
            and key not in ("NO_COLOR", "OPENBLAS_CORETYPE", "RANK", "WORLD_SIZE")}


def counting(below, **plan):
    """Returns the environment that makes a program count its changes below a folder.

    `plan`: actions at these changes, see tests/support/count_events.cpp.
    """
    return environment() | {"LD_PRELOAD": str(EVENTS), "EVENTS_BELOW": str(below)} | {
        f"EVENTS_{name.upper()}": f"{value}" for name, value in plan.items()}


class Case(unittest.TestCase):
    """A test with its own folder, which is the working folder of the program."""

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="attend-test-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def write(self, name, content):
        path = self.folder / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def attend(self, *arguments, stdin="", **options):
        return attend(*arguments, stdin=stdin, cwd=self.folder, **options)

    def succeed(self, *arguments, stdin="", **options):
        run = self.attend(*arguments, stdin=stdin, **options)
        self.assertEqual(run.returncode, 0, f"{arguments}: {run.stderr}")
        return run

    def refuse(self, *arguments, names, stdin="", told=""):
        """Expects exit code 2, one line that contains each of `names`, and an unchanged folder.

        `told`: pattern of lines that may precede it.
        """
        before = contents(self.folder)
        run = self.attend(*arguments, stdin=stdin)
        self.assertEqual(run.returncode, 2, f"{arguments}: {run.stderr}")
        self.assertEqual(run.stdout, "", arguments)
        self.assertRegex(run.stderr, rf"\A{told}attend: [^\n]+\n\Z", arguments)
        self.assertLess(len(run.stderr), 500, arguments)
        for name in names:
            self.assertIn(name, run.stderr, arguments)
        self.assertEqual(contents(self.folder), before, arguments)


def attend(*arguments, stdin="", cwd=None, timeout=300, memory=None, file_size=None, env=None):
    """Runs the program. Standard output and error are text; bytes that are not UTF-8 are kept.

    `memory`: limit of address space in bytes, for one thread. `file_size`: limit of the size of written
    files in bytes.
    """
    command = [PROGRAM, *map(str, arguments)]
    data = stdin if isinstance(stdin, bytes) else stdin.encode()
    variables, limit = dict(env or environment()), None
    if memory is not None:
        variables["OMP_NUM_THREADS"] = "1"

        def limit():
            resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    if file_size is not None:
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (file_size, file_size))
    run = subprocess.run(command, input=data, env=variables, cwd=cwd, capture_output=True,
                         timeout=timeout, preexec_fn=limit)
    run.stdout = run.stdout.decode(errors="surrogateescape")
    run.stderr = run.stderr.decode(errors="surrogateescape")
    # Training measures its matrix products, which are slow if other processes use the processor.
    run.stderr = re.sub("(?m)^warning: matrix products reach .*\n", "", run.stderr)
    return run


def contents(folder):
    """Returns every path below the folder, with the bytes of files."""
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
            for path in sorted(pathlib.Path(folder).rglob("*"))}


def read_safetensors(path):
    """Returns (metadata, {name: (dtype, shape, bytes)})."""
    data = pathlib.Path(path).read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + length])
    metadata = header.pop("__metadata__", {})
    body = data[8 + length:]
    return metadata, {name: (entry["dtype"], entry["shape"], body[slice(*entry["data_offsets"])])
                      for name, entry in header.items()}


def safetensors(header, body):
    """Returns a file with the given header, an object or text."""
    text = (header if isinstance(header, str) else json.dumps(header)).encode()
    return struct.pack("<Q", len(text)) + text + body


def read_metrics(model):
    return [json.loads(line) for line in (model / "metrics.jsonl").read_text().splitlines()]


def training_outcome(model):
    """Returns everything that training writes, except for times.

    Files of the model folder are compared as bytes, with three exceptions. The checkpoint is compared
    without `seconds`, metrics.jsonl without `seconds` and `pairs_per_second`. TensorBoard's event files are
    left out, because every record has a time.
    """
    metadata, tensors = read_safetensors(model / "checkpoint.safetensors")
    metadata.pop("seconds")
    records = read_metrics(model)
    for record in records:
        record.pop("seconds")
        record.pop("pairs_per_second")
    rest = {path.name: path.read_bytes() for path in model.iterdir()
            if path.name not in ("checkpoint.safetensors", "metrics.jsonl")
            and "tfevents" not in path.name}
    return {"metadata": metadata, "tensors": tensors, "metrics": records, **rest}


def dictionary_words():
    """Returns {word: its pronunciations} for short plain words, in the dictionary's order."""
    if not DICTIONARY.exists():
        skip(f"{DICTIONARY} is not there; install pocketsphinx-en-us")
    words = {}
    for line in DICTIONARY.read_text(encoding="utf-8").splitlines():
        word, *phonemes = line.split()
        word = re.sub(r"\(\d+\)$", "", word)
        if word.isascii() and word.isalpha() and 3 <= len(word) <= 8:
            words.setdefault(word, []).append(" ".join(phonemes))
    return dict(sorted(words.items()))


def as_pairs(words):
    return "".join(f"{word}\t{target}\n" for word, targets in words.items() for target in targets)


def edit_distance(a, b):
    row = list(range(len(b) + 1))
    for i, left in enumerate(a, 1):
        above, row = row, [i]
        for j, right in enumerate(b, 1):
            row.append(min(above[j] + 1, row[-1] + 1, above[j - 1] + (left != right)))
    return row[-1]


def main():
    if not PROGRAM:
        sys.exit("ATTEND_PROGRAM is not set; it is the path of the program to test")
    cases.main()
