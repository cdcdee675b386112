"""Answers with line breaks and TABs, printed as one line per answer."""

import json

import program
from program import PAIRS, SMALL, settings


class TextsOfLines(program.Case):
    def test_one_line_in_one_line_out(self):
        self.write("text.txt", "a b\n\\n\tc\n" * 60)
        self.succeed("train", "--data", "text.txt", "--valid", "text.txt", "--out", "lm", *settings(
            {"model.type": "lm", "model.depth": 16, "model.heads": 2, "model.layers": 1,
             "model.feed_forward": 16, "model.context": 16, "train.epochs": 1, "train.replicas": 1}))
        options = ["--maximum-length", "40", "--samples", "2", "--seed", "3"]
        lines = "a\nb\n\n"
        texts = [answer["target"] for line in
                 self.succeed("predict", "lm", *options, "--json", stdin=lines).stdout.splitlines()
                 for answer in json.loads(line)["predictions"]]
        run = self.succeed("predict", "lm", *options, stdin=lines)
        rows = [row.split("\t") for row in run.stdout.split("\n")[:-1]]
        self.assertEqual([len(row) for row in rows], [3] * 6)
        self.assertTrue(any("\n" in text for text in texts) and any("\t" in text for text in texts))
        self.assertEqual([row[1] for row in rows],
                         [text.replace("\\", "\\\\").replace("\n", "\\n").replace("\t", "\\t")
                          for text in texts])
        self.assertNotIn("cut at the maximum", run.stderr)

    def test_answers_of_bytes_break_no_line(self):
        """Any byte may be sampled, including a line break."""
        self.write("pairs.tsv", PAIRS)
        self.succeed("train", "--data", "pairs.tsv", "--valid", "pairs.tsv", "--out", "bytes",
                     *settings(SMALL | {"data.source_units": "byte", "data.target_units": "byte",
                                        "train.epochs": 1}))
        options = ["--temperature", 9, "--maximum-length", 60, "--samples"]
        answers = [json.loads(line)["predictions"] for line in
                   self.succeed("predict", "bytes", *options, 4, "--json",
                                stdin="bab\n" * 20).stdout.splitlines()]
        texts = [answer["target"] for some in answers for answer in some]
        for mark in "\n\r\t":
            self.assertTrue(any(mark in text for text in texts), repr(mark))
        told = self.succeed("predict", "bytes", *options, 4, stdin="bab\n" * 20).stdout
        rows = [row.split("\t") for row in told.split("\n")[:-1]]
        self.assertEqual([len(row) for row in rows], [3] * 80)
        self.assertEqual([row[1] for row in rows],
                         [text.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
                          for text in texts])
        told = self.succeed("predict", "bytes", *options, 1, stdin="bab\n" * 20).stdout
        self.assertEqual(told.count("\n"), 20)
        self.assertNotIn("\r", told)

    def test_tabs_break_no_record(self):
        """Lines of two files and of standard input may contain TABs."""
        self.write("s", "a\tb\nc\n" * 20)
        self.write("t", "x\ty\nz\n" * 20)
        self.succeed("train", "--data", "s", "--target", "t", "--valid", "s", "--valid-target", "t",
                     "--out", "model", *settings(SMALL | {"data.target_units": "char",
                                                          "train.epochs": 15}))
        self.assertEqual(self.succeed("predict", "model", stdin="a\tb\n").stdout, "x\ty\n")
        told = self.succeed("predict", "model", "--beam", 2, "--nbest", 2, stdin="a\tb\n").stdout
        self.assertEqual([len(row.split("\t")) for row in told.splitlines()], [3, 3])
        self.assertTrue(told.startswith("a\\tb\tx\\ty\t"), told)
        self.succeed("evaluate", "model", "--data", "s", "--target", "t", "--scores", "scores")
        rows = [row.split("\t") for row in (self.folder / "scores").read_text().splitlines()]
        self.assertEqual([row[:2] for row in rows[:2]], [["a\\tb", "x\\ty"], ["c", "z"]])


if __name__ == "__main__":
    program.main()
