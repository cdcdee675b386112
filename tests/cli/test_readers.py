"""Questions answered with parts of passages: learned, answered, measured, explained, served, exported and refused."""

import json
import pathlib
import random
import shutil
import tempfile

import program
from foreign import write_foreign
from program import settings
from test_serve import Server

SMALL = {"model.type": "reader", "model.depth": 32, "model.layers": 2, "model.heads": 2, "train.replicas": 1,
         "train.batch": 20, "train.epochs": 10, "train.learning_rate": 5e-3, "model.maximum_source_length": 24,
         "model.overlap": 6}
COLOURS, THINGS = "red blue green".split(), "car bus boat".split()


def rows(count, seed):
    """A colour and a thing in each passage, questions for either, and some for a place, which no passage has."""
    chance = random.Random(seed)
    lines = []
    for number in range(count):
        colour, thing = chance.choice(COLOURS), chance.choice(THINGS)
        before = " ".join(chance.choices(["there", "now", "so"], k=chance.randint(1, 4)))
        passage = f"{before} a {colour} {thing} is here"
        what = chance.choice(["colour", "thing", "place"])
        answer = {"colour": colour, "thing": thing, "place": ""}[what]
        start = f"\t{passage.index(answer)}" if number % 2 and answer else ""
        lines.append(f"which {what}?\t{passage}\t{answer}{start}\n")
    return "".join(lines)


class Readers(program.Case):
    """A model that has learned to find colours and things, for all tests below."""

    @classmethod
    def setUpClass(cls):
        cls.shared = pathlib.Path(tempfile.mkdtemp(prefix="attend-test-"))
        cls.addClassCleanup(shutil.rmtree, cls.shared)
        for part, count, seed in (("train", 400, 1), ("valid", 60, 2), ("test", 60, 3)):
            (cls.shared / f"{part}.tsv").write_text(rows(count, seed))
        training = program.attend("train", "--data", ".", "--out", "model", *settings(SMALL), cwd=cls.shared)
        assert training.returncode == 0, training.stderr
        cls.model = cls.shared / "model"

    def test_answers_with_parts_of_the_passage(self):
        passage = "so é there a blue boat is here"
        lines = "".join(f"which {what}?\t{passage}\n" for what in ("colour", "thing", "place"))
        self.assertEqual(self.succeed("predict", self.model, stdin=lines).stdout.splitlines(), ["blue", "boat", ""])
        first, _, last = map(json.loads, self.succeed("predict", self.model, "--json", "--nbest", 2,
                                                      stdin=lines).stdout.splitlines())
        best, other = first["predictions"]
        self.assertEqual(passage[best["start"]:best["end"]], best["target"])
        self.assertGreater(best["score"], 0.8)
        self.assertGreater(best["score"], other["score"])
        self.assertEqual([last["predictions"][0][key] for key in ("target", "start", "end")], ["", 0, 0])

    def test_finds_an_answer_in_each_part_of_a_long_passage(self):
        for before in (0, 15, 40, 70):
            words = ["now"] * before + "there a green bus is here".split() + ["so"] * (70 - before)
            line = f"which thing?\t{' '.join(words)}\n"
            found = json.loads(self.succeed("predict", self.model, "--json", stdin=line).stdout)
            self.assertEqual(found["predictions"][0]["target"], "bus", before)
            self.assertFalse(found["cut"])
        shown = json.loads(self.succeed("explain", self.model, line.strip(), "--method", "gradient", "--json").stdout)
        self.assertEqual(len(shown["source"]), 19)  # the last part

    def test_cuts_a_long_question_and_says_so(self):
        done = self.succeed("predict", self.model, stdin=f"which colour? {'now ' * 60}\tthere a red car is here\n")
        self.assertIn("line 1: the question is cut", done.stderr)

    def test_measures_as_squad(self):
        measured = json.loads(self.succeed("evaluate", self.model, "--data", self.shared, "--json").stdout)
        self.assertGreater(measured["squad_exact_match"], 0.95)
        self.assertGreaterEqual(measured["squad_f1"], measured["squad_exact_match"])
        self.assertLess(measured["loss"], 0.5)

    def test_explains_an_answer(self):
        pair = "which colour?\tthere a green bus is here"
        shown = json.loads(self.succeed("explain", self.model, pair, "--method", "occlusion", "--json").stdout)
        self.assertEqual(len(shown["source"]), 9)
        forced = self.succeed("explain", self.model, pair, "--target", "bus is", "--method", "gradient_x_input", "--json")
        self.assertEqual(json.loads(forced.stdout)["target"], ["bus", "is"])
        self.succeed("explain", self.model, pair, "--out", "page.html")
        self.assertIn("second text over the first text", (self.folder / "page.html").read_text())
        self.refuse("explain", self.model, pair, "--against", "bus", names=["answers with a span"])
        self.refuse("explain", self.model, pair, "--target", "lorry", names=["'lorry' does not occur in the passage"])

    def test_serves_answers(self):
        server = Server(str(self.model), "--port", 0, cwd=self.folder)
        self.addCleanup(server.end)
        pair = "which colour?\tthere a green bus is here"
        found = server.answer("/v1/predict", texts=[pair], nbest=2)["answers"][0]["predictions"]
        line = json.loads(self.succeed("predict", self.model, "--json", "--nbest", 2, stdin=pair + "\n").stdout)
        self.assertEqual(found, line["predictions"])
        self.assertNotEqual(server.answer("/v1/predict", texts=["which place?\tthere a green bus is here"],
                                          no_answer=False)["answers"][0]["predictions"][0]["target"], "")

    def test_serves_answers_to_the_client_of_hugging_face(self):
        server = Server(str(self.model), "--port", 0, cwd=self.folder)
        self.addCleanup(server.end)
        inputs = {"question": "which\tcolour?", "context": "there a green bus is here"}
        line = self.succeed("predict", self.model, "--json", "--nbest", 2,
                            stdin=f"which colour?\t{inputs['context']}\n").stdout
        expected = [{"answer": one["target"], "score": one["score"], "start": one["start"], "end": one["end"]}
                    for one in json.loads(line)["predictions"]]
        self.assertEqual(server.answer("/", inputs=inputs, parameters={}), expected[0])
        self.assertEqual(server.answer("/", inputs=inputs, parameters={"top_k": 2}), expected)
        place = inputs | {"question": "which place?"}
        for possible in (True, False):
            found = server.answer("/", inputs=place, parameters={"handle_impossible_answer": possible})
            self.assertEqual(found["answer"] == "", possible)
        short = server.answer("/", inputs=inputs, parameters={"top_k": 9, "max_answer_len": 1})
        self.assertTrue(all(len(one["answer"].split()) <= 1 for one in short))
        for fields, words in (({"inputs": "a", "parameters": {}}, "must be an object with a question and a context"),
                              ({"inputs": inputs | {"context": " "}}, "inputs[0]"),
                              ({"inputs": {"question": "a"}}, "an object with a question and a context"),
                              ({"inputs": inputs, "parameters": {"doc_stride": 9}}, "unknown field 'doc_stride'"),
                              ({"inputs": inputs, "parameters": {"num_beams": 9}},
                               "num_beams is not for a model that answers with parts of passages; there are top_k,")):
            self.assertIn(words, server.refusal("/", 422, **fields))

    def test_begins_with_an_encoder_and_goes_back_to_transformers(self):
        write_foreign("BertModel", self.folder / "theirs")
        self.succeed("import", "theirs", "--out", "bert")
        self.write("train.tsv", "which?\tthe cat sees a dog\tcat\n" * 20 + "who?\tParis is old\tParis\t0\n" * 20)
        self.write("valid.tsv", "which?\tthe cat sees a dog\tcat\n")
        self.succeed("train", "--data", ".", "--init", "bert", "--out", "tuned",
                     *settings({"model.type": "reader", "train.epochs": 1}))
        self.succeed("export", "tuned", "--out", "back")
        config = json.loads((self.folder / "back/config.json").read_text())
        self.assertEqual(config["architectures"], ["BertForQuestionAnswering"])
        self.succeed("import", "back", "--out", "again")
        pair = "which?\tthe cat sees a dog\n"
        ours, again = (json.loads(self.succeed("predict", folder, "--json", "--nbest", 3, stdin=pair).stdout)
                       for folder in ("tuned", "again"))
        for one, other in zip(ours["predictions"], again["predictions"], strict=True):
            self.assertEqual(one["target"], other["target"])
            self.assertAlmostEqual(one["score"], other["score"], 6)

    def test_refuses_what_is_no_answer(self):
        for line, words in (("q?\ta car\tbus", "bad.tsv:1: the answer 'bus' does not occur"),
                            ("q?\ta car\tcar\t1", "bad.tsv:1: the answer 'car' is not at character 1"),
                            ("q?\ta car\tcar\tx", "bad.tsv:1: 'x', after the answer, is not a number"),
                            ("q?\ta car\tcar\t2\t3", "bad.tsv:1: more than three TABs"),
                            ("q?\tcar", "bad.tsv:1: only one TAB"),
                            ("q?\t \tcar", "bad.tsv:1: the second text")):
            self.write("bad.tsv", line + "\n")
            self.refuse("train", "--data", "bad.tsv", "--out", "bad", *settings(SMALL), names=[words])
            self.refuse("evaluate", self.model, "--data", "bad.tsv", names=[words])
        for changed, words in (({"data.pairs": "optional"}, "set data.pairs = always"),
                               ({"data.lowercase": "true"}, "tokens must be parts of the text"),
                               ({"model.type": "tagger", "data.target": "span"}, "data.target")):
            self.refuse("train", "--data", self.shared, "--out", "bad", *settings({**SMALL, **changed}), names=[words])
        self.refuse("predict", self.model, stdin="a passage\n", names=["the source is one text"])


if __name__ == "__main__":
    program.main()
