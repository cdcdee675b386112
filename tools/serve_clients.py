#!/usr/bin/env python3
"""Tests `attend serve` with released clients.

Clients are the packages of OpenAI, Hugging Face, LiteLLM, LangChain, Cohere and Voyage, a client that
openapi-python-client generates, and schemathesis.

    python3 -m venv build/clients
    build/clients/bin/pip install openai==3.57.0 huggingface_hub==2.4.0 numpy schemathesis==4.32.5 \\
      litellm==1.110.2 langchain-openai==1.7.4 openapi-python-client==0.29.1 cohere==7.3.1 \\
      voyageai==0.5.0
    build/clients/bin/python tools/serve_clients.py [--program build/release/attend] [--examples 100]

Trains a small model of each kind that the clients ask for, serves each, and prints its requests. schemathesis draws
valid and invalid requests from /openapi.json, by a fixed seed. With --overload SECONDS, OpenAI's client sends requests
at three times the rate of the server's answers, and retries refused requests, as by default. Exits with 1 if a client
reads a wrong answer, schemathesis has a finding, or too few requests are answered.
"""

import asyncio
import importlib
import importlib.metadata
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import time
import urllib.request

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # otherwise litellm sends a request to another host

import cohere  # noqa: E402
import langchain_openai  # noqa: E402
import litellm  # noqa: E402
import openai  # noqa: E402
import voyageai  # noqa: E402
from huggingface_hub import InferenceClient  # noqa: E402
from huggingface_hub.errors import HfHubHTTPError, TextGenerationError  # noqa: E402

import conform_report
from serve_models import KEY, Server, predicted, train

VERSIONS = {"openai": "3.57.0", "huggingface_hub": "2.4.0", "schemathesis": "4.32.5", "litellm": "1.110.2",
            "langchain-openai": "1.7.4", "openapi-python-client": "0.29.1", "cohere": "7.3.1",
            "voyageai": "0.5.0"}
# A schema cannot express all limits of a model. The server answers 422 to a text that is too long
# and to fewer prefixes than texts, although the schema allows both, so this check is omitted.
LEFT_OUT = ("positive_data_acceptance",)


class Findings(conform_report.Report):
    def expect(self, is_right, what):
        self.state(what, is_right, "as expected" if is_right else "otherwise")

    def refused(self, kind, what, call, **values):
        """Expects that the call raises an error of class `kind` with these attributes."""
        try:
            call()
        except kind as error:
            found = {name: getattr(error, name, None) for name in values}
            self.expect(found == values, f"{what}: {kind.__name__} {found}")
        else:
            self.expect(False, f"{what}: no error")


def packed(vector):
    """Bytes of its numbers as float32, the precision of the server."""
    return struct.pack(f"<{len(vector.embedding)}f", *vector.embedding)


def ask_as_openai(url, findings):
    client = openai.OpenAI(base_url=f"{url}/v1", api_key=KEY)
    model = client.models.list().data[0].id
    findings.expect(model == "text", "openai: models.list")
    findings.expect(client.models.retrieve(model) == client.models.list().data[0], "openai: models.retrieve")
    texts = ["the cat sat", "my dog"]
    usual = client.embeddings.create(model=model, input=texts)
    plain = client.embeddings.create(model=model, input=texts, encoding_format="float")
    findings.expect([packed(one) for one in usual.data] == [packed(one) for one in plain.data]
                    and len(usual.data[0].embedding) == 16 and usual.usage.prompt_tokens == 17,
                    "openai: embeddings, base64 (the default) and float")
    short = client.embeddings.create(model=model, input="my dog", dimensions=4)
    findings.expect(len(short.data[0].embedding) == 4, "openai: embeddings, dimensions")

    whole = client.completions.create(model=model, prompt="the cat", max_tokens=12)
    findings.expect(whole.choices[0].finish_reason == "length"
                    and whole.usage.completion_tokens == 12, "openai: completions")
    parts = list(client.completions.create(model=model, prompt="the cat", max_tokens=12, stream=True,
                                           stream_options={"include_usage": True}))
    text = "".join(part.choices[0].text for part in parts if part.choices)
    findings.expect(text == whole.choices[0].text and parts[-1].usage == whole.usage,
                    "openai: completions, stream")
    drawn = [client.completions.create(model=model, prompt=texts, n=2, max_tokens=8, temperature=1,
                                       seed=5, logprobs=0) for _ in range(2)]
    findings.expect(drawn[0].choices == drawn[1].choices and len(drawn[0].choices) == 4
                    and len(drawn[0].choices[3].logprobs.token_logprobs) == 8,
                    "openai: completions, n, seed and logprobs")
    told = client.completions.create(model=model, prompt="the cat", max_tokens=12, logprobs=3)
    tops = told.choices[0].logprobs.top_logprobs
    findings.expect([len(top) for top in tops] == [3] * 12
                    and [max(top, key=top.get) for top in tops] == told.choices[0].logprobs.tokens,
                    "openai: completions, the most probable tokens")
    cut = client.completions.create(model=model, prompt="the cat", max_tokens=12,
                                    stop=whole.choices[0].text[5], echo=True)
    findings.expect(cut.choices[0].finish_reason == "stop"
                    and cut.choices[0].text.startswith("the cat"),
                    "openai: completions, stop and echo")

    findings.refused(openai.AuthenticationError, "openai: another key",
                     openai.OpenAI(base_url=f"{url}/v1", api_key="wrong").models.list,
                     status_code=401, code="invalid_api_key")
    findings.refused(openai.NotFoundError, "openai: another model",
                     lambda: client.embeddings.create(model="none", input="a"),
                     status_code=404, code="model_not_found", param="model")
    echoed = client.completions.create(model=model, prompt="the cat", max_tokens=1, echo=True, logprobs=1,
                                       temperature=0, seed=1).choices[0].logprobs
    findings.expect(echoed.token_logprobs[0] is None and len(echoed.token_logprobs) == 8
                    and all(logarithm <= max(top.values()) for logarithm, top in
                            zip(echoed.token_logprobs[1:], echoed.top_logprobs[1:])),
                    "openai: completions, echo with logprobs, as lm-evaluation-harness asks")
    drawn = client.completions.create(model=model, prompt="the cat", max_tokens=4, seed=2 ** 63 - 1, stop=[],
                                      logit_bias={}, suffix=None)
    findings.expect(drawn.usage.completion_tokens == 4, "openai: values that mean nothing")
    findings.refused(openai.BadRequestError, "openai: a text that is too long",
                     lambda: client.completions.create(model=model, prompt="a" * 40),
                     status_code=400, code="context_length_exceeded", param="prompt",
                     type="invalid_request_error")
    findings.refused(openai.UnprocessableEntityError, "openai: a field that the server does not honour",
                     lambda: client.completions.create(model=model, prompt="a", suffix="b"),
                     code="invalid_value", param="suffix")


def ask_as_litellm(url, findings):
    where = {"api_base": f"{url}/v1", "api_key": KEY}
    answer = litellm.text_completion(model="text-completion-openai/text", prompt="the cat", max_tokens=5, **where)
    findings.expect(answer.usage.completion_tokens == 5, "litellm: text_completion")
    vectors = litellm.embedding(model="openai/text", input=["my dog", "the cat"], encoding_format="float", **where)
    findings.expect([len(one["embedding"]) for one in vectors.data] == [16, 16], "litellm: embedding")
    for kind in ("float", "int8"):
        typed = litellm.embedding(model="cohere/text", input=["my dog", "the cat"], encoding_format=kind,
                                  api_base=f"{url}/v2/embed", api_key=KEY)
        findings.expect([len(one["embedding"]) for one in typed.data] == [16, 16] and typed.usage.prompt_tokens == 13,
                        f"litellm: embedding of Cohere's form, {kind}")
    # LiteLLM's routers need this error to choose a model with a larger context.
    findings.refused(litellm.ContextWindowExceededError, "litellm: a text that is too long",
                     lambda: litellm.text_completion(model="text-completion-openai/text", prompt="a" * 40, **where))


def ask_as_langchain(url, findings):
    embeddings = langchain_openai.OpenAIEmbeddings(model="text", base_url=f"{url}/v1", api_key=KEY,
                                                   check_embedding_ctx_length=False)
    vectors = embeddings.embed_documents(["my dog", "the cat"] * 600)  # 1,000 per request
    findings.expect(len(vectors) == 1200 and vectors[0] == vectors[2], "langchain-openai: 1,200 texts")


def ask_as_cohere(url, findings):
    client, older = (kind(api_key=KEY, base_url=url) for kind in (cohere.ClientV2, cohere.Client))
    texts, kinds = ["the cat sat", "my dog"], ["float", "int8", "uint8", "binary", "ubinary", "base64"]
    whole = client.embed(model="text", texts=texts, input_type="search_document", embedding_types=kinds).embeddings
    found = whole.float_
    findings.expect(all(abs(127 * number - byte) < 0.501 for vector, bytes_ in zip(found, whole.int8, strict=True)
                        for number, byte in zip(vector, bytes_, strict=True)), "cohere: embed, float and int8")
    findings.expect(whole.uint8 == [[byte + 128 for byte in row] for row in whole.int8]
                    and whole.ubinary == [[byte + 128 for byte in row] for row in whole.binary]
                    and len(whole.ubinary[0]) == 2, "cohere: embed, uint8, binary and ubinary")
    short = client.embed(model="text", texts=texts[:1], input_type="search_query", output_dimension=4)
    findings.expect(len(short.embeddings.float_[0]) == 4, "cohere: embed, output_dimension")
    # The older client sends 96 texts per request.
    many = older.embed(model="text", texts=texts * 60, input_type="search_query")
    findings.expect(many.embeddings == found * 60, "cohere: embed of the older client, 120 texts")
    typed = older.embed(model="text", texts=texts, embedding_types=["int8"])
    findings.expect(typed.embeddings.int8 == whole.int8, "cohere: embed of the older client, int8")
    findings.refused(cohere.UnprocessableEntityError, "cohere: an end that is not cut",
                     lambda: client.embed(model="text", texts=texts, input_type="search_query", truncate="START"),
                     status_code=422)


def ask_as_voyage(url, findings):
    client = voyageai.Client(api_key=KEY, base_url=f"{url}/v1")
    texts = ["the cat sat", "my dog"]
    plain = client.embed(texts, model="text")
    usual = openai.OpenAI(base_url=f"{url}/v1", api_key=KEY).embeddings.create(model="text", input=texts)
    findings.expect(plain.embeddings == [one.embedding for one in usual.data]
                    and plain.total_tokens == usual.usage.total_tokens, "voyageai: embed")
    typed = {kind: client.embed(texts, model="text", input_type="query", output_dtype=kind).embeddings
             for kind in ("float", "int8", "uint8", "binary", "ubinary")}
    findings.expect(typed["float"] == plain.embeddings
                    and typed["uint8"] == [[byte + 128 for byte in row] for row in typed["int8"]]
                    and typed["ubinary"] == [[byte + 128 for byte in row] for row in typed["binary"]]
                    and all(abs(127 * number - byte) < 0.501 for vector, bytes_ in zip(plain.embeddings, typed["int8"])
                            for number, byte in zip(vector, bytes_, strict=True)), "voyageai: embed, types of numbers")
    short = client.embed("my dog", model="text", input_type="document", output_dimension=4)
    findings.expect([len(row) for row in short.embeddings] == [4], "voyageai: embed, output_dimension")
    findings.expect(len(client.embed("a" * 40, model="text").embeddings) == 1, "voyageai: embed, a text that is cut")
    findings.refused(voyageai.error.InvalidRequestError, "voyageai: a text that is too long",
                     lambda: client.embed("a" * 40, model="text", truncation=False), http_status=400)
    findings.refused(voyageai.error.MalformedRequestError, "voyageai: too many numbers",
                     lambda: client.embed(texts, model="text", output_dimension=99), http_status=422,
                     user_message="output_dimension is 99; vectors of the model have 16")
    findings.refused(voyageai.error.AuthenticationError, "voyageai: another key",
                     lambda: voyageai.Client(api_key="wrong", base_url=f"{url}/v1").embed(texts, model="text"),
                     http_status=401)


def rank(url, findings):
    documents = ["it is cold", "the red team won", "my dog"]
    query = "is it cold?"
    voyage = voyageai.Client(api_key=KEY, base_url=f"{url}/v1")
    newer, older = (kind(api_key=KEY, base_url=url) for kind in (cohere.ClientV2, cohere.Client))
    whole = voyage.rerank(query, documents, model="ranker")
    findings.expect(sorted(one.index for one in whole.results) == [0, 1, 2] and whole.total_tokens > 0
                    and all(one.document == documents[one.index] for one in whole.results), "voyageai: rerank")
    best = voyage.rerank(query, documents, model="ranker", top_k=1, truncation=False)
    findings.expect(best.results == whole.results[:1], "voyageai: rerank, top_k and truncation")
    findings.refused(voyageai.error.MalformedRequestError, "voyageai: a blank query",
                     lambda: voyage.rerank(" ", documents, model="ranker"), http_status=422,
                     user_message="query is blank; send a text")
    found = [(one.index, one.relevance_score) for one in whole.results]
    for name, client in (("", newer), (" of the older client", older)):
        ranked = client.rerank(model="ranker", query=query, documents=documents, top_n=3).results
        findings.expect([(one.index, one.relevance_score) for one in ranked] == found, f"cohere: rerank{name}")
    for provider, path in (("voyage", "/v1"), ("jina_ai", ""), ("cohere", ""), ("huggingface", ""),
                           ("hosted_vllm", "/v1")):
        ranked = litellm.rerank(model=f"{provider}/ranker", query=query, documents=documents, top_n=2, api_key=KEY,
                                api_base=url + path).results
        findings.expect([(one["index"], one["relevance_score"]) for one in ranked] == found[:2],
                        f"litellm: rerank of {provider}'s form")
    given = older.rerank(model="ranker", query=query, documents=[{"text": text} for text in documents],
                         return_documents=True, max_chunks_per_doc=10).results
    findings.expect([one.document.text for one in given] == [one.document for one in whole.results],
                    "cohere: rerank of the older client, with documents and max_chunks_per_doc")


def generated_client(url, folder):
    """Makes the package of openapi-python-client for the server's /openapi.json; returns its name."""
    name = "attend_client"
    document = json.load(urllib.request.urlopen(f"{url}/openapi.json"))
    (folder / "openapi.json").write_text(json.dumps(document))
    (folder / "config.yaml").write_text(f"package_name_override: {name}\nproject_name_override: {name}\n"
                                        "post_hooks: []\n")
    run = subprocess.run([pathlib.Path(sys.executable).parent / "openapi-python-client", "generate", "--path",
                          "openapi.json", "--config", "config.yaml", "--overwrite", "--fail-on-warning"],
                         cwd=folder, capture_output=True, text=True)
    if run.returncode:
        raise SystemExit(run.stdout + run.stderr)
    sys.path.insert(0, str(folder / name))
    return name


def ask_as_generated_client(url, folder, findings, model):
    """Generated clients send the defaults of /openapi.json, and read answers by its schemas."""
    name = generated_client(url, folder)
    client = importlib.import_module(name).AuthenticatedClient(base_url=url, token=KEY)
    models = importlib.import_module(f"{name}.models")

    def ask(operation, **fields):
        route = importlib.import_module(f"{name}.api.default.{operation}")
        kind = getattr(models, "".join(part.title() for part in operation.split("_")) + "Request")
        body = kind(**fields)
        given = {key: value for key, value in body.to_dict().items()}
        plain = urllib.request.urlopen(urllib.request.Request(
            url + PATHS[operation], json.dumps(fields).encode(),
            {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}))
        found, other = route.sync(client=client, body=body), json.load(plain)
        found = json.loads(json.dumps([one.to_dict() for one in found] if isinstance(found, list)
                                      else found.to_dict()))
        for each in (found, other):
            if isinstance(each, dict):
                each.pop("id", None), each.pop("created", None)
        findings.expect(found == other, f"openapi-python-client: {operation}, which sends {sorted(given)}")

    if model == "text":
        ask("predict", texts=["the cat"], maximum_length=6)
        ask("completions", prompt="the cat", max_tokens=6)
    else:
        ask("predict", texts=["a dull plot"])
        ask("classify", texts=["a dull plot"])


PATHS = {"predict": "/v1/predict", "classify": "/v1/classify", "completions": "/v1/completions"}


def ask_as_hugging_face(url, findings, model):
    client = InferenceClient(token=KEY)
    # Users of this client give the server's address without a path.
    root = InferenceClient(url, token=KEY)
    if model == "text":
        text = root.text_generation("the cat", max_new_tokens=12)
        whole = openai.OpenAI(base_url=f"{url}/v1", api_key=KEY).completions.create(model=model, prompt="the cat",
                                                                                    max_tokens=12).choices[0].text
        findings.expect(text == whole, "huggingface_hub: text_generation")
        drawn = [root.text_generation("the cat", max_new_tokens=12, do_sample=True, temperature=1, top_k=9, top_p=0.9,
                                      seed=5, return_full_text=True, watermark=False) for _ in range(2)]
        findings.expect(drawn[0] == drawn[1] and drawn[0].startswith("the cat"),
                        "huggingface_hub: text_generation, drawn")
        refused_by_hugging_face(findings, "text_generation, a stream", "/v1/completions streams",
                                lambda: list(root.text_generation("the cat", stream=True)))
        refused_by_hugging_face(findings, "text_generation, details", "details",
                                lambda: root.text_generation("the cat", details=True))
        findings.expect((root.feature_extraction("my dog")
                         == client.feature_extraction("my dog", model=f"{url}/embed")).all(),
                        "huggingface_hub: feature_extraction at the server's address")
        close = client.sentence_similarity("my dog", ["my dog", "the cat"], model=f"{url}/similarity")
        findings.expect(len(close) == 2 and abs(close[0] - 1) < 1e-5 and close[1] < close[0],
                        "huggingface_hub: sentence_similarity")
        vectors = client.feature_extraction("my dog", model=f"{url}/embed", normalize=True)
        findings.expect(vectors.shape == (1, 16), "huggingface_hub: feature_extraction")
        try:
            client.feature_extraction("a" * 40, model=f"{url}/embed")
            findings.expect(False, "huggingface_hub: a text that is too long: no error")
        except HfHubHTTPError as error:
            findings.expect(error.response.status_code == 413,
                            "huggingface_hub: a text that is too long")
        refused_by_hugging_face(findings, "sentence_similarity at the server's address", "/similarity takes the fields",
                                lambda: root.sentence_similarity("my dog", ["my dog"]))
        refused_by_hugging_face(findings, "question_answering", "does not answer questions",
                                lambda: root.question_answering("my", "dog"))
    else:
        # For one text, such servers answer a list of labels. The client takes the first one.
        best = client.text_classification("a dull plot", model=f"{url}/predict")
        findings.expect(best.label in ("good", "bad") and best.score >= 0.5,
                        "huggingface_hub: text_classification")
        findings.expect(root.text_classification("a dull plot") == best,
                        "huggingface_hub: text_classification at the server's address")
        for what, words, call in (
                ("zero_shot_classification", "candidate_labels",
                 lambda: root.zero_shot_classification("a", ["b", "c"])),
                ("text_classification, function_to_apply", "function_to_apply",
                 lambda: root.text_classification("a", function_to_apply="softmax")),
                ("token_classification", "aggregation_strategy",
                 lambda: root.token_classification("a", aggregation_strategy="simple")),
                ("fill_mask", "targets", lambda: root.fill_mask("a [MASK]", targets=["b"]))):
            refused_by_hugging_face(findings, what, words, call)


def refused_by_hugging_face(findings, what, words, call):
    try:
        call()
    except (HfHubHTTPError, TextGenerationError) as error:
        findings.expect(words in str(error), f"huggingface_hub: refused: {what}: {str(error).splitlines()[-1][:100]}")
    else:
        findings.expect(False, f"huggingface_hub: refused: {what}: no error")


def ask_for_texts(url, findings, program, folder):
    """Asks a model that answers with other texts."""
    client = InferenceClient(url, token=KEY)
    for options, fields in (((), None), (("--beam", 3), {"num_beams": 3}),
                            (("--maximum-length", 2), {"max_new_tokens": 2}),
                            (("--seed", 4, "--temperature", 2), {"do_sample": True, "temperature": 2, "seed": 4})):
        (line,) = predicted(program, folder, "words", ["my"], *options)
        expected = json.loads(line)["predictions"][0]["target"]
        findings.expect(client.translation("my", generate_parameters=fields).translation_text == expected
                        and client.summarization("my", generate_parameters=fields).summary_text == expected,
                        f"huggingface_hub: translation and summarization, {fields}")
    (line,) = predicted(program, folder, "words", ["my"], "--maximum-length", 2)
    findings.expect(client.text_generation("my", max_new_tokens=2) == json.loads(line)["predictions"][0]["target"],
                    "huggingface_hub: text_generation of a model that answers with other texts")
    for fields, words in (({"no_repeat_ngram_size": 2}, "there are max_new_tokens"),
                          ({"early_stopping": True}, "early_stopping")):
        refused_by_hugging_face(findings, f"translation, {fields}", words,
                                lambda fields=fields: client.translation("my", generate_parameters=fields))
    refused_by_hugging_face(findings, "a language", "no languages",
                            lambda: client.translation("my", src_lang="en", tgt_lang="de"))


def ask_questions(url, findings, program, folder):
    client = InferenceClient(url, token=KEY)
    (line,) = predicted(program, folder, "reader", ["which animal?\ta cat ran"], "--nbest", 2)
    expected = [(one["target"], one["start"], one["end"]) for one in json.loads(line)["predictions"]]
    found = client.question_answering("which animal?", "a cat ran")
    several = client.question_answering("which animal?", "a cat ran", top_k=2)
    findings.expect((found.answer, found.start, found.end) == expected[0]
                    and [(one.answer, one.start, one.end) for one in several] == expected,
                    "huggingface_hub: question_answering")
    refused_by_hugging_face(findings, "question_answering, doc_stride", "doc_stride",
                            lambda: client.question_answering("which animal?", "a cat ran", doc_stride=3))


class Crowd:
    """Many concurrent requests of OpenAI's client, with its retries."""

    def __init__(self, url):
        self.client = openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=KEY, timeout=120)
        self.ended = []  # (time, class of the error or None)

    async def ask(self):
        """Requests 7,680 tokens of a larger model, so that the server needs more time than the client."""
        try:
            answer = await self.client.completions.create(model="large", prompt=["the cat"] * 32, max_tokens=240)
            error = None if len(answer.choices) == 32 else "half an answer"
        except openai.OpenAIError as failure:
            error = type(failure).__name__
        self.ended.append((time.monotonic(), error))

    async def in_turn(self, clients, seconds):
        """Answers per second if each client waits for its answer before the next request."""
        begin = time.monotonic()

        async def ask_on():
            while time.monotonic() < begin + seconds:
                await self.ask()

        await asyncio.gather(*(ask_on() for _ in range(clients)))
        return len(self.ended) / (time.monotonic() - begin)

    async def at_rate(self, rate, seconds):
        """Sends `rate` requests per second. Returns the number of answers within the time, and all errors."""
        begin, count, asked = time.monotonic(), len(self.ended), []
        while (now := time.monotonic()) < begin + seconds:
            while len(asked) < (now - begin) * rate:
                asked.append(asyncio.create_task(self.ask()))
            await asyncio.sleep(0.005)
        await asyncio.gather(*asked)
        ended = self.ended[count:]
        errors = [error for _, error in ended if error]
        return (sum(not error and end < begin + seconds for end, error in ended),
                {name: errors.count(name) for name in sorted(set(errors))})


async def overload(url, seconds, findings):
    crowd = Crowd(url)
    capacity = await crowd.in_turn(8, 10)
    findings.expect(all(error is None for _, error in crowd.ended),
                    f"openai: 8 clients in turn, {capacity:.1f} answers a second")
    good, errors = await crowd.at_rate(3 * capacity, seconds)
    findings.expect(good >= 0.9 * capacity * seconds,
                    f"openai: three times that for {seconds:g} s: {good / seconds / capacity:.2f} of it answered")
    findings.expect(set(errors) == {"RateLimitError"}, f"openai: errors of the clients: {errors}")


def draw_requests(url, folder, findings, examples):
    command = [str(pathlib.Path(sys.executable).parent / "schemathesis"), "run",
               f"{url}/openapi.json", "--header", f"Authorization: Bearer {KEY}", "--seed", "1",
               "--max-examples", str(examples), "--exclude-checks", ",".join(LEFT_OUT), "--no-color"]
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    findings.expect(run.returncode == 0, f"schemathesis: {examples} examples of each phase of a route")
    print(run.stdout if run.returncode else run.stdout[-1500:])


def main():
    parser = conform_report.arguments(__doc__.splitlines()[0])
    parser.add_argument("--examples", type=int, default=100)
    parser.add_argument("--overload", type=float, metavar="SECONDS", help="that alone")
    options = parser.parse_args()
    for name, version in VERSIONS.items():
        found = importlib.metadata.version(name)
        if found != version:
            raise SystemExit(f"{name} is {found}; this compares with {version}, so install that")
        print(f"{name} {found}")
    program, findings = pathlib.Path(options.program).resolve(), Findings()
    with tempfile.TemporaryDirectory() as path:
        folder = pathlib.Path(path)
        if options.overload:
            train(program, folder, "large")
            with Server(program, folder, ["large"], "--queue", "32") as server:
                asyncio.run(overload(server.url, options.overload, findings))
            return findings.finish()
        for model, call in (("words", ask_for_texts), ("reader", ask_questions)):
            train(program, folder, model)
            with Server(program, folder, [model]) as server:
                call(server.url, findings, program, folder)
        for model in ("text", "reviews", "ranker"):
            train(program, folder, model)
            with Server(program, folder, [model]) as server:
                if model == "text":
                    ask_as_openai(server.url, findings)
                    ask_as_litellm(server.url, findings)
                    ask_as_langchain(server.url, findings)
                    ask_as_cohere(server.url, findings)
                    ask_as_voyage(server.url, findings)
                if model == "ranker":
                    rank(server.url, findings)
                    continue
                ask_as_generated_client(server.url, folder, findings, model)
                ask_as_hugging_face(server.url, findings, model)
                draw_requests(server.url, folder, findings, options.examples)
    return findings.finish()


if __name__ == "__main__":
    sys.exit(main())
