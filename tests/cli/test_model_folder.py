"""Hostile and broken model folders, unusual texts, and a full disk."""

import json
import shutil
import struct
import subprocess
import tempfile

import program
from program import PAIRS, SMALL, read_safetensors, safetensors, settings

# Output of training before it reads the checkpoint.
COUNTS = r"\d+ training and [^\n]*\n"

# Just long enough to show that reading is bounded.
LONGEST = 40


class WithModel(program.Case):
    """Each test has a copy of one small model."""

    @classmethod
    def setUpClass(cls):
        cls.trained = tempfile.mkdtemp(prefix="attend-test-")
        cls.addClassCleanup(shutil.rmtree, cls.trained)
        with open(f"{cls.trained}/pairs.tsv", "w") as file:
            file.write(PAIRS)
        values = SMALL | {"train.epochs": 1, "model.maximum_source_length": LONGEST}
        run = program.attend("train", "--data", "pairs.tsv", "--valid", "pairs.tsv", "--out",
                             "model", *settings(values), cwd=cls.trained)
        assert run.returncode == 0, run.stderr

    def setUp(self):
        super().setUp()
        shutil.copytree(self.trained, self.folder, dirs_exist_ok=True)
        self.model = self.folder / "model"
        self.weights = self.model / "weights.safetensors"

    def refuse_model(self, *names):
        self.refuse("predict", "model", names=names, stdin="bab\n")


class Weights(WithModel):
    def refuse_weights(self, content, *names):
        self.weights.write_bytes(content)
        self.refuse_model("weights.safetensors", *names)

    def test_truncated(self):
        whole = self.weights.read_bytes()
        for size in (0, 7, 100, len(whole) - 1):
            with self.subTest(size):
                self.refuse_weights(whole[:size], "bytes")

    def test_bytes_behind_the_end(self):
        self.refuse_weights(self.weights.read_bytes() + b"\0", "1 bytes follow")

    def test_oversized_header(self):
        whole = self.weights.read_bytes()
        for length in (2**27, 2**40, 2**64 - 1):
            with self.subTest(length):
                self.refuse_weights(struct.pack("<Q", length) + whole[8:], "header", str(length))
        self.refuse_weights(struct.pack("<Q", len(whole)) + whole[8:], "truncated")

    def large_enough(self, header, body=b""):
        """Padded with a tensor, so that the file's size is plausible."""
        text = header if isinstance(header, str) else json.dumps(header)
        size = self.weights.stat().st_size
        begin = len(body)
        filler = {"dtype": "U8", "shape": [size], "data_offsets": [begin, begin + size]}
        return safetensors(text[:-1] + f', "filler": {json.dumps(filler)}}}', body + bytes(size))

    def test_overlapping_offsets(self):
        def entry(begin, end):
            return {"dtype": "F32", "shape": [2], "data_offsets": [begin, end]}
        overlap = {"a": entry(0, 8), "b": entry(4, 12)}
        self.refuse_weights(self.large_enough(overlap, bytes(12)), "'b'", "overlaps")
        self.refuse_weights(self.large_enough({"a": entry(4, 12)}, bytes(12)), "'a'", "gap of 4")
        self.refuse_weights(self.large_enough({"a": entry(8, 0)}, bytes(8)), "'a'")

    def test_duplicate_key(self):
        entry = '"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}'
        self.refuse_weights(self.large_enough(f"{{{entry}, {entry}}}", bytes(4)), "'a'", "twice")

    def test_shape_that_overflows(self):
        entry = {"dtype": "F32", "shape": [2**62, 4], "data_offsets": [0, 0]}
        self.refuse_weights(self.large_enough({"a": entry}), "'a'", "overflows")

    def test_header_of_deep_json(self):
        self.refuse_weights(self.large_enough('{"a": ' + "[" * 100_000 + "]" * 100_000 + "}"),
                            "header")
        self.refuse_weights(self.large_enough('{"a"}'), "not valid JSON")

    def test_weights_of_another_model(self):
        self.refuse_weights(self.large_enough("{ }".replace(" ", '"a": {"dtype": "F32", "shape": '
                                                            '[1], "data_offsets": [0, 4]}'),
                                              bytes(4)), "tensor", "config.toml")

    def test_missing(self):
        self.weights.unlink()
        self.refuse_model("weights.safetensors", "--resume")

    def test_checkpoint(self):
        path = self.model / "checkpoint.safetensors"
        path.write_bytes(path.read_bytes()[:-1])
        self.refuse("train", "--data", "pairs.tsv", "--valid", "pairs.tsv", "--out", "model",
                    "--resume", "--set", "train.epochs=2",
                    names=["checkpoint.safetensors", "truncated"], told=COUNTS)


class Description(WithModel):
    def test_vocabulary_that_disagrees_with_the_weights(self):
        for name, tensor in (("source", "source_embedding"), ("target", "target_embedding")):
            path = self.model / f"{name}.vocab"
            whole = path.read_text()
            path.write_text(whole + "zz\n")
            self.refuse_model("weights.safetensors", tensor, "vocabularies")
            path.write_text("\n".join(whole.splitlines()[:-1]) + "\n")
            self.refuse_model("weights.safetensors", tensor, "vocabularies")
            path.write_text(whole)

    def test_vocabulary_that_is_none(self):
        path = self.model / "source.vocab"
        for content, *names in ((b"", "empty"), (b"<pad>\n<s>\n</s>\n<unk>\na\na\n", ":6", "twice"),
                                (b"<pad>\n<s>\n</s>\n<unk>\n\xff\n", ":5", "UTF-8"),
                                (b"a\n", ":1", "<pad>")):
            path.write_bytes(content)
            self.refuse_model("source.vocab", *names)
        path.unlink()
        self.refuse_model("source.vocab", "no such file")

    def test_configuration(self):
        path = self.model / "config.toml"
        whole = path.read_text()
        for line, *names in (("hidden = 64", "weights.safetensors"),
                             ("hidden = 65536", "weights.safetensors", "config.toml"),
                             ("hidden = 33", "model.hidden", "even"),
                             ("hidden = 'x'", "config.toml", "model.hidden", "an integer"),
                             ("hiden = 32", "config.toml", "did you mean model.hidden?")):
            with self.subTest(line):
                path.write_text(whole.replace("hidden = 32", line))
                self.refuse_model(*names)
        path.unlink()
        self.refuse_model("config.toml", "attend train")

    def test_settings_that_ask_for_more_memory_than_the_weights_have(self):
        """Refused by computation: a network of this size would not fit into the limit."""
        path = self.model / "config.toml"
        chosen = {"model.type": "transformer", "model.depth": 16, "model.feed_forward": 16,
                  "model.encoder_layers": 1, "model.decoder_layers": 1, "train.epochs": 1}
        train = ["train", "--data", "pairs.tsv", "--valid", "pairs.tsv", "--out"]
        self.succeed(*train, "large", *settings(chosen))
        shutil.rmtree(self.model)
        shutil.move(self.folder / "large", self.model)
        whole = path.read_text()
        for old, new in (('bias = ""', 'bias = "grid:65536x65536"'),
                         ('source_bias = ""', 'source_bias = "relative_keys:65536"'),
                         ('positions = "sinusoidal"\n', 'positions = "learned"\n'),
                         ("feed_forward = 16", "feed_forward = 262144")):
            with self.subTest(new):
                self.assertIn(f"\n{old}", whole)
                text = whole.replace(f"\n{old}", f"\n{new}")
                if "learned" in new:
                    text = text.replace("maximum_source_length = 256",
                                        "maximum_source_length = 1048576")
                path.write_text(text)
                key = "maximum_source_length" if "learned" in new else new.split(" ")[0]
                commands = [["predict", "model"], [*train, "model", "--resume"]]
                for command in commands if "grid" in new else commands[:1]:
                    with self.subTest(command[0]):
                        run = self.attend(*command, stdin="bab\n", memory=2 << 30)
                        self.assertEqual(run.returncode, 2, run.stderr)
                        self.assertRegex(run.stderr, rf"\Aattend: [^\n]*weights.safetensors[^\n]*"
                                                     rf"model\.{key} = [^\n]*\n\Z")

    def test_training_that_no_memory_would_hold(self):
        run = self.attend("train", "--data", "pairs.tsv", "--valid", "pairs.tsv", "--out", "new",
                          *settings({"model.type": "transformer",
                                     "model.bias": "grid:65536x65536"}), memory=2 << 30)
        self.assertEqual(run.returncode, 2, run.stderr)
        self.assertRegex(run.stderr, r"\A(\d+ training and [^\n]*\n)?attend: [^\n]*"
                                     r"model\.bias = 'grid:65536x65536' asks for[^\n]*\n\Z")
        self.assertFalse((self.folder / "new").exists())

    def test_no_folder(self):
        for command in (["predict"], ["inspect"], ["evaluate", "--data", "pairs.tsv"]):
            self.refuse(*command, "none", names=["none", "no such model folder"])
            self.refuse(*command, "pairs.tsv", names=["pairs.tsv", "model folder"])

    def test_history_that_is_none(self):
        (self.model / "metrics.jsonl").write_bytes(
            b'\xff\n[1]\n{"best": "yes", "epoch": []}\n' + b"[" * 100_000 + b"\n")
        self.assertIn("parameter", self.succeed("inspect", "model").stdout)

    def test_training_it_again(self):
        train = ["train", "--data", "pairs.tsv", "--valid", "pairs.tsv", "--out", "model"]
        self.refuse(*train, names=["model", "--resume"])
        self.refuse(*train, "--resume", "--set", "model.hidden=8",
                    names=["model.hidden", "train.*"])
        self.write("pairs.tsv", PAIRS + "zz\tA B\n")
        unknown = r"attend: validation: 2 of \d+ source tokens are unknown to the model\n"
        self.refuse(*train, "--resume", names=["checkpoint.safetensors", "other data"],
                    told=COUNTS + unknown)

    def test_the_same_command_goes_on(self):
        """Settings of the model are checked; settings of training apply from now on."""
        train = ["train", "--data", "pairs.tsv", "--valid", "pairs.tsv", "--out", "model",
                 "--resume"]
        shutil.copy(self.model / "config.toml", self.folder / "told.toml")
        with open(self.folder / "told.toml", "a") as file:
            file.write("\n[train]\nepochs = 2\n")
        self.succeed(*train, *settings(SMALL), "--set",
                     f"model.maximum_source_length={LONGEST}", "--config", "told.toml")
        self.assertEqual(program.read_metrics(self.model)[-1]["epoch"], 2)
        self.refuse(*train, "--config", "told.toml", "--set", "model.type=transformer",
                    names=["model.type", "transformer", "seq2seq", "train.*"])
        self.refuse(*train, "--source-units", "space", names=["data.source_units", "space", "char"])
        self.refuse(*train, "--recipe", "cmudict", names=["model.", "model"])
        self.assertEqual(program.read_metrics(self.model)[-1]["epoch"], 2)


class Texts(WithModel):
    def test_unknown_character(self):
        run = self.succeed("predict", "model", stdin="b\u00e9b\U0001f600\n<unk>\n")
        self.assertEqual(len(run.stdout.splitlines()), 2)
        self.assertIn("attend: 4 of 9 source tokens are unknown to the model, first in line 1: "
                      "'\u00e9'\n", run.stderr)

    def test_empty_line(self):
        answers = self.succeed("predict", "model", stdin="bab\n\nbab\n").stdout.split("\n")
        self.assertEqual(answers, [answers[0], "", answers[0], ""])
        self.assertEqual(self.succeed("predict", "model", stdin="").stdout, "")
        run = self.succeed("predict", "model", "--json", stdin="\n")
        self.assertEqual(json.loads(run.stdout),
                         {"source": "", "predictions": [], "cut": False, "unknown": []})

    def test_last_line_without_end_and_windows_ends(self):
        answers = self.succeed("predict", "model", stdin="bab\ndad\n").stdout
        self.assertEqual(self.succeed("predict", "model", stdin="bab\r\ndad").stdout, answers)

    def test_sentence_of_100000_characters(self):
        text = "ba" * 50_000
        run = self.succeed("predict", "model", "--json", stdin=f"bab\n{text}\n")
        self.assertRegex(run.stderr, rf"\Aattend: [^\n]*line 2: [^\n]*first {LONGEST} tokens\n"
                                     r"(attend: \d of 2 answers are cut[^\n]*\n)?\Z")
        answer = json.loads(run.stdout.splitlines()[1])
        self.assertTrue(answer["cut"])
        # Only its beginning is read.
        start = self.succeed("predict", "model", "--json", stdin=text[:LONGEST] + "\n").stdout
        self.assertEqual(answer["predictions"], json.loads(start)["predictions"])
        run = self.succeed("explain", "model", text, "--json")
        self.assertEqual(len(json.loads(run.stdout)["source"]), LONGEST)
        self.assertIn(f"first {LONGEST} tokens", run.stderr)

    def test_training_on_long_texts(self):
        pairs = PAIRS + "b" * 100_000 + "\tB\n" + "bb\t" + "B " * 100_000 + "\n"
        self.write("pairs.tsv", pairs)
        run = self.succeed("train", "--data", "pairs.tsv", "--valid", "pairs.tsv", "--out", "other",
                           *settings(SMALL | {"train.epochs": 1}))
        for part in ("training", "validation"):
            self.assertIn(f"pairs.tsv, {part}: 1 targets of over 1546 tokens are left out",
                          run.stderr)
            self.assertIn(f"pairs.tsv, {part}: 1 sources are cut to their first 512 tokens",
                          run.stderr)
        self.assertIn("61 training", run.stderr)

    def test_line_without_end(self):
        self.refuse("predict", "model", names=["line 1", "split it"], stdin=b"b" * (1 << 25))

    def test_invalid_utf8(self):
        self.refuse("predict", "model", names=["line 1", "UTF-8", "byte 2"], stdin=b"b\xff\nbab\n")
        self.refuse("explain", "model", b"b\xff".decode(errors="surrogateescape"),
                    names=["text", "UTF-8", "byte 2"])

    def test_more_answers_than_the_beam(self):
        self.refuse("predict", "model", "--beam", "2", "--nbest", "3", names=["--nbest", "--beam"])

    def test_explain(self):
        self.refuse("explain", "model", "", names=["empty"])
        self.refuse("explain", "model", "bab", "--out", "map.gif", names=["map.gif", ".svg"])
        self.refuse("explain", "model", "bab", "--out", "none/map.svg", names=["none/map.svg"])


class FullDisk(WithModel):
    """On a file system of a few pages, in its own mount namespace."""

    def run_on_disk(self, script, **variables):
        for options in (["-m"], ["-rm"]):
            probe = ["unshare", *options, "mount", "-t", "tmpfs", "tmpfs", str(self.disk)]
            try:
                possible = subprocess.run(probe, capture_output=True).returncode == 0
            except FileNotFoundError:
                possible = False
            if possible:
                return subprocess.run(["unshare", *options, "bash", "-euc", script],
                                      cwd=self.folder, capture_output=True, text=True,
                                      env=program.environment() | variables
                                      | {"ATTEND": program.PROGRAM})
        return program.skip("no tmpfs can be mounted here, so no disk can be filled")

    def setUp(self):
        super().setUp()
        self.disk = self.folder / "disk"
        self.disk.mkdir()

    def assert_disk_full(self, run, name):
        """Expects exactly one line besides progress, about the full disk."""
        self.assertEqual(run.returncode, 2, run.stderr)
        lines = [line for line in run.stderr.splitlines() if line.startswith("attend: ")]
        self.assertEqual(len(lines), 1, run.stderr)
        self.assertEqual(lines[0], run.stderr.splitlines()[-1])
        for part in (name, "disk is full", "free"):
            self.assertIn(part, lines[0])

    def test_new_model(self):
        run = self.run_on_disk(
            'mount -t tmpfs -o size=40k tmpfs disk; set +e; "$ATTEND" train --data pairs.tsv '
            "--valid pairs.tsv --out disk/model $SETTINGS; code=$?; cp -a disk/. left; exit $code",
            SETTINGS=" ".join(settings(SMALL)))
        self.assert_disk_full(run, "disk/model/")
        left = [path.name for path in (self.folder / "left").rglob("*") if path.is_file()]
        self.assertNotIn("weights.safetensors", left)
        self.assertFalse([name for name in left if name.startswith(".")], left)

    def test_start_of_a_model(self):
        """After a failure with any number of files written, the command can be repeated."""
        values = SMALL | {"train.epochs": 1}
        self.write("small.toml", "".join(f"{key} = {value}\n" for key, value in values.items()))
        train = ('"$ATTEND" train --data pairs.tsv --valid pairs.tsv --config small.toml '
                 "--out disk/model --resume")
        for size in ("4k", "8k", "12k", "16k"):
            run = self.run_on_disk(
                f"mount -t tmpfs -o size=$SIZE tmpfs disk; set +e; {train}; code=$?; "
                "mount -o remount,size=10m disk; [ $code = 2 ] || exit 3; "
                f"exec {train}", SIZE=size)
            with self.subTest(size):
                self.assertEqual(run.returncode, 0, run.stderr)

    def test_model_that_is_there(self):
        """It stays unchanged, and continues after space is available."""
        before = program.contents(self.model)
        on = ("train --data pairs.tsv --valid pairs.tsv --out disk/model --resume "
              "--set train.epochs=3 --set train.checkpoint_seconds=0")
        run = self.run_on_disk(
            "size=$(( ($(du -s --block-size=4096 model | cut -f1) + 2) * 4 ))k; "
            "mount -t tmpfs -o size=$size tmpfs disk; cp -a model disk/; "
            f'set +e; "$ATTEND" {on}; code=$?; cp -a disk/. left; mount -o remount,size=10m disk; '
            f'"$ATTEND" {on} 2>/dev/null && cp -a disk/. done; exit $code')
        self.assert_disk_full(run, "disk/model/checkpoint.safetensors")
        self.assertEqual(program.contents(self.folder / "left" / "model"), before)
        self.succeed(*on.replace("disk/model", "model").split())
        for name in ("weights", "checkpoint"):
            self.assertEqual(read_safetensors(self.folder / f"done/model/{name}.safetensors")[1],
                             read_safetensors(self.model / f"{name}.safetensors")[1])

    def test_picture(self):
        run = self.run_on_disk(
            'mount -t tmpfs -o size=4k tmpfs disk; set +e; "$ATTEND" explain model bab --out '
            "disk/map.png; code=$?; ls -A disk; exit $code")
        self.assert_disk_full(run, "disk/map.png")
        self.assertEqual(run.stdout, "")


if __name__ == "__main__":
    program.main()
