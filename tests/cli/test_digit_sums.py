"""Images of two digits and a sign, read in words: the answers, and the attention while answering."""

import gzip
import pathlib
import random
import re
import subprocess
import sys

import program
from program import settings
from test_media import idx

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import digit_sums  # noqa: E402

# Shapes for digits.
SHAPES = ((" ### ", "#   #", "#   #", "#   #", " ### "), ("  #  ", " ##  ", "  #  ", "  #  ", " ### "),
          ("#####", "    #", " ### ", "#    ", "#####"), ("#   #", "#   #", "#####", "    #", "    #"))


def glyph(digit, chance):
    """Returns 8 x 8 pixels filled by a shape."""
    return [180 + chance.randrange(70) if SHAPES[digit][5 * y // 8][5 * x // 8] == "#" else 0
            for y in range(8) for x in range(8)]


def write_glyphs(folder, name, count, seed):
    chance = random.Random(seed)
    digits = [chance.randrange(len(SHAPES)) for _ in range(count)]
    for kind, content in (("images-idx3", idx([count, 8, 8], sum((glyph(d, chance) for d in digits), []))),
                          ("labels-idx1", idx([count], digits))):
        (folder / f"{name}-{kind}-ubyte.gz").write_bytes(gzip.compress(content))


class Boxes(program.Case):
    def test_patches_that_pass_the_edge(self):
        frames = {"patch": 8, "image_height": 42, "image_width": 84}
        self.assertEqual(digit_sums.patch_box(0, frames), (-3, -2, 8, 8))
        self.assertEqual(digit_sums.patch_box(12, frames), (5, 6, 8, 8))
        self.assertTrue(digit_sums.overlap((5, 6, 8, 8), (12, 13, 20, 20)))
        self.assertFalse(digit_sums.overlap((5, 6, 8, 8), (13, 13, 20, 20)))
        self.assertFalse(digit_sums.overlap((5, 6, 8, 8), (0, 14, 20, 20)))


class Sums(program.Case):
    def test_reads_them_and_looks_at_each(self):
        """Runs the tool: soft attention, then hard attention initialised from it.

        Real digits show that maps are correct in 95 of 100 cases (docs/results.md).
        """
        write_glyphs(self.folder, "train", 400, 1)
        write_glyphs(self.folder, "t10k", 200, 2)
        small = {"data.patch": 4, "model.convolutions": 2, "model.embedding": 16, "model.hidden": 32,
                 "model.attention_depth": 16, "train.batch": 20, "train.warmup_steps": 10,
                 "train.learning_rate": 1e-2, "train.weight_average": 0.9, "train.epochs": 12}
        run = subprocess.run(
            [sys.executable, ROOT / "tools/digit_sums.py", "--data", self.folder, "--out",
             self.folder / "out", "--count", "1500", *settings(small)],
            env=program.environment() | {"ATTEND_PROGRAM": program.PROGRAM}, capture_output=True,
            text=True, check=False)
        self.assertEqual(run.returncode, 0, run.stderr)
        for name in ("soft", "hard"):
            told = re.search(rf"^{name}: (\S+) of the answers exact, (\S+) of the digits looked at",
                             run.stdout, re.MULTILINE)
            self.assertGreaterEqual(float(told[1]), 0.95, run.stdout)
            # A digit is two patches wide here, and the convolutions also see it from neighbouring
            # patches. A random patch is on it in less than half of the cases.
            self.assertGreaterEqual(float(told[2]), 0.75, run.stdout)

    def test_what_is_no_digit(self):
        self.write("images", idx([2, 8, 8], [1] * 128))
        self.write("labels", idx([2], [3, 12]))
        self.refuse("data", "digit-sums", "--images", "images", "--labels", "labels", "--out", "d",
                    names=["labels: label 12 of image 1"])


if __name__ == "__main__":
    program.main()
