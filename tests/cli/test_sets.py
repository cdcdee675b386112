"""Sets: unordered numbers, vectors and images, learned, predicted and explained."""

import itertools
import json
import pathlib
import random
import shutil
import struct
import tempfile

import program
from program import settings

SMALL = {"model.type": "set", "model.depth": 32, "model.feed_forward": 32, "model.heads": 4,
         "model.inducing_points": 8, "train.replicas": 1, "train.batch": 32,
         "train.warmup_steps": 20, "train.epochs": 12, "train.learning_rate": 3e-3,
         "train.weight_average": 0.98, "train.patience": 0}
MAXIMA = SMALL | {"data.target": "number", "data.set_scale": 10}


class Maxima(program.Case):
    """A model that has learned maxima, for all tests below."""

    @classmethod
    def setUpClass(cls):
        cls.shared = pathlib.Path(tempfile.mkdtemp(prefix="attend-test-"))
        cls.addClassCleanup(shutil.rmtree, cls.shared)
        for part, count, seed in (("train", 3000, 1), ("valid", 200, 2), ("test", 500, 3)):
            run = program.attend("data", "sets", "--out", cls.shared / f"{part}.tsv", "--count",
                                 count, "--most", 5, "--largest", 20, "--seed", seed)
            assert run.returncode == 0, run.stderr
        run = program.attend("train", "--data", cls.shared, "--out", "model", *settings(MAXIMA),
                             cwd=cls.shared)
        assert run.returncode == 0, run.stderr
        cls.model = cls.shared / "model"

    def predict(self, lines):
        return self.succeed("predict", self.model,
                            stdin="".join(f"{line}\n" for line in lines)).stdout.split("\n")[:-1]

    def test_learns_the_maximum(self):
        figures = json.loads(self.succeed("evaluate", self.model, "--data", self.shared, "--metric",
                                          "mae,rmse", "--json").stdout)
        self.assertLess(figures["mae"], 0.5)

    def test_no_order_matters(self):
        lines = [" ".join(each) for each in itertools.permutations(["3", "17", "8", "8.5"])]
        answers = self.predict(lines)
        self.assertEqual(set(answers), {answers[0]})
        self.assertAlmostEqual(float(answers[0]), 17, delta=1.5)
        explained = [self.succeed("explain", self.model, line, "--json").stdout
                     for line in (lines[0], lines[-1])]
        self.assertEqual(*explained)

    def test_explains_which_element_counts(self):
        draw = random.Random(4)
        largest = 0
        for _ in range(20):
            numbers = draw.sample(range(1, 21), 4)
            if max(numbers) - sorted(numbers)[-2] < 2:
                numbers = [1, 2, 3, max(max(numbers), 6)]
            picture = json.loads(self.succeed("explain", self.model, " ".join(map(str, numbers)),
                                              "--json").stdout)
            self.assertEqual(picture["source"], [str(number) for number in sorted(numbers)])
            weights = picture["weights"][0]
            largest += weights.index(max(weights)) == 3
        self.assertGreaterEqual(largest, 15)

    def test_bad_sets_are_named(self):
        self.refuse("predict", self.model, stdin="1 inf\n",
                    names=["line 1", "'inf' is not a finite number"])
        self.refuse("predict", self.model, stdin="1,2\n", names=["line 1", "this model reads 1"])
        self.refuse("predict", self.model, stdin="3 17\t17\n", names=["line 1", "a set has a TAB"])
        for line, name in (("1 x", "'x' is not a finite number"), ("1,2 3", "give all the same number"),
                           ("1,2", "this model reads 1"), (",", "'' is not a finite number")):
            self.write("bad.tsv", f"1 2\t2\n{line}\t3\n")
            self.refuse("train", "--data", "bad.tsv", "--valid", "bad.tsv", "--out", "other",
                        *settings(MAXIMA), names=["bad.tsv:2", name])
            self.assertFalse((self.folder / "other").exists())
            self.refuse("evaluate", self.model, "--data", "bad.tsv", names=["bad.tsv:2", name])
        self.write("bad.tsv", " \t3\n")
        self.refuse("train", "--data", "bad.tsv", "--valid", "bad.tsv", "--out", "other",
                    *settings(MAXIMA), names=["bad.tsv:1"])

    def test_two_files_and_lines_left_out(self):
        self.write("sets", "1 2\n3 nan\n4\n5 6\n")
        self.write("maxima", "2\n3\n4\n6\n")
        run = self.attend("train", "--data", "sets", "--target", "maxima", "--valid", "sets",
                          "--valid-target", "maxima", "--out", "other", "--skip-bad",
                          *settings(MAXIMA | {"train.epochs": 1}))
        self.assertIn("'nan' is not a finite number", run.stderr)
        self.assertTrue((self.folder / "other" / "weights.safetensors").exists(), run.stderr)

    def test_numbers_are_no_points(self):
        self.refuse("explain", self.model, "1 2", "--out", "x.points.svg",
                    names=["x.points.svg", "'1' is not a point of a plane"])
        self.assertFalse((self.folder / "x.points.svg").exists())

    def test_large_numbers_are_told(self):
        for scale, is_told in ((1, True), (10, False)):
            run = self.succeed("train", "--data", self.shared, "--out", f"by-{scale}", *settings(
                MAXIMA | {"data.set_scale": scale, "train.steps": 1, "train.epochs": 1}))
            self.assertEqual("make data.set_scale 10 times as large" in run.stderr, is_told)

    def test_what_does_not_fit(self):
        for values, name in (({"model.bias": "buckets:8"}, "inducing points lack positions"),
                             ({"model.layers": 0}, "model.inducing_points is 8"),
                             ({"model.queries": 2}, "take more heads"),
                             ({"train.shuffle_buffer": 10}, "sets and molecules are held in memory")):
            self.refuse("train", "--data", self.shared, "--out", "other",
                        *settings(MAXIMA | values), names=[name])


class Points(program.Case):
    def test_labels_of_points(self):
        draw = random.Random(5)
        lines = []
        for _ in range(400):
            points = [(draw.uniform(-1, 1), draw.uniform(-1, 1)) for _ in range(4)]
            right = sum(x for x, _ in points) > 0
            lines.append(" ".join(f"{x:.2f},{y:.2f}" for x, y in points) +
                         f"\t{'right' if right else 'left'}\n")
        self.write("train.tsv", "".join(lines[:300]))
        self.write("test.tsv", "".join(lines[300:]))
        self.succeed("train", "--data", "train.tsv", "--valid", "test.tsv", "--out", "model",
                     *settings(SMALL | {"model.inducing_points": 0}))
        figures = json.loads(self.succeed("evaluate", "model", "--data", "test.tsv",
                                          "--json").stdout)
        self.assertGreater(figures["accuracy"], 0.85)
        self.succeed("explain", "model", "0.5,0.1 -0.2,0.3", "--out", "page.html")
        self.succeed("explain", "model", "0.5,0.1 -0.2,0.3", "--out", "x.points.svg")
        self.assertIn("<title>-0.2, 0.3: ", (self.folder / "x.points.svg").read_text())
        self.succeed("explain", "model", "0.5,0.1 -0.2,0.3", "--out", "x.points.png")


class Pictures(program.Case):
    def test_sets_of_images(self):
        """Digits are stripes, each at a different height."""
        count, size = 40, 8
        pixels = bytes(255 if row == image % 4 * 2 else 0
                       for image in range(count) for row in range(size) for _ in range(size))
        (self.folder / "images.idx").write_bytes(
            bytes([0, 0, 8, 3]) + struct.pack(">3I", count, size, size) + pixels)
        (self.folder / "labels.idx").write_bytes(
            bytes([0, 0, 8, 1]) + struct.pack(">I", count) +
            bytes(image % 4 for image in range(count)))
        self.succeed("data", "digit-sets", "--images", "images.idx", "--labels", "labels.idx",
                     "--out", "data", "--count", 800, "--valid", 100, "--most", 4)
        names = ["images.idx:1", "images.idx:2", "images.idx:5"]
        for model, more in (("plain", {}),
                            ("model", {"data.patch": 2, "model.convolutions": 1})):
            values = SMALL | {"data.source_units": "images", "train.epochs": 20} | more
            self.succeed("train", "--data", "data", "--out", model, *settings(values))
            figures = json.loads(self.succeed("evaluate", model, "--data", "data/valid.tsv",
                                              "--json").stdout)
            self.assertGreater(figures["accuracy"], 0.9, model)
            lines = self.succeed("predict", model, "--json", stdin=" ".join(names) + "\n" +
                                 " ".join(reversed(names)) + "\n").stdout.splitlines()
            answers = [json.loads(line)["predictions"] for line in lines]
            self.assertEqual(answers[0], answers[1])
            self.assertEqual(answers[0][0]["target"], "2")
        self.succeed("explain", "model", " ".join(names), "--out", "page.html")
        self.refuse("predict", "model", stdin="images.idx:1 images.idx:99\n",
                    names=["line 1", "images.idx", "99"])
        checked = self.succeed("data", "check", "data/train.tsv").stdout
        self.assertIn("800 images or sounds were read", checked)


if __name__ == "__main__":
    program.main()
