"""Images and sounds: tables of them, models that read them, and pictures of their attention."""

import base64
import gzip
import json
import math
import pathlib
import random
import re
import shutil
import struct
import tempfile
import zlib

import program
from program import settings

SMALL = {"train.replicas": 1, "train.batch": 20, "train.warmup_steps": 10,
         "train.learning_rate": 1e-2, "train.weight_average": 0.9, "train.patience": 0}
RECURRENT = SMALL | {"model.embedding": 16, "model.hidden": 32, "model.attention_depth": 16}
VIT = SMALL | {"model.type": "vit", "model.depth": 16, "model.feed_forward": 32, "model.heads": 2,
               "model.layers": 1}


def idx(shape, data):
    return bytes([0, 0, 8, len(shape)]) + struct.pack(f">{len(shape)}I", *shape) + bytes(data)


def png(rows, coloured=False):
    def chunk(kind, data):
        checked = kind + data
        return struct.pack(">I", len(data)) + checked + struct.pack(">I", zlib.crc32(checked))
    header = struct.pack(">IIBBBBB", len(rows[0]), len(rows), 8, 2 if coloured else 0, 0, 0, 0)
    body = zlib.compress(b"".join(b"\0" + bytes(value for value in row for _ in range(
        3 if coloured else 1)) for row in rows))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", body) +
            chunk(b"IEND", b""))


def png_size(data):
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    return struct.unpack(">II", data[16:24])


def wav(samples, rate=8000):
    data = b"".join(struct.pack("<h", round(32767 * sample)) for sample in samples)
    head = b"WAVEfmt " + struct.pack("<IHHIIHH", 16, 1, 1, rate, 2 * rate, 2, 16)
    body = head + b"data" + struct.pack("<I", len(data)) + data
    return b"RIFF" + struct.pack("<I", len(body)) + body


def bar(label, chance):
    """Returns 8 x 8 noisy pixels with a line: 0 horizontal, 1 vertical."""
    line = chance.randrange(1, 7)
    return [200 + chance.randrange(50) if (x if label else y) == line else chance.randrange(60)
            for y in range(8) for x in range(8)]


def bars(count, seed):
    chance = random.Random(seed)
    labels = [chance.randrange(2) for _ in range(count)]
    return [bar(label, chance) for label in labels], labels


def write_bars(folder, name, count, seed):
    images, labels = bars(count, seed)
    (folder / f"{name}-images.gz").write_bytes(
        gzip.compress(idx([count, 8, 8], [pixel for image in images for pixel in image])))
    (folder / f"{name}-labels").write_bytes(idx([count], labels))


def tone(label, chance):
    """At least a fifth of a second that ends low or high; a constant pitch would be normalised away."""
    length = chance.randrange(1600, 2400)
    pitches = ((2000, 300), (300, 2000))[label]
    factor = chance.uniform(0.9, 1.1)
    return [0.5 * math.sin(2 * math.pi * factor * pitches[2 * i >= length] * i / 8000)
            + chance.gauss(0, 0.02) for i in range(length)]


class Images(program.Case):
    """A Vision Transformer that has learned horizontal and vertical lines."""

    @classmethod
    def setUpClass(cls):
        cls.shared = pathlib.Path(tempfile.mkdtemp(prefix="attend-test-"))
        cls.addClassCleanup(shutil.rmtree, cls.shared)
        write_bars(cls.shared, "train", 300, 1)
        write_bars(cls.shared, "test", 100, 2)
        for part, more in (("train", ["--valid", 50]), ("test", [])):
            run = program.attend("data", "images", "--images", f"{part}-images.gz", "--labels",
                                 f"{part}-labels", "--out", "data", "--part", part, "--json", *more,
                                 cwd=cls.shared)
            assert run.returncode == 0, run.stderr
            counts = json.loads(run.stdout)
            expected = {"train_examples": 250, "valid_examples": 50} if more else {
                "test_examples": 100}
            assert {k: v for k, v in counts.items() if k.endswith("examples")} == expected, counts
        chosen = VIT | {"data.patch": 2, "train.epochs": 12}
        run = program.attend("train", "--data", "data", "--out", "model", *settings(chosen),
                             cwd=cls.shared)
        assert run.returncode == 0, run.stderr
        cls.model = cls.shared / "model"
        cls.image = f"{cls.shared}/test-images.gz:7"

    def test_evaluates_and_predicts(self):
        figures = json.loads(self.succeed("evaluate", self.model, "--data",
                                          self.shared / "data/test.tsv", "--json").stdout)
        self.assertGreater(figures["accuracy"], 0.95)
        images, labels = bars(100, 2)
        names = [f"{self.shared}/test-images.gz:{i}\n" for i in range(100)]
        answers = self.succeed("predict", self.model, stdin="".join(names)).stdout.splitlines()
        right = sum(answer == str(label) for answer, label in zip(answers, labels))
        self.assertAlmostEqual(figures["accuracy"], right / 100)
        self.write("a.png", png([images[0][8 * y:8 * y + 8] for y in range(8)]))
        self.assertEqual(self.succeed("predict", self.model, stdin="a.png\n").stdout,
                         answers[0] + "\n")

    def test_pictures(self):
        self.succeed("explain", self.model, self.image, "--out", "x.svg")
        text = (self.folder / "x.svg").read_text()
        self.assertEqual(text.count("<image "), 2)
        self.assertRegex(text, r"<title>row \d, column \d: 0\.\d+</title>")
        self.succeed("explain", self.model, self.image, "--out", "x.html")
        text = (self.folder / "x.html").read_text()
        about = json.loads(re.search(r'id="page">(.*?)</script>', text)[1])
        picture = about["lists"][0]["picture"]
        self.assertEqual([picture[key] for key in ("height", "width", "rows", "columns")], [8, 8, 4, 4])
        self.assertEqual(png_size(base64.b64decode(picture["png"])), (8, 8))
        tested = {method["name"] for method in about["methods"] if method["card"]}
        self.assertLessEqual({"rollout", "gradient", "occlusion"}, tested)
        self.succeed("explain", self.model, self.image, "--out", "x.png")
        width, height = png_size((self.folder / "x.png").read_bytes())
        # Two panels of 8 x 8 pixels of 25 each, with margins, at two device pixels.
        self.assertEqual(width, 2 * (2 * 200 + 20 + 48))
        self.assertGreater(height, 400)
        weights = json.loads(self.succeed("explain", self.model, self.image, "--json").stdout)
        self.assertEqual(len(weights["source"]), 16)
        self.assertAlmostEqual(sum(weights["weights"][0]), 1, places=4)

    def test_refuses_what_it_cannot_read(self):
        whole = png([[0] * 8] * 8)
        for name, data in (("cut.png", whole[:45]), ("text.png", b"no image"), ("empty.png", b""),
                           ("large.png", png([[0] * 9] * 8)),
                           ("cut.idx", idx([2, 8, 8], [0] * 100)),
                           ("float.idx", b"\0\0\x0d\3" + idx([1, 8, 8], [0] * 64)[4:]),
                           ("labels.idx", idx([3], [1, 2, 3])), ("cut.gz", gzip.compress(
                               idx([1, 8, 8], range(64)))[:40])):
            self.write(name, data)
            source = name if name.endswith("png") else name + ":0"
            with self.subTest(name):
                self.refuse("predict", self.model, stdin=source + "\n", names=[name])
            self.refuse("explain", self.model, source, "--out", "x.png", names=[name])
        self.refuse("predict", self.model, stdin="none.png\n", names=["none.png"])
        self.refuse("predict", self.model, stdin=self.image + "000\n", names=["index 7000"])
        self.refuse("predict", self.model, stdin="a.txt\n", names=["a.txt", "file.idx:17"])

    def test_skips_what_it_cannot_read(self):
        images, labels = bars(3, 2)
        names = ["a0.png", "a1.png", "cut.png", "a2.png"]
        for i, image in enumerate(images):
            self.write(f"a{i}.png", png([image[8 * y:8 * y + 8] for y in range(8)]))
        self.write("cut.png", png([[0] * 8] * 8)[:45])
        lines = "".join(f"{name}\n" for name in names)
        run = self.attend("predict", self.model, stdin=lines)
        self.assertEqual(run.returncode, 2)
        self.assertEqual(len(run.stdout.splitlines()), 2)
        self.assertRegex(run.stderr, r"line 3: .*cut\.png")
        run = self.attend("predict", self.model, "--skip-bad", stdin=lines)
        self.assertEqual(run.returncode, 1)
        self.assertEqual([line == "" for line in run.stdout.splitlines()],
                         [False, False, True, False])
        self.write("train.tsv", "cut.png\t0\na0.png\t0\na1.png\t1\na2.png\t1\n")
        self.write("valid.tsv", "none.png\t0\na0.png\t0\n")
        asked = ["train", "--data", "train.tsv", "--valid", "valid.tsv", "--out", "m",
                 "--source-units", "image", *settings(VIT | {"data.patch": 2, "train.epochs": 1})]
        self.refuse(*asked, names=["cut.png"])
        run = self.attend(*asked, "--skip-bad")
        self.assertEqual(run.returncode, 1, run.stderr)
        self.assertIn("train.tsv: 1 of 4 examples cannot be read and are left out", run.stderr)
        self.assertIn("valid.tsv: 1 of 2 examples cannot be read and are left out", run.stderr)
        self.assertIn("none.png", run.stderr)
        self.assertTrue((self.folder / "m/weights.safetensors").exists())
        self.write("test.tsv", "".join(f"{name}\t{label}\n" for name, label in
                                       zip(names, [labels[0], labels[1], 0, labels[2]])))
        self.refuse("evaluate", self.model, "--data", "test.tsv", names=["cut.png"])
        run = self.attend("evaluate", self.model, "--data", "test.tsv", "--skip-bad", "--json")
        self.assertEqual(run.returncode, 1, run.stderr)
        self.assertEqual(json.loads(run.stdout)["examples"], 3)
        self.assertIn("cut.png", run.stderr)
        self.assertIn("1 of 4 examples cannot be read and are left out", run.stderr)

    def test_tells_of_colours_that_it_reads_in_grey(self):
        rows = [[0, 255] * 4] * 8
        for name, coloured in (("g.png", False), ("c.png", True), ("d.png", True)):
            self.write(name, png(rows, coloured))
        self.write("train.tsv", "g.png\t0\nc.png\t1\ng.png\t0\n")
        self.write("valid.tsv", "d.png\t1\ng.png\t0\n")
        asked = ["train", "--data", "train.tsv", "--valid", "valid.tsv", "--source-units", "image",
                 *settings(VIT | {"data.patch": 4, "train.epochs": 1})]
        told = "c.png and 1 more: are in colour; images are read in grey (data.colours = false)"
        self.assertIn(told, self.succeed(*asked, "--out", "grey").stderr)
        self.assertNotIn("grey", self.succeed(*asked, "--out", "colours", "--set",
                                              "data.colours=true").stderr)
        told = "2 of 3 sources are in colour and read in grey (data.colours = false)"
        self.assertIn(told, self.succeed("predict", "grey", stdin="g.png\nc.png\nd.png\n").stderr)
        self.assertIn("valid.tsv: 1 sources are in colour and read in grey",
                      self.succeed("evaluate", "grey", "--data", "valid.tsv").stderr)
        self.assertIn("the image is in colour and read in grey",
                      self.succeed("explain", "grey", "c.png", "--method", "gradient").stderr)

    def test_refuses_tables_of_what_is_not_there(self):
        self.write("train.tsv", "a.png\t1\nb.png\t0\n")
        self.refuse("train", "--data", "train.tsv", "--valid", "train.tsv", "--out", "m",
                    "--source-units", "image", *settings(VIT), names=["a.png"])
        self.write("images", idx([2, 1, 1], [1, 2]))
        self.write("labels", idx([3], [1, 2, 3]))
        self.refuse("data", "images", "--images", "images", "--labels", "labels", "--out", "d",
                    names=["3 labels", "2 images"])
        self.refuse("data", "digits", "--images", "labels", "--labels", "images", "--out", "d",
                    names=["labels", "no images"])

    def test_a_label_of_no_training(self):
        """Counted as wrong."""
        self.write("t.tsv", f"{self.image}\t5\n")
        run = self.succeed("evaluate", self.model, "--data", "t.tsv", "--json")
        self.assertEqual(json.loads(run.stdout)["accuracy"], 0)
        self.assertIn("training lacks 1 label of 1 target (first '5' in t.tsv:1)", run.stderr)


class Rows(program.Case):

    def test_reads_rows_with_attention(self):
        """Rows of one to five digits; tests on real digits show that they are learned."""
        write_bars(self.folder, "train", 300, 1)
        images = ["--images", "train-images.gz", "--labels", "train-labels"]
        run = self.succeed("data", "digits", *images, "--out", "data", "--count", 300, "--valid",
                           20)
        self.assertRegex(run.stdout, r"\Atrain +300 examples  data/train.tsv\n"
                                     r"valid +20 examples  data/valid.tsv\n\Z")
        rows = (self.folder / "data/train.tsv").read_text().splitlines()
        self.assertTrue(all(re.fullmatch(r"train\.idx:\d+\t[01]( [01]){0,4}", row) for row in rows))
        self.succeed("data", "digits", *images, "--out", "more", "--count", 300, "--part", "test")
        for mechanism in ("bahdanau", "hard"):
            chosen = RECURRENT | {"model.encoder": "none", "model.convolutions": 2,
                                  "model.mechanism": mechanism, "train.epochs": 1}
            self.succeed("train", "--data", "data", "--out", mechanism, "--source-units", "image",
                         *settings(chosen))
            self.succeed("evaluate", mechanism, "--data", "more/test.tsv")
            run = self.succeed("explain", mechanism, "more/test.idx:0", "--json")
            self.assertEqual(len(json.loads(run.stdout)["source"]), 2 * 10)
            self.succeed("explain", mechanism, "more/test.idx:0", "--out", f"{mechanism}.png")
            png_size((self.folder / f"{mechanism}.png").read_bytes())

    def test_compares_mechanisms_on_images(self):
        for part, count in (("train", 60), ("test", 20)):
            write_bars(self.folder, part, count, 1)
            more = ["--valid", 10] if part == "train" else []
            self.succeed("data", "images", "--images", f"{part}-images.gz", "--labels",
                         f"{part}-labels", "--out", "data", "--part", part, *more)
        chosen = RECURRENT | {"data.source_units": "image", "train.epochs": 1}
        run = self.succeed("compare", "--data", "data", "--out", "runs", "--mechanisms",
                           "none,bahdanau", "--seeds", 1, "--json", *settings(chosen))
        rows = json.loads(run.stdout)["mechanisms"]
        self.assertEqual([row["mechanism"] for row in rows], ["none", "bahdanau"])
        for row in rows:
            self.assertEqual(sum(part["examples"] for part in row["by_length"]), 20)

    def test_the_transformer_reads_images_and_sounds(self):
        write_bars(self.folder, "train", 60, 1)
        self.succeed("data", "images", "--images", "train-images.gz", "--labels", "train-labels",
                     "--out", "data", "--valid", 10)
        chosen = SMALL | {"model.type": "transformer", "model.depth": 16, "model.feed_forward": 16,
                          "model.heads": 2, "model.encoder_layers": 1, "model.decoder_layers": 1,
                          "train.epochs": 2}
        self.succeed("train", "--data", "data", "--out", "model", "--source-units", "image",
                     *settings(chosen))
        run = self.succeed("explain", "model", "train-images.gz:3", "--json")
        self.assertEqual(len(json.loads(run.stdout)["source"]), 4)
        self.refuse("train", "--data", "data", "--out", "tied", "--source-units", "image",
                    *settings(chosen | {"model.tied": "all", "data.joint_vocabulary": "true"}),
                    names=["model.tied", "take target"])


class Sounds(program.Case):
    """Falling and rising tones, distinguished by a recurrent network."""

    @classmethod
    def setUpClass(cls):
        cls.shared = pathlib.Path(tempfile.mkdtemp(prefix="attend-test-"))
        cls.addClassCleanup(shutil.rmtree, cls.shared)
        (cls.shared / "recordings").mkdir()
        chance = random.Random(3)
        for speaker in ("ann", "bob"):
            for label, name in enumerate(("low", "high")):
                for i in range(30):
                    path = cls.shared / "recordings" / f"{name}_{speaker}_{i}.wav"
                    path.write_bytes(wav(tone(label, chance)))
        run = program.attend("data", "sounds", "recordings", "--out", "data", "--json",
                             cwd=cls.shared)
        assert run.returncode == 0, run.stderr
        counts = json.loads(run.stdout)
        assert [counts[f"{part}_examples"] for part in ("train", "valid", "test")] == [80, 20, 20]
        chosen = RECURRENT | {"model.mechanism": "location_sensitive", "train.epochs": 40}
        run = program.attend("train", "--data", "data", "--out", "model", "--source-units", "sound",
                             "--target-units", "char", *settings(chosen), cwd=cls.shared)
        assert run.returncode == 0, run.stderr
        cls.model = cls.shared / "model"
        cls.sound = cls.shared / "recordings" / "low_ann_0.wav"

    def test_evaluates_and_predicts(self):
        figures = json.loads(self.succeed("evaluate", self.model, "--data",
                                          self.shared / "data/test.tsv", "--json").stdout)
        self.assertLess(figures["sequence_error_rate"], 0.1)
        answer = self.succeed("predict", self.model, stdin=f"{self.sound}\n").stdout
        self.assertEqual(answer, "low\n")

    def test_pictures(self):
        self.succeed("explain", self.model, self.sound, "--out", "x.png")
        png_size((self.folder / "x.png").read_bytes())
        self.succeed("explain", self.model, self.sound, "--out", "x.svg")
        text = (self.folder / "x.svg").read_text()
        self.assertEqual(text.count("<image "), 1 + len("low"))
        self.assertRegex(text, r"<title>0\.\d\d s: ")
        self.assertIn("0.00 s", self.succeed("explain", self.model, self.sound).stdout)

    def test_tells_what_is_cut(self):
        chosen = RECURRENT | {"train.epochs": 1, "model.maximum_source_length": 2}
        train = ("train", "--data", self.shared / "data", "--source-units", "sound", "--target-units",
                 "char", *settings(chosen))
        run = self.succeed(*train, "--out", "short")
        self.assertIn("data: 80 sources are cut to their first 2 frames", run.stderr)
        self.refuse(*train, "--out", "strict", "--strict",
                    names=["model.maximum_source_length = 2", ".wav"])

    def test_refuses_what_it_cannot_read(self):
        whole = wav([0.1] * 900)
        for name, data in (("cut.wav", whole[:30]), ("text.wav", b"no sound"), ("empty.wav", b""),
                           ("rate.wav", wav([0.1] * 900, rate=16000)), ("none.wav", wav([]))):
            self.write(name, data)
            self.refuse("predict", self.model, stdin=name + "\n", names=[name])
            self.refuse("explain", self.model, name, names=[name])
        self.refuse("predict", self.model, stdin="a.wav\n", names=["a.wav"])
        self.refuse("data", "sounds", ".", "--out", "data",
                    names=["cut.wav", "LABEL_SPEAKER_INDEX"])


if __name__ == "__main__":
    program.main()
