"""attend explain --pair: why a sentence encoder finds two texts alike; and the scores of heads, by its layers."""

import json
import math
import pathlib
import re
import shlex
import shutil

import program
from foreign import write_foreign
from test_serve import Server

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs/explanation.md"
SECTIONS = {"Why are these two texts alike": "BertModel", "Why does a head look there": "BertForMaskedLM"}


def total(rows):
    return math.fsum(value for row in rows for value in row)


class Similarity(program.Case):
    def imported(self, name="BertModel", files=None):
        write_foreign(name, self.folder / "theirs")
        for file, document in (files or {}).items():
            (self.folder / "theirs" / file).parent.mkdir(exist_ok=True)
            (self.folder / "theirs" / file).write_text(json.dumps(document))
        self.succeed("import", "theirs", "--out", "model")

    def explain(self, *options):
        return self.succeed("explain", "model", "the cat sees", "--pair", "Paris is", *options).stdout

    def vectors(self):
        lines = self.succeed("embed", "model", "--json", stdin="the cat sees\nParis is\n").stdout.splitlines()
        return [json.loads(line)["vector"] for line in lines]

    def test_the_parts_of_the_cosine_add_up(self):
        self.imported()
        record = json.loads(self.explain("--json", "--evidence"))
        first, second = self.vectors()
        cosine = sum(a * b for a, b in zip(first, second)) / math.hypot(*first) / math.hypot(*second)
        self.assertAlmostEqual(record["similarity"], cosine, places=5)
        self.assertAlmostEqual(total(record["scores"]), record["similarity"], places=5)
        self.assertEqual((record["measure"], record["source"]), ("cosine", ["[CLS]", "the", "cat", "sees", "[SEP]"]))
        self.assertEqual((record["target"][0], record["target"][-1]), ("[CLS]", "[SEP]"))
        self.assertEqual(record["title"], f"cosine {cosine:.4f}")
        self.assertEqual([one["name"] for one in record["evidence"]],
                         ["pair_loss", "pair_interaction", "tau_interaction"])
        text = self.explain()
        self.assertRegex(text, rf"cosine {cosine:.4f} is the sum of\n( +-?\d\.\d{{4}}  '[^']+' +'[^']+'\n){{10}}"
                               r" +-?\d\.\d{4}  all other pairs\n$")
        self.assertIn("pair_loss", self.explain("--evidence"))

    def test_every_kind_of_file_shows_the_pairs(self):
        self.imported()
        for file, sign in (("p.svg", b"<svg"), ("p.png", b"\x89PNG"), ("p.npz", b"PK"), ("p.json", b'"similarity"'),
                           ("p.html", b"pair_interaction")):
            self.explain("--out", file)
            self.assertIn(sign, (self.folder / file).read_bytes())

    def test_the_server_gives_the_same(self):
        self.imported()
        server = Server("model", "--port", 0, cwd=self.folder)
        self.addCleanup(server.end)

        def ask(**fields):
            return server.ask("POST", "/v1/explain", {"text": "the cat sees", "pair": "Paris is"} | fields)

        for fields, options in (({}, ()), ({"evidence": True}, ("--evidence",))):
            status, _, body = ask(**fields)
            self.assertEqual(status, 200, body)
            self.assertEqual(json.loads(body)["explanations"], [json.loads(self.explain("--json", *options))])
        self.explain("--out", "p.html")
        self.assertEqual(ask(format="html")[2], (self.folder / "p.html").read_text(encoding="utf-8"))
        page = json.loads(ask(format="page")[2])["texts"]
        self.assertEqual([one["name"] for one in page["methods"]], ["pairs"])
        for fields, param, words in (({"pair": ""}, None, "pair is empty"),
                                     ({"pair": "a" * 4097}, "pair", "up to 4096"),
                                     ({"view": "heads"}, None, "leave view out"),
                                     ({"format": "align"}, None, "method")):
            status, _, body = ask(**fields)
            error = json.loads(body)["error"]
            self.assertEqual((status, error["param"]), (422, param), body)
            self.assertIn(words, error["message"])
        schema = json.loads(server.ask("GET", "/openapi.json")[2])
        self.assertIn('"pair"', json.dumps(schema["paths"]["/v1/explain"]) + json.dumps(schema["components"]))

    def test_the_measure_is_the_model_s(self):
        modules = {"modules.json": [{"path": "", "type": "sentence_transformers.models.Transformer"},
                                    {"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}],
                   "1_Pooling/config.json": {"pooling_mode": ["mean"]}}
        whole = "config_sentence_transformers.json"
        self.imported(files=modules | {whole: {"similarity_fn_name": "dot"}})
        record = json.loads(self.explain("--json"))
        first, second = self.vectors()
        self.assertAlmostEqual(record["similarity"], sum(a * b for a, b in zip(first, second)), places=4)
        self.assertEqual(record["measure"], "dot")
        self.succeed("export", "model", "--out", "written")
        written = json.loads((self.folder / "written" / whole).read_text())
        self.assertEqual(written["similarity_fn_name"], "dot")
        for folder in ("theirs", "model"):
            shutil.rmtree(self.folder / folder)
        self.imported(files=modules | {whole: {"similarity_fn_name": "manhattan"}})
        self.refuse("explain", "model", "the", "--pair", "is", names=["manhattan", "model.text_similarity", "cosine"])
        shutil.rmtree(self.folder / "model")
        (self.folder / "theirs" / whole).write_text(json.dumps({"similarity_fn_name": "maxsim"}))
        self.refuse("import", "theirs", "--out", "model",
                    names=[whole, "similarity_fn_name", "'maxsim'", "cosine, dot"])

    def test_bad_input_is_refused(self):
        self.imported("BertForMaskedLM")
        self.refuse("explain", "model", "the cat", "--pair", "a cat", names=["type encoder", "sentence encoder"])
        shutil.rmtree(self.folder / "model")
        shutil.rmtree(self.folder / "theirs")
        self.imported()
        self.refuse("explain", "model", "the cat", names=["--pair"])
        self.refuse("explain", "model", "", "--pair", "a cat", names=["the text is empty"])
        self.refuse("explain", "model", "the cat", "--pair", " ", names=["pair is empty"])
        for name, options in (("target", ["--target", "x"]), ("against", ["--against", "x"]), ("layer", ["--layer", 1]),
                              ("without", ["--without", "encoder"]), ("view", ["--view", "heads"]),
                              ("method", ["--method", "norms"]), ("words", ["--words"]), ("head", ["--head", 1])):
            self.refuse("explain", "model", "the", "--pair", "is", *options, names=["pair: ", f"leave {name} out"])


class Scores(program.Case):
    def test_a_score_is_the_sum_of_its_parts(self):
        write_foreign("BertForMaskedLM", self.folder / "theirs")
        self.succeed("import", "theirs", "--out", "model")

        def explain(*options):
            return self.succeed("explain", "model", "Paris is the [MASK] of France", "--view", "scores",
                                "--at", "encoder.2.head.1.query.5.key.2", *options).stdout

        record = json.loads(explain("--json"))
        self.assertAlmostEqual(total(record["scores"]), record["score"], places=5)
        self.assertEqual(record["target"], ["token", "position", "biases", "encoder.1.head.1", "encoder.1.head.2",
                                            "encoder.1.feed_forward"])
        self.assertEqual(record["source"], record["target"])
        heads, = (json.loads(line) for line in self.succeed(
            "explain", "model", "Paris is the [MASK] of France", "--view", "heads", "--layer", 2, "--head", 1,
            "--json").stdout.splitlines())
        self.assertAlmostEqual(record["weight"], heads["weights"][4][1], places=6)
        text = explain()
        self.assertRegex(text, r"\Aencoder\.2\.head\.1, '\[MASK\]' on '[^']+': score -?\d+\.\d{4}, "
                               r"weight 0\.\d{4} is the sum of\n( +-?\d+\.\d{4}  '[^']+' +'[^']+'\n){10} +-?\d+\.\d{4} "
                               r" all other pairs\n\Z")
        for file, sign in (("s.svg", b"<svg"), ("s.npz", b"PK")):
            explain("--out", file)
            self.assertIn(sign, (self.folder / file).read_bytes())
        for options, names in ((("--view", "scores"), ["query.2.key.1"]),
                               (("--view", "scores", "--at", "encoder.9.head.1.query.1.key.1"), ["no such heads"]),
                               (("--view", "scores", "--at", "encoder.1.head.1.query.99.key.1"), ["no such positions"]),
                               (("--at", "encoder.1.head.1.query.1.key.1"), ["view scores"])):
            self.refuse("explain", "model", "Paris is the [MASK]", *options, names=names)


class Docs(program.Case):
    def test_every_command_runs(self):
        text = PAGE.read_text(encoding="utf-8")
        for title, model in SECTIONS.items():
            section = re.search(rf"(?ms)^## {title}.*?(?=^## )", text)[0]
            lines = re.sub(r"\\\n *", "", section).splitlines()
            commands = [line for line in lines if line.startswith("    attend ")]
            self.assertTrue(commands, title)
            for command in commands:
                arguments = shlex.split(command)
                name = arguments[2]
                if not (self.folder / name).exists():
                    write_foreign(model, self.folder / f"their-{name}")
                    self.succeed("import", f"their-{name}", "--out", name)
                self.succeed(*arguments[1:])


if __name__ == "__main__":
    program.main()
