"""attend serve: imported models with their own tokenizers."""

import json
import re

import program
from foreign import write_foreign
from test_serve import Server


class Imported(program.Case):
    def imported(self, name, folder):
        write_foreign(name, self.folder / f"their-{folder}")
        self.succeed("import", f"their-{folder}", "--out", folder)

    def serve(self, *models):
        server = Server(*models, "--port", 0, cwd=self.folder)
        self.addCleanup(server.end)
        self.assertEqual(server.said, "attend: ready\n", server.errors)
        return server

    def tokens(self, server, **fields):
        status, _, body = server.ask("POST", "/tokenize", fields)
        self.assertEqual(status, 200, body)
        return json.loads(body)

    def test_special_tokens_are_marked_or_left_out(self):
        self.imported("BertModel", "bert")
        server = self.serve("bert")
        for text in ("the cat", "[SEP] the [CLS]", ""):
            (all_of_them,) = self.tokens(server, inputs=text)
            (own,) = self.tokens(server, inputs=text, add_special_tokens=False)
            if not text:
                self.assertEqual((all_of_them, own), ([], []))
                continue
            first, *middle, last = all_of_them
            self.assertEqual([(one["text"], one["special"]) for one in (first, last)],
                             [("[CLS]", True), ("[SEP]", True)])
            self.assertFalse(any(one["special"] for one in middle))
            self.assertEqual(own, middle)

    def test_what_a_vector_is_made_of_is_told(self):
        self.imported("BertModel", "mean")
        self.imported("BertModel", "first")
        config = self.folder / "first" / "config.toml"
        text = config.read_text()
        changed = re.sub(r'(?m)^text_vector = "?mean"?$', 'text_vector = "first"', text)
        self.assertNotEqual(changed, text)
        config.write_text(changed)
        for model, pooling in (("mean", "mean"), ("first", "cls")):
            info = json.loads(self.serve(model).ask("GET", "/info")[2])
            self.assertEqual(info["model_type"], {"embedding": {"pooling": pooling}})

    def test_which_parameters_a_model_of_vectors_or_masked_words_has(self):
        self.imported("BertModel", "vectors")
        self.imported("BertForMaskedLM", "masked")
        server = self.serve("vectors", "masked")
        for model in ("vectors", "masked"):
            self.assertEqual(len(server.answer("/", model=model, inputs="the cat")), 1)
        self.assertEqual(len(server.answer("/", model="vectors", inputs="the cat", parameters={})), 1)
        self.assertIn("top_k is not for a model that gives vectors; leave it out",
                      server.refusal("/", 422, model="vectors", inputs="the cat", parameters={"top_k": 3}))
        self.assertIn("does not fill masked words; ask /v1/predict",
                      server.refusal("/", 422, model="masked", inputs="the [MASK]", parameters={}))

    def test_the_page_is_told_which_models_answer_nothing(self):
        self.imported("BertModel", "bert")
        self.imported("GPT2LMHeadModel", "gpt2")
        server = self.serve("bert", "gpt2")
        models = json.loads(server.ask("GET", "/v1/models")[2])["data"]
        self.assertEqual([one["answers"] for one in models], [False, True])

    def test_an_echoed_prompt_has_the_probabilities_of_its_tokens(self):
        self.imported("GPT2LMHeadModel", "gpt2")
        server = self.serve("gpt2")
        (tokens,) = self.tokens(server, inputs="the cat sat")
        ids = [one["id"] for one in tokens]
        answers = []
        # As a text, and as ids like lm-evaluation-harness.
        for prompt in ("the cat sat", ids, [ids]):
            status, _, body = server.ask("POST", "/v1/completions", {
                "prompt": prompt, "max_tokens": 1, "echo": True, "logprobs": 1, "temperature": 0})
            self.assertEqual(status, 200, body)
            answers.append(json.loads(body)["choices"])
        self.assertEqual(answers[1:], answers[:1] * 2)
        logs = answers[0][0]["logprobs"]
        # Tokens are parts of the text, without the marks of their names.
        self.assertEqual("".join(logs["tokens"][:-1]), "the cat sat")
        self.assertEqual(len(logs["tokens"]), len(tokens) + 1)
        for top in logs["top_logprobs"][1:]:
            self.assertNotIn("\u0120", "".join(top))
        self.assertIsNone(logs["token_logprobs"][0])
        for logarithm, top in zip(logs["token_logprobs"][1:], logs["top_logprobs"][1:]):
            self.assertLessEqual(logarithm, max(top.values()))


if __name__ == "__main__":
    program.main()
