"""Compares imported models with other heads with `transformers`: tags, numbers, vectors after a dense layer.

For pretrained_check.py.
"""

import math

import safetensors.torch
import torch

from pretrained_texts import difference, encoded


def tags_differ(program, model, tokenizer, texts):
    """Compares the best label of every token, including special tokens, and its log probability."""
    worst = 0
    lines = program.lines("predict", program.imported(model, tokenizer), texts, "--details")
    for text, line in zip(texts, lines, strict=True):
        with torch.no_grad():
            theirs = model(**encoded(tokenizer, text)).logits[0].log_softmax(-1)
        found = line["predictions"][0]
        best, ids = theirs.max(-1)
        if found["tokens"] != [model.config.id2label[i] for i in ids.tolist()]:
            return math.inf
        worst = max(worst, difference(found["log_probabilities"], best))
    return worst


def replaced_differ(program, model, tokenizer, texts):
    """Compares for every token whether ELECTRA takes it as replaced, and the log probability."""
    worst = 0
    lines = program.lines("predict", program.imported(model, tokenizer), texts, "--details")
    for text, line in zip(texts, lines, strict=True):
        with torch.no_grad():
            scores = model(**encoded(tokenizer, text)).logits[0]
        found = line["predictions"][0]
        if found["tokens"] != ["replaced" if score > 0 else "original" for score in scores.tolist()]:
            return math.inf
        worst = max(worst, difference(found["log_probabilities"], torch.nn.functional.logsigmoid(scores.abs())))
    return worst


def numbers_differ(program, model, tokenizer, texts):
    """Relative to the largest number, since answers have seven digits."""
    lines = program.lines("predict", program.imported(model, tokenizer), texts)
    with torch.no_grad():
        theirs = torch.stack([model(**encoded(tokenizer, text)).logits[0, 0] for text in texts])
    ours = [float(line["predictions"][0]["target"]) for line in lines]
    return difference(ours, theirs) / max(1, theirs.abs().max().item())


def module_list(kinds):
    """The modules.json of a sentence encoder with modules of these folders and kinds."""
    return [{"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
            for i, (path, kind) in enumerate(kinds)]


def weighted_mean(vectors):
    weights = torch.arange(1, len(vectors) + 1).double()
    return weights @ vectors / weights.sum()


POOLINGS = {
    "lasttoken": lambda vectors: vectors[-1],
    "max": lambda vectors: vectors.max(0).values,
    "weightedmean": weighted_mean,
    "cls": lambda vectors: vectors[0],
    "mean_sqrt_len_tokens": lambda vectors: vectors.sum(0) / math.sqrt(len(vectors)),
    "mean": lambda vectors: vectors.mean(0),
}


def poolings_differ(program, model, tokenizer, texts):
    """Compares a sentence encoder that concatenates all poolings."""
    more = [("modules.json", module_list([("", "Transformer"), ("1_Pooling", "Pooling")])),
            ("1_Pooling/config.json", {"embedding_dimension": model.config.hidden_size,
                                       "pooling_mode": list(POOLINGS)})]
    worst = 0
    for text, line in zip(texts, program.lines("embed", program.imported(model, tokenizer, more), texts), strict=True):
        with torch.no_grad():
            vectors = model(**encoded(tokenizer, text)).last_hidden_state[0]
        worst = max(worst, difference(line["vector"], torch.cat([pool(vectors) for pool in POOLINGS.values()])))
    return worst


def dense_differ(program, model, tokenizer, texts):
    """Compares a sentence encoder with a dense layer after the mean of its vectors."""
    depth = model.config.hidden_size
    layer = torch.nn.Linear(depth, 10)
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.3)
    more = [("modules.json", module_list([("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Dense", "Dense")])),
            ("1_Pooling/config.json", {"word_embedding_dimension": depth, "pooling_mode_mean_tokens": True}),
            ("2_Dense/config.json", {"in_features": depth, "out_features": 10, "bias": True,
                                     "activation_function": "torch.nn.modules.activation.Tanh"})]
    weights = safetensors.torch.save({f"linear.{name}": tensor.detach() for name, tensor in layer.named_parameters()})
    out = program.imported(model, tokenizer, more, [("2_Dense/model.safetensors", weights)])
    worst = 0
    for text, line in zip(texts, program.lines("embed", out, texts), strict=True):
        with torch.no_grad():
            theirs = layer.double()(model(**encoded(tokenizer, text)).last_hidden_state[0].mean(0)).tanh()
        worst = max(worst, difference(line["vector"], theirs))
    return worst
