"""Makes model folders with the names and tensors of transformers: reduced sizes, random weights, a tokenizer.

conform_models.py imports these folders.
"""

import io
import json
import random
import re

import numpy as np
from safetensors.numpy import save_file

DEPTH, LAYERS, HEADS, INNER, POSITIONS = 16, 2, 2, 24, 64
WORDS = "the cat dog bird house sees runs and or green old quickly".split()
LETTERS = "abcdefghijklmnopqrstuvwxyz"


class Tensors:
    """Random tensors by name."""

    def __init__(self, seed):
        self.draw = np.random.default_rng(seed)
        self.all = {}

    def matrix(self, name, *shape):
        self.all[name] = self.draw.normal(scale=0.3, size=shape).astype("f4")

    def layer(self, name, out, into, bias=True):
        self.matrix(name + ".weight", out, into)
        if bias:
            self.matrix(name + ".bias", out)

    def norm(self, name, depth=DEPTH, bias=True):
        self.all[name + ".weight"] = (1 + 0.2 * self.draw.normal(size=depth)).astype("f4")
        if bias:
            self.matrix(name + ".bias", depth)

    def flip(self):
        return bool(self.draw.integers(2))


# ---- the encoders -------------------------------------------------------------------------------------------------

def bert_encoder(tensors, config, prefix):
    rows = (("word", config["vocab_size"]), ("position", config["max_position_embeddings"]),
            ("token_type", config.get("type_vocab_size", 2)))
    for part, count in rows:
        tensors.matrix(f"{prefix}embeddings.{part}_embeddings.weight", count, DEPTH)
    tensors.norm(prefix + "embeddings.LayerNorm")
    for layer in range(LAYERS):
        here = f"{prefix}encoder.layer.{layer}."
        for part in ("self.query", "self.key", "self.value", "output.dense"):
            tensors.layer(f"{here}attention.{part}", DEPTH, DEPTH)
        tensors.norm(here + "attention.output.LayerNorm")
        tensors.layer(here + "intermediate.dense", INNER, DEPTH)
        tensors.layer(here + "output.dense", DEPTH, INNER)
        tensors.norm(here + "output.LayerNorm")
    if tensors.flip():
        positions = np.arange(config["max_position_embeddings"], dtype=np.int64)[None]
        tensors.all[prefix + "embeddings.position_ids"] = positions


def older_norms(tensors):
    """Renames norms as in files converted from TensorFlow."""
    tensors.all = {re.sub(r"LayerNorm\.bias$", "LayerNorm.beta", re.sub(r"LayerNorm\.weight$", "LayerNorm.gamma", name)):
                   tensor for name, tensor in tensors.all.items()}


def bert(tensors, config, head, labels):
    prefix = "" if head == "Model" and tensors.flip() else "bert."
    bert_encoder(tensors, config, prefix)
    if head in ("Model", "ForSequenceClassification", "ForPreTraining") or tensors.flip():
        tensors.layer(prefix + "pooler.dense", DEPTH, DEPTH)
    if head in ("ForMaskedLM", "ForPreTraining"):
        tensors.layer("cls.predictions.transform.dense", DEPTH, DEPTH)
        tensors.norm("cls.predictions.transform.LayerNorm")
        tensors.matrix("cls.predictions.bias", config["vocab_size"])
        if head == "ForPreTraining" or tensors.flip():
            tensors.layer("cls.seq_relationship", 2, DEPTH)
    if labels:
        tensors.layer("classifier", labels, DEPTH)
    if head != "Model" and tensors.flip():
        older_norms(tensors)


def roberta(tensors, config, head, labels):
    prefix = "" if head == "Model" and tensors.flip() else "roberta."
    bert_encoder(tensors, config, prefix)
    if head == "Model" or tensors.flip():
        tensors.layer(prefix + "pooler.dense", DEPTH, DEPTH)
    if head == "ForMaskedLM":
        tensors.layer("lm_head.dense", DEPTH, DEPTH)
        tensors.norm("lm_head.layer_norm")
        tensors.matrix("lm_head.bias", config["vocab_size"])
        if tensors.flip():
            tensors.all["lm_head.decoder.weight"] = tensors.all[prefix + "embeddings.word_embeddings.weight"]
    if head == "ForSequenceClassification":
        tensors.layer("classifier.dense", DEPTH, DEPTH)
        tensors.layer("classifier.out_proj", labels, DEPTH)
    if head == "ForTokenClassification":
        tensors.layer("classifier", labels, DEPTH)


def distilbert(tensors, config, head, labels):
    prefix = "" if head == "Model" and tensors.flip() else "distilbert."
    tensors.matrix(prefix + "embeddings.word_embeddings.weight", config["vocab_size"], DEPTH)
    tensors.matrix(prefix + "embeddings.position_embeddings.weight", config["max_position_embeddings"], DEPTH)
    tensors.norm(prefix + "embeddings.LayerNorm")
    for layer in range(LAYERS):
        here = f"{prefix}transformer.layer.{layer}."
        for part in ("q_lin", "k_lin", "v_lin", "out_lin"):
            tensors.layer(f"{here}attention.{part}", DEPTH, DEPTH)
        tensors.norm(here + "sa_layer_norm")
        tensors.layer(here + "ffn.lin1", INNER, DEPTH)
        tensors.layer(here + "ffn.lin2", DEPTH, INNER)
        tensors.norm(here + "output_layer_norm")
    if head == "ForMaskedLM":
        tensors.layer("vocab_transform", DEPTH, DEPTH)
        tensors.norm("vocab_layer_norm")
        tensors.matrix("vocab_projector.bias", config["vocab_size"])
    if head == "ForSequenceClassification":
        tensors.layer("pre_classifier", DEPTH, DEPTH)
    if labels:
        tensors.layer("classifier", labels, DEPTH)


def modernbert(tensors, config, head, labels):
    prefix = "" if head == "Model" else "model."
    norm_bias = config.get("norm_bias", False)
    tensors.matrix(prefix + "embeddings.tok_embeddings.weight", config["vocab_size"], DEPTH)
    tensors.norm(prefix + "embeddings.norm", bias=norm_bias)
    for layer in range(LAYERS):
        here = f"{prefix}layers.{layer}."
        if layer > 0:
            tensors.norm(here + "attn_norm", bias=norm_bias)
        attention, inner = config.get("attention_bias", False), config.get("mlp_bias", False)
        tensors.layer(here + "attn.Wqkv", 3 * DEPTH, DEPTH, attention)
        tensors.layer(here + "attn.Wo", DEPTH, DEPTH, attention)
        tensors.norm(here + "mlp_norm", bias=norm_bias)
        tensors.layer(here + "mlp.Wi", 2 * INNER, DEPTH, inner)
        tensors.layer(here + "mlp.Wo", DEPTH, INNER, inner)
    tensors.norm(prefix + "final_norm", bias=norm_bias)
    if head == "Model":
        return
    tensors.layer("head.dense", DEPTH, DEPTH, config.get("classifier_bias", False))
    tensors.norm("head.norm", bias=norm_bias)
    if labels:
        tensors.layer("classifier", labels, DEPTH)
    else:
        tensors.matrix("decoder.bias", config["vocab_size"])


def vit(tensors, config, head, labels):
    prefix = "" if head == "Model" else "vit."
    patches = (config["image_size"] // config["patch_size"]) ** 2
    tensors.matrix(prefix + "embeddings.cls_token", 1, 1, DEPTH)
    tensors.matrix(prefix + "embeddings.position_embeddings", 1, patches + 1, DEPTH)
    side = config["patch_size"]
    tensors.matrix(prefix + "embeddings.patch_embeddings.projection.weight", DEPTH, config["num_channels"], side, side)
    tensors.matrix(prefix + "embeddings.patch_embeddings.projection.bias", DEPTH)
    for layer in range(LAYERS):
        here = f"{prefix}encoder.layer.{layer}."
        for part in ("attention.attention.query", "attention.attention.key", "attention.attention.value"):
            tensors.layer(here + part, DEPTH, DEPTH, config.get("qkv_bias", True))
        tensors.layer(here + "attention.output.dense", DEPTH, DEPTH)
        tensors.layer(here + "intermediate.dense", INNER, DEPTH)
        tensors.layer(here + "output.dense", DEPTH, INNER)
        tensors.norm(here + "layernorm_before")
        tensors.norm(here + "layernorm_after")
    tensors.norm(prefix + "layernorm")
    if head == "Model" or tensors.flip():
        tensors.layer(prefix + "pooler.dense", DEPTH, DEPTH)
    if labels:
        tensors.layer("classifier", labels, DEPTH)


# ---- the decoders -------------------------------------------------------------------------------------------------

def gpt2(tensors, config, head, labels):
    prefix = "transformer." if tensors.flip() else ""
    embedding = prefix + "wte.weight"
    tensors.matrix(embedding, config["vocab_size"], DEPTH)
    tensors.matrix(prefix + "wpe.weight", config["n_positions"], DEPTH)
    buffers = tensors.flip()
    inner = config.get("n_inner") or 4 * DEPTH
    for layer in range(LAYERS):
        here = f"{prefix}h.{layer}."
        tensors.norm(here + "ln_1")
        tensors.norm(here + "ln_2")
        for name, into, out in (("attn.c_attn", DEPTH, 3 * DEPTH), ("attn.c_proj", DEPTH, DEPTH), ("mlp.c_fc", DEPTH, inner),
                                ("mlp.c_proj", inner, DEPTH)):
            tensors.matrix(f"{here}{name}.weight", into, out)
            tensors.matrix(f"{here}{name}.bias", out)
        if buffers:
            places = config["n_positions"]
            tensors.all[here + "attn.bias"] = np.tril(np.ones((places, places), "u1"))[None, None]
            tensors.all[here + "attn.masked_bias"] = np.array(-1e4, "f4")
    tensors.norm(prefix + "ln_f")
    if prefix and tensors.flip():  # the name of a tied tensor that is saved once
        tensors.all["lm_head.weight"] = tensors.all.pop(embedding)


def marian(tensors, config, head, labels):
    tensors.matrix("model.shared.weight", config["vocab_size"], DEPTH)
    tensors.matrix("final_logits_bias", 1, config["vocab_size"])
    for stack in ("encoder", "decoder"):
        for layer in range(LAYERS):
            here = f"model.{stack}.layers.{layer}."
            for part in ("self_attn", *(["encoder_attn"] if stack == "decoder" else [])):
                for side in ("q_proj", "k_proj", "v_proj", "out_proj"):
                    tensors.layer(f"{here}{part}.{side}", DEPTH, DEPTH)
                tensors.norm(f"{here}{part}_layer_norm")
            tensors.layer(here + "fc1", INNER, DEPTH)
            tensors.layer(here + "fc2", DEPTH, INNER)
            tensors.norm(here + "final_layer_norm")
    if tensors.flip():
        for stack in ("encoder", "decoder"):
            tensors.all[f"model.{stack}.embed_positions.weight"] = sinusoids(config["max_position_embeddings"])
    if tensors.flip():
        tensors.all["lm_head.weight"] = tensors.all["model.shared.weight"].copy()
        if tensors.flip():
            del tensors.all["model.shared.weight"]


def sinusoids(positions):
    angles = np.arange(positions)[:, None] / 10000 ** (2 * (np.arange(DEPTH)[None] // 2) / DEPTH)
    return np.concatenate([np.sin(angles[:, 0::2]), np.cos(angles[:, 1::2])], 1).astype("f4")


BUILDERS = {"bert": bert, "distilbert": distilbert, "roberta": roberta, "xlm-roberta": roberta, "camembert": roberta,
            "modernbert": modernbert, "vit": vit, "gpt2": gpt2, "marian": marian}
NAMES = {"bert": "Bert", "distilbert": "DistilBert", "roberta": "Roberta", "xlm-roberta": "XLMRoberta",
         "camembert": "Camembert", "modernbert": "ModernBert", "vit": "ViT", "gpt2": "GPT2", "marian": "Marian"}


# ---- tokenizers ---------------------------------------------------------------------------------------------------

def special(content, number, lstrip=False):
    return {"id": number, "content": content, "single_word": False, "lstrip": lstrip, "rstrip": False,
            "normalized": False, "special": True}


def file_of(added, normalizer, pre_tokenizer, post_processor, decoder, model):
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": normalizer,
            "pre_tokenizer": pre_tokenizer, "post_processor": post_processor, "decoder": decoder, "model": model}


def template(first, last, ids):
    pieces = lambda token: {"SpecialToken": {"id": token, "type_id": 0}}
    return {"type": "TemplateProcessing",
            "single": [pieces(first), {"Sequence": {"id": "A", "type_id": 0}}, pieces(last)],
            "pair": [pieces(first), {"Sequence": {"id": "A", "type_id": 0}}, pieces(last),
                     {"Sequence": {"id": "B", "type_id": 1}}, {"SpecialToken": {"id": last, "type_id": 1}}],
            "special_tokens": {token: {"id": token, "ids": [ids[token]], "tokens": [token]} for token in (first, last)}}


def word_pieces(more, settings):
    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokens = [*specials, *WORDS, *LETTERS, *("##" + letter for letter in LETTERS)]
    tokens += [token for token in more if token not in tokens]
    ids = {token: i for i, token in enumerate(tokens)}
    normalizer = {"type": "BertNormalizer", "clean_text": True, "strip_accents": settings.get("strip_accents"),
                  "handle_chinese_chars": settings.get("tokenize_chinese_chars", True),
                  "lowercase": settings.get("do_lower_case", True)}
    model = {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
             "max_input_chars_per_word": 100, "vocab": ids}
    added = [special(token, ids[token]) for token in dict.fromkeys([*specials, *more])]
    return ids, file_of(added, normalizer, {"type": "BertPreTokenizer"}, template("[CLS]", "[SEP]", ids),
                        {"type": "WordPiece", "prefix": "##", "cleanup": True}, model)


def byte_pairs(first, more, settings, ends):
    tokens = [*first, *LETTERS, "Ġ", "Ġt", "Ġth", "Ġthe", "Ġc", "Ġca", "Ġcat"]
    tokens += [token for token in more if token not in tokens]
    ids = {token: i for i, token in enumerate(tokens)}
    merges = ["Ġ t", "Ġt h", "Ġth e", "Ġ c", "Ġc a", "Ġca t"]
    model = {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": "",
             "end_of_word_suffix": "", "fuse_unk": False, "vocab": ids, "merges": merges}
    split = {"type": "ByteLevel", "add_prefix_space": settings.get("add_prefix_space", False), "trim_offsets": True,
             "use_regex": True}
    added = [special(token, ids[token], token == "<mask>") for token in dict.fromkeys([*first, *more])]
    post = template(*ends, ids) if ends else {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": False,
                                               "use_regex": True}
    return ids, file_of(added, None, split, post, {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True,
                                                    "use_regex": True}, model)


def unigrams(first, more):
    pieces = [*("▁" + word for word in WORDS), "▁", *LETTERS]
    tokens = [*first, *pieces, "<mask>"]
    tokens += [token for token in more if token not in tokens]
    ids = {token: i for i, token in enumerate(tokens)}
    vocabulary = [[token, 0.0 if token in first or token in more else -3.0 - i / 10] for i, token in enumerate(tokens)]
    space = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}
    added = [special(token, ids[token], token == "<mask>") for token in dict.fromkeys([*first, "<mask>", *more])]
    return ids, file_of(added, None, space, template("<s>", "</s>", ids), space,
                        {"type": "Unigram", "unk_id": ids["<unk>"], "vocab": vocabulary, "byte_fallback": False})


def sentence_pieces(folder):
    """Writes the files of a translator's tokenizer; returns {token: id}."""
    import sentencepiece

    spm = io.BytesIO()
    lines = [" ".join(random.Random(i).choices(WORDS, k=6)) for i in range(60)]
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=spm, vocab_size=60, eos_id=0, unk_id=1, bos_id=-1, pad_id=-1,
        hard_vocab_limit=False, minloglevel=2)
    for side in ("source.spm", "target.spm"):
        (folder / side).write_bytes(spm.getvalue())
    processor = sentencepiece.SentencePieceProcessor(model_proto=spm.getvalue())
    tokens = [processor.id_to_piece(i) for i in range(processor.get_piece_size())] + ["<pad>"]
    ids = {token: i for i, token in enumerate(tokens)}
    write(folder / "vocab.json", ids)
    return ids


def added_names(documents):
    """Tokens that the original files add, in their order."""
    settings = documents.get("tokenizer_config.json", {})
    found = dict(sorted((int(number), token["content"])
                        for number, token in settings.get("added_tokens_decoder", {}).items()))
    names = [*found.values(), *documents.get("added_tokens.json", {})]
    return [name for name in names if name]


def make_tokenizer(kind, documents, folder):
    settings = documents.get("tokenizer_config.json", {})
    more = added_names(documents)
    by_sentence_piece = "XLMRoberta" in settings.get("tokenizer_class", "")
    if kind == "marian":
        return sentence_pieces(folder)
    if kind == "gpt2":
        rest = [name for name in more if name != "<|endoftext|>"]
        ids, file = byte_pairs([], ["<|endoftext|>", *rest], settings, None)
    elif kind == "camembert":
        ids, file = unigrams(["<s>NOTUSED", "<pad>", "</s>NOTUSED", "<unk>", "<unk>NOTUSED", "<s>", "</s>"], more)
    elif kind == "xlm-roberta" or by_sentence_piece:
        ids, file = unigrams(["<s>", "<pad>", "</s>", "<unk>"], more)
    elif kind == "roberta":
        ids, file = byte_pairs(["<s>", "<pad>", "</s>", "<unk>"], [*more, *([] if "<mask>" in more else ["<mask>"])],
                               settings, ("<s>", "</s>"))
    else:
        ids, file = word_pieces(more, settings)
    write(folder / "tokenizer.json", file)
    return ids


# ---- a model ------------------------------------------------------------------------------------------------------

def write(path, document):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document))


def read_documents(folder):
    return {str(path.relative_to(folder)): json.loads(path.read_text()) for path in sorted(folder.rglob("*.json"))}


SIZES = {"hidden_size": DEPTH, "dim": DEPTH, "n_embd": DEPTH, "d_model": DEPTH, "num_hidden_layers": LAYERS,
         "n_layers": LAYERS, "n_layer": LAYERS, "encoder_layers": LAYERS, "decoder_layers": LAYERS,
         "num_attention_heads": HEADS, "n_heads": HEADS, "n_head": HEADS, "encoder_attention_heads": HEADS,
         "decoder_attention_heads": HEADS, "intermediate_size": INNER, "hidden_dim": INNER, "encoder_ffn_dim": INNER,
         "decoder_ffn_dim": INNER, "n_positions": POSITIONS, "n_ctx": POSITIONS, "image_size": 8, "patch_size": 4,
         "pooler_output_size": DEPTH, "local_attention": 4}


def shrink(config, kind, tokens):
    """The configuration with small sizes and the token ids of a vocabulary of `tokens` tokens."""
    old = config.get("vocab_size", 0)
    small = {key: SIZES.get(key, value) if value is not None else None for key, value in config.items()}
    if "max_position_embeddings" in small:
        behind = kind in ("roberta", "xlm-roberta", "camembert")
        small["max_position_embeddings"] = POSITIONS + (2 if behind else 0)
    if "layer_types" in small:
        small["layer_types"] = small["layer_types"][:LAYERS]
    for key in ("vocab_size", "decoder_vocab_size"):
        if key in small and small[key] is not None:
            small[key] = tokens
    if kind == "gpt2":
        small.setdefault("eos_token_id", old - 1)  # the default, 50256, is beyond the tiny vocabulary
    return with_ids(small, old, tokens)


def with_ids(document, old, tokens):
    """Moves ids beyond the tiny vocabulary: the distance from the vocabulary's end is kept."""
    def moved(number):
        return max(0, tokens - (old - number)) if number >= tokens else number

    for key, value in document.items():
        if key.endswith("_token_id") and isinstance(value, int):
            document[key] = moved(value)
        elif key == "bad_words_ids" and value:
            document[key] = [[moved(number) for number in word] for word in value]
    return document


def shrink_others(documents, ids, old):
    """Sets ids and sizes of the tiny model in the other files."""
    tokens = len(ids)
    settings = documents.get("tokenizer_config.json", {})
    if "added_tokens_decoder" in settings:
        settings["added_tokens_decoder"] = {str(ids[token["content"]]): token for token in
                                            settings["added_tokens_decoder"].values() if token["content"] in ids}
    if "added_tokens.json" in documents:
        documents["added_tokens.json"] = {token: ids[token] for token in documents["added_tokens.json"] if token in ids}
    if "model_max_length" in settings:
        settings["model_max_length"] = min(settings["model_max_length"], POSITIONS)
    if "generation_config.json" in documents:
        with_ids(documents["generation_config.json"], old, tokens)
    for path, document in documents.items():
        if path.endswith("_Pooling/config.json"):
            for key in ("word_embedding_dimension", "embedding_dimension"):
                if key in document:
                    document[key] = DEPTH
        if path == "sentence_bert_config.json" and document.get("max_seq_length"):
            document["max_seq_length"] = POSITIONS
        if path == "preprocessor_config.json" and isinstance(document.get("size"), dict):
            document["size"] = {side: 8 for side in document["size"]}


def head_of(name, architecture):
    return architecture.removeprefix(NAMES[name])


def labels_of(config, head):
    if head in ("ForSequenceClassification", "ForTokenClassification", "ForImageClassification"):
        return len(config.get("id2label") or {}) or config.get("num_labels", 2)
    return 0


def kind_of(config):
    """The type by the name of the class, with any matching model_type, and the class."""
    for architecture in config.get("architectures") or []:
        for name in sorted(NAMES, key=lambda kind: -len(NAMES[kind])):
            if architecture.startswith(NAMES[name]) and config.get("model_type") in (None, name, "bart"):
                return name, architecture
    if config.get("model_type") in BUILDERS:
        return config["model_type"], NAMES[config["model_type"]] + "Model"
    return None, None


def make_folder(state, folder, seed):
    """Writes the reduced model; returns its type and class."""
    documents = read_documents(state)
    config = documents.pop("config.json", None)
    if config is None:
        return None, None
    kind, architecture = kind_of(config)
    # A file of 2019 has neither; the folder's name has the type.
    if kind is None and "roberta" in state.name and "model_type" not in config:
        kind, architecture = "roberta", "RobertaForMaskedLM"
    folder.mkdir(parents=True)
    if kind is None:
        write(folder / "config.json", config)
        save_file({"none": np.zeros(1, "f4")}, folder / "model.safetensors")
        return None, None
    ids = {} if kind == "vit" else make_tokenizer(kind, documents, folder)
    small = shrink(config, kind, len(ids))
    shrink_others(documents, ids, config.get("vocab_size", 0))
    if kind == "vit" and "preprocessor_config.json" not in documents:
        documents["preprocessor_config.json"] = {"size": 8}
    head = head_of(kind, architecture)
    tensors = Tensors(seed)
    defaults = {"num_channels": 3, **small}
    BUILDERS[kind](tensors, defaults, head, labels_of(config, head))
    for path, document in {"config.json": small, **documents}.items():
        write(folder / path, document)
    save_file(tensors.all, folder / "model.safetensors", metadata={"format": "pt"})
    return kind, architecture
