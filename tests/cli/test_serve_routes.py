"""attend serve: routes of other APIs, answered like the command line."""

import base64
import json
import math
import pathlib
import shutil
import struct
import tempfile

import program
from program import settings
from test_classify import SMALL as CLASSIFIER
from test_classify import as_tsv, reviews
from test_language_model import SMALL as TEXT
from test_language_model import text
from test_serve import Server
from test_tagger import SMALL as TAGGER
from test_tagger import sentences

# Training data and settings of each model; two epochs are enough for different answers.
MODELS = {"reviews": ("reviews.tsv", as_tsv(reviews(200, 1)), CLASSIFIER),
          "places": ("places.tsv", as_tsv(sentences(100, 1)), TAGGER),
          "text": ("text.txt", text(60, 1), TEXT)}


class Routes(program.Case):
    """One server with a model of each kind, for all tests below."""

    @classmethod
    def setUpClass(cls):
        cls.shared = pathlib.Path(tempfile.mkdtemp(prefix="attend-test-"))
        cls.addClassCleanup(shutil.rmtree, cls.shared)
        for name, (data, lines, small) in MODELS.items():
            (cls.shared / data).write_text(lines)
            run = program.attend("train", "--data", data, "--out", name,
                                 *settings(small | {"train.epochs": 2}), cwd=cls.shared)
            assert run.returncode == 0, run.stderr
        cls.server = Server(*MODELS, "--port", 0, "--threads", 1, cwd=cls.shared)
        cls.addClassCleanup(cls.server.end)

    def refusal(self, path, status, **fields):
        """Returns the error of a refusal."""
        return json.loads(self.server.refusal(path, status, **fields))["error"]

    def predicted(self, model, texts, *options):
        """Returns the output of predict --json for the texts."""
        run = program.attend("predict", model, "--json", *options, cwd=self.shared,
                             stdin="".join(f"{text}\n" for text in texts))
        self.assertEqual(run.returncode, 0, run.stderr)
        return [json.loads(line) for line in run.stdout.splitlines()]

    def test_labels_of_texts(self):
        texts = ["the film was great", "dull plot", "zzz", ""]
        answers = self.server.answer("/v1/classify", model="reviews", texts=texts)
        self.assertEqual(answers["model"], "reviews")
        printed = self.predicted("reviews", texts, "--beam", 2, "--nbest", 2)
        for found, told in zip(answers["answers"], printed, strict=True):
            self.assertEqual([one["target"] for one in found["predictions"]],
                             [one["target"] for one in told["predictions"]])
            for one, other in zip(found["predictions"], told["predictions"]):
                self.assertEqual(one["probability"], math.exp(other["log_probability"]))
            for key in ("source", "cut", "unknown"):
                self.assertEqual(found[key], told[key])
        self.assertEqual(answers["answers"][3]["predictions"], [])
        first = answers["answers"][0]["predictions"]
        self.assertAlmostEqual(sum(one["probability"] for one in first), 1, 5)
        best = self.server.answer("/v1/classify", model="reviews", texts=texts[:1], nbest=1)
        self.assertEqual(best["answers"][0]["predictions"], first[:1])

    def test_labels_of_tokens(self):
        (line,), (answer,) = (self.predicted("places", ["in Oslo again"], "--details"),
                              self.server.answer("/v1/classify", model="places",
                                          texts=["in Oslo again"])["answers"])
        (told,) = line["predictions"]
        self.assertEqual(
            answer["predictions"],
            [{"source_token": token, "target": label, "probability": math.exp(logarithm)}
             for token, label, logarithm in zip(line["source_tokens"], told["tokens"],
                                                told["log_probabilities"], strict=True)])
        self.assertEqual(self.refusal("/v1/classify", 422, model="places", texts=["in Oslo"],
                                      nbest=2)["param"], "nbest")

    def test_models_without_labels_have_none(self):
        error = self.refusal("/v1/classify", 422, model="text", texts=["the"])
        self.assertEqual(error["param"], "model")
        self.assertIn("/v1/predict", error["message"])

    def vectors(self, **fields):
        body = self.server.answer("/v1/embeddings", model="text", encoding_format="float", **fields)
        self.assertEqual([one["index"] for one in body["data"]], list(range(len(body["data"]))))
        return [one["embedding"] for one in body["data"]]

    def tokens(self, texts):
        return [[token["id"] for token in tokens]
                for tokens in self.server.answer("/tokenize", model="text", inputs=texts)]

    def test_vectors_as_clients_of_openai_read_them(self):
        texts = ["the cat sat", "my dog"]
        body = self.server.answer("/v1/embeddings", model="text", input=texts)
        self.assertEqual((body["object"], body["model"]), ("list", "text"))
        self.assertEqual(body["usage"], {"prompt_tokens": 17, "total_tokens": 17})
        first, second = [one["embedding"] for one in body["data"]]
        self.assertEqual((len(first), body["data"][1]["object"]), (32, "embedding"))
        self.assertAlmostEqual(sum(number * number for number in first), 1, 5)
        # The same in any batch and in every form.
        self.assertEqual(self.vectors(input=texts[1]), [second])
        ids = self.tokens(texts)
        self.assertEqual(self.vectors(input=ids), [first, second])
        self.assertEqual(self.vectors(input=ids[0]), [first])
        packed = self.server.answer("/v1/embeddings", model="text", input="my dog", encoding_format="base64")
        self.assertEqual(packed["data"][0]["embedding"],
                         base64.b64encode(struct.pack("<32f", *second)).decode())

    def test_shorter_vectors(self):
        (whole,), (cut,) = self.vectors(input="the"), self.vectors(input="the", dimensions=5)
        length = math.sqrt(sum(number * number for number in whole[:5]))
        self.assertEqual(len(cut), 5)
        for number, other in zip(cut, whole):
            self.assertAlmostEqual(number, other / length, 6)
        error = self.refusal("/v1/embeddings", 422, model="text", input="the", dimensions=33)
        self.assertEqual(error["param"], "dimensions")
        self.assertIn("have 32", error["message"])

    def test_what_has_no_vector(self):
        for value, words in (("", "no tokens"), ([], "0 inputs"), (7, "must be"),
                             ([3], "token id 3 does not exist"),
                             ([[5], [9999]], "input[1]: token id 9999 does not exist"),
                             (["the", "a", ["b"]], "must be"), ("a" * 1048577, "at most 1048576")):
            error = self.refusal("/v1/embeddings", 422, model="text", input=value)
            self.assertIn(words, error["message"])
            self.assertEqual(error["param"], "input")

    def test_a_text_that_is_too_long_is_told_in_openais_words(self):
        for path, field, value in (("/v1/embeddings", "input", "the " * 9), ("/embeddings", "input", "the " * 9),
                                   ("/v1/completions", "prompt", "the " * 9),
                                   ("/v1/completions", "prompt", "\n" * 9000)):
            error = self.refusal(path, 400, model="text", **{field: value})
            self.assertEqual((error["code"], error["param"], error["type"]),
                             ("context_length_exceeded", field, "invalid_request_error"))
            self.assertIn("This model's maximum context length is 16 tokens", error["message"])

    def test_as_many_token_ids_as_texts(self):
        ids = self.tokens(["the cat sat"])[0]
        self.assertEqual(len(self.vectors(input=[ids] * 1000)), 1000)  # 11,000 values

    def complete(self, model="text", **fields):
        body = self.server.answer("/v1/completions", model=model, **fields)
        self.assertEqual((body["object"], body["model"]), ("text_completion", model))
        self.assertEqual([one["index"] for one in body["choices"]],
                         list(range(len(body["choices"]))))
        return body

    def test_texts_are_continued_as_predict_does(self):
        prompts = ["the cat", "my d"]
        body = self.complete(prompt=prompts, max_tokens=9, logprobs=1)
        printed = self.predicted("text", prompts, "--maximum-length", 9, "--details")
        for choice, line in zip(body["choices"], printed, strict=True):
            (told,) = line["predictions"]
            self.assertEqual((choice["text"], choice["finish_reason"]), (told["target"], "length"))
            logs = choice["logprobs"]
            self.assertEqual((logs["tokens"], logs["token_logprobs"], logs["text_offset"]),
                             (told["tokens"], told["log_probabilities"][:9], list(range(9))))
            self.assertEqual(logs["top_logprobs"][0], {logs["tokens"][0]: logs["token_logprobs"][0]})
            # The most probable answers of one token equal the result of a beam search.
            (first,) = self.complete(prompt=line["source"], max_tokens=9, logprobs=5)["choices"]
            (beam,) = self.predicted("text", [line["source"]], "--maximum-length", 1, "--beam", 5,
                                     "--nbest", 5, "--details", "--length-penalty", 0)
            top = first["logprobs"]["top_logprobs"]
            self.assertEqual((first["text"], [len(each) for each in top]), (choice["text"], [5] * 9))
            found = {one["tokens"][0]: one["log_probabilities"][0]
                     for one in beam["predictions"] if one["tokens"]}
            self.assertGreater(len(found), 3)
            self.assertLessEqual(found.items(), top[0].items())
        self.assertEqual(body["usage"],
                         {"prompt_tokens": 11, "completion_tokens": 18, "total_tokens": 29})
        ids = self.tokens(prompts)
        again = self.complete(prompt=ids, max_tokens=9, echo=True, temperature=0, stop=None)
        self.assertEqual([one["text"] for one in again["choices"]],
                         [prompt + one["text"] for prompt, one in zip(prompts, body["choices"])])

    def test_texts_are_drawn_as_predict_does(self):
        fields = {"prompt": "my ", "max_tokens": 12, "n": 3, "temperature": 1.5, "top_p": 0.9}
        body = self.complete(seed=7, **fields)
        (line,) = self.predicted("text", ["my "], "--maximum-length", 12, "--samples", 3,
                                 "--temperature", 1.5, "--top-p", 0.9, "--seed", 7)
        self.assertEqual([one["text"] for one in body["choices"]],
                         [one["target"] for one in line["predictions"]])
        found = {json.dumps(self.complete(**fields)["choices"]) for _ in range(8)}
        self.assertGreater(len(found), 1)  # 36 random letters each time

    def test_stops_end_a_text(self):
        (whole,) = self.complete(prompt="the cat ", max_tokens=30)["choices"]
        text = whole["text"]
        for stop in (text[9:12], [text[20:], text[9:12]], [text[4]]):
            first = min(text.find(one) for one in ([stop] if isinstance(stop, str) else stop))
            body = self.complete(prompt="the cat ", max_tokens=30, stop=stop)
            (choice,) = body["choices"]
            self.assertEqual((choice["text"], choice["finish_reason"]), (text[:first], "stop"))
            self.assertLess(body["usage"]["completion_tokens"], 30)
        self.assertEqual(self.complete(prompt="the cat ", max_tokens=30, stop="no such")["choices"],
                         [whole])

    def events(self, **fields):
        """Returns the objects of a stream after checking its Content-Type."""
        status, headers, body = self.server.ask("POST", "/v1/completions",
                                                {"model": "text", "stream": True} | fields)
        self.assertEqual(status, 200, body)
        *events, end, rest = body.split("\n\n")
        self.assertEqual((end, rest), ("data: [DONE]", ""))
        self.assertEqual(headers["Content-Type"], "text/event-stream")
        return [json.loads(event.removeprefix("data: ")) for event in events]

    def test_options_that_a_model_refuses_are_told(self):
        for _ in range(2):  # a refused request leaves the queue
            error = self.refusal("/v1/predict", 422, texts=["a"], model="reviews", unknown="copy")
            self.assertIn("attends to nothing", error["message"])

    def test_a_stream_says_the_same(self):
        for fields in ({"prompt": ["the cat", "my d"], "max_tokens": 9},
                       {"prompt": "the cat ", "max_tokens": 30, "stop": ["at", "n a"]},
                       {"prompt": "my ", "n": 2, "seed": 3, "max_tokens": 12, "echo": True}):
            whole = self.complete(**fields)
            events = self.events(stream_options={"include_usage": True}, **fields)
            usage = events.pop()
            self.assertEqual((usage["choices"], usage["usage"]), ([], whole["usage"]))
            self.assertEqual({event["id"] for event in events}, {usage["id"]})
            texts, ends = {}, {}
            for event in events:
                (choice,) = event["choices"]
                self.assertNotIn(choice["index"], ends)
                self.assertIsNone(event["usage"])
                texts[choice["index"]] = texts.get(choice["index"], "") + choice["text"]
                if choice["finish_reason"]:
                    ends[choice["index"]] = choice["finish_reason"]
            for choice in whole["choices"]:
                self.assertEqual((texts[choice["index"]], ends[choice["index"]]),
                                 (choice["text"], choice["finish_reason"]))
            self.assertGreater(len(events), len(texts))
            self.assertNotIn("usage", self.events(**fields)[0])

    def test_what_is_no_completion(self):
        for fields, param in (({}, "prompt"),
                              ({"prompt": "a", "max_tokens": 0}, "max_tokens"),
                              ({"prompt": ["a"] * 32, "n": 3, "max_tokens": 4096}, "prompt"),
                              ({"prompt": "a", "n": 2, "temperature": 0}, "n"),
                              ({"prompt": "a", "n": 2, "best_of": 3}, "best_of"),
                              ({"prompt": "a", "presence_penalty": 0.5}, "presence_penalty"),
                              ({"prompt": "a", "logit_bias": {"5": 1}}, "logit_bias"),
                              ({"prompt": "a", "suffix": "b"}, "suffix"),
                              ({"prompt": "a", "stop": ""}, "stop"),
                              ({"prompt": "a", "stop": ["a"] * 33}, "stop"),
                              ({"prompt": "a", "logprobs": 6}, "logprobs"),
                              ({"prompt": "a", "logprobs": 1, "temperature": 1}, "logprobs"),
                              ({"prompt": "a", "logprobs": 0, "stream": True}, "logprobs"),
                              ({"prompt": "a", "stream": True, "stream_options":
                                {"include_obfuscation": True}}, "stream_options"),
                              ({"prompt": "a", "stream_options": {}}, "stream_options")):
            self.assertEqual(self.refusal("/v1/completions", 422, model="text", **fields)["param"],
                             param)
        self.assertEqual(self.refusal("/v1/completions", 404, model="none", prompt="a")["code"],
                         "model_not_found")

    def test_values_that_mean_nothing_are_as_if_they_were_not_there(self):
        fields = {"prompt": "the cat", "max_tokens": 5}
        whole = self.complete(**fields)["choices"]
        for more in ({"suffix": None}, {"suffix": ""}, {"logit_bias": None}, {"logit_bias": {}}, {"stop": []},
                     {"max_tokens": 5.0}, {"seed": None}, {"stop": [" no such"] * 9}):
            self.assertEqual(self.complete(**fields | more)["choices"], whole, more)
        self.assertEqual(self.complete(seed=2 ** 63 - 1, **fields)["choices"],
                         self.complete(seed=2 ** 63 - 1, **fields)["choices"])
        self.events(stream_options={"include_obfuscation": False}, **fields)

    def test_a_prompt_is_echoed_with_its_probabilities(self):
        """As lm-evaluation-harness requests: the likelihood of the prompt, token by token."""
        prompt = "the cat s"
        (line,) = self.predicted("text", ["the"], "--maximum-length", 13, "--details")
        told = line["predictions"][0]
        (choice,) = self.complete(prompt="the" + told["target"], max_tokens=0, echo=True, logprobs=2,
                                  temperature=0, seed=1)["choices"]
        logs = choice["logprobs"]
        self.assertEqual((choice["text"], choice["finish_reason"]), ("the" + told["target"], "length"))
        self.assertEqual(logs["tokens"], list("the") + told["tokens"])
        self.assertEqual((logs["token_logprobs"][0], logs["top_logprobs"][0]), (None, None))
        self.assertEqual(logs["text_offset"], list(range(16)))
        # A greedy answer is most probable at each step, with the probabilities of predict.
        for token, logarithm, top, other in zip(told["tokens"], logs["token_logprobs"][3:],
                                                logs["top_logprobs"][3:], told["log_probabilities"]):
            self.assertAlmostEqual(logarithm, other, 4)
            self.assertEqual((max(top, key=top.get), top[token], len(top)), (token, logarithm, 2))
        (longer,) = self.complete(prompt=prompt, max_tokens=3, echo=True, logprobs=1)["choices"]
        (plain,) = self.complete(prompt=prompt, max_tokens=3, logprobs=1)["choices"]
        self.assertEqual(longer["text"], prompt + plain["text"])
        self.assertEqual(longer["logprobs"]["token_logprobs"][9:], plain["logprobs"]["token_logprobs"])
        self.assertEqual(longer["logprobs"]["text_offset"], list(range(12)))
        self.assertEqual(longer["logprobs"]["tokens"], list(longer["text"]))
        (only,) = self.complete(prompt=prompt, max_tokens=0, echo=True)["choices"]
        self.assertEqual((only["text"], only["logprobs"]), (prompt, None))
        self.assertEqual(self.refusal("/v1/completions", 422, model="reviews", prompt="a", echo=True,
                                      logprobs=1)["param"], "logprobs")

    def test_a_stream_is_not_held_back_by_a_proxy(self):
        headers = self.server.ask("POST", "/v1/completions",
                                  {"model": "text", "prompt": "a", "max_tokens": 3, "stream": True})[1]
        self.assertEqual((headers["X-Accel-Buffering"], headers["Cache-Control"]), ("no", "no-store"))

    def test_the_defaults_of_the_document_are_what_leaving_fields_out_means(self):
        """Generated clients send the defaults."""
        document = json.loads(self.server.ask("GET", "/openapi.json")[2])
        schemas = document["components"]["schemas"]

        def defaults(schema):
            return {name: one["default"] for name, one in schema["properties"].items() if "default" in one}

        asked = 0
        for path, fields in (("/v1/predict", {"model": "text", "texts": ["the cat"], "maximum_length": 9}),
                             ("/v1/classify", {"model": "reviews", "texts": ["dull plot"]}),
                             ("/v1/embeddings", {"model": "text", "input": "my dog"}),
                             ("/v1/completions", {"model": "text", "prompt": "the cat", "max_tokens": 9}),
                             ("/v1/explain", {"model": "reviews", "text": "dull plot", "method": "gradient"}),
                             ("/v1/score", {"answers": ["a b"], "references": ["a c"]}),
                             ("/", {"inputs": "dull plot"}),
                             ("/embed", {"model": "text", "inputs": "my dog"}),
                             ("/embed_all", {"model": "text", "inputs": "my dog"}),
                             ("/predict", {"inputs": "dull plot"}),
                             ("/tokenize", {"model": "text", "inputs": "my dog"}),
                             ("/decode", {"model": "text", "ids": [9]})):
            operation = document["paths"][path]["post"]
            name = operation["requestBody"]["content"]["application/json"]["schema"]["$ref"].rsplit("/", 1)[1]
            more = defaults(schemas[name])
            asked += len(more)
            found, other = [json.loads(self.server.ask("POST", path, each)[2])
                            for each in (fields, more | fields)]
            for each in (found, other):
                each = each if isinstance(each, dict) else {}
                self.assertNotIn("error", each)
                each.pop("id", None), each.pop("created", None)
            self.assertEqual(found, other, path)
        self.assertGreater(asked, 12)
        # The model's folder decides these.
        decided = {"beam", "length_penalty", "minimum_length", "maximum_length", "no_answer"}
        self.assertFalse(decided & set(defaults(schemas["PredictRequest"]) | defaults(schemas["ExplainRequest"])))

    def test_one_model_by_its_name(self):
        models = json.loads(self.server.ask("GET", "/v1/models")[2])["data"]
        for model in models:
            status, _, body = self.server.ask("GET", f"/v1/models/{model['id']}")
            self.assertEqual((status, json.loads(body)), (200, model))
        self.assertEqual(self.server.ask("GET", "/v1/models/%74ext")[0], 200)
        status, _, body = self.server.ask("GET", "/v1/models/none")
        self.assertEqual((status, json.loads(body)["error"]["code"]), (404, "model_not_found"))

    def test_other_models_answer_the_prompt(self):
        (choice,) = self.complete("reviews", prompt="the film was great")["choices"]
        (line,) = self.predicted("reviews", ["the film was great"])
        self.assertEqual((choice["text"], choice["finish_reason"]),
                         (line["predictions"][0]["target"], "stop"))

    def test_clients_of_text_embeddings_inference(self):
        first, second = self.vectors(input=["the cat sat", "my dog"])
        self.assertEqual(self.server.answer("/embed", model="text", inputs="the cat sat"), [first])
        self.assertEqual(self.server.answer("/embed", model="text", inputs=["the cat sat", "my dog"],
                                     normalize=True, truncate=None), [first, second])
        (raw,) = self.server.answer("/embed", model="text", inputs="my dog", normalize=False)
        length = math.sqrt(sum(number * number for number in raw))
        for number, other in zip(raw, second, strict=True):
            self.assertAlmostEqual(number / length, other, 6)
        self.assertEqual(len(self.server.answer("/embed", model="text", inputs="the " * 9,
                                         truncate=True)[0]), 32)
        (classified,) = self.server.answer("/v1/classify", model="reviews", texts=["dull plot"])["answers"]
        labels = self.server.answer("/predict", model="reviews", inputs="dull plot", parameters={})
        self.assertEqual(labels, [{"label": one["target"], "score": one["probability"]}
                                  for one in classified["predictions"]])
        self.assertEqual(self.server.answer("/predict", model="reviews", inputs=[["dull plot"]] * 2),
                         [labels] * 2)
        # At the root the answer depends on the model, as with such a server.
        self.assertEqual(self.server.answer("/", model="text", inputs=["the cat sat", "my dog"]), [first, second])
        self.assertEqual(self.server.answer("/", model="reviews", inputs="dull plot", raw_scores=False), labels)
        self.assertEqual(self.server.answer("/", model="reviews", inputs=[["dull plot"]]), [labels])
        # Hugging Face's client sends parameters with every text.
        self.assertEqual(self.server.answer("/", model="reviews", inputs="dull plot", parameters={}), labels)
        self.assertEqual(self.server.answer("/", model="reviews", inputs="dull plot", parameters={"top_k": 1}),
                         labels[:1])
        self.assertEqual(self.refusal("/", 422, model="text", inputs=[["a"]])[:25], "the model gives no labels")
        self.assertEqual(self.server.answer("/embed", model="text", inputs="my dog", truncation_direction="right",
                                     prompt_name=None), [second])
        (close,) = self.server.answer("/similarity", model="text", inputs={"source_sentence": "the cat sat",
                                                                    "sentences": ["my dog"]}, parameters={})
        self.assertAlmostEqual(close, sum(a * b for a, b in zip(first, second)), 6)
        (rows,) = self.server.answer("/embed_all", model="text", inputs="my dog")
        self.assertEqual((len(rows), len(rows[0])), (6, 32))
        for column, number in enumerate(raw):  # the vector of a text is the mean of its token vectors
            self.assertAlmostEqual(sum(row[column] for row in rows) / 6, number, 5)
        ids = self.tokens(["my dog", "the"])
        self.assertEqual(self.server.answer("/decode", model="text", ids=ids), ["my dog", "the"])
        self.assertEqual(self.server.answer("/decode", model="text", ids=ids[1]), ["the"])
        self.assertEqual(json.loads(self.server.ask("GET", "/ping")[2]), {"status": "alive"})
        ((token, *_),) = self.server.answer("/tokenize", model="reviews", inputs="plot zzz")
        self.assertEqual({key: token[key] for key in ("text", "special", "start", "stop")},
                         {"text": "plot", "special": False, "start": None, "stop": None})

    def test_a_text_is_continued_for_the_client_of_hugging_face(self):
        def continued(**parameters):
            return self.server.answer("/", model="text", inputs="the cat", parameters=parameters)

        (line,) = self.predicted("text", ["the cat"])
        self.assertEqual(continued(), [{"generated_text": line["predictions"][0]["target"]}])
        (choice,) = self.complete(prompt="the cat", max_tokens=5)["choices"]
        off = {"details": False, "decoder_input_details": False, "watermark": False, "stop": [], "seed": None}
        self.assertEqual(continued(max_new_tokens=5, **off), [{"generated_text": choice["text"]}])
        self.assertEqual(continued(max_new_tokens=5, return_full_text=True),
                         [{"generated_text": "the cat" + choice["text"]}])
        (drawn,) = self.complete(prompt="the cat", max_tokens=5, temperature=0.7, top_p=0.9, seed=4)["choices"]
        self.assertEqual(continued(max_new_tokens=5, temperature=0.7, top_p=0.9, seed=4),
                         [{"generated_text": drawn["text"]}])
        for parameters, words in (({"max_length": 9}, "max_length would also count the continued text; send "
                                                      "max_new_tokens"),
                                  ({"truncation": "only_first"}, "truncation is not for a model that continues texts"),
                                  ({"repetition_penalty": 1.2}, "unknown field 'repetition_penalty'"),
                                  (off | {"details": True}, "details, decoder_input_details and watermark are not")):
            self.assertIn(words, self.refusal("/", 422, model="text", inputs="a", parameters=parameters))
        self.assertIn("max_length is not for a model that gives labels; there are top_k",
                      self.refusal("/", 422, model="reviews", inputs="a", parameters={"max_length": 5}))
        self.assertIn("a tagger labels tokens; ask /v1/classify",
                      self.refusal("/", 422, model="places", inputs="a", parameters={}))

    def test_clients_of_text_embeddings_inference_name_no_model(self):
        first = json.loads(self.server.ask("GET", "/v1/models")[2])["data"][0]["id"]
        self.assertEqual(json.loads(self.server.ask("GET", "/info")[2])["model_id"], first)
        self.assertEqual(self.server.answer("/embed", inputs="my dog"),
                         self.server.answer("/embed", model=first, inputs="my dog"))

    def test_errors_of_text_embeddings_inference(self):
        for path, status, fields in (("/embed", 413, {"inputs": "the " * 9}),
                                     ("/embed", 422, {"inputs": ["a"] * 33}),
                                     ("/embed", 422, {"inputs": ""}),
                                     ("/predict", 422, {"inputs": "a"}),
                                     ("/predict", 422, {"inputs": "a", "model": "reviews",
                                                        "parameters": {"function_to_apply": "sigmoid"}}),
                                     ("/", 422, {"inputs": "a", "parameters": {"max_length": 5}}),
                                     ("/predict", 422, {"inputs": ["a", "b"], "model": "reviews"}),
                                     ("/tokenize", 422, {"inputs": None}),
                                     ("/tokenize", 422, {"inputs": ["a" * 200000] * 2}),
                                     ("/embed", 422, {"inputs": "a", "prompt_name": "query"}),
                                     ("/embed", 422, {"inputs": "a", "truncation_direction": "left"}),
                                     ("/predict", 422, {"inputs": "a", "model": "reviews", "raw_scores": True}),
                                     ("/decode", 422, {"ids": [99999]}),
                                     ("/embed", 404, {"inputs": "a", "model": "none"})):
            found, _, body = self.server.ask("POST", path, {"model": "text"} | fields)
            self.assertEqual(found, status, body)
            self.assertEqual(json.loads(body)["error_type"], "Validation")
            self.assertEqual(sorted(json.loads(body)), ["error", "error_type"])
        one = Server("reviews", "--port", 0, cwd=self.shared)
        self.addCleanup(one.end)
        info = json.loads(one.ask("GET", "/info")[2])
        self.assertEqual((info["model_id"], info["model_dtype"], info["max_client_batch_size"]),
                         ("reviews", "float32", 32))
        # Fields that these clients require, for example in pydantic classes.
        self.assertEqual((info["max_batch_tokens"], info["tokenization_workers"] > 0), (4096, True))
        self.assertEqual(sorted(info["model_type"]["classifier"]["label2id"]), ["bad", "very good"])

    def test_the_document_of_the_routes(self):
        document = json.loads(self.server.ask("GET", "/openapi.json")[2])
        self.assertEqual(document["openapi"], "3.1.0")
        for path, methods in document["paths"].items():
            for method, operation in methods.items():
                body = {"x": 1} if method == "post" else None
                status = self.server.ask(method.upper(), path.replace("{model}", "text"), body)[0]
                self.assertEqual(status, 422 if body else 200, path)
                self.assertEqual("requestBody" in operation, method == "post", path)
        schema = document["components"]["schemas"]["PredictRequest"]
        self.assertEqual(schema["required"], ["texts"])
        self.assertFalse(schema["additionalProperties"])
        self.assertEqual(schema["properties"]["beam"], {
            "type": "integer", "format": "int64", "minimum": 1, "maximum": 64,
            "description": "beam size: hypotheses kept per source; 1 is greedy search"})
        self.assertEqual(schema["properties"]["texts"],
                         {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 32})


if __name__ == "__main__":
    program.main()
