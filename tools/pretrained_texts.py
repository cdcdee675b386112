"""Compares imported models with `transformers`: continuations of texts, losses and attention maps.

For pretrained_check.py.
"""

import json
import math

import numpy
import torch


# Bytes that byte-level tokenizers write as themselves; they write others as characters from U+0100 on.
PLAIN = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
SPELLED = {**{chr(byte): byte for byte in PLAIN},
           **{chr(0x100 + i): byte for i, byte in enumerate(sorted({*range(256)} - PLAIN))}}


def shown(tokenizer, tokens):
    """Tokens as the program shows them: byte-level tokens as all characters that share a byte with them."""
    backend = getattr(tokenizer, "backend_tokenizer", None)  # None for a tokenizer in Python
    if backend is None or "ByteLevel" not in str(backend.pre_tokenizer):
        return tokens
    added = tokenizer.get_added_vocab()
    parts = [token.encode() if token in added else bytes(SPELLED[character] for character in token) for token in tokens]
    starts = [0]
    for character in b"".join(parts).decode(errors="surrogateescape"):
        starts.append(starts[-1] + len(character.encode(errors="surrogateescape")))
    whole, texts, begin = b"".join(parts), [], 0
    for part in parts:
        end = begin + len(part)
        first = max(start for start in starts if start <= begin)
        last = min(start for start in starts if start >= end)
        texts.append(whole[first:last].decode(errors="replace"))
        begin = end
    return texts


def encoded(tokenizer, text):
    batch = tokenizer(text, return_tensors="pt")
    return {name: batch[name] for name in ("input_ids", "attention_mask")}


def difference(ours, theirs):
    ours, theirs = torch.as_tensor(ours, dtype=torch.float64), theirs.double()
    if ours.shape != theirs.shape:
        return math.inf
    return (ours - theirs).abs().max().item()


def continued(model, tokenizer, text, tokens, beam=1):
    """The ids that `generate` appends to a text."""
    batch = encoded(tokenizer, text)
    with torch.no_grad():
        ids = model.generate(**batch, max_new_tokens=tokens, do_sample=False, num_beams=beam,
                             pad_token_id=tokenizer.eos_token_id)[0]
    return ids[batch["input_ids"].shape[1]:]


def behind(model, tokenizer, text, answer):
    """The log probabilities of the ids of an answer after a text."""
    source = encoded(tokenizer, text)["input_ids"][0]
    with torch.no_grad():
        logits = model(input_ids=torch.cat([source, answer])[None]).logits[0]
    rows = logits[len(source) - 1:-1].log_softmax(-1)
    return rows.gather(1, answer[:, None])[:, 0]


def continuations_differ(program, model, tokenizer, texts, beam=1):
    return continued_differ(program, program.imported(model, tokenizer), model, tokenizer, texts, beam)


def continued_differ(program, folder, model, tokenizer, texts, beam=1):
    """Compares log probabilities of continuations by a model folder; the best ones must be equal."""
    worst, tokens = 0, 12
    lines = program.lines("predict", folder, texts, "--details", "--beam", str(beam), "--maximum-length", str(tokens))
    for text, line in zip(texts, lines):
        answer = continued(model, tokenizer, text, tokens, beam)
        found = line["predictions"][0]
        words = [tokenizer.convert_ids_to_tokens(id) or f"<token:{id}>"
                 for id in answer.tolist() if id != tokenizer.eos_token_id]
        if found["tokens"] != shown(tokenizer, words):
            return math.inf
        logs = found["log_probabilities"][:len(answer)]
        worst = max(worst, difference(logs, behind(model, tokenizer, text, answer)[:len(logs)]))
    return worst


def maps_differ(program, model, tokenizer, texts):
    """Compares the weights of every head and layer, over a text with a mask or over a text and its continuation."""
    worst, tokens = 0, 4
    out = program.imported(model, tokenizer)
    model.set_attn_implementation("eager")
    path = program.folder / "maps.npz"
    for text in texts[:2]:
        masked = f"{text} {tokenizer.mask_token}" if tokenizer.mask_token else text
        ids = encoded(tokenizer, masked)["input_ids"]
        if not tokenizer.mask_token:
            ids = torch.cat([ids, continued(model, tokenizer, text, tokens)[None, :-1]], 1)
        with torch.no_grad():
            layers = model(input_ids=ids, output_attentions=True).attentions
        for number, theirs in enumerate(layers, 1):
            program.run("explain", out, masked, "--view", "heads", "--layer", number, "--out", path,
                        *([] if tokenizer.mask_token else ["--maximum-length", tokens]))
            maps = numpy.load(path)
            if len(maps.files) != theirs.shape[1]:
                return math.inf
            for head, weights in enumerate(theirs[0], 1):
                name = next(name for name in maps.files if name.endswith(f"head_{head}"))
                worst = max(worst, difference(maps[name], weights))
    return worst


def contacts_differ(program, model, tokenizer, texts):
    """Compares the probabilities that residues of proteins touch."""
    worst = 0
    out = program.imported(model, tokenizer)
    model.set_attn_implementation("eager")
    path = program.folder / "contacts.npz"
    for text in texts:
        batch = encoded(tokenizer, text)
        with torch.no_grad():
            theirs = model.predict_contacts(batch["input_ids"], batch["attention_mask"])[0]
        program.run("explain", out, text, "--view", "contacts", "--out", path)
        worst = max(worst, difference(numpy.load(path)["contacts"], theirs))
    return worst


def texts_differ(program, model, tokenizer, texts):
    return losses_differ(program, program.imported(model, tokenizer), model, tokenizer, texts)


def losses_differ(program, folder, model, tokenizer, texts):
    """Compares the mean of nats per token of a text of several lines, which starts with the special token."""
    text = "\n".join(texts) + "\n\n  end\n"
    path = program.folder / "text.txt"
    path.write_text(text)
    ours = json.loads(program.run("evaluate", folder, "--data", path, "--json"))["window_loss"]
    ids = torch.tensor([tokenizer.eos_token_id] + tokenizer(text)["input_ids"])
    most = model.config.max_position_embeddings
    nats = 0
    for begin in range(1, len(ids), most - 1):
        window = ids[begin - 1:begin - 1 + most]  # the first token is only context
        nats -= behind_start(model, window).sum().item()
    return abs(ours - nats / (len(ids) - 1))


def behind_start(model, ids):
    with torch.no_grad():
        rows = model(input_ids=ids[None]).logits[0, :-1].log_softmax(-1)
    return rows.gather(1, ids[1:, None])[:, 0]
