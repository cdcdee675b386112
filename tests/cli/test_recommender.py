"""Prediction of next items: read, learned, ranked and predicted."""

import json
import pathlib
import shutil
import tempfile

import program
from program import settings

SMALL = {"model.type": "recommender", "model.depth": 32, "model.feed_forward": 32, "model.layers": 1,
         "model.context": 16, "model.dropout": 0, "train.replicas": 1, "train.batch": 64,
         "train.epochs": 40, "train.warmup_steps": 20, "train.learning_rate": 1e-2,
         "train.weight_average": 0.9, "train.patience": 0}

# A remark about the format of a valid file.
FORM = r"(attend: [^\n]+: each line is read as [^\n]+\n)?"


class Recommender(program.Case):
    """A model of a planted chain, for all tests below."""

    @classmethod
    def setUpClass(cls):
        cls.shared = pathlib.Path(tempfile.mkdtemp(prefix="attend-test-"))
        cls.addClassCleanup(shutil.rmtree, cls.shared)
        planted = program.attend("data", "interactions", "--out", "planted.tsv", "--json", cwd=cls.shared)
        assert planted.returncode == 0, planted.stderr
        cls.planted = json.loads(planted.stdout)
        training = program.attend("train", "--data", "planted.tsv", "--out", "model", "--json",
                                  *settings(SMALL), cwd=cls.shared)
        assert training.returncode == 0, training.stderr
        cls.training = json.loads(training.stdout)
        cls.model, cls.data = cls.shared / "model", cls.shared / "planted.tsv"

    def evaluate(self, *options):
        return json.loads(self.succeed("evaluate", self.model, "--data", self.data, "--json",
                                       *options).stdout)

    def test_comes_within_two_points_of_the_best(self):
        self.assertAlmostEqual(self.planted["best_hit@10"], 0.91)
        self.assertAlmostEqual(self.planted["last_hit@10"], 0.91, delta=0.02)
        figures = self.evaluate("--metric", "hit@10,ndcg@10,mrr,hit@100", "--keep-seen")
        self.assertGreater(figures["hit@10"], self.planted["last_hit@10"] - 0.02)
        self.assertEqual(figures["hit@100"], 1)
        self.assertLess(figures["popularity"]["hit@10"], 0.3)
        self.assertEqual(figures["examples"], 2000)
        self.assertIn("valid_ndcg@10", self.training)

    def test_ranks_among_all_or_some(self):
        few = self.evaluate("--metric", "hit@10", "--negatives", "20")
        self.assertGreater(few["hit@10"], self.evaluate("--metric", "hit@10")["hit@10"])
        self.assertEqual(few, few | {"hit@10": self.evaluate(
            "--metric", "hit@10", "--negatives", "20")["hit@10"]})
        run = self.succeed("evaluate", self.model, "--data", self.data)
        for name in ("hit@10", "ndcg@10", "mrr", "hit@10 by popularity", "loss"):
            self.assertRegex(run.stdout, rf"(?m)^{name} +\d\.\d{{4}}")

    def test_predicts_the_next_items(self):
        run = self.succeed("predict", self.model, "--beam", "10", "--nbest", "10", stdin="i3 i4\n\n")
        rows = [line.split("\t") for line in run.stdout.splitlines()]
        self.assertEqual(len(rows), 20)
        self.assertTrue(all(row[0] == "i3 i4" and row[1] not in ("i3", "i4") for row in rows[:10]))
        scores = [float(row[2]) for row in rows[:10]]
        self.assertEqual(scores, sorted(scores, reverse=True))
        answer = json.loads(self.succeed("predict", self.model, "--json", stdin="i3 i4\n").stdout)
        self.assertEqual(answer["predictions"][0]["target"], rows[0][1])
        self.refuse("predict", self.model, stdin="i3 unheard\ni3\n",
                    names=["line 1", "'unheard'", "not in training"])
        self.succeed("explain", self.model, "i3 i4")

    def test_negatives_are_drawn_in_training(self):
        self.succeed("train", "--data", self.data, "--out", "drawn", *settings(
            SMALL | {"model.negatives": 50}))
        figures = json.loads(self.succeed("evaluate", "drawn", "--data", self.data, "--json",
                                          "--keep-seen").stdout)
        self.assertGreater(figures["hit@10"], self.planted["last_hit@10"] - 0.05)

    def test_items_that_were_not_in_training_are_misses(self):
        self.write("few.txt", "u i1\nu i2\nv i1\nv unheard\nw alone\n")
        run = self.succeed("evaluate", self.model, "--data", "few.txt", "--json")
        self.assertIn("few.txt: 1 users have only one item", run.stderr)
        figures = json.loads(run.stdout)
        self.assertEqual(figures["examples"], 2)
        self.assertLessEqual(figures["mrr"], 0.5)

    def test_all_items_of_long_histories_count(self):
        """Training uses only the last model.context items, but every item can be ranked."""
        self.write("long.tsv", "".join(f"u{user}\ti{9 * step + user}\t{step}\n"
                                       for user in range(9) for step in range(60))
                   + "known\ti0\t0\nknown\ti9\t1\nknown\ti18\t2\n")
        self.succeed("train", "--data", "long.tsv", "--out", "long", *settings(
            SMALL | {"train.epochs": 1, "model.context": 8, "train.metric": "hit@5"}))
        tokens = [line.split("\t")[0] for line in
                  (self.folder / "long/source.vocab").read_text().splitlines()]
        self.assertEqual(sum(token.startswith("i") for token in tokens), 9 * 58)
        self.succeed("predict", "long", stdin="i0 i9\n")

    def test_figures_of_nothing(self):
        self.write("new.tsv", "u\tx\nu\ty\nu\tz\n")
        run = self.succeed("evaluate", self.model, "--data", "new.tsv")
        self.assertIn("the training data lack every last item, so loss is not computed", run.stderr)
        self.assertIn("2 of 2 source tokens are unknown to the model, the first is: 'x'", run.stderr)
        self.assertRegex(run.stdout, r"not in training +1 of the last items, which are misses")
        self.assertNotIn("loss", run.stdout)
        figures = json.loads(self.succeed("evaluate", self.model, "--data", "new.tsv", "--json").stdout)
        self.assertEqual(figures["misses"], {"unknown": 1, "seen": 0})
        self.assertNotIn("loss", figures)

    def test_misses_by_construction_are_counted(self):
        figures = self.evaluate()
        histories = {}
        for line in self.data.read_text().splitlines():
            user, item, time = line.split("\t")
            histories.setdefault(user, []).append((int(time), item))
        items = [[item for _, item in sorted(history)] for history in histories.values()]
        seen = sum(history[-1] in history[:-1] for history in items)
        self.assertGreater(seen, 0)
        self.assertEqual(figures["misses"], {"unknown": 0, "seen": seen})

    def test_movielens_files(self):
        rows = [(user, 100 + (3 * user + step) % 7, 1 + step % 5, 881250949 - step)
                for user in range(8) for step in range(5)]
        self.write("u.data", "".join("\t".join(map(str, row)) + "\n" for row in rows))
        self.write("ratings.dat", "".join("::".join(map(str, row)) + "\n" for row in rows))
        for name in ("u.data", "ratings.dat"):
            run = self.succeed("data", "check", name, "--set", "data.format=interactions")
            self.assertIn("user, item, a rating that is not used, and time", run.stdout)
            self.succeed("train", "--data", name, "--out", name[0], *settings(SMALL | {"train.epochs": 1}))
        self.assertEqual((self.folder / "u/weights.safetensors").read_bytes(),
                         (self.folder / "r/weights.safetensors").read_bytes())
        self.write("wrong.txt", "u a b c d\n")
        self.refuse("data", "check", "wrong.txt", "--set", "data.format=interactions",
                    names=["wrong.txt:1: 5 fields"])

    def test_items_in_another_normal_form_are_told(self):
        rows = "".join(f"u{user} e\u0301{(user + item) % 4}\n" for user in range(9) for item in range(4))
        for name, text, count in (("nfd", rows, 1), ("nfc", rows.replace("e\u0301", "\u00e9"), 0)):
            self.write(f"{name}.txt", text)
            run = self.succeed("train", "--data", f"{name}.txt", "--out", name, *settings(
                SMALL | {"train.epochs": 1}))
            self.assertEqual(run.stderr.count("targets are not in NFC, the normal form of answers"),
                             count)

    def test_columns_of_tables(self):
        self.write("films.csv", "userId,movieId,rating,t\n" + "".join(
            f"{user},{100 + (user + step) % 7},5,{9 - step}\n" for user in range(8) for step in range(5)))
        self.refuse("train", "--data", "films.csv", "--out", "m", *settings(SMALL),
                    names=["films.csv", "no column 'user'"])
        self.succeed("train", "--data", "films.csv", "--out", "films", *settings(SMALL | {
            "data.user_column": "userId", "data.item_column": "movieId", "data.time_column": "t",
            "train.epochs": 1}))
        self.succeed("evaluate", "films", "--data", "films.csv")

    def test_refusals(self):
        def refuse(text, *names, more=()):
            self.write("bad.tsv", text)
            self.refuse("train", "--data", "bad.tsv", "--out", "refused", *settings(SMALL), *more,
                        names=["bad.tsv", *names], told=FORM)
            self.assertFalse((self.folder / "refused").exists())
        refuse("u\ta b\n", "bad.tsv:1", "'a b' has blanks")
        refuse("u\ta\t1\nu\tb\tnoon\n", "bad.tsv:2", "'noon' is not a number")
        refuse("u\ta\t2\nu\tb\t1\n", "bad.tsv:2", "is before", more=("--set", "data.in_order=true"))
        refuse("u\ta\nv\tb\n", "two items")
        refuse("u\ta\nu\tb\n", "three items")
        self.write("good.tsv", "u\ta\nu\tb\nu\tc\n")
        def refuse_settings(*names, more=(), base=SMALL):
            self.refuse("train", "--data", "good.tsv", "--out", "refused", *settings(base), *more,
                        names=names, told=FORM)
        refuse_settings("--valid", more=("--valid", "good.tsv"))
        refuse_settings("data.user_column", more=("--target", "good.tsv"))
        refuse_settings("train.metric = accuracy", "ndcg@10", base=SMALL | {"train.metric": "accuracy"})
        refuse_settings("data.format", base=SMALL | {"data.format": "pairs"})
        refuse_settings("recommender", base={"model.type": "lm", "data.format": "interactions"})
        refuse_settings("train.metric = mrr", base={"train.metric": "mrr"})
        refuse_settings("train.metric is 'hit@0'", base=SMALL | {"train.metric": "hit@0"})
        self.refuse("evaluate", self.model, "--data", self.data, "--metric", "accuracy",
                    names=["accuracy", "ranks items"], told=FORM)


if __name__ == "__main__":
    program.main()
