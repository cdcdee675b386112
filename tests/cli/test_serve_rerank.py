"""attend serve: texts ranked by a cross-encoder, as text-embeddings-inference, Jina, Cohere and Voyage answer."""

import json
import math

import program
from foreign import write_foreign
from test_serve import Server

QUERY, TEXTS = "the cat sees", ["a dog", "Paris is the capital", "the cat sees a bird"]


class Ranked(program.Case):
    def setUp(self):
        super().setUp()
        for name, folder in (("RobertaForSequenceClassification", "ranker"), ("BertForSequenceClassification", "labels")):
            write_foreign(name, self.folder / f"their-{folder}")
            self.succeed("import", f"their-{folder}", "--out", folder)
        self.server = Server("ranker", "labels", "--port", 0, cwd=self.folder)
        self.addCleanup(self.server.end)

    def scores(self):
        lines = self.succeed("predict", "ranker", "--json", stdin="".join(f"{QUERY}\t{text}\n" for text in TEXTS))
        return [json.loads(line)["predictions"][0]["number"] for line in lines.stdout.splitlines()]

    def test_ranks_as_text_embeddings_inference(self):
        scores = self.scores()
        ranked = self.server.answer("/rerank", query=QUERY, texts=TEXTS, return_text=True)
        order = sorted(range(3), key=lambda i: -scores[i])
        self.assertEqual(ranked, [{"index": i, "score": scores[i], "text": TEXTS[i]} for i in order])
        # LiteLLM sends top_n.
        self.assertEqual(self.server.answer("/rerank", query=QUERY, texts=TEXTS, return_text=True, top_n=2), ranked[:2])
        for one in self.server.answer("/rerank", query=QUERY, texts=TEXTS, raw_scores=True):
            self.assertEqual(set(one), {"index", "score"})
            self.assertAlmostEqual(1 / (1 + math.exp(-one["score"])), scores[one["index"]], 12)

    def test_ranks_as_jina_and_cohere(self):
        scores = self.scores()
        best = max(range(3), key=lambda i: scores[i])
        found = self.server.answer("/v1/rerank", model="ranker", query=QUERY, documents=TEXTS, top_n=1,
                                   return_documents=True)
        self.assertEqual(found["results"], [{"index": best, "relevance_score": scores[best],
                                             "document": {"text": TEXTS[best]}}])
        self.assertGreater(found["usage"]["total_tokens"], 20)
        objects = self.server.answer("/v1/rerank", model="ranker", query=QUERY,
                                     documents=[{"text": text} for text in TEXTS])
        self.assertEqual({one["index"]: one["relevance_score"] for one in objects["results"]}, dict(enumerate(scores)))
        # As Cohere's newer client sends it.
        newer = self.server.answer("/v2/rerank", model="ranker", query=QUERY, documents=TEXTS, top_n=3,
                                   max_tokens_per_doc=4096)
        self.assertEqual(newer["results"], objects["results"])
        # A document is one chunk, so that any maximum holds.
        older = self.server.answer("/v1/rerank", model="ranker", query=QUERY, documents=TEXTS, max_chunks_per_doc=10)
        self.assertEqual(older["results"], objects["results"])

    def test_ranks_as_voyage(self):
        usual = self.server.answer("/v1/rerank", model="ranker", query=QUERY, documents=TEXTS)
        self.assertEqual(usual["data"], usual["results"])
        # Voyage's client sends all of its fields.
        sent = {"model": "ranker", "query": QUERY, "documents": TEXTS, "top_k": None, "truncation": True}
        self.assertEqual(self.server.answer("/v1/rerank", **sent), usual)
        two = self.server.answer("/v1/rerank", **sent | {"top_k": 2, "return_documents": True})
        self.assertEqual(two["data"], [one | {"document": TEXTS[one["index"]]} for one in usual["data"][:2]])
        self.assertEqual(two["usage"], usual["usage"])
        body = json.loads(self.server.refusal("/v1/rerank", 422, **sent | {"top_k": 2, "top_n": 2}))
        self.assertEqual(body["detail"], "top_n and top_k mean the same; send one of them")
        long = {"documents": ["a dog", "a dog " * 20]}
        self.assertEqual(len(self.server.answer("/v1/rerank", **sent | long)["data"]), 2)
        body = json.loads(self.server.refusal("/v1/rerank", 400, **sent | long | {"truncation": False}))
        self.assertIn("documents[1] has more", body["detail"])
        self.assertEqual(body["error"]["code"], "context_length_exceeded")

    def test_reads_a_tab_as_a_blank(self):
        tabs, blanks = (self.server.answer("/rerank", query=f"the{space}cat", texts=[f"a{space}dog"])
                        for space in "\t ")
        self.assertEqual(tabs, blanks)

    def test_cuts_only_if_asked(self):
        long = ["a dog " * 20]
        self.server.refusal("/rerank", 413, query=QUERY, texts=long, truncation_direction="Right")
        self.assertEqual(len(self.server.answer("/rerank", query=QUERY, texts=long, truncate=True)), 1)
        self.assertEqual(len(self.server.answer("/v1/rerank", model="ranker", query=QUERY, documents=long)["results"]), 1)

    def test_refuses_what_it_cannot_rank(self):
        self.assertIn("does not score pairs", self.server.refusal("/rerank", 422, model="labels", query=QUERY, texts=TEXTS))
        self.assertIn("query is blank", self.server.refusal("/rerank", 422, query=" ", texts=TEXTS))
        self.assertIn("texts[1] is blank", self.server.refusal("/rerank", 422, query=QUERY, texts=["a", " "]))
        self.assertIn("documents[0] is blank",
                      self.server.refusal("/v1/rerank", 422, model="ranker", query=QUERY, documents=["\t"]))
        self.assertIn("leave max_tokens_per_doc out", self.server.refusal(
            "/v2/rerank", 422, model="ranker", query=QUERY, documents=TEXTS, max_tokens_per_doc=2))
        self.assertIn("has no labels", self.server.refusal("/", 422, model="ranker", inputs="a text"))
        self.assertIn("from 1 to 128", self.server.refusal("/rerank", 422, query=QUERY, texts=["a"] * 129))
        self.assertIn("an array of strings or an array of objects with a text",
                      self.server.refusal("/v1/rerank", 422, model="ranker", query=QUERY, documents=[{"title": "a"}]))
        self.assertIn("max_chunks_per_doc is 0", self.server.refusal(
            "/v1/rerank", 422, model="ranker", query=QUERY, documents=TEXTS, max_chunks_per_doc=0))
        self.assertIn("unknown field 'rank_fields'", self.server.refusal(
            "/v1/rerank", 422, model="ranker", query=QUERY, documents=TEXTS, rank_fields=["text"]))
        self.assertIn("top_n", self.server.refusal("/v1/rerank", 422, model="ranker", query=QUERY, documents=TEXTS, top_n=0))

    def test_names_the_path_that_takes_the_fields(self):
        other = self.server.refusal("/rerank", 422, model="ranker", query=QUERY, documents=TEXTS, top_n=1)
        self.assertIn("unknown field 'documents'", other)
        self.assertIn("; /v1/rerank takes the fields of this request", other)
        nested = {"source_sentence": QUERY, "sentences": TEXTS}
        self.assertIn("; /similarity takes the fields of this request", self.server.refusal("/", 422, inputs=nested))
        for fields in ({"query": QUERY, "texts": TEXTS, "top": 1}, {"query": 3, "texts": TEXTS}):
            self.assertNotIn("takes the fields", self.server.refusal("/rerank", 422, **fields))


if __name__ == "__main__":
    program.main()
