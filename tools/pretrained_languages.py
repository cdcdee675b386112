"""Tiny translators between languages with random weights, compared after import with `transformers`."""

import json
import math
import shutil

import sentencepiece
import torch
import transformers

from pretrained_models import draw_weights, drawn_texts
from pretrained_t5 import splits_differ
from pretrained_texts import encoded
from pretrained_translators import (all_maps_differ, drawn_texts_of_scripts, encodings_differ, logs_differ, logs_of,
                                    names_of, translated, translations_differ)

SIZES = {"d_model": 24, "encoder_layers": 2, "decoder_layers": 3, "encoder_attention_heads": 4,
         "decoder_attention_heads": 4, "encoder_ffn_dim": 40, "decoder_ffn_dim": 40, "max_position_embeddings": 512}
PIECES = "sentencepiece.bpe.model"
NLLB = ["deu_Latn", "eng_Latn", "fra_Latn", "zho_Hans"]
# Name, tokenizer class, configuration, model, kind of pieces, source and target language, settings of the tokenizer.
LANGUAGE_FAMILIES = [
    ("NLLB", transformers.NllbTokenizer, transformers.M2M100Config, transformers.M2M100ForConditionalGeneration, "bpe",
     "eng_Latn", "fra_Latn", {"extra_special_tokens": NLLB}),
    ("NLLB, language last", transformers.NllbTokenizer, transformers.M2M100Config,
     transformers.M2M100ForConditionalGeneration, "bpe", "deu_Latn", "zho_Hans",
     {"extra_special_tokens": NLLB, "legacy_behaviour": True}),
    ("M2M100", transformers.M2M100Tokenizer, transformers.M2M100Config, transformers.M2M100ForConditionalGeneration,
     "bpe", "en", "ast", {}),
    ("mBART-50", transformers.MBart50Tokenizer, transformers.MBartConfig, transformers.MBartForConditionalGeneration,
     "unigram", "en_XX", "de_DE", {}),
    ("mBART", transformers.MBartTokenizer, transformers.MBartConfig, transformers.MBartForConditionalGeneration,
     "unigram", "en_XX", "de_DE", {}),
]


def starts_answers(family):
    """Whether answers begin with their language as the start token, and cannot be asked for in another language."""
    return family[1] is transformers.MBartTokenizer


def start_token(tokenizer, family):
    return token_of(tokenizer, family[6]) if starts_answers(family) else tokenizer.eos_token_id


def write_pieces(folder, kind, rules, size=75):
    """Trains pieces and, for ids in vocab.json, writes these."""
    folder.mkdir(parents=True, exist_ok=True)
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(drawn_texts(200, 1)), model_prefix=str(folder / "pieces"), vocab_size=size,
        model_type=kind, normalization_rule_name=rules, hard_vocab_limit=False, minloglevel=2)
    (folder / "pieces.model").rename(folder / PIECES)
    (folder / PIECES).chmod(0o644)
    (folder / "pieces.vocab").unlink()
    model = sentencepiece.SentencePieceProcessor(model_file=str(folder / PIECES))
    own = [model.id_to_piece(i) for i in range(3, model.get_piece_size())]
    return {token: i for i, token in enumerate(["<s>", "<pad>", "</s>", "<unk>", *own])}


def language_tokenizer(folder, family, rules="nmt_nfkc"):
    """A tokenizer with its files in the folder."""
    _, make, _, _, kind, source, _, settings = family
    ids = write_pieces(folder, kind, rules)
    if make is transformers.M2M100Tokenizer:
        (folder / "vocab.json").write_text(json.dumps(ids))
        languages = make(str(folder / "vocab.json"), str(folder / PIECES)).lang_token_to_id
        settings = {**settings, "additional_special_tokens": list(languages)}
    (folder / "tokenizer_config.json").write_text(json.dumps(
        {"tokenizer_class": make.__name__, "src_lang": source, **settings}))
    return make.from_pretrained(folder)


def drawn_model(tokenizer, family, seed=4, **more):
    _, _, make_config, make_model, _, _, _, _ = family
    # The length of M2M100's tokenizer does not count its languages.
    rows = max(len(tokenizer), getattr(tokenizer, "encoder_size", 0) + len(getattr(tokenizer, "lang_code_to_id", {})))
    config = make_config(vocab_size=rows, **{**SIZES, **more})
    if make_config is transformers.MBartConfig:
        config.decoder_start_token_id, config.forced_eos_token_id = start_token(tokenizer, family), None
    model = draw_weights(make_model(config), seed)
    # As in trained models: transformers gives answered padding no position.
    with torch.no_grad():
        model.get_input_embeddings().weight[tokenizer.pad_token_id] = 0
    return model


def token_of(tokenizer, language):
    find = getattr(tokenizer, "get_lang_token", None)
    return tokenizer.convert_tokens_to_ids(find(language) if find else language)


def languages_differ(program, model, tokenizer, texts, language, beam=1):
    """Compares log probabilities; the best answers must be equal. With beams, all answers have one length, because a
    finished answer keeps its place in our beam, and `generate` looks for another one."""
    worst, tokens = 0, 12
    least = tokens if beam > 1 else 0
    first = token_of(tokenizer, language)
    lines = program.lines("predict", program.imported(model, tokenizer), texts, "--details", "--to", language, "--beam",
                          str(beam), "--maximum-length", str(tokens), "--minimum-length", str(least), "--unknown",
                          "keep")
    for text, line in zip(texts, lines, strict=True):
        answer = translated(model, tokenizer, text, tokens + 1, beam, forced_bos_token_id=first,
                            min_new_tokens=least + 1 if least else None)
        found = line["predictions"][0]
        said = [id for id in answer.tolist() if id != tokenizer.eos_token_id]
        if found["tokens"] != names_of(tokenizer, said) or found["log_probabilities"][0] != 0:
            return math.inf
        if found["target"].strip() != tokenizer.decode(said, skip_special_tokens=True).strip():
            return math.inf
        logs = found["log_probabilities"][1:len(answer)]
        worst = max(worst, logs_differ(logs, model, tokenizer, text, answer, 1))
    return worst


def pairs_differ(program, model, tokenizer, texts, language=None):
    """Compares the mean of nats per token of given translations, with the token of their language if there is one."""
    targets = list(reversed(texts))
    path = program.folder / "pairs.tsv"
    path.write_text("".join(f"{source}\t{target}\n" for source, target in zip(texts, targets)))
    chosen = ["--to", language] if language else []
    ours = json.loads(program.run("evaluate", program.imported(model, tokenizer), *chosen, "--data", path,
                                  "--json", "--metric", "perplexity"))
    first = [token_of(tokenizer, language)] if language else []
    nats = count = 0
    for source, target in zip(texts, targets):
        ids = tokenizer(target, add_special_tokens=False).input_ids
        ids = torch.tensor([*first, *ids, tokenizer.eos_token_id])
        nats -= logs_of(model, tokenizer, source, ids).sum().item()
        count += len(ids)
    return abs(ours["loss"] - nats / count)


def language_rows(program, family):
    name, make, _, make_model, _, _, target, _ = family
    tokenizer = language_tokenizer(program.folder / f"languages{program.count}", family)
    texts = drawn_texts(20, 2, 12)
    rows = []

    def add(what, differ, *arguments, **more):
        model = drawn_model(tokenizer, family, **more)
        rows.append((model.config.model_type, make_model.__name__, f"{what}; {name}",
                     differ(program, model, tokenizer, texts, *arguments)))

    for count in range(1, SIZES["encoder_layers"] + 1):
        add(f"vectors of the encoder's layer {count}", encodings_differ, encoder_layers=count)
    alone = starts_answers(family)
    differ, chosen = (translations_differ, []) if alone else (languages_differ, [target])
    for count in range(1, SIZES["decoder_layers"] + 1):
        add(f"translations, greedy, {count} layers of the decoder", differ, *chosen, decoder_layers=count)
    add(f"translations{'' if alone else ' of one length'}, beam 4", differ, *chosen, 4)
    add("nats a token of given translations", pairs_differ, *chosen)
    model = drawn_model(tokenizer, family)
    if not alone:
        model.generation_config.forced_bos_token_id = token_of(tokenizer, target)
    rows.append((model.config.model_type, make_model.__name__, f"attention maps of all layers and heads; {name}",
                 all_maps_differ(program, model, tokenizer, texts, len(chosen))))
    return rows


def pieces_differ(program, tokenizer, folder, texts):
    """As splits_differ(), for pieces with ids in vocab.json; unknown pieces are shown as they are in the text."""
    out = program.folder / f"pieces-ours{program.count}"
    program.run("import", folder, "--out", out)
    wrong = 0
    for text, line in zip(texts, program.lines("embed", out, texts, "--tokens"), strict=True):
        ids, found = tokenizer(text).input_ids, line["tokens"]
        names = names_of(tokenizer, ids, of_source=True)
        known = [own == name or (name == "[<unk>]" and own not in tokenizer.encoder)
                 for own, name in zip(found, names)]
        wrong += len(ids) != len(found) or not all(known)
    return wrong


def language_tokenizing_rows(program, count):
    """Texts split by the files of each tokenizer, and by the tokenizer.json that transformers makes of them."""
    rows = []
    tiny = {"d_model": 4, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 1,
            "decoder_attention_heads": 1, "encoder_ffn_dim": 1, "decoder_ffn_dim": 1}
    for family in LANGUAGE_FAMILIES:
        name, make, *_ , target, _ = family
        folder = program.folder / f"tokenizing-{name.replace(' ', '-')}"
        # transformers 5.24 leaves out the rules of pieces for mBART; 4.57 applies them, as import does.
        tokenizer = language_tokenizer(folder, family, "identity" if starts_answers(family) else "nmt_nfkc")
        marks = [tokenizer.convert_ids_to_tokens(token_of(tokenizer, target)), "</s>", "<pad>", " <unk> "]
        texts = [text + marks[i % 8] if i % 8 < len(marks) else text
                 for i, text in enumerate(drawn_texts_of_scripts(count))]
        drawn_model(tokenizer, family, **tiny).save_pretrained(folder)
        kinds = [PIECES] if make is not transformers.NllbTokenizer else []
        if make is not transformers.M2M100Tokenizer:
            saved = folder.with_name(folder.name + "-saved")
            shutil.copytree(folder, saved)
            (saved / PIECES).unlink()
            tokenizer.save_pretrained(saved)
            rows.append((name, "tokenizer.json", f"texts of {count} with other tokens",
                         splits_differ(program, tokenizer, saved, texts)))
        differ = pieces_differ if make is transformers.M2M100Tokenizer else splits_differ
        for kind in kinds:
            rows.append((name, kind, f"texts of {count} with other tokens", differ(program, tokenizer, folder, texts)))
    return rows
