"""The scores of texts, by attend score."""

import json

import program


class Score(program.Case):
    def setUp(self):
        super().setUp()
        self.write("a.txt", "The dog bit the man.\nIt was not unexpected.\n"
                            "The man had bit the dog.\nNothing\n")
        self.write("b.txt", "The dog had bit the man.\nNo one was surprised by 1,000.\n"
                            "The man had bitten the dog.\nNothing at all\n")
    ANSWERS = ("The dog bit the man.\nIt was not unexpected, 1,000 times.\n"
               "The man bit him first.\n\n")

    def test_prints_what_sacrebleu_prints(self):
        run = self.succeed("score", "--reference", "a.txt", "--metric", "bleu,chrf,chrf++",
                           stdin=self.ANSWERS)
        # By sacreBLEU 2.6.0, but for its name.
        self.assertEqual(run.stdout.splitlines(), [
            "BLEU|nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:attend = 49.88 "
            "75.0/52.9/42.9/36.4 (BP = 1.000 ratio = 1.053 hyp_len = 20 ref_len = 19)",
            "chrF2|nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:attend = 65.21",
            "chrF2++|nrefs:1|case:mixed|eff:yes|nc:6|nw:2|space:no|version:attend = 65.98"])
        run = self.succeed("score", "--reference", "a.txt", "--reference", "b.txt",
                           stdin=self.ANSWERS)
        self.assertRegex(run.stdout, r"^BLEU\|nrefs:2\|.* = 48\.21 80\.0/52\.9/42\.9/36\.4 ")

    def test_rates(self):
        self.write("labels.txt", "x\nx\ny\n")
        figures = json.loads(self.succeed(
            "score", "--metric", "accuracy,f1,token_error,sequence_error", "--units", "line",
            "--json", "--reference", "labels.txt", stdin="x\ny\ny\n").stdout)
        self.assertAlmostEqual(figures["accuracy"], 2 / 3)
        self.assertAlmostEqual(figures["sequence_error_rate"], 1 / 3)
        self.assertAlmostEqual(figures["token_error_rate"], 1 / 3)
        self.assertAlmostEqual(figures["f1"]["f1"], 2 / 3)
        self.assertAlmostEqual(figures["f1"]["micro_f1"], 2 / 3)
        self.assertEqual(figures["f1"]["labels"]["x"], {"precision": 1, "recall": 0.5,
                                                        "f1": 2 / 3})
        self.assertEqual(figures["examples"], 3)

    def test_sentences(self):
        run = self.succeed("score", "--reference", "a.txt", "--metric", "bleu,accuracy",
                           "--sentences", stdin=self.ANSWERS)
        rows = [line.split("\t") for line in run.stdout.splitlines()]
        self.assertEqual(rows[0], ["100.0000", "1.0000"])
        self.assertEqual(rows[3], ["0.0000", "0.0000"])
        self.assertTrue(0 < float(rows[2][0]) < 100)

    def test_refusals(self):
        self.refuse("score", "--reference", "a.txt", stdin="one\n",
                    names=["a.txt", "4 lines", "standard input 1"])
        self.refuse("score", "--reference", "a.txt", stdin="", names=["standard input", "empty"])
        self.refuse("score", "--reference", "no.txt", stdin="a\n", names=["no.txt"])
        self.refuse("score", "--reference", "a.txt", "--metric", "ter", stdin="a\n",
                    names=["ter"])
        for metric in ("bleu", "f1", "accuracy", "token_error"):
            self.refuse("score", "--reference", "a.txt", "--metric", metric,
                        stdin=b"a\n\xff\nb\nc\n", names=["answer 2", "UTF-8"])

    def test_empty_references(self):
        self.write("empty.txt", "\n\n")
        figures = json.loads(self.succeed("score", "--reference", "empty.txt", "--metric",
                                          "token_error", "--json", stdin="a b\nc\n").stdout)
        self.assertEqual(figures["token_error_rate"], 3)


if __name__ == "__main__":
    program.main()
