"""A recurrent model with many features that answers in a chosen language, on a chosen device."""

import json
import pathlib
import shutil
import tempfile
import unittest

import program
from program import PAIRS, SMALL, settings

LINES = PAIRS.splitlines()
SOURCES = [line.split("\t")[0] for line in LINES]
UPPER = {line.split("\t")[0]: line.split("\t")[1] for line in LINES}
JOINT = "".join(f"<2up> {source}\t{target}\n<2low> {source}\t{target.lower()}\n"
                for source, target in UPPER.items())

PARTS = {"data.language_token": "true", "data.joint_vocabulary": "true", "model.tied": "all",
         "model.copy": "true", "model.coverage_weight": 0.1, "model.decoder_layers": 2,
         "model.residual": "true", "model.query": "state+extra", "model.input_feeding": "true",
         "model.intra_decoder": "true", "model.self_layers": 1, "model.heads": 2,
         "model.dropout": 0}


class Languages(program.Case):

    @classmethod
    def setUpClass(cls):
        cls.shared = pathlib.Path(tempfile.mkdtemp(prefix="attend-test-"))
        cls.addClassCleanup(shutil.rmtree, cls.shared)
        (cls.shared / "joint.tsv").write_text(JOINT)
        run = program.attend("train", "--data", "joint.tsv", "--valid", "joint.tsv", "--out",
                             "model", *settings(SMALL | PARTS | {"train.epochs": 40}),
                             cwd=cls.shared)
        assert run.returncode == 0, run.stderr
        cls.model = cls.shared / "model"

    def predict(self, lines, *options):
        return self.succeed("predict", self.model, *options,
                            stdin="".join(f"{line}\n" for line in lines)).stdout.splitlines()

    def test_answers_in_the_language(self):
        lines, expected = [], []
        for source in SOURCES:
            lines += [f"<2up> {source}", f"<2low> {source}"]
            expected += [UPPER[source], UPPER[source].lower()]
        answers = self.predict(lines)
        right = sum(answer == wanted for answer, wanted in zip(answers, expected))
        self.assertGreater(right, 0.9 * len(lines))
        self.assertEqual(self.predict([""]), [""])

    def test_the_token_is_a_token(self):
        details = json.loads(self.predict(["<2up> bab"], "--json", "--details")[0])
        self.assertEqual(details["source_tokens"], ["<2up>", "b", "a", "b"])

    def test_evaluates_by_language(self):
        self.write("low.tsv", "".join(line + "\n" for line in JOINT.splitlines()
                                      if line.startswith("<2low>")))
        figures = json.loads(self.succeed("evaluate", self.model, "--data", "low.tsv", "--beam", 3,
                                          "--json").stdout)
        self.assertLess(figures["sequence_error_rate"], 0.1)

    def test_tells_what_is_wrong_with_a_token(self):
        self.refuse("predict", self.model, stdin="bab\n<2up> bab\n",
                    names=["standard input, line 1", "begins with no language", "<2de>"])
        self.refuse("predict", self.model, stdin="<2fr> bab\n",
                    names=["line 1", "'<2fr>' was not in training", "'<2low>', '<2up>'"])
        self.write("other.tsv", "<2fr> bab\tB A B\n")
        self.refuse("evaluate", self.model, "--data", "other.tsv", names=["'<2fr>'"])
        self.write("plain.tsv", PAIRS)
        self.refuse("train", "--data", "plain.tsv", "--out", "new", "--set",
                    "data.language_token=true", names=["begins with no language"])
        self.refuse("train", "--data", "plain.tsv", "--out", "new", "--set", "model.copy=true",
                    names=["data.joint_vocabulary"])

    def test_devices(self):
        lines = ["<2up> bab", "<2low> dad"]
        here = self.predict(lines)
        self.assertEqual(self.predict(lines, "--device", "cpu", "--place",
                                      "encoder=cpu:0,attention=cpu,decoder=cpu:0"), here)
        self.refuse("predict", self.model, "--device", "cuda:99",
                    names=["'cuda:99' is not present", "there is cpu"])
        self.write("pairs.tsv", PAIRS)
        self.refuse("train", "--data", "pairs.tsv", "--out", "new", "--device", "cuda:99",
                    names=["there is cpu"])
        self.refuse("train", "--data", "pairs.tsv", "--out", "new", "--place", "encoder=cuda:9",
                    names=["'cuda:9' is not present"])
        self.refuse("evaluate", self.model, "--data", self.shared / "joint.tsv", "--place",
                    "head=cpu", names=["write encoder=DEVICE"])


if __name__ == "__main__":
    program.main()
