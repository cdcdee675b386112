"""Scores of texts by attend score."""

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
        # From sacreBLEU 2.6.0, except for its name.
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

    def test_numbers(self):
        self.write("numbers.txt", "3\n-0.5\n2\n7\n")
        figures = json.loads(self.succeed("score", "--reference", "numbers.txt", "--metric",
                                          "mse,rmse,mae,r2", "--json",
                                          stdin="2.5\n0\n2\n8\n").stdout)
        self.assertAlmostEqual(figures["mse"], 0.375)
        self.assertAlmostEqual(figures["rmse"], 0.375 ** 0.5)
        self.assertAlmostEqual(figures["mae"], 0.5)
        self.assertAlmostEqual(figures["r2"], 1 - 1.5 / 29.1875)
        self.refuse("score", "--reference", "numbers.txt", "--metric", "rmse",
                    stdin="2.5\n0\ntwo\n8\n", names=["answer 3", "'two'", "not a finite number"])

    def test_classes(self):
        self.write("classes.txt", "0\n0\n1\n1\n")
        run = self.succeed("score", "--reference", "classes.txt", "--metric",
                           "roc_auc,average_precision", stdin="0.1\n0.4\n0.35\n0.8\n")
        self.assertEqual(run.stdout, "roc auc              0.7500\n"
                                     "average precision    0.8333\n")
        self.refuse("score", "--reference", "a.txt", "--metric", "roc_auc",
                    stdin="1\n2\n3\n4\n", names=["answer 1", "not a class"])

    def test_rankings(self):
        self.write("items.txt", "b\nx\na\n")
        figures = json.loads(self.succeed(
            "score", "--reference", "items.txt", "--metric", "hit@1,hit@2,ndcg@2,mrr", "--json",
            stdin="a b c\na b c\na b c\n").stdout)
        self.assertAlmostEqual(figures["hit@1"], 1 / 3)
        self.assertAlmostEqual(figures["hit@2"], 2 / 3)
        self.assertAlmostEqual(figures["ndcg@2"], (1 + 0.6309297535714575) / 3)
        self.assertAlmostEqual(figures["mrr"], 0.5)
        self.refuse("score", "--reference", "items.txt", "--metric", "hit@0", stdin="a\nb\nc\n",
                    names=["hit@0", "hit@10"])
        self.refuse("score", "--reference", "a.txt", "--metric", "mrr", stdin="a\nb\nc\nd\n",
                    names=["answer 1", "5 tokens"])

    def test_spans(self):
        self.write("bio.txt", "B-PER I-PER O B-LOC\nO\n")
        run = self.succeed("score", "--reference", "bio.txt", "--metric", "span_f1",
                           stdin="B-PER I-PER O B-PER\nB-LOC\n")
        self.assertEqual(run.stdout, "spans: F1 40.00 %, precision 33.33 %, recall 50.00 %\n")
        self.refuse("score", "--reference", "bio.txt", "--metric", "span_f1",
                    stdin="B-PER I-PER O X\nO\n", names=["answer 1", "'X'", "BIOES"])

    def test_a_blank_behind_a_label(self):
        self.write("labels.txt", "pos \npos\n")
        figures = json.loads(self.succeed("score", "--reference", "labels.txt", "--metric", "accuracy,f1",
                                          "--units", "line", "--json", stdin="pos\n pos\t\n").stdout)
        self.assertEqual((figures["accuracy"], figures["f1"]["f1"]), (1, 1))
        self.assertEqual(list(figures["f1"]["labels"]), ["pos"])

    def test_empty_references(self):
        self.write("empty.txt", "\n\n")
        figures = json.loads(self.succeed("score", "--reference", "empty.txt", "--metric",
                                          "token_error", "--json", stdin="a b\nc\n").stdout)
        self.assertEqual(figures["token_error_rate"], 3)


if __name__ == "__main__":
    program.main()
