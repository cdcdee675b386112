"""attend serve: explanations equal the output of attend explain."""

import json
import pathlib
import shutil
import tempfile
import threading

import program
from program import PAIRS, SMALL, settings
from test_serve import Server

MOLECULES = {"model.type": "classifier", "data.source_units": "molecule", "model.layers": 1, "model.bias": "none",
             "model.depth": 8, "model.heads": 2, "model.feed_forward": 8, "train.replicas": 1, "train.epochs": 1}
NODES = {"data.format": "graph", "model.type": "graph", "model.depth": 8, "model.heads": 2, "train.replicas": 1,
         "train.epochs": 1}
TYPES = {"svg": "image/svg+xml", "png": "image/png", "html": "text/html; charset=utf-8", "npz": "application/zip",
         "dot": "text/vnd.graphviz; charset=utf-8", "graphml": "application/graphml+xml",
         "align": "text/plain; charset=utf-8"}

HEADS = {"model.type": "transformer", "model.depth": 16, "model.heads": 2, "model.feed_forward": 16,
         "model.encoder_layers": 2, "model.decoder_layers": 1, "train.replicas": 1, "train.batch": 20,
         "train.learning_rate": 1e-2, "train.warmup_steps": 10, "train.patience": 0}


class Explain(program.Case):
    """One server with a model of each kind, for all tests below."""

    @classmethod
    def setUpClass(cls):
        cls.shared = pathlib.Path(tempfile.mkdtemp(prefix="attend-test-"))
        cls.addClassCleanup(shutil.rmtree, cls.shared)
        (cls.shared / "pairs.tsv").write_text(PAIRS)
        (cls.shared / "molecules.tsv").write_text("CC(=O)N\tamide\nCCO\talcohol\nCC(=O)NC\tamide\nCO\talcohol\n")
        (cls.shared / "graph").mkdir()
        (cls.shared / "graph/nodes.tsv").write_text(
            "".join(f"p{i}\t{('train', 'valid', 'test')[i // 2 % 3]}\t{'ab'[i % 2]}\t{i % 4}\n" for i in range(12)))
        (cls.shared / "graph/edges.tsv").write_text("".join(f"p{i}\tp{(i + 2) % 12}\n" for i in range(12)))
        for name, data, chosen in (("words", "pairs.tsv", HEADS | {"train.epochs": 12}),
                                   ("plain", "pairs.tsv", SMALL | {"model.score": "none", "train.epochs": 12}),
                                   ("molecules", "molecules.tsv", MOLECULES)):
            cls.train(name, "--data", data, "--valid", data, *settings(chosen))
        cls.train("nodes", "--data", "graph", *settings(NODES))
        cls.server = Server("words", "plain", "molecules", "nodes", "--port", 0, cwd=cls.shared)
        cls.addClassCleanup(cls.server.end)

    @classmethod
    def train(cls, name, *options):
        run = program.attend("train", "--out", name, *options, cwd=cls.shared)
        assert run.returncode == 0, run.stderr

    def assert_is_file(self, model, text, form, options, **fields):
        """The answer equals the file that `attend explain` writes."""
        path = self.shared / f"file.{form}"
        run = program.attend("explain", model, text, "--out", path, *options, cwd=self.shared)
        self.assertEqual(run.returncode, 0, run.stderr)
        connection = self.server.connect()
        connection.request("POST", "/v1/explain", json.dumps({"model": model, "text": text, "format": form} | fields),
                           {"Content-Type": "application/json"})
        answer = connection.getresponse()
        body = answer.read()
        self.assertEqual((answer.status, answer.headers["Content-Type"]), (200, TYPES[form.split(".")[-1]]), body[:200])
        self.assertEqual(body, path.read_bytes())

    def ask(self, **fields):
        return self.server.ask("POST", "/v1/explain", {"model": "words", "text": "bab"} | fields)

    def explain(self, *options, model="words"):
        run = program.attend("explain", model, "bab", *options, cwd=self.shared)
        self.assertEqual(run.returncode, 0, run.stderr)
        return run.stdout

    def test_explanations_are_those_of_explain_to_the_byte(self):
        for options, fields in (
                ((), {}),
                (("--method", "occlusion", "--evidence", "--target", "B A B"),
                 {"method": "occlusion", "evidence": True, "target": "B A B"}),
                (("--target", "D A D", "--head", 1), {"target": "D A D", "head": 1}),
                (("--beam", 4, "--words"), {"beam": 4, "words": True}),
                (("--target", "D A D", "--against", "B"), {"target": "D A D", "against": "B"}),
                (("--without", "encoder.1.head.2,decoder.1.source"),
                 {"without": ["encoder.1.head.2", "decoder.1.source"]}),
                (("--view", "effects"), {"view": "effects"}),
                (("--without", "encoder.2.key.1"), {"without": ["encoder.2.key.1"]}),
                (("--without", "encoder.2", "--ablation", "mean"), {"without": ["encoder.2"], "ablation": "mean"}),
                (("--view", "model"), {"view": "model"})):
            lines = self.explain("--json", *options).splitlines()
            status, headers, body = self.ask(**fields)
            self.assertEqual(status, 200, body)
            self.assertEqual(body, f'{{"model":"words","explanations":[{",".join(lines)}]}}', fields)
            self.assertEqual(headers["Content-Type"], "application/json")

    def test_files_are_those_of_explain_to_the_byte(self):
        heads, one_head = ("--view", "heads", "--layer", 1, "--head", 1), {"view": "heads", "layer": 1, "head": 1}
        for form, options, fields in (
                ("svg", (), {}), ("png", (), {}), ("npz", (), {}), ("align", (), {}),
                ("svg", ("--view", "graph"), {"view": "graph"}),
                ("dot", ("--view", "graph"), {"view": "graph"}),
                ("dot", heads, one_head), ("graphml", heads, one_head),
                ("html", ("--method", "norms"), {"method": "norms"}),
                ("html", ("--target", "B A B"), {"target": "B A B"})):
            self.assert_is_file("words", "bab", form, options, **fields)

    def test_molecules_and_graphs_are_those_of_explain_to_the_byte(self):
        bonds = ("--view", "heads", "--layer", 1, "--head", 2), {"view": "heads", "layer": 1, "head": 2}
        for form in ("molecule.svg", "molecule.png"):
            self.assert_is_file("molecules", "CC(=O)N", form, ("--method", "gradient"), method="gradient")
            self.assert_is_file("molecules", "CC(=O)N", form, bonds[0], **bonds[1])
        for form in ("svg", "png", "graphml"):
            self.assert_is_file("nodes", "p3", form, ("--view", "graph"), view="graph")

    def test_what_a_page_holds(self):
        one = json.loads(self.ask(format="page")[2])
        self.assertEqual([method["name"] for method in one["texts"]["methods"]], ["attention"])
        self.assertEqual(one["texts"]["methods"][0]["card"], [])
        every = json.loads(self.ask(format="page", evidence=True, target="B A B")[2])
        names = [method["name"] for method in every["texts"]["methods"]]
        self.assertIn("integrated_gradients", names)
        self.assertTrue(all(method["card"] for method in every["texts"]["methods"]))
        heads = sum(len(layer["heads"]) for layer in every["texts"]["maps"])
        self.assertEqual(len(every["blocks"]), len(names) + heads)
        plain = json.loads(self.ask(model="plain", format="page")[2])["texts"]
        self.assertEqual([method["name"] for method in plain["methods"]], ["occlusion"])
        self.assertEqual(plain["maps"], [])

    def test_refusals(self):
        for fields, status, param, words in (
                ({"text": None}, 422, "text", "string"),
                ({"text": ""}, 422, None, "empty"),
                ({"text": "b" * 4097}, 422, "text", "up to 4096"),
                ({"method": "rolout"}, 422, None, "did you mean rollout?"),
                ({"head": 0}, 422, "head", "from 1"),
                ({"head": 3}, 422, None, "head 3"),
                ({"view": "sideways"}, 422, "view", "alignment, heads, model, graph, lens, effects"),
                ({"view": "graph"}, 422, None, "take the format svg"),
                ({"view": "heads", "evidence": True}, 422, None, "leave the view heads out"),
                ({"target": "B ? B"}, 422, None, "'?' is not one of the"),
                ({"against": "?"}, 422, None, "'?' is not one of the"),
                ({"target": "D A D", "against": "B", "method": "norms"}, 422, None, "cannot compare two"),
                ({"without": ["coder.1"]}, 422, None, "no such heads"),
                ({"without": []}, 422, "without", "from 1"),
                ({"without": ["encoder"], "format": "svg"}, 422, None, "take that format"),
                ({"format": "gif"}, 422, "format", "json, npz, align"),
                ({"format": "txt"}, 422, None, "a label for each token"),
                ({"format": "dot"}, 422, None, "a graph shows one sequence"),
                ({"format": "molecule.svg"}, 422, None, "this map has"),
                ({"view": "graph", "format": "npz"}, 422, None, "take the format svg"),
                ({"view": "effects", "head": 1}, 422, None, "leave method, layer and head out"),
                ({"model": "plain", "method": "attention"}, 422, None, "attends"),
                ({"model": "other"}, 404, "model", "/v1/models"),
                ({"texts": ["a"]}, 422, "texts", "did you mean text?")):
            found, _, body = self.ask(**fields)
            error = json.loads(body)["error"]
            self.assertEqual((found, error["param"]), (status, param), body)
            self.assertIn(words, error["message"])

    def test_explanations_do_not_depend_on_company(self):
        alone = self.ask(evidence=True, target="B A B")[2]
        found = []
        threads = [threading.Thread(target=lambda: found.append(self.ask(evidence=True, target="B A B")[2])) for _ in range(4)]
        threads += [threading.Thread(target=self.server.predict, kwargs={"model": "words", "texts": ["dad"] * 32})
                    for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(found, [alone] * 4)


if __name__ == "__main__":
    program.main()
