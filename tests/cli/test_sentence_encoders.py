"""Sentence encoders with prompts, short vectors and vectors of bytes: embed, serve, explain --pair, import, export."""

import json
import math
import re
import shutil

import program
from foreign import write_sentence_encoder
from test_serve import Server

WHOLE = "config_sentence_transformers.json"
PROMPT = "find the cat: "


class SentenceEncoders(program.Case):
    def imported(self, files=None):
        for folder in ("theirs", "model"):
            shutil.rmtree(self.folder / folder, ignore_errors=True)
        case = write_sentence_encoder(self.folder / "theirs", files)
        self.succeed("import", "theirs", "--out", "model")
        self.texts = case["texts"]
        return case["answers"]

    def embed(self, *options, texts=None, model="model"):
        done = self.succeed("embed", model, "--json", *options, stdin="\n".join(texts or self.texts) + "\n")
        return [json.loads(line)["vector"] for line in done.stdout.splitlines()]

    def serve(self):
        server = Server("model", "--port", 0, cwd=self.folder)
        self.addCleanup(server.end)
        return server

    def close(self, found, wanted, digits=5):
        for one, other in zip(found, wanted, strict=True):
            for number, reference in zip(one, other, strict=True):
                self.assertAlmostEqual(number, reference, digits)

    def test_prompts_precede_texts(self):
        answers = self.imported()
        self.close(self.embed(), answers[""])
        for name in ("query", "plain"):
            self.close(self.embed("--prompt-name", name), answers[name])
        self.assertEqual(self.embed("--prompt", PROMPT), self.embed())
        self.assertEqual(self.embed("--prompt", ""), self.embed("--prompt-name", "plain"))
        self.assertEqual(self.embed(texts=["", self.texts[0]])[0], [])
        self.refuse("embed", "model", "--prompt-name", "quary", names=["quary", "did you mean query?"])
        self.refuse("embed", "model", "--prompt-name", "query", "--prompt", "a", names=["leave one out"])
        self.refuse("embed", "model", stdin=b"\xff\n", names=["line 1: invalid UTF-8 at byte 1"])
        self.refuse("embed", "model", "--prompt", "a\udcff", stdin="the\n",
                    names=["the prompt: invalid UTF-8 at byte 2"])
        self.assertEqual(self.embed("--dimensions", 3), [vector[:3] for vector in self.embed()])
        self.refuse("embed", "model", "--dimensions", 44, stdin="the\n", names=["--dimensions is 44", "43 numbers"])
        check = self.succeed("embed", "model", "--check", stdin="\n".join(self.texts) + "\n").stdout
        self.assertEqual(re.findall(r"\d+", check.splitlines()[0])[0], "2")

    def test_an_export_is_whole(self):
        self.imported()
        self.succeed("export", "model", "--out", "written")
        self.succeed("import", "written", "--out", "again")
        for options in ((), ("--prompt-name", "plain")):
            self.assertEqual(self.embed(*options, model="again"), self.embed(*options))

    def test_vectors_of_bytes(self):
        self.imported()
        texts = [*self.texts, "a b c", "the", "don't"]
        self.write("more.txt", "\n".join(texts[:3]) + "\n")
        plain = self.embed(texts=texts)
        for signed, unsigned, options in (("int8", "uint8", ()), ("int8", "uint8", ("--calibration", "more.txt")),
                                          ("binary", "ubinary", ())):
            bytes_ = self.embed("--precision", unsigned, *options, texts=texts)
            self.assertEqual(self.embed("--precision", signed, *options, texts=texts),
                             [[number - 128 for number in row] for row in bytes_])
            self.assertTrue(all(0 <= number <= 255 for row in bytes_ for number in row))
        for row, vector in zip(bytes_, plain, strict=True):
            bits = "".join(f"{number:08b}" for number in row)
            self.assertEqual([bit == "1" for bit in bits[:43]], [number > 0 for number in vector])
            self.assertEqual(bits[43:], "00000")
        parts = self.embed("--precision", "uint8", texts=texts)
        for column in range(43):
            numbers = [vector[column] for vector in plain]
            step = (max(numbers) - min(numbers)) / 255
            for number, row in zip(numbers, parts, strict=True):
                # At the border of two parts, the printed number may be rounded to the other side.
                self.assertLessEqual(abs((number - min(numbers)) / step - row[column] - 0.5), 0.501)
        told = self.succeed("embed", "model", "--precision", "int8", stdin="the\n\na\n")
        self.assertRegex(told.stderr, r"attend: --precision int8: the ranges are from 2 vectors; 100 or more")
        self.assertEqual([len(line.split()) for line in told.stdout.splitlines()], [43, 0, 43])
        self.refuse("embed", "model", "--precision", "int8", stdin="the\n", names=["there is one", "--calibration"])
        self.write("empty.txt", "\n\n")
        self.write("bad.txt", b"the\n\xff\n")
        for options, names in ((("--precision", "int4"), ["int8", "ubinary"]),
                               (("--precision", "int8", "--calibration", "empty.txt"), ["no line has a vector"]),
                               (("--precision", "int8", "--calibration", "bad.txt"), ["bad.txt, line 2", "UTF-8"]),
                               (("--precision", "binary", "--calibration", "more.txt"), ["leave it out"]),
                               (("--precision", "binary", "--json", "--tokens"), ["leave --precision out"]),
                               (("--precision", "binary", "--check"), ["leave --prompt"])):
            self.refuse("embed", "model", *options, stdin="the\ncat\n", names=names)

    def test_the_server_writes_prompts(self):
        self.imported()
        server = self.serve()
        usual, plain = self.embed(), self.embed("--prompt-name", "plain")
        for fields, wanted in (({}, usual), ({"prompt_name": None}, usual), ({"prompt_name": "query"}, usual),
                               ({"prompt_name": "plain"}, plain)):
            self.close(server.answer("/embed", inputs=self.texts, normalize=False, **fields), wanted, 6)
        both = server.answer("/similarity", inputs={"source_sentence": self.texts[0], "sentences": [self.texts[1]]},
                             parameters={"prompt_name": "plain"})
        self.assertAlmostEqual(both[0], sum(a * b for a, b in zip(*plain)) /
                               math.prod(math.hypot(*vector) for vector in plain), 5)
        words, with_prompt = ([token["text"] for token in server.answer("/tokenize", inputs="the", **fields)[0]]
                              for fields in ({}, {"prompt_name": "query"}))
        self.assertEqual(words, ["[CLS]", "the", "[SEP]"])
        self.assertEqual(with_prompt[-2:], words[-2:])
        self.assertEqual(len(server.answer("/embed_all", inputs="the")[0]), len(with_prompt))
        self.assertEqual(len(server.answer("/embed_all", inputs="the", prompt_name="plain")[0]), 3)
        for path, fields in (("/embed", {"inputs": "a"}), ("/", {"inputs": "a"}), ("/tokenize", {"inputs": "a"}),
                             ("/embed_all", {"inputs": "a"})):
            self.assertIn("quary", server.refusal(path, 422, prompt_name="quary", **fields))
        self.assertIn("inputs[0] has no tokens; send a text", server.refusal("/embed", 422, inputs=" "))
        for precision in ("binary", "ubinary"):
            found = server.answer("/v1/embeddings", model="model", input=self.texts, encoding_format=precision)
            self.assertEqual([one["embedding"] for one in found["data"]], self.embed("--precision", precision))

    def test_alike_after_the_prompt(self):
        pair = ("explain", "model", "the cat", "--pair", "a dog")
        self.imported()
        self.refuse(*pair, names=["model.pool_prompt"])
        pooling = {"1_Pooling/config.json": {"embedding_dimension": 8, "pooling_mode": ["mean"]},
                   "modules.json": [{"path": "", "type": "models.Transformer"},
                                    {"path": "1_Pooling", "type": "models.Pooling"}]}
        self.imported(pooling)
        record = json.loads(self.succeed(*pair, "--json").stdout)
        self.assertEqual(record["source"][:5], ["[CLS]", "f", "##i", "##nd", "the"])
        first, second = self.embed(texts=["the cat", "a dog"])
        cosine = sum(a * b for a, b in zip(first, second)) / math.hypot(*first) / math.hypot(*second)
        self.assertAlmostEqual(record["similarity"], cosine, places=5)
        self.assertAlmostEqual(math.fsum(number for row in record["scores"] for number in row), cosine, places=4)
        # A norm is part of the sum.
        self.imported({"1_Pooling/config.json": {"embedding_dimension": 8, "include_prompt": True, "pooling_mode": [
            "cls", "max", "mean", "weightedmean", "lasttoken", "mean_sqrt_len_tokens"]}})
        record = json.loads(self.succeed(*pair, "--json").stdout)
        first, second = self.embed(texts=["the cat", "a dog"])
        cosine = sum(a * b for a, b in zip(first, second)) / math.hypot(*first) / math.hypot(*second)
        self.assertAlmostEqual(record["similarity"], cosine, places=5)
        self.assertAlmostEqual(math.fsum(number for row in record["scores"] for number in row), cosine, places=4)

    def test_what_is_wrong_is_one_line(self):
        for document, names in (({"prompts": {"query": 1}}, ["prompts", "'query'", "not a text"]),
                                ({"prompts": ["query: "]}, ["prompts is not an object"]),
                                ({"prompts": "query: "}, ["prompts is not an object"]),
                                ({"prompts": {"": "a"}}, ["without a name"]),
                                ({"default_prompt_name": "query"}, ["'query'", "which prompts lacks"]),
                                ({"prompts": {"a": "b"}, "default_prompt_name": "b"}, ["'b'", "which prompts lacks"]),
                                ({"prompts": {}, "default_prompt_name": 7}, ["default_prompt_name"]),
                                ({"truncate_dim": 0}, ["truncate_dim is 0"]),
                                ({"truncate_dim": -8}, ["truncate_dim"]),
                                ({"truncate_dim": 1e9}, ["truncate_dim"])):
            shutil.rmtree(self.folder / "theirs", ignore_errors=True)
            write_sentence_encoder(self.folder / "theirs", {WHOLE: document})
            self.refuse("import", "theirs", "--out", "model", names=[WHOLE, *names])
        self.imported()
        config = self.folder / "model" / "config.toml"
        whole = config.read_text()
        for line, names in (('prompts = "[]"', ["model.prompts is '[]'"]), ('prompts = "{"', ["model.prompts"]),
                            ("prompts = '{\"plain\": 1}'", ["model.prompts"]), ('default_prompt = "b"', ["'b'"]),
                            ("text_cut = -1", ["text_cut"]), ("text_cut = 49", ["48 numbers"])):
            key = line.split()[0]
            changed, count = re.subn(rf"(?m)^{key} = .*", lambda match: line, whole)
            self.assertEqual(count, 1, key)
            config.write_text(changed)
            self.refuse("embed", "model", stdin="the\n", names=names)


if __name__ == "__main__":
    program.main()
