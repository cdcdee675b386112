#!/usr/bin/env python3
"""Tests `attend serve` with LlamaIndex: whole and streamed texts of a language model, vectors, and a retriever.

A row of `./dev conform`. Answers must equal `attend predict`, vectors `attend embed`. LlamaIndex requires OpenAI's
client before version 3, so this tests the older client, too.
"""

import asyncio
import json
import math
import pathlib
import random
import subprocess
import sys
import tempfile

import openai
from llama_index.core import VectorStoreIndex
from llama_index.core.schema import TextNode
from llama_index.embeddings.openai_like import OpenAILikeEmbedding
from llama_index.llms.openai_like import OpenAILike

import conform_report
from serve_models import KEY, Server, predicted, train

LETTERS = "abcdeghmnorstuy "


def embedded(program, folder, texts):
    """Vectors of `attend embed --json`, scaled to length 1 as by the server."""
    run = subprocess.run([program, "embed", "text", "--json"], cwd=folder, check=True, capture_output=True,
                         input="".join(f"{text}\n" for text in texts), text=True)
    vectors = [json.loads(line)["vector"] for line in run.stdout.splitlines()]
    return [[number / math.hypot(*vector) for number in vector] for vector in vectors]


def continued(program, folder, prompts, *options):
    """Continuations by `attend predict`."""
    lines = predicted(program, folder, "text", prompts, "--maximum-length", 12, *options)
    return [json.loads(line)["predictions"][0]["target"] for line in lines]


def ask_for_texts(url, prompts, targets, drawn, report):
    """Compares completions. LlamaIndex's default temperature is 0.1."""
    model = OpenAILike(model="text", api_base=f"{url}/v1", api_key=KEY, is_chat_model=False, temperature=0,
                       max_tokens=12, context_window=32, max_retries=0)
    for prompt, target in zip(prompts, targets):
        report.compare(f"complete {prompt!r}", model.complete(prompt, formatted=True).text, target)
        *_, last = model.stream_complete(prompt, formatted=True)
        report.compare(f"stream_complete {prompt!r}", last.text, target)

    async def all_at_once():
        return await asyncio.gather(*(model.acomplete(prompt, formatted=True) for prompt in prompts))

    report.compare("acomplete, all at once", [answer.text for answer in asyncio.run(all_at_once())], targets)
    drawing = OpenAILike(model="text", api_base=f"{url}/v1", api_key=KEY, is_chat_model=False, temperature=1.5,
                         max_tokens=12, additional_kwargs={"seed": 7})
    report.compare("complete, drawn", drawing.complete(prompts[0], formatted=True).text, drawn)


def ask_for_vectors(url, texts, vectors, report):
    model = OpenAILikeEmbedding(model_name="text", api_base=f"{url}/v1", api_key=KEY, embed_batch_size=7)
    report.compare("get_text_embedding_batch", model.get_text_embedding_batch(texts), vectors, 1e-6)
    report.compare("get_query_embedding", model.get_query_embedding(texts[0]), vectors[0], 1e-6)
    found = asyncio.run(model.aget_text_embedding_batch(texts))
    report.compare("aget_text_embedding_batch", found, vectors, 1e-6)
    short = OpenAILikeEmbedding(model_name="text", api_base=f"{url}/v1", api_key=KEY, dimensions=4)
    report.compare("dimensions", len(short.get_text_embedding(texts[0])), 4)
    index = VectorStoreIndex([TextNode(text=text) for text in texts], embed_model=model)
    for text in texts[:5]:
        (best,) = index.as_retriever(similarity_top_k=1).retrieve(text)
        report.compare(f"retrieve {text!r}", best.text, text)


def ask_in_vain(url, report):
    model = OpenAILikeEmbedding(model_name="text", api_base=f"{url}/v1", api_key="wrong", max_retries=0)
    for name, kind, code, call in (
            ("another key", openai.AuthenticationError, "invalid_api_key", lambda: model.get_text_embedding("a")),
            ("a prompt that is too long", openai.BadRequestError, "context_length_exceeded",
             lambda: OpenAILike(model="text", api_base=f"{url}/v1", api_key=KEY, is_chat_model=False,
                                max_retries=0).complete("a" * 40)),
            ("another model", openai.NotFoundError, "model_not_found",
             lambda: OpenAILikeEmbedding(model_name="none", api_base=f"{url}/v1", api_key=KEY,
                                         max_retries=0).get_text_embedding("a"))):
        try:
            report.state(name, False, f"no error: {call()!r}")
        except kind as error:
            report.compare(name, error.code, code)


def main():
    options = conform_report.arguments(__doc__.splitlines()[0]).parse_args()
    program, report = pathlib.Path(options.program).resolve(), conform_report.Report()
    generator = random.Random(options.seed)
    texts = sorted({"".join(generator.choices(LETTERS, k=generator.randint(2, 15))).strip() or "a" for _ in range(40)})
    with tempfile.TemporaryDirectory() as path:
        folder = pathlib.Path(path)
        train(program, folder, "text")
        targets = continued(program, folder, texts[:8])
        (drawn,) = continued(program, folder, texts[:1], "--samples", 1, "--temperature", 1.5, "--seed", 7)
        with Server(program, folder, ["text"]) as server:
            ask_for_texts(server.url, texts[:8], targets, drawn, report)
            ask_for_vectors(server.url, texts, embedded(program, folder, texts), report)
            ask_in_vain(server.url, report)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
