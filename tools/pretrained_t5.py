"""Tiny models of T5's kind with random weights, compared after import with `transformers`; for pretrained_check.py."""

import json

import sentencepiece
import torch
import transformers

from pretrained_models import Draws, draw_weights, drawn_texts
from pretrained_texts import shown
from pretrained_translators import (all_maps_differ, drawn_texts_of_scripts, encodings_differ, references_differ,
                                    translations_differ)

SIZES = {"d_model": 24, "d_kv": 6, "d_ff": 40, "num_layers": 3, "num_decoder_layers": 3, "num_heads": 4,
         "relative_attention_num_buckets": 8, "relative_attention_max_distance": 12, "decoder_start_token_id": 0}
# Gated layers multiply rounding errors: with more units, float32 would be over the bar.
GATED = {**SIZES, "d_ff": 6, "num_layers": 2, "num_decoder_layers": 2}
SENTINELS = 100
# Name, configuration, model, settings, and whether the output has its own weights.
T5_FAMILIES = [
    ("relu, tied", transformers.T5Config, transformers.T5ForConditionalGeneration, SIZES, False),
    ("gated, output of its own, heads of depth 5", transformers.T5Config, transformers.T5ForConditionalGeneration,
     {**GATED, "d_kv": 5, "feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}, True),
    ("gated by silu, tied", transformers.T5Config, transformers.T5ForConditionalGeneration,
     {**GATED, "feed_forward_proj": "gated-silu", "layer_norm_epsilon": 1e-3}, False),
    ("gated, output of its own", transformers.MT5Config, transformers.MT5ForConditionalGeneration,
     {**GATED, "d_model": 20}, True),
]


def write_pieces(folder, rules="nmt_nfkc"):
    """Trains pieces with the first ids of T5."""
    folder.mkdir(parents=True, exist_ok=True)
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(drawn_texts(200, 1)), model_prefix=str(folder / "spiece"), vocab_size=75, pad_id=0,
        eos_id=1, unk_id=2, bos_id=-1, normalization_rule_name=rules, hard_vocab_limit=False, minloglevel=2)
    (folder / "spiece.model").chmod(0o644)
    (folder / "spiece.vocab").unlink()
    sentinels = [f"<extra_id_{i}>" for i in range(SENTINELS)]
    (folder / "tokenizer_config.json").write_text(json.dumps(
        {"tokenizer_class": "T5Tokenizer", "extra_ids": SENTINELS, "additional_special_tokens": sentinels}))


def sentinel_tokenizer(folder, rules="nmt_nfkc"):
    write_pieces(folder, rules)
    return transformers.AutoTokenizer.from_pretrained(folder)


def with_own_output(model, seed):
    """The model with drawn output weights; versions 5 of transformers always begin with tied ones."""
    generator = torch.Generator().manual_seed(seed + Draws.shift)
    drawn = torch.randn(model.lm_head.weight.shape, generator=generator) * 0.3
    model.lm_head.weight = torch.nn.Parameter(drawn)
    return model


def drawn_t5(tokenizer, family, seed=4, **more):
    _, make_config, make_model, values, is_untied = family
    config = make_config(**{"vocab_size": len(tokenizer) + 3, **values, **more})
    model = draw_weights(make_model(config), seed)
    return with_own_output(model, seed + 1) if is_untied else model


def answered(tokenizer, ids):
    """Names of ids in answers; rows after the tokenizer's tokens have no name there."""
    return [tokenizer.convert_ids_to_tokens(id) or f"<token:{id}>" for id in ids]


def t5_rows(program, family):
    name, _, make_model, values, _ = family
    tokenizer = sentinel_tokenizer(program.folder / f"spiece{program.count}")
    texts = drawn_texts(20, 2, 12)
    texts[0] = f"{texts[0]} <extra_id_0> cat <extra_id_1>"
    rows = []

    def add(what, differ, *arguments, **more):
        model = drawn_t5(tokenizer, family, **more)
        rows.append((model.config.model_type, make_model.__name__, f"{what}; {name}",
                     differ(program, model, tokenizer, texts, *arguments)))

    for count in range(1, values["num_layers"] + 1):
        add(f"vectors of the encoder's layer {count}", encodings_differ, num_layers=count)
    for count in range(1, values["num_decoder_layers"] + 1):
        add(f"answers, greedy, {count} layers of the decoder", translations_differ, 1, answered, num_decoder_layers=count)
    add("answers, beam 4", translations_differ, 4, answered)
    add("nats a token of given answers", references_differ)
    add("attention maps of all layers and heads", all_maps_differ)
    return rows + [encoder_row(program, family, tokenizer, texts)]


def encoder_row(program, family, tokenizer, texts):
    """The encoder without a decoder."""
    name, make_config, _, values, _ = family
    kind = make_config.__name__.replace("Config", "EncoderModel")
    model = drawn_t5(tokenizer, (name, make_config, getattr(transformers, kind), values, False))
    return model.config.model_type, kind, f"vectors of tokens; {name}", encodings_differ(program, model, tokenizer, texts)


def splits_differ(program, tokenizer, folder, texts):
    """Number of texts with different tokens, after import of a folder."""
    out = program.folder / f"split{program.count}"
    program.count += 1
    program.run("import", folder, "--out", out)
    wrong = 0
    for text, line in zip(texts, program.lines("embed", out, texts, "--tokens"), strict=True):
        named = tokenizer.convert_ids_to_tokens(tokenizer(text).input_ids)
        wrong += line["tokens"] != named
    return wrong


def t5_tokenizing_rows(program, count):
    """Texts split by spiece.model and by the tokenizer.json that transformers makes of it."""
    rows = []
    marks = ["<extra_id_0>", " <extra_id_99> ", "<extra_id_100>", "</s>", "<pad>"]
    texts = [text + marks[i % 10] if i % 10 < len(marks) else text
             for i, text in enumerate(drawn_texts_of_scripts(count))]
    tiny = {**SIZES, "d_model": 4, "d_kv": 2, "d_ff": 1, "num_layers": 1, "num_decoder_layers": 1, "num_heads": 2}
    for rules in ("nmt_nfkc", "identity"):
        folder = program.folder / f"spiece-{rules}"
        tokenizer = sentinel_tokenizer(folder, rules)
        drawn_t5(tokenizer, (*T5_FAMILIES[0][:3], tiny, False)).save_pretrained(folder)
        rows.append(("t5", "spiece.model", f"texts of {count} with other tokens; {rules}",
                     splits_differ(program, tokenizer, folder, texts)))
        (folder / "spiece.model").unlink()
        tokenizer.save_pretrained(folder)
        rows.append(("t5", "tokenizer.json", f"texts of {count} with other tokens; {rules}",
                     splits_differ(program, tokenizer, folder, texts)))
    return rows


def byte_rows(program, count):
    """ByT5: texts of many scripts, and answers. transformers leaves out bytes that are not UTF-8, and padding.

    It adds no end to a text that ends with </s>; such texts are not compared.
    """
    tokenizer = transformers.ByT5Tokenizer()
    model = drawn_t5(tokenizer, T5_FAMILIES[3], vocab_size=len(tokenizer))
    out = program.imported(model, tokenizer)
    spelled = transformers.PreTrainedTokenizerFast(tokenizer_file=str(out / "tokenizer.json"))

    def names(_, ids):
        return shown(spelled, spelled.convert_ids_to_tokens(ids))

    texts = drawn_texts_of_scripts(count)
    texts = [f"{text} <extra_id_{i}>." if i % 3 == 0 else text for i, text in enumerate(texts)]
    texts = [text for text in texts if not text.rstrip().endswith("</s>")]
    wrong = 0
    for text, line in zip(texts, program.lines("embed", out, texts, "--tokens"), strict=True):
        ids = tokenizer(text).input_ids
        wrong += spelled(text).input_ids != ids or line["tokens"] != names(None, ids)
    differ = translations_differ(program, model, tokenizer, drawn_texts(10, 2, 8), 1, names,
                                 lambda text: text.replace("\ufffd", "").replace("<pad>", ""))
    return [("mt5", "ByT5Tokenizer", f"texts of {count} with other tokens", wrong),
            ("mt5", "ByT5Tokenizer", "answers, greedy", differ)]
