"""attend serve: vectors of bytes, and vectors as Cohere's, Jina's and Voyage's clients ask for them."""

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
            "/v1/embeddings", 422, model="model", input="a", late_chunking=True))

    def test_voyage(self):
        for kind, code in (("float", "f"), ("int8", "b"), ("uint8", "B"), ("binary", "b"), ("ubinary", "B")):
            plain = self.vectors(output_dtype=kind)
            self.assertEqual(plain, self.vectors(encoding_format=kind), kind)
            # Voyage's client asks for every type as base64.
            for numbers, packed in zip(plain, self.vectors(output_dtype=kind, encoding_format="base64"), strict=True):
                self.assertEqual(base64.b64decode(packed), struct.pack(f"<{len(numbers)}{code}", *numbers), kind)
            self.assertEqual(self.vectors(output_dtype=kind, embedding_type="float"), plain)
        unset = {"input_type": None, "output_dtype": None, "output_dimension": None, "truncation": True}
        self.assertEqual(self.vectors(encoding_format="base64", **unset), self.vectors(encoding_format="base64"))
        self.assertEqual(self.vectors(output_dimension=3), self.vectors(dimensions=3))
        long = ["the cat " * 99]
        cut = self.server.answer("/v2/embed", model="model", texts=long)["embeddings"]["float"]
        self.assertEqual(self.vectors(input=long, truncation=True), cut)
        for use, name in (("query", "query"), ("document", "passage"), (None, "plain")):
            self.assertEqual(self.vectors(input="the cat", input_type=use),
                             self.server.answer("/embed", inputs="the cat", prompt_name=name), use)

    def test_what_voyage_cannot_have(self):
        for fields, status, words in (
                ({"output_dtype": "int8", "encoding_format": "int8"}, 422,
                 "encoding_format and output_dtype mean the same; send one of them"),
                ({"output_dtype": "float", "embedding_type": "ubinary"}, 422,
                 "embedding_type and output_dtype mean the same; send one of them"),
                ({"output_dimension": 3, "dimensions": 3}, 422, "dimensions and output_dimension mean the same"),
                ({"output_dimension": 99}, 422, "output_dimension is 99; vectors of the model have 8"),
                ({"output_dtype": "base64"}, 422, "it must be one of float, int8, uint8, binary, ubinary"),
                ({"input_type": "search_query"}, 422, "it must be one of query, document"),
                ({"input": "the cat " * 99, "truncation": False}, 400, "maximum context length"),
                ({"model": "voyage-4"}, 404, "voyage-4")):
            body = json.loads(self.server.refusal("/v1/embeddings", status,
                                                  **({"model": "model", "input": "a"} | fields)))
            self.assertIn(words, body["detail"])
            self.assertEqual(body["detail"], body["error"]["message"])

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
