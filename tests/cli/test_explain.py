"""Explanations of answers: methods, views, files and refusals."""

import json
import os
import pathlib
import pty
import subprocess
import zipfile

import program
from program import SMALL, settings

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"


class Translation(program.Case):
    @classmethod
    def setUpClass(cls):
        cls.case = program.Case()
        cls.case.setUp()
        cls.addClassCleanup(cls.case.doCleanups)
        cls.case.write("pairs.tsv", program.PAIRS)
        cls.case.succeed("train", "--data", "pairs.tsv", "--valid", "pairs.tsv", "--out", "model",
                         "--set", "model.type=transformer", *settings({
                             "model.depth": 16, "model.heads": 2, "model.feed_forward": 16,
                             "model.encoder_layers": 2, "model.decoder_layers": 1,
                             "train.replicas": 1, "train.batch": 20, "train.epochs": 2, "train.warmup_steps": 200}))
        cls.model = cls.case.folder / "model"

    def explain(self, *arguments):
        return self.succeed("explain", self.model, "bab", *arguments).stdout

    def maps(self, *arguments):
        return [json.loads(line) for line in self.explain("--json", *arguments).splitlines()]

    def test_a_given_target_is_explained(self):
        record, = self.maps("--target", "D A D B")
        self.assertEqual(record["target"], ["D", "A", "D", "B"])
        self.assertEqual(record["source"], ["b", "a", "b"])

    def test_an_answer_that_is_cut_is_told(self):
        cut = "attend: the answer is cut at the maximum length, 1 tokens; --maximum-length sets it\n"
        for options, told in ((["--maximum-length", 1], True),
                              (["--maximum-length", 1, "--target", "B A B"], False)):
            run = self.succeed("explain", self.model, "bab", *options)
            self.assertEqual(cut in run.stderr, told, run.stderr)

    def test_every_view_has_its_maps(self):
        heads = self.maps("--view", "heads", "--layer", 1)
        self.assertEqual([one["title"] for one in heads], ["encoder 1, head 1", "encoder 1, head 2"])
        every = self.maps("--view", "model")
        self.assertEqual(len(every), 8)
        for one in every:
            own = "over the source" not in one["title"]
            self.assertEqual(list(one.get("patterns", {})),
                             ["previous_token", "first_token", "duplicate_token", "induction"] if own else [])
            self.assertTrue(all(0 <= share <= 1 for share in one.get("patterns", {}).values()))
        one, = self.maps("--view", "heads", "--layer", 4, "--head", 2)
        self.assertEqual(one["title"], "decoder 1 over the source, head 2")

    def test_the_lens_shows_what_each_layer_would_answer(self):
        first, second, third = self.maps("--view", "lens", "--target", "D A D")
        self.assertEqual(first["title"], "place 1: D")
        self.assertEqual(first["source"][0], "input")
        self.assertRegex(first["source"][-1], r"^decoder \d+$")
        self.assertIn("D", first["target"])
        last = [row[-1] for row in first["weights"]]
        self.assertEqual(last, sorted(last, reverse=True))
        self.assertLessEqual(sum(last), 1.0001)
        self.refused("--view", "lens", "--layer", 1, names=["leave layer and head out"])

    def test_methods_are_listed_and_answer(self):
        help_text = self.succeed("explain", "--help").stdout
        for method in ("rollout", "norms", "integrated_gradients", "occlusion", "jacobian",
                       "value_zeroing", "alti", "relevance", "decompx"):
            self.assertIn(method, help_text)
            record, = self.maps("--method", method)
            # Relevance may be 0 for a token of the answer.
            self.assertTrue(any(map(any, record["scores"])), method)
            for scores, row in zip(record["scores"], record["weights"]):
                total = sum(map(abs, scores))
                self.assertTrue(total > 0 or method == "relevance", method)
                self.assertAlmostEqual(sum(row), 1 if total > 0 else 0, places=4)
                for score, weight in zip(scores, row):
                    self.assertAlmostEqual(abs(score), weight * total, places=4)
        record, = self.maps("--method", "occlusion", "--target", "D D D")
        self.assertLess(min(map(min, record["scores"])), 0)
        record, = self.maps()
        self.assertNotIn("scores", record)

    def test_an_answer_is_compared_with_another(self):
        record, = self.maps("--target", "D A D", "--against", "B", "--method", "gradient_x_input")
        self.assertEqual(record["title"], "gradient_x_input, not B")
        plain, = self.maps("--target", "D A D", "--method", "gradient_x_input")
        self.assertNotEqual(record["scores"], plain["scores"])
        record, = self.maps("--target", "D A D", "--against", "D A B", "--evidence")
        self.assertEqual(record["title"], "occlusion, not D A B")
        self.assertEqual(record["scores"][:2], [[0.0] * 3] * 2)
        self.assertNotEqual(record["scores"][2], [0.0] * 3)
        self.assertIn("comprehensiveness", [one["name"] for one in record["evidence"]])
        self.explain("--against", "B", "--out", "x.html")
        self.assertIn(", not B", (self.folder / "x.html").read_text())
        self.refused("--against", "?", names=["'?' is not one of the"])
        self.refused("--target", "D A D", "--against", "B B", names=["2 tokens", "has 3"])
        self.refused("--target", "D D", "--against", "D", names=["give another"])
        self.refused("--against", "B", "--method", "attention", names=["cannot compare two", "take occlusion"])
        self.refused("--against", "B", "--method", "jacobian", names=["cannot compare two", "take gradient"])

    def test_heads_are_switched_off(self):
        record = json.loads(self.explain("--json", "--without", "encoder,decoder.1.source.head.2"))
        self.assertEqual(record["without"], "encoder, decoder.1.source.head.2")
        self.assertNotEqual(record["before"], record["after"])
        self.assertEqual(list(record), ["without", "before", "after", "changed", "places", "answer"])
        text = self.explain("--without", "decoder.1")
        self.assertRegex(text, r"log probability +-\d+\.\d{4}, without decoder\.1 -\d+\.\d{4}\n"
                               r"changed +\d+ of \d+ positions have another token\nanswer then ")
        self.refused("--without", "encoder.3", names=["'encoder.3'", "encoder.2 with 2 heads", "encoder.1.head.2"])
        self.refused("--without", "encoder", "--out", "x.svg", names=["leave --out"])
        for name, options in (("view", ["--view", "heads"]), ("layer", ["--layer", 1]), ("head", ["--head", 1]),
                              ("words", ["--words"]), ("method", ["--method", "norms"]), ("evidence", ["--evidence"])):
            self.refused("--without", "encoder", *options, names=[f"leave {name} out"])

    def test_heads_are_switched_off_under_a_comparison(self):
        options = ["--target", "D A D", "--against", "B"]
        text = self.explain("--without", "decoder.1", *options)
        self.assertRegex(text, r"\Alog odds +-?\d+\.\d{4}, without decoder\.1 -?\d+\.\d{4}\n")
        record = json.loads(self.explain("--json", "--without", "decoder.1", *options))
        plain = json.loads(self.explain("--json", "--without", "decoder.1", *options[:2]))
        self.assertGreater(record["before"], plain["before"])

    def test_places_that_do_not_exist_are_refused(self):
        self.refused("--without", "encoder.1.head.2.key.50",
                     names=["'encoder.1.head.2.key.50'", "no such positions", "encoder.1 has 3 queries and 3 keys"])

    def shown_on_terminal(self, **variables):
        ours, theirs = pty.openpty()
        environment = program.environment()
        environment.pop("TERM", None)
        run = subprocess.Popen([program.PROGRAM, "explain", self.model, "bab"], cwd=self.folder, stdout=theirs,
                               env=environment | variables)
        os.close(theirs)
        shown = b""
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:  # the other end is closed
                break
            shown += part
        os.close(ours)
        self.assertEqual(run.wait(), 0)
        return shown

    def test_colours_are_for_terminals_that_have_them(self):
        colour = b"\x1b[48;2;"
        for variables in ({"TERM": "xterm-256color"}, {"TERM": "xterm", "NO_COLOR": ""}):
            self.assertIn(colour, self.shown_on_terminal(**variables), variables)
        for variables in ({}, {"TERM": ""}, {"TERM": "dumb"}, {"TERM": "linux"},
                          {"TERM": "xterm-256color", "NO_COLOR": "1"}):
            self.assertNotIn(b"\x1b", self.shown_on_terminal(**variables), variables)

    def test_edges_are_switched_off_and_means_taken(self):
        def told(*options):
            return json.loads(self.explain("--json", "--target", "D A D", "--without", *options))
        head, edges = told("encoder.1.head.2"), told("encoder.1.head.2.key.1-3")
        self.assertAlmostEqual(edges["after"], head["after"], places=4)
        self.assertNotEqual(told("encoder.1.head.2.query.1.key.2")["after"], head["after"])
        self.assertNotEqual(told("encoder.1.head.2", "--ablation", "mean")["after"], head["after"])
        self.refused("--without", "encoder.1.key.1", "--ablation", "mean", names=["an edge has no mean"])
        self.refused("--ablation", "middle", names=["zero,mean"])

    def test_effects_are_those_of_each_head(self):
        record, = self.maps("--view", "effects")
        self.assertEqual(record["target"], ["encoder.1", "encoder.2", "decoder.1.self", "decoder.1.source"])
        self.assertEqual(record["source"], ["head 1", "head 2"])
        told = json.loads(self.explain("--json", "--without", "encoder.2.head.1"))
        self.assertAlmostEqual(record["scores"][1][0], told["before"] - told["after"], places=5)
        self.assertAlmostEqual(sum(map(sum, record["weights"])), 1, places=5)
        rows = [line.split() for line in self.explain("--view", "effects").splitlines()]
        self.assertEqual(rows[0], ["without", "loses"])
        losses = [float(row[1]) for row in rows[1:]]
        self.assertEqual((len(losses), losses), (8, sorted(losses, reverse=True)))
        self.explain("--view", "effects", "--out", "x.svg")
        self.assertIn("decoder.1.source", (self.folder / "x.svg").read_text())
        self.refused("--view", "effects", "--layer", 1, names=["leave method, layer and head out"])
        self.refused("--view", "effects", "--evidence", names=["leave the view effects"])

    def test_the_card_is_printed(self):
        text = self.explain("--method", "attention", "--evidence")
        for figure in ("comprehensiveness", "permuted_weights", "tau_random_weights"):
            self.assertIn(figure, text)

    def test_evidence_is_part_of_the_json(self):
        record, = self.maps("--evidence")
        figures = {one["name"]: one for one in record["evidence"]}
        self.assertIn("permuted_weights", figures)
        self.assertIn(figures["comprehensiveness"]["passed"], (True, False))
        # The word has three letters, which are too few to rank.
        self.assertIsNone(figures["tau_random_weights"]["value"])
        self.assertIn("four keys", figures["tau_random_weights"]["missing"])
        text = self.explain("--evidence", "--out", "x.png")
        self.assertIn("permuted_weights", text)
        self.assertRegex(text, r"tau_random_weights +-  not computed: .*four keys")
        self.explain("--evidence", "--out", "X.JSON")
        self.assertEqual(json.loads((self.folder / "X.JSON").read_text()), record)
        self.refused("--evidence", "--view", "heads", names=["evidence", "leave the view heads"])

    def test_files(self):
        self.explain("--out", "x.html")
        page = (self.folder / "x.html").read_text()
        self.assertIn("default-src 'none'", page)
        self.explain("--view", "model", "--out", "x.npz")
        names = zipfile.ZipFile(self.folder / "x.npz").namelist()
        self.assertEqual(len(names), 8)
        self.explain("--method", "occlusion", "--out", "y.npz")
        names = zipfile.ZipFile(self.folder / "y.npz").namelist()
        self.assertEqual(sorted(names), ["occlusion.npy", "occlusion_scores.npy"])
        self.explain("--target", "B A B", "--out", "x.align")
        self.assertRegex((self.folder / "x.align").read_text(), r"^\d-0 \d-1 \d-2\n$")
        self.explain("--view", "heads", "--layer", 1, "--head", 1, "--out", "x.dot")
        self.assertIn("digraph", (self.folder / "x.dot").read_text())
        for name in ("x.svg", "x.png"):
            for view in ("model", "graph"):
                self.explain("--view", view, "--out", name)
                self.assertGreater((self.folder / name).stat().st_size, 1000)
        self.explain("--view", "graph", "--head", 1, "--out", "x.graphml")
        self.assertIn("encoder 1: b", (self.folder / "x.graphml").read_text())

    def refused(self, *arguments, names):
        self.refuse("explain", self.model, "bab", *arguments, names=names)

    def test_what_is_not_there_is_refused(self):
        self.refused("--method", "rolout", names=["did you mean rollout?"])
        self.refused("--method", "grad_cam", names=["reads tokens", "gradient_x_input"])
        self.refused("--method", "flow", names=["take rollout"])
        self.refused("--layer", 9, names=["layer 9 is asked for", "1 layer"])
        self.refused("--head", 3, names=["head 3 is asked for", "has 2"])
        self.refused("--view", "heads", "--layer", 9, names=["layer 9", "there are 4"])
        self.refused("--view", "heads", "--layer", 1, "--head", 9, names=["head 9", "has 2"])
        self.refused("--method", "gradient", "--head", 1, names=["leave layer and head out"])
        self.refused("--target", "B ? B", names=["'?' is not one of the"])
        self.refused("--view", "heads", "--layer", 4, "--head", 1, "--out", "x.dot",
                     names=["x.dot", "one sequence"])
        self.refused("--out", "x.dot", names=["--out x.dot: the answer attends", "one sequence"])
        self.refused("--view", "graph", names=["--view graph", "with --out"])
        self.refused("--view", "graph", "--out", "x.json", names=["x.json", ".graphml"])
        self.refused("--view", "graph", "--layer", 1, "--out", "x.svg", names=["take the view heads"])
        self.refused("--view", "graph", "--head", 3, "--out", "x.svg", names=["head 3", "has 2"])
        run = self.attend("explain", self.model, "bab", "--view", "sideways")
        self.assertNotEqual(run.returncode, 0)

    def test_faithfulness_says_what_it_leaves_out(self):
        self.write("test.tsv", "bab\tB ? B\ndad\tD A D\ntutut\tT U T U T\nkik\tK ? K\n")
        arguments = ["faithfulness", self.model, "--data", "test.tsv", "--forced", "--method",
                     "attention", "--figure", "tau_gradient,comprehensiveness"]
        run = self.succeed(*arguments, "--json")
        record = json.loads(run.stdout)
        self.assertEqual(record["examples"], 2)
        left_out, = record["left_out"]
        self.assertEqual(left_out["examples"], 2)
        self.assertIn("'?' is not one of the", left_out["why"])
        self.assertNotIn("--target", run.stderr)
        self.assertIn("left out: 2 examples: ", run.stderr)
        figures = record["methods"]["attention"]
        self.assertEqual(figures["comprehensiveness"]["examples"], 2)
        self.assertEqual(figures["tau_gradient"]["examples"], 1)
        self.assertIn("four keys", figures["tau_gradient"]["missing"])
        self.assertIn("(over 1 of 2; not computed", self.succeed(*arguments).stdout)
        self.write("none.tsv", "bab\tB ? B\n")
        self.refuse("faithfulness", self.model, "--data", "none.tsv", "--forced",
                    names=["none of the 1 examples", "'?' is not one of the"])

    def test_faithfulness_depends_on_neither_run_nor_threads(self):
        self.write("test.tsv", "babab\tB A B\ndadad\tD A D\ntutut\tT U T\n")
        runs = [self.succeed("faithfulness", self.model, "--data", "test.tsv", "--json",
                             "--threads", threads, "--method", "attention,gradient").stdout
                for threads in (1, 1, 3)]
        self.assertEqual(len(set(runs)), 1)

    def test_faithfulness_of_a_data_set(self):
        self.write("test.tsv", "bab\tB A B\ndad\tD A D\ntut\tT U T\n")
        run = self.succeed("faithfulness", self.model, "--data", "test.tsv", "--json", "--out",
                           "f.svg", "--method", "attention,gradient", "--forced")
        record = json.loads(run.stdout)
        self.assertEqual(record["examples"], 3)
        self.assertEqual(set(record["methods"]), {"attention", "gradient"})
        figure = record["methods"]["attention"]["comprehensiveness"]
        self.assertLessEqual(figure["low"], figure["mean"])
        self.assertEqual(figure["passed"], figure["difference_low"] > 0)
        difference = figure["mean"] - figure["compared_with"]
        self.assertLessEqual(figure["difference_low"], difference + 1e-12)
        self.assertGreaterEqual(figure["difference_high"], difference - 1e-12)
        self.assertNotIn("difference_low", record["methods"]["attention"]["uniform_weights"])
        self.assertTrue((self.folder / "f.svg").read_text().endswith("</svg>\n"))
        table = self.succeed("faithfulness", self.model, "--data", "test.tsv", "--method",
                             "attention", "--figure", "tau_gradient").stdout
        self.assertIn("tau_gradient", table)
        self.assertNotIn("sufficiency", table)
        table = self.succeed("faithfulness", self.model, "--data", "test.tsv", "--method",
                             "attention,gradient", "--forced").stdout
        failed = [line for line in table.splitlines()
                  if "FAILED" in line and "; difference" not in line]
        self.assertTrue(failed, table)
        for line in failed:
            self.assertIn("FAILED: the whole interval must be ", line)
        self.refuse("faithfulness", self.model, "--data", "test.tsv", "--method", "grad_cam",
                    names=["grad_cam"])
        self.refuse("faithfulness", self.model, "--data", "none.tsv", names=["none.tsv"])
        self.refuse("faithfulness", self.model, "--data", "test.tsv", "--out", "f.gif",
                    names=["f.gif", ".svg"])


class Page(program.Case):
    def test_page_has_the_tables_that_the_program_prints(self):
        page = (DOCS / "explanation.md").read_text(encoding="utf-8")
        tables = self.succeed("explain", "--markdown").stdout.split("\n\n")
        self.assertEqual(len(tables), 3)
        for table in tables:
            self.assertIn(f"\n\n{table.strip()}\n\n", page, "take what attend explain --markdown prints")


class WithoutAttention(program.Case):
    def test_methods_of_gradients_still_answer(self):
        self.write("pairs.tsv", program.PAIRS)
        self.succeed("train", "--data", "pairs.tsv", "--valid", "pairs.tsv", "--out", "model",
                     *settings(SMALL | {"train.epochs": 1, "model.score": "none"}))
        run = self.succeed("explain", "model", "bab", "--target", "B A B", "--json")
        self.assertEqual(json.loads(run.stdout)["title"], "occlusion")
        self.refuse("explain", "model", "bab", "--target", "B A B", "--method", "attention",
                    names=["nothing in the model attends"])
        run = self.succeed("explain", "model", "bab", "--method", "gradient", "--target", "B A B",
                           "--json")
        self.assertEqual(json.loads(run.stdout)["target"], ["B", "A", "B"])


if __name__ == "__main__":
    program.main()
