"""Classes of a graph's nodes: read, learned, predicted, measured and explained."""

import json
import pathlib
import random
import re
import shutil
import tempfile

import program
from program import settings

CLASSES = ("algebra", "number theory", "sets")
SMALL = {"model.type": "graph", "model.depth": 16, "model.heads": 2, "model.input_dropout": 0.2,
         "model.weight_dropout": 0.2, "train.replicas": 1, "train.epochs": 60, "train.batch": 100,
         "train.learning_rate": 1e-2, "train.schedule": "constant", "train.warmup_steps": 0,
         "train.weight_average": 0, "train.l2": 1e-4, "train.patience": 0}


def planted(nodes=180, seed=1):
    """Words are weak evidence for a class, neighbours stronger: most edges are within a class."""
    draw = random.Random(seed)
    lines, edges = [], set()
    for node in range(nodes):
        own = node % len(CLASSES)
        words = {20 * own + draw.randrange(20) if draw.random() < 0.4 else draw.randrange(60)
                 for _ in range(5)}
        split = ("train", "valid", "test", "-")[node // len(CLASSES) % 4]
        lines.append(f"p{node}\t{split}\t{CLASSES[own] if split != '-' else ''}\t"
                     + " ".join(map(str, sorted(words))) + "\n")
        for _ in range(3):
            same = draw.random() < 0.9
            other = draw.randrange(nodes // len(CLASSES)) * len(CLASSES) + (
                own if same else draw.randrange(len(CLASSES)))
            if other != node:
                edges.add((min(node, other), max(node, other)))
    return "".join(lines), "".join(f"p{a}\tp{b}\n" for a, b in sorted(edges))


class GraphNetwork(program.Case):
    """A model of a planted graph, for all tests below."""

    @classmethod
    def setUpClass(cls):
        cls.shared = pathlib.Path(tempfile.mkdtemp(prefix="attend-test-"))
        cls.addClassCleanup(shutil.rmtree, cls.shared)
        cls.nodes, cls.edges = planted()
        cls.data, cls.model = cls.shared / "data", cls.shared / "model"
        cls.data.mkdir()
        (cls.data / "nodes.tsv").write_text(cls.nodes)
        (cls.data / "edges.tsv").write_text(cls.edges)
        training = program.attend("train", "--data", "data", "--out", "model", "--json",
                                  *settings(SMALL), cwd=cls.shared)
        assert training.returncode == 0, training.stderr

    def write_graph(self, name, nodes, edges):
        (self.folder / name).mkdir(exist_ok=True)
        self.write(f"{name}/nodes.tsv", nodes)
        self.write(f"{name}/edges.tsv", edges)

    def accuracy(self, model):
        run = self.succeed("evaluate", model, "--data", self.data, "--json", "--metric", "accuracy")
        figures = json.loads(run.stdout)
        self.assertEqual(figures["examples"], 45)
        return figures["accuracy"]

    def test_learns_a_planted_graph(self):
        self.assertGreater(self.accuracy(self.model), 0.85)
        run = self.succeed("evaluate", self.model, "--data", self.data)
        self.assertRegex(run.stdout, r"label sets: \d+ of 15 right")
        self.assertTrue((self.model / "graph.safetensors").exists())

    def test_other_scores(self):
        for name, more in (("gatv2", {"model.attention_depth": 8}), ("dot", {"model.score": "general"})):
            self.succeed("train", "--data", self.data, "--out", name, *settings(SMALL | more))
            self.assertGreater(self.accuracy(name), 0.8)

    def test_predicts_by_name(self):
        run = self.succeed("predict", self.model, stdin="p9\np10\np9\n")
        answers = run.stdout.splitlines()
        self.assertEqual(len(answers), 3)
        self.assertTrue(all(answer in CLASSES for answer in answers))
        self.assertEqual(answers[0], answers[2])
        self.refuse("predict", self.model, stdin="elsewhere\np9\n",
                    names=["line 1", "node 'elsewhere'", "not in training"])

    def test_resumes_to_the_same_weights(self):
        self.succeed("train", "--data", self.data, "--out", "half",
                     *settings(SMALL | {"train.epochs": 7}))
        self.succeed("train", "--data", self.data, "--out", "half", "--resume",
                     "--set", "train.epochs=15")
        self.succeed("train", "--data", self.data, "--out", "whole",
                     *settings(SMALL | {"train.epochs": 15}))
        self.assertEqual((self.folder / "half/weights.safetensors").read_bytes(),
                         (self.folder / "whole/weights.safetensors").read_bytes())
        self.write_graph("other", self.nodes, "p1 p2\n")
        self.refuse("train", "--data", "other", "--out", "half", "--resume",
                    "--set", "train.epochs=20", names=["another graph", "half/graph.safetensors"])

    def test_begins_with_the_weights_of_another_graph(self):
        nodes, edges = planted(nodes=120, seed=2)
        self.write_graph("other", nodes, edges)
        run = self.succeed("train", "--data", "other", "--out", "more", "--init", self.model,
                           *settings(SMALL | {"train.epochs": 1}))
        self.assertRegex(run.stderr + run.stdout, r"(\d+) of \1 weights begin as in")
        self.succeed("predict", "more", stdin="p9\n")

    def test_begins_with_the_features_that_both_graphs_have(self):
        # Feature 59 is the last one of the first graph; the last node of the second graph has a new
        # one.
        nodes = self.nodes.replace("p179\t-\t\t", "p179\t-\t\t77 ")
        self.write_graph("other", nodes, self.edges)
        run = self.succeed("train", "--data", "other", "--out", "more", "--init", self.model,
                           *settings(SMALL | {"train.epochs": 1, "train.learning_rate": 1e-6}))
        self.assertRegex(run.stderr + run.stdout, r"(\d+) of \1 weights begin as in")
        figures = json.loads(self.succeed("evaluate", "more", "--data", "other", "--json").stdout)
        self.assertGreater(figures["accuracy"], 0.8)

    def test_measures_no_other_graph(self):
        self.write_graph("edgeless", self.nodes, "p1 p2\n")
        self.write_graph("renamed", self.nodes.replace("p9\t", "q9\t"),
                         re.sub(r"\bp9\b", "q9", self.edges))
        self.write_graph("untested", self.nodes.replace("\ttest\t", "\tvalid\t"), self.edges)
        for command in (("evaluate", self.model), ("faithfulness", self.model)):
            for data in ("edgeless", "renamed"):
                self.refuse(*command, "--data", data, names=[data, "another graph than the model"])
            self.refuse(*command, "--data", "untested", names=["untested", "no node has split test"])

    def test_explains_a_node_by_its_neighbours(self):
        self.succeed("explain", self.model, "p9")
        neighbours = [a if b == "p9" else b for a, b in
                      (line.split("\t") for line in self.edges.splitlines()) if "p9" in (a, b)]
        answer = json.loads(self.succeed("explain", self.model, "p9", "--json").stdout)
        self.assertEqual(answer["source"][0], "p9")
        self.assertEqual(set(answer["source"][1:1 + len(neighbours)]), set(neighbours))
        self.assertAlmostEqual(sum(answer["weights"][0]), 1, places=4)
        self.succeed("explain", self.model, "p9", "--method", "gradient_x_input", "--evidence")
        self.succeed("explain", self.model, "p9", "--view", "graph", "--out", "p9.svg")
        drawn = (self.folder / "p9.svg").read_text()
        for name in neighbours:
            self.assertIn(name, drawn)
        self.succeed("explain", self.model, "p9", "--out", "p9.html")
        self.refuse("explain", self.model, "elsewhere", names=["node 'elsewhere'"])

    def test_numbers_of_nodes(self):
        nodes = "".join(f"n{i}\t{'valid' if i % 4 == 3 else 'train'}\t{i % 5}.5\t{i % 5}\n"
                        for i in range(40))
        self.write_graph("numbers", nodes, "".join(f"n{i} n{i + 5}\n" for i in range(35)))
        self.succeed("train", "--data", "numbers", "--out", "number", *settings(
            SMALL | {"data.target": "number", "train.epochs": 100}))
        run = self.succeed("predict", "number", stdin="n7\n")
        self.assertAlmostEqual(float(run.stdout), 2.5, delta=0.6)

    def test_refuses_bad_graphs(self):
        def refuse(nodes, edges, *names, told=""):
            self.write_graph("bad", nodes, edges)
            self.refuse("train", "--data", "bad", "--out", "refused", *settings(SMALL), names=names, told=told)
            self.assertFalse((self.folder / "refused").exists())
        good = "a\ttrain\tx\t0\nb\tvalid\tx\t1\n"
        refuse(good, "a b\na c\n", "bad/edges.tsv:2", "'c' is not in nodes.tsv")
        refuse(good, "a b\nb a\n", "bad/edges.tsv:2", "is in line 1 too")
        refuse(good + "c\ttest\t\t2\n", "", "bad/nodes.tsv:3", "'c' has no class")
        refuse(good + "a\t-\t\t2\n", "", "bad/nodes.tsv:3", "'a' is in line 1 too")
        refuse(good + "c\t-\t\tword\n", "", "bad/nodes.tsv:3", "feature 'word'")
        refuse("a\ttrain\tx\t0\n", "", "bad/nodes.tsv", "no node has split valid")
        refuse("b\tvalid\tx\t0\n", "", "bad/nodes.tsv", "no node has split train")
        refuse(good.replace("valid\tx", "valid\ty") + "c\ttrain\tz\n", "", "bad/nodes.tsv:2", "'y'",
               "no label of the validation data is one of training", told=r"[^\n]+\n")

    def test_refuses_other_data(self):
        def refuse(*arguments, names, base=SMALL):
            self.refuse("train", "--data", *arguments, "--out", "refused", *settings(base),
                        names=names)
        refuse(self.data / "nodes.tsv", names=["is not a folder", "nodes.tsv and edges.tsv"])
        refuse(self.data, "--valid", self.data, names=["--valid", "each node to a split"])
        refuse(self.data, "--skip-bad", names=["--skip-bad"])
        refuse(self.data, names=["data.format = pairs", "model.type = graph reads graph"],
               base=SMALL | {"data.format": "pairs"})
        refuse(self.data, names=["data.format = graph", "graph"],
               base={"model.type": "classifier", "data.format": "graph"})
        (self.folder / "empty").mkdir()
        refuse("empty", names=["empty/nodes.tsv"])

    def test_refuses_to_leave_lines_out(self):
        for more in ("--skip-bad", "--target=t.tsv"):
            self.refuse("evaluate", self.model, "--data", self.data, more, names=[more.split("=")[0]])
        self.succeed("faithfulness", self.model, "--data", self.data, "--examples", 2, "--method",
                     "attention", "--figure", "comprehensiveness")

    def test_a_damaged_graph_is_refused(self):
        shutil.copytree(self.model, self.folder / "damaged")
        path = self.folder / "damaged/graph.safetensors"
        path.write_bytes(path.read_bytes()[:-8])
        self.refuse("predict", "damaged", stdin="p9\n", names=["damaged/graph.safetensors"])
        path.unlink()
        self.refuse("predict", "damaged", stdin="p9\n", names=["damaged/graph.safetensors"])


if __name__ == "__main__":
    program.main()
