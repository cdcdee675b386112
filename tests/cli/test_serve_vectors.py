"""attend serve: vectors of bytes, and vectors as Cohere's and Jina's clients ask for them."""

import base64
import json
import math
import struct

import program
from foreign import write_sentence_encoder
from test_serve import Server

WHOLE = "config_sentence_transformers.json"
PROMPTS = {"query": "find the cat: ", "document": "", "passage": "a dog ", "clustering": "Paris ", "plain": ""}


class Vectors(program.Case):
    def setUp(self):
        super().setUp()
        pooling = {"embedding_dimension": 8, "pooling_mode": ["mean"]}
        case = write_sentence_encoder(self.folder / "theirs", {
            "1_Pooling/config.json": pooling, WHOLE: {"prompts": PROMPTS, "default_prompt_name": "plain"},
            "modules.json": [{"path": "", "type": "models.Transformer"},
                             {"path": "1_Pooling", "type": "models.Pooling"}]})
        self.texts = [*case["texts"], "the cat", "a dog"]
        self.succeed("import", "theirs", "--out", "model")
        self.server = Server("model", "--port", 0, cwd=self.folder)
        self.addCleanup(self.server.end)

    def vectors(self, **fields):
        found = self.server.answer("/v1/embeddings", model="model", **({"input": self.texts} | fields))
        return [one["embedding"] for one in found["data"]]

    def test_bytes_are_parts_of_the_unit(self):
        plain = self.vectors()
        signed, unsigned = (self.vectors(encoding_format=name) for name in ("int8", "uint8"))
        for vector, bytes_ in zip(plain, signed, strict=True):
            for number, byte in zip(vector, bytes_, strict=True):
                # At the border of two bytes, the printed number may be rounded to the other side.
                self.assertLessEqual(abs(127 * number - byte), 0.5 + 1e-4)
        self.assertEqual(unsigned, [[byte + 128 for byte in row] for row in signed])
        # A text has the same bytes in any request, and cosines stay.
        for text, row in zip(self.texts, signed, strict=True):
            self.assertEqual(self.vectors(input=text, encoding_format="int8"), [row])
        for first, second in ((0, 1), (0, 3), (2, 3)):
            one, two = (signed[i] for i in (first, second))
            cosine = sum(a * b for a, b in zip(one, two)) / math.hypot(*one) / math.hypot(*two)
            self.assertAlmostEqual(cosine, sum(a * b for a, b in zip(plain[first], plain[second])), delta=0.02)
        short = self.vectors(encoding_format="int8", dimensions=3)
        self.assertTrue(all(126 <= math.hypot(*row) <= 128 and len(row) == 3 for row in short))

    def test_other_names_of_the_format(self):
        for name in ("embedding_type", "encoding_type"):
            self.assertEqual(self.vectors(**{name: "int8"}), self.vectors(encoding_format="int8"))
            body = self.server.refusal("/v1/embeddings", 422, model="model", input="a", encoding_format="float",
                                       **{name: "float"})
            self.assertIn(f"encoding_format and {name} mean the same; send one of them", body)
        for value, names in (("int4", ["int4", "float, base64, int8, uint8, binary, ubinary"]),
                             (["int8", "float"], ["is array; it must be one of float, base64, int8"])):
            body = self.server.refusal("/v1/embeddings", 422, model="model", input="a", encoding_format=value)
            for name in names:
                self.assertIn(name, body)
        self.assertIn("there are model, input, encoding_format", self.server.refusal(
            "/v1/embeddings", 422, model="model", input="a", output_dtype="int8"))

    def test_cohere(self):
        kinds = ["float", "base64", "int8", "uint8", "binary", "ubinary"]
        found = self.server.answer("/v2/embed", model="model", texts=self.texts, input_type="classification",
                                   embedding_types=kinds)
        self.assertEqual((found["response_type"], found["texts"]), ("embeddings_by_type", self.texts))
        self.assertEqual(set(found["embeddings"]), set(kinds))
        for kind in kinds:
            self.assertEqual(found["embeddings"][kind], self.vectors(encoding_format=kind), kind)
        packed = base64.b64decode(found["embeddings"]["base64"][0])
        self.assertEqual(len(struct.unpack(f"<{len(packed) // 4}f", packed)), len(found["embeddings"]["float"][0]))
        usage = self.server.answer("/v1/embeddings", model="model", input=self.texts)["usage"]
        self.assertEqual(found["meta"]["billed_units"], {"input_tokens": usage["prompt_tokens"]})
        (short,) = self.server.answer("/v2/embed", model="model", texts=["the cat"], input_type="classification",
                                      output_dimension=3)["embeddings"]["float"]
        self.assertEqual([short], self.vectors(input="the cat", dimensions=3))
        older = self.server.answer("/v1/embed", model="model", texts=["the cat"], truncate=None)
        self.assertEqual((older["response_type"], older["embeddings"]),
                         ("embeddings_floats", self.vectors(input="the cat")))
        typed = self.server.answer("/v1/embed", model="model", texts=["the cat"], embedding_types=["int8"])
        self.assertEqual(typed["embeddings"], {"int8": self.vectors(input="the cat", encoding_format="int8")})

    def test_the_use_of_cohere_selects_a_prompt(self):
        def by(**fields):
            return self.server.answer("/v2/embed", model="model", texts=["the cat"], **fields)["embeddings"]["float"]

        def after(name):
            return self.server.answer("/embed", inputs="the cat", prompt_name=name)

        self.assertEqual(by(), after("plain"))
        for use, name in (("search_query", "query"), ("search_document", "passage"), ("clustering", "clustering"),
                          ("classification", "plain")):
            self.assertEqual(by(input_type=use), after(name), use)
        self.assertNotEqual(after("query"), after("passage"))

    def test_what_cohere_cannot_have(self):
        long = ["the cat " * 99]
        cut = self.server.answer("/v2/embed", model="model", texts=long)
        self.assertEqual(len(cut["embeddings"]["float"]), 1)
        for fields, status, names in (
                ({"truncate": "NONE", "texts": long}, 400, ["context_length_exceeded"]),
                ({"truncate": "START"}, 422, ["START", "it must be one of NONE, END"]),
                ({"embedding_types": ["int4"]}, 422, ["int4", "float, base64, int8"]),
                ({"input_type": "image"}, 422, ["search_document, search_query, classification, clustering"]),
                ({"max_tokens": 2}, 422, ["leave max_tokens out"]),
                ({"output_dimension": 99}, 422, ["output_dimension is 99; vectors of the model have 8"]),
                ({"texts": []}, 422, ["0 strings"]),
                ({"texts": ["a", " "]}, 422, ["texts[1] has no tokens"]),
                ({"images": ["data:"]}, 422, ["images"])):
            body = self.server.refusal("/v2/embed", status, **({"model": "model", "texts": ["a"]} | fields))
            self.assertEqual(set(json.loads(body)), {"error"})
            for name in names:
                self.assertIn(name, body)


if __name__ == "__main__":
    program.main()
