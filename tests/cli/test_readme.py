"""Runs the commands of README.md unchanged and in order, in an empty folder."""

import math
import pathlib
import subprocess
import tempfile
import unittest

import arrays
import program

ROOT = pathlib.Path(__file__).resolve().parents[2]

# Other tests check learning: the smallest model, with just enough steps for short answers.
QUICK = {
    "ATTEND_MODEL_HIDDEN": "16",
    "ATTEND_MODEL_EMBEDDING": "8",
    "ATTEND_MODEL_ATTENTION_DEPTH": "8",
    "ATTEND_TRAIN_STEPS": "120",
    "ATTEND_TRAIN_VALIDATION_EXAMPLES": "20",
}


def commands():
    """Returns the lines of indented blocks that call the program."""
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    return [
        line.split("#")[0].strip()
        for line in lines
        if line.startswith("    ") and "attend " in line and "./dev" not in line
    ]


class ReadmeTest(unittest.TestCase):
    def test_every_command_runs(self):
        if not program.DICTIONARY.exists():
            program.skip(f"{program.DICTIONARY} is missing: install pocketsphinx-en-us")
        self.assertGreaterEqual(len(commands()), 8)
        with tempfile.TemporaryDirectory() as folder:
            for name, shape in (("q", (2, 4)), ("k", (3, 4)), ("v", (3, 2)), ("u", (4,))):
                values = [0.1 * i for i in range(math.prod(shape))]
                arrays.write_npy(f"{folder}/{name}.npy", (shape, values))
            environment = {**program.environment(), **QUICK}
            folder_of_program = pathlib.Path(program.PROGRAM).parent
            environment["PATH"] = f"{folder_of_program}:{environment['PATH']}"
            for command in commands():
                with self.subTest(command=command):
                    done = subprocess.run(
                        ["sh", "-c", command], cwd=folder, env=environment, capture_output=True,
                        text=True, timeout=300)
                    self.assertEqual(done.returncode, 0, done.stderr)
            for made in ("model/weights.safetensors", "picture.html", "r.npz"):
                self.assertTrue((pathlib.Path(folder) / made).stat().st_size > 0, made)


if __name__ == "__main__":
    program.main()
