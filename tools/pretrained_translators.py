"""Tiny translators with random weights, compared after import with `transformers`; for pretrained_check.py."""

import base64
import copy
import io
import json
import math
import pathlib
import random
import unicodedata

import numpy
import sentencepiece
import torch
import transformers

from pretrained_models import Draws, draw_weights, drawn_texts
from pretrained_texts import difference, encoded

SIZES = {"d_model": 24, "encoder_layers": 2, "decoder_layers": 3, "encoder_attention_heads": 4,
         "decoder_attention_heads": 4, "encoder_ffn_dim": 40, "decoder_ffn_dim": 40,
         "max_position_embeddings": 128, "static_position_embeddings": True}
# Name and configuration of each family.
TRANSLATORS = [
    ("swish", {**SIZES, "activation_function": "swish", "scale_embedding": True}),
    ("relu, embeddings as they are", {**SIZES, "activation_function": "relu", "scale_embedding": False}),
]
LANGUAGES = (">>fra<<", ">>deu<<")
BAR = 1e-5


def trained_pieces(texts, size, kind="unigram", rules="nmt_nfkc"):
    out = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(texts), model_writer=out, vocab_size=size, model_type=kind, eos_id=0, unk_id=1,
        bos_id=-1, pad_id=-1, normalization_rule_name=rules, hard_vocab_limit=False, minloglevel=2)
    return out.getvalue()


def translating_tokenizer(folder, kind="unigram", rules="nmt_nfkc", size=75):
    """For sources in small letters and targets in capital letters; writes its files to the folder."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    sides = {"source.spm": drawn_texts(200, 1), "target.spm": [text.upper() for text in drawn_texts(200, 2)]}
    tokens = ["</s>", "<unk>"]
    for name, texts in sides.items():
        (folder / name).write_bytes(trained_pieces(texts, size, kind, rules))
        pieces = sentencepiece.SentencePieceProcessor(model_file=str(folder / name))
        tokens += [pieces.id_to_piece(i) for i in range(pieces.get_piece_size())]
    tokens = list(dict.fromkeys([*tokens, *LANGUAGES, "<pad>"]))
    (folder / "vocab.json").write_text(json.dumps({token: i for i, token in enumerate(tokens)}))
    return transformers.MarianTokenizer(*(str(folder / name) for name in (*sides, "vocab.json")))


def translating_config(tokenizer, **more):
    padding = tokenizer.pad_token_id
    return transformers.MarianConfig(vocab_size=len(tokenizer.encoder), pad_token_id=padding,
                                     decoder_start_token_id=padding, eos_token_id=tokenizer.eos_token_id,
                                     forced_eos_token_id=None, **more)


def drawn_translator(tokenizer, seed=4, **more):
    config = translating_config(tokenizer, **more)
    model = draw_weights(transformers.MarianMTModel(config), seed)
    model.generation_config.bad_words_ids = [[config.pad_token_id]]
    generator = torch.Generator().manual_seed(seed + 1 + Draws.shift)
    model.final_logits_bias.copy_(torch.randn(model.final_logits_bias.shape, generator=generator) / 2)
    return model


def translated(model, tokenizer, text, tokens, beam=1, **more):
    """The ids that `generate` returns, without the start."""
    with torch.no_grad():
        return model.generate(**encoded(tokenizer, text), max_new_tokens=tokens, do_sample=False, num_beams=beam,
                              **more)[0][1:]


def logs_of(model, tokenizer, text, answer):
    """The log probabilities of the ids of an answer."""
    start = torch.tensor([model.config.decoder_start_token_id])
    with torch.no_grad():
        logits = model(**encoded(tokenizer, text), decoder_input_ids=torch.cat([start, answer[:-1]])[None]).logits[0]
    return logits.log_softmax(-1).gather(1, answer[:, None])[:, 0]


def logs_differ(logs, model, tokenizer, text, answer, first=0):
    """Compares log probabilities of an answer from its token `first` with a model in float64.

    If a difference is larger than half of the bar, it counts beyond the condition of the model: the largest change of
    this token if the weights change by up to one unit in the last place of float32, in eight draws.
    """
    def computed(one):
        return logs_of(one, tokenizer, text, answer)[first:first + len(logs)]

    exact = computed(model)
    found = (torch.tensor(logs, dtype=torch.float64) - exact).abs()
    if found.max() <= BAR / 2:
        return found.max().item()
    generator = torch.Generator().manual_seed(1)
    condition = torch.zeros_like(exact)
    for _ in range(8):
        changed = copy.deepcopy(model)
        with torch.no_grad():
            for each in changed.parameters():
                each.mul_(1 + (2 * torch.rand(each.shape, generator=generator, dtype=each.dtype) - 1) * 2**-23)
        condition = torch.maximum(condition, (computed(changed) - exact).abs())
    return (found - condition).clamp_min(0).max().item()


def names_of(tokenizer, ids, of_source=False):
    """Names of ids in our vocabulary. A source may spell <unk>; an answer has it if nothing else fits."""
    named = [tokenizer.convert_ids_to_tokens(id) for id in ids]
    special = ("</s>", "<pad>", "<unk>") if of_source else ("</s>", "<pad>")
    return [f"[{name}]" if name in special else name for name in named]


def translations_differ(program, model, tokenizer, texts, beam=1, names=names_of, readable=str):
    """Compares log probabilities; the best answers must be equal. With beams, an answer that ended does not count if
    the limit of tokens cuts the one of `generate`, which ranks both; but most answers must be compared."""
    worst, compared, tokens = 0, 0, 12
    lines = program.lines("predict", program.imported(model, tokenizer), texts, "--details", "--beam", str(beam),
                          "--maximum-length", str(tokens), "--unknown", "keep")
    for text, line in zip(texts, lines, strict=True):
        answer = translated(model, tokenizer, text, tokens, beam)
        found = line["predictions"][0]
        said = [id for id in answer.tolist() if id != tokenizer.eos_token_id]
        if beam > 1 and found["complete"] and len(said) == tokens:
            continue
        compared += 1
        if found["tokens"] != names(tokenizer, said):
            return math.inf
        if readable(found["target"]) != readable(tokenizer.decode(said, skip_special_tokens=True)):
            return math.inf
        logs = found["log_probabilities"][:len(answer)]
        worst = max(worst, logs_differ(logs, model, tokenizer, text, answer))
    return worst if compared > len(texts) / 2 else math.inf


def references_differ(program, model, tokenizer, texts):
    return given_differ(program, program.imported(model, tokenizer), model, tokenizer, texts)


def given_differ(program, folder, model, tokenizer, texts):
    """Compares the mean of nats per token of given translations, split by the tokenizer of targets."""
    targets = [text.upper() for text in reversed(texts)]
    path = program.folder / "pairs.tsv"
    path.write_text("".join(f"{source}\t{target}\n" for source, target in zip(texts, targets)))
    ours = json.loads(program.run("evaluate", folder, "--data", path, "--json", "--metric", "perplexity"))
    nats = count = 0
    for source, target in zip(texts, targets):
        ids = torch.tensor(tokenizer(text_target=target).input_ids)
        nats -= logs_of(model, tokenizer, source, ids).sum().item()
        count += len(ids)
    return abs(ours["loss"] - nats / count)


def encodings_differ(program, model, tokenizer, texts):
    worst = 0
    for text, line in zip(texts, program.lines("embed", program.imported(model, tokenizer), texts, "--tokens"),
                          strict=True):
        with torch.no_grad():
            theirs = model.get_encoder()(**encoded(tokenizer, text)).last_hidden_state[0]
        worst = max(worst, difference(line["vectors"], theirs))
    return worst


def all_maps_differ(program, model, tokenizer, texts, certain=0):
    """Compares every head of every layer: encoder, decoder self-attention and cross-attention.

    An answer has `certain` tokens more than its limit.
    """
    worst, tokens = 0, 5
    out = program.imported(model, tokenizer)
    model.set_attn_implementation("eager")
    path = program.folder / "maps.npz"
    start = torch.tensor([model.config.decoder_start_token_id])
    for text in texts[:3]:
        answer = translated(model, tokenizer, text, tokens + certain)
        with torch.no_grad():
            found = model(**encoded(tokenizer, text), decoder_input_ids=torch.cat([start, answer[:-1]])[None],
                          output_attentions=True)
        program.run("explain", out, text, "--view", "model", "--maximum-length", tokens, "--unknown", "keep", "--out",
                    path)
        ours = numpy.load(path)
        theirs = {f"{part.format(number)}__head_{head}": weights
                  for part, layers in (("encoder_{}", found.encoder_attentions),
                                       ("decoder_{}", found.decoder_attentions),
                                       ("decoder_{}_over_the_source", found.cross_attentions))
                  for number, heads in enumerate(layers, 1) for head, weights in enumerate(heads[0], 1)}
        if set(ours.files) != set(theirs):
            return math.inf
        worst = max(worst, *(difference(ours[name], weights) for name, weights in theirs.items()))
    return worst


def drawn_texts_of_scripts(count):
    """Lines of many scripts, emoji and control characters, some with tokens of languages and special tokens."""
    draw = random.Random(7 + Draws.shift)
    marks = ["</s>", "<unk>", "<pad>", "<<", ">>", "<", *LANGUAGES, ">>zzz<<", "  ", "\u00a0", "\u200d", "\u0301",
             "\U0001F600"]
    ranges = [(0x20, 0x7E), (0xA1, 0x24F), (0x370, 0x3FF), (0x400, 0x45F), (0x5D0, 0x5EA), (0x620, 0x64A),
              (0x905, 0x939), (0xAC00, 0xD7A3), (0x3041, 0x30FF), (0x4E00, 0x4FFF), (0x1F300, 0x1F64F),
              (0xFB00, 0xFF5E)]
    texts = []
    while len(texts) < count:
        parts = [draw.choice(LANGUAGES)] if draw.random() < 0.2 else []
        for _ in range(draw.randint(1, 10)):
            kind = draw.random()
            if kind < 0.5:
                parts.append(draw.choice(drawn_texts(1, draw.randrange(1000), 3)))
            elif kind < 0.7:
                parts.append(draw.choice(marks))
            else:
                first, last = draw.choice(ranges)
                parts.append("".join(chr(draw.randint(first, last)) for _ in range(draw.randint(1, 5))))
        text = draw.choice(["", " "]).join(parts)
        if unicodedata.normalize("NFC", text).strip():
            texts.append(text)
    return texts


def tokens_differ(program, tokenizer, texts):
    """Number of texts with different tokens."""
    model = drawn_translator(tokenizer, **{**SIZES, "d_model": 4, "encoder_attention_heads": 1, "encoder_layers": 1,
                                           "decoder_attention_heads": 1, "decoder_layers": 1, "encoder_ffn_dim": 1,
                                           "decoder_ffn_dim": 1, "max_position_embeddings": 512})
    out = program.imported(model, tokenizer)
    wrong = 0
    for text, line in zip(texts, program.lines("predict", out, texts, "--details", "--maximum-length", "1"),
                          strict=True):
        ids, found = tokenizer(text).input_ids, line["source_tokens"]
        named = names_of(tokenizer, ids, of_source=True)
        expected = [name if name in line["unknown"] and id == tokenizer.unk_token_id else own
                    for id, name, own in zip(ids, found, named)]
        wrong += found != expected or len(found) != len(ids)
    return wrong


def translator_rows(program, family):
    name, values = family
    tokenizer = translating_tokenizer(program.folder / f"pieces{program.count}")
    texts = drawn_texts(20, 2, 12)
    texts[0] = f"{LANGUAGES[0]} {texts[0]}"
    rows = []

    def add(what, differ, *arguments, **more):
        model = drawn_translator(tokenizer, **{**values, **more})
        rows.append(("marian", "MarianMTModel", f"{what}; {name}", differ(program, model, tokenizer, texts,
                                                                            *arguments)))

    for count in range(1, values["encoder_layers"] + 1):
        add(f"vectors of the encoder's layer {count}", encodings_differ, encoder_layers=count)
    for count in range(1, values["decoder_layers"] + 1):
        add(f"translations, greedy, {count} layers of the decoder", translations_differ, decoder_layers=count)
    add("translations, beam 4", translations_differ, 4)
    add("nats a token of given translations", references_differ)
    add("attention maps of all layers and heads", all_maps_differ)
    return rows


def tokenizing_rows(program, count):
    rows = []
    for kind, rules in (("unigram", "nmt_nfkc"), ("bpe", "identity")):
        tokenizer = translating_tokenizer(program.folder / f"tokenizing-{kind}", kind, rules)
        rows.append(("marian", "MarianTokenizer", f"texts of {count} with other tokens; {kind}, {rules}",
                     tokens_differ(program, tokenizer, drawn_texts_of_scripts(count))))
    return rows
