"""Compares with `transformers` how files older than tokenizer.json split texts; for pretrained_check.py."""

import json
import random

import sentencepiece
import transformers

from pretrained_models import (ESM, PROTEIN_TOKENS, Draws, byte_pairs, draw_weights, drawn_texts, end_of_text_pairs,
                               protein_tokens)
from pretrained_texts import shown
from pretrained_translators import drawn_texts_of_scripts

MASK = {"content": "<mask>", "single_word": False, "lstrip": True, "rstrip": False, "normalized": False}
SIZES = {"hidden_size": 4, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 1,
         "max_position_embeddings": 514, "type_vocab_size": 1, "pad_token_id": 1}
GPT2_SIZES = {"n_embd": 4, "n_layer": 1, "n_head": 1, "n_positions": 1024, "bos_token_id": 0, "eos_token_id": 0}


def write_pairs(folder, tokenizer):
    tokenizer.backend_tokenizer.model.save(str(folder))


def write_pieces(folder):
    """Trains pieces with SentencePiece's default rules of normalisation."""
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(drawn_texts(300, 1)), model_prefix=str(folder / "sentencepiece.bpe"), vocab_size=70,
        hard_vocab_limit=False, minloglevel=2)
    (folder / "sentencepiece.bpe.model").chmod(0o644)


def write_typed_pieces(folder):
    """The same with ALBERT's special tokens among the pieces."""
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(drawn_texts(300, 1)), model_prefix=str(folder / "spiece"), vocab_size=75,
        hard_vocab_limit=False, minloglevel=2, pad_id=0, unk_id=1, bos_id=-1, eos_id=-1,
        control_symbols="[CLS],[SEP],[MASK]")
    (folder / "spiece.model").chmod(0o644)


def write_deberta_pieces(folder):
    """Pieces with the special tokens of released models."""
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(drawn_texts(300, 1)), model_prefix=str(folder / "spm"), vocab_size=70,
        hard_vocab_limit=False, minloglevel=2, pad_id=0, bos_id=1, eos_id=2, unk_id=3, pad_piece="[PAD]",
        bos_piece="[CLS]", eos_piece="[SEP]", unk_piece="[UNK]")
    (folder / "spm.model").chmod(0o644)


# Configuration, class, sizes, writer of the files, further files about tokens.
OLDER = [
    (transformers.GPT2Config, "GPT2LMHeadModel", GPT2_SIZES, lambda folder: write_pairs(folder, end_of_text_pairs()), {}),
    (transformers.RobertaConfig, "RobertaModel", SIZES, lambda folder: write_pairs(folder, byte_pairs()),
     {"special_tokens_map.json": {"mask_token": MASK}, "tokenizer_config.json": {"add_prefix_space": True}}),
    (transformers.XLMRobertaConfig, "XLMRobertaModel", SIZES, write_pieces,
     {"special_tokens_map.json": {"mask_token": MASK}}),
    (transformers.CamembertConfig, "CamembertModel", SIZES, write_pieces, {}),
    (transformers.AlbertConfig, "AlbertModel", {**SIZES, "embedding_size": 4, "pad_token_id": 0}, write_typed_pieces,
     {}),
]


def split_texts(program, out, architecture, texts):
    if architecture.endswith("LMHeadModel"):
        lines = program.lines("predict", out, texts, "--details", "--maximum-length", "1")
        return [line["source_tokens"] for line in lines]
    return [line["tokens"] for line in program.lines("embed", out, texts, "--tokens")]


def older_row(program, count, kind):
    make_config, architecture, sizes, write, settings = kind
    folder = program.folder / f"older-{architecture}"
    folder.mkdir()
    write(folder)
    config = make_config(**sizes, vocab_size=500)
    draw_weights(getattr(transformers, architecture)(config), 4).save_pretrained(folder)
    for name, document in settings.items():
        (folder / name).write_text(json.dumps(document))
    size = len(transformers.AutoTokenizer.from_pretrained(folder))
    (folder / "added_tokens.json").write_text(json.dumps({"<new>": size}))
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    out = program.folder / f"older-{architecture}-ours"
    program.run("import", folder, "--out", out)
    marks = ["<mask>", " <new>", "<new>", "<|endoftext|>"]
    texts = [text + marks[i % 8] if i % 8 < len(marks) else text
             for i, text in enumerate(drawn_texts_of_scripts(count))]
    wrong = 0
    for text, found in zip(texts, split_texts(program, out, architecture, texts), strict=True):
        named = tokenizer.convert_ids_to_tokens(tokenizer(text).input_ids)
        wrong += found != shown(tokenizer, named)
    return (config.model_type, type(tokenizer).__name__, f"texts of {count} with other tokens; older files", wrong)


def protein_row(program, count):
    """The same for vocab.txt of ESM-2, with texts of its tokens and of other characters."""
    tokenizer = protein_tokens()
    name, make_config, values, _ = ESM[1]
    model = draw_weights(transformers.EsmModel(make_config(vocab_size=len(tokenizer), **values)), 4)
    draw = random.Random(3 + Draws.shift)
    parts = [*PROTEIN_TOKENS, *"abj <>_1\t", *"éß猫", " ", "  "]
    texts = ["M" + "".join(draw.choices(parts, k=draw.randint(1, 30))) for _ in range(count)]
    wrong = 0
    for text, found in zip(texts, split_texts(program, program.imported(model, tokenizer), name + "Model", texts),
                           strict=True):
        wrong += found != tokenizer.convert_ids_to_tokens(tokenizer(text).input_ids)
    return ("esm", "EsmTokenizer", f"texts of {count} with other tokens; older files", wrong)


def deberta_row(program, count):
    """Compares spm.model with SentencePiece itself: transformers 5 replaces its rules of normalisation by NFC.

    The program applies the rules by graphemes, like tokenizers, so texts have no marks that join other characters.
    """
    folder = program.folder / "older-deberta"
    folder.mkdir()
    write_deberta_pieces(folder)
    config = transformers.DebertaV2Config(**SIZES | {"type_vocab_size": 0, "pad_token_id": 0}, vocab_size=500)
    draw_weights(transformers.DebertaV2Model(config), 4).save_pretrained(folder)
    out = program.folder / "older-deberta-ours"
    program.run("import", folder, "--out", out)
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(folder / "spm.model"))
    texts = [text.translate({0x200D: "", 0x301: ""}) for text in drawn_texts_of_scripts(count)]
    texts = [text for text in texts if text.strip()]
    wrong = 0
    for text, found in zip(texts, split_texts(program, out, "DebertaV2Model", texts), strict=True):
        named = ["[CLS]", *(pieces.id_to_piece(each) for each in pieces.encode(text)), "[SEP]"]
        wrong += found != named
    return ("deberta-v2", "DebertaV2Tokenizer", f"texts of {count} with other tokens; spm.model", wrong)


def older_rows(program, count):
    return [older_row(program, count, kind) for kind in OLDER] + [protein_row(program, count), deberta_row(program, count)]
