"""Compares whole sentence encoders with `sentence-transformers`. For pretrained_check.py and pretrained_golden.py."""

import safetensors.torch
import sentence_transformers
import torch

from pretrained_heads import POOLINGS, module_list
from pretrained_texts import difference

PROMPTS = {"query": "find the cat: ", "plain": ""}
NORM_FILE = "2_LayerNorm/model.safetensors"


def encoder_files(depth, kept):
    """Documents of all poolings without the tokens of prompts, a norm, length 1 and a cut."""
    poolings = list(POOLINGS)
    kinds = [("", "Transformer"), ("1_Pooling", "Pooling"), ("2_LayerNorm", "LayerNorm"), ("3_Dropout", "Dropout"),
             ("4_Normalize", "Normalize")]
    return {"modules.json": module_list(kinds),
            "1_Pooling/config.json": {"word_embedding_dimension": depth, "pooling_mode": poolings,
                                      "include_prompt": False},
            "2_LayerNorm/config.json": {"dimension": depth * len(poolings)},
            "3_Dropout/config.json": {"dropout": 0.2},
            "config_sentence_transformers.json": {"prompts": PROMPTS, "default_prompt_name": "query",
                                                  "truncate_dim": kept}}


def vectors_of(folder, texts, **prompt):
    """Vectors in float64 of the sentence encoder in a folder."""
    encoder = sentence_transformers.SentenceTransformer(str(folder), device="cpu").double()
    return torch.tensor(encoder.encode(texts, **prompt))


def sentences_differ(program, model, tokenizer, texts):
    """Compares vectors after the usual prompt, another and none; and the exported folder with the first, in float64."""
    depth = model.config.hidden_size
    width = depth * len(POOLINGS)
    generator = torch.Generator().manual_seed(6)
    weights = {f"norm.{name}": torch.randn(width, generator=generator) for name in ("weight", "bias")}
    files = encoder_files(depth, width - 5)
    out = program.imported(model, tokenizer, files.items(), [(NORM_FILE, safetensors.torch.save(weights))])
    theirs = program.folder / f"foreign{program.count}"
    worst = 0
    for options, prompt in (((), {}), (("--prompt-name", "plain"), {"prompt_name": "plain"}),
                            (("--prompt", "a dog "), {"prompt": "a dog "})):
        ours = [line["vector"] for line in program.lines("embed", out, texts, *options)]
        worst = max(worst, difference(ours, vectors_of(theirs, texts, **prompt)))
    written = program.folder / f"written{program.count}"
    program.run("export", out, "--out", written)
    return max(worst, difference(vectors_of(written, texts), vectors_of(theirs, texts)))
