"""Tiny models of each type with random weights, their tokenizers, and texts and images for them; for pretrained_check.py."""

import json
import pathlib
import random
import tempfile

import torch
import transformers
from PIL import Image
from tokenizers import (AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors,
                        trainers)

WORDS = ("the a cat dog bird house river sits runs sees and or not on under over quickly slowly green old "
         "Paris London capital France England of is was very Grüße naïve 東京 1984 3.14 don't we'll").split()


class Draws:
    """`shift` is added to the seed of all that is drawn; tests/import/golden.json is made with 0."""

    shift = 0


def drawn_texts(count, seed, longest=24):
    draw = random.Random(seed + Draws.shift)
    return [" ".join(draw.choices(WORDS, k=draw.randint(1, longest))) for _ in range(count)]


def word_pieces():
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.train_from_iterator(drawn_texts(200, 1), trainers.WordPieceTrainer(
        vocab_size=200, special_tokens=special, show_progress=False))
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(token, tokenizer.token_to_id(token)) for token in ("[CLS]", "[SEP]")])
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="[UNK]", pad_token="[PAD]", cls_token="[CLS]",
        sep_token="[SEP]", mask_token="[MASK]")


def with_roberta_marks(tokenizer, **tokens):
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>",
        special_tokens=[(token, tokenizer.token_to_id(token)) for token in ("<s>", "</s>")])
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", cls_token="<s>", sep_token="</s>", bos_token="<s>",
        eos_token="</s>", **{"unk_token": "<unk>", "mask_token": "<mask>", **tokens})


def padded_word_pieces():
    """Word pieces with MPNet's special tokens; padding has the id 1, and the mask takes the space before it."""
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.train_from_iterator(drawn_texts(200, 1), trainers.WordPieceTrainer(
        vocab_size=200, special_tokens=["<s>", "<pad>", "</s>", "<unk>", "<mask>", "[UNK]"], show_progress=False))
    tokenizer.decoder = decoders.WordPiece()
    return with_roberta_marks(tokenizer, unk_token="[UNK]", mask_token=AddedToken("<mask>", lstrip=True))


def byte_pairs():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.train_from_iterator(drawn_texts(200, 1), trainers.BpeTrainer(
        vocab_size=400, special_tokens=["<s>", "<pad>", "</s>", "<unk>", "<mask>"], show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    tokenizer.decoder = decoders.ByteLevel()
    return with_roberta_marks(tokenizer)


def unigram():
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.train_from_iterator(drawn_texts(200, 1), trainers.UnigramTrainer(
        vocab_size=120, special_tokens=["<s>", "<pad>", "</s>", "<unk>", "<mask>"], unk_token="<unk>",
        show_progress=False))
    tokenizer.decoder = decoders.Metaspace()
    return with_roberta_marks(tokenizer)


def typed_unigram():
    """Pieces with ALBERT's rules and special tokens."""
    special = ["<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.Sequence([normalizers.Replace("``", '"'), normalizers.NFKD(),
                                                 normalizers.StripAccents(), normalizers.Lowercase()])
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
    tokenizer.train_from_iterator(drawn_texts(200, 1), trainers.UnigramTrainer(
        vocab_size=120, special_tokens=special, unk_token="<unk>", show_progress=False))
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(token, tokenizer.token_to_id(token)) for token in ("[CLS]", "[SEP]")])
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="<unk>", pad_token="<pad>", cls_token="[CLS]", sep_token="[SEP]",
        mask_token="[MASK]")


def deberta_pieces():
    """Pieces with the order of special tokens of released models; the mask follows them."""
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.train_from_iterator(drawn_texts(200, 1), trainers.UnigramTrainer(
        vocab_size=120, special_tokens=["[PAD]", "[CLS]", "[SEP]", "[UNK]"], unk_token="[UNK]", show_progress=False))
    pieces = json.loads(tokenizer.to_str())["model"]["vocab"]
    return transformers.DebertaV2Tokenizer(vocab=[tuple(piece) for piece in pieces])


def end_of_text_pairs():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.train_from_iterator(drawn_texts(200, 1), trainers.BpeTrainer(
        vocab_size=400, special_tokens=["<|endoftext|>"], show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="<|endoftext|>", bos_token="<|endoftext|>",
        eos_token="<|endoftext|>")


# Tokens of ESM-2, in the order of its vocab.txt.
PROTEIN_TOKENS = ["<cls>", "<pad>", "<eos>", "<unk>", *"LAGVSERTIDPKQNFYMHWCXBUZO.-", "<null_1>", "<mask>"]


def protein_tokens():
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "vocab.txt"
        path.write_text("\n".join(PROTEIN_TOKENS))
        return transformers.EsmTokenizer(str(path))


def drawn_proteins(count, seed, longest=24):
    """Proteins with a space here and there, and with other letters than residues."""
    draw = random.Random(seed + Draws.shift)
    letters = 10 * "LAGVSERTIDPKQNFYMHWC" + "XBUZO.-Jjy" + 20 * " "
    return ["M" + "".join(draw.choices(letters, k=draw.randint(1, longest))) for _ in range(count)]


def sources_of(name):
    """The function that draws texts for models with this prefix."""
    return drawn_proteins if name == "Esm" else drawn_texts


SIZES = {"hidden_size": 24, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 40,
         "max_position_embeddings": 128}
DISTIL_SIZES = {"dim": 24, "n_layers": 3, "n_heads": 4, "hidden_dim": 40, "max_position_embeddings": 128}
# Gated layers multiply rounding errors: with more units, float32 would be over the bar.
MODERN_SIZES = {**SIZES, "intermediate_size": 16, "local_attention": 6, "pad_token_id": 0, "bos_token_id": 2, "cls_token_id": 2,
                "eos_token_id": 3, "sep_token_id": 3}
# Prefix of the classes, configuration, its settings, tokenizer.
FAMILIES = [
    ("Bert", transformers.BertConfig, SIZES, word_pieces),
    ("Bert", transformers.BertConfig, {**SIZES, "hidden_act": "gelu_new", "layer_norm_eps": 1e-3}, word_pieces),
    ("DistilBert", transformers.DistilBertConfig, DISTIL_SIZES, word_pieces),
    ("Roberta", transformers.RobertaConfig, {**SIZES, "type_vocab_size": 1, "pad_token_id": 1}, byte_pairs),
    ("XLMRoberta", transformers.XLMRobertaConfig, {**SIZES, "type_vocab_size": 1, "pad_token_id": 1}, unigram),
    ("ModernBert", transformers.ModernBertConfig, MODERN_SIZES, word_pieces),
    ("ModernBert", transformers.ModernBertConfig,
     {**MODERN_SIZES, "global_attn_every_n_layers": 2, "norm_bias": True, "attention_bias": True, "mlp_bias": True,
      "classifier_bias": True, "decoder_bias": False, "classifier_pooling": "mean", "hidden_activation": "gelu_new",
      "classifier_activation": "gelu_new", "norm_eps": 1e-3, "local_attention": 3,
      "rope_parameters": {"full_attention": {"rope_type": "default", "rope_theta": 500.0},
                          "sliding_attention": {"rope_type": "default", "rope_theta": 20.0}}}, byte_pairs),
]
# ESM-2 with the settings of released models, and with others.
ESM_SIZES = {**SIZES, "mask_token_id": 32, "pad_token_id": 1, "position_embedding_type": "rotary"}
ESM = [
    ("Esm", transformers.EsmConfig, {**ESM_SIZES, "token_dropout": True, "layer_norm_eps": 1e-5}, protein_tokens),
    ("Esm", transformers.EsmConfig, {**ESM_SIZES, "emb_layer_norm_before": True, "rope_theta": 500.0,
                                     "layer_norm_eps": 1e-3}, protein_tokens),
]
FAMILIES += ESM
# With a map after smaller vectors of tokens, and without one.
ELECTRA = [
    ("Electra", transformers.ElectraConfig, {**SIZES, "embedding_size": 12}, word_pieces),
    ("Electra", transformers.ElectraConfig, {**SIZES, "embedding_size": 24, "layer_norm_eps": 1e-3}, byte_pairs),
]
# As released models: all layers are one. Then two groups of two layers, and token vectors as deep as the layers.
ALBERT = [
    ("Albert", transformers.AlbertConfig, {**SIZES, "embedding_size": 12}, typed_unigram),
    ("Albert", transformers.AlbertConfig,
     {**SIZES, "embedding_size": 24, "num_hidden_layers": 3, "num_hidden_groups": 2, "inner_group_num": 2,
      "hidden_act": "relu", "layer_norm_eps": 1e-3}, word_pieces),
]
MPNET = [
    ("MPNet", transformers.MPNetConfig, SIZES, padded_word_pieces),
    ("MPNet", transformers.MPNetConfig, {**SIZES, "layer_norm_eps": 1e-3}, byte_pairs),
]
FAMILIES += ELECTRA + ALBERT + MPNET
# DeBERTa-v3; v2 with the convolution and the older head; all that released models lack.
DEBERTA_SIZES = {**SIZES, "relative_attention": True, "pos_att_type": "p2c|c2p", "position_buckets": 8,
                 "norm_rel_ebd": "layer_norm", "share_att_key": True, "position_biased_input": False}
DEBERTA = [
    ("DebertaV2", transformers.DebertaV2Config, {**DEBERTA_SIZES, "legacy": False}, deberta_pieces),
    ("DebertaV2", transformers.DebertaV2Config, {**DEBERTA_SIZES, "conv_kernel_size": 5, "conv_act": "gelu"},
     deberta_pieces),
    ("DebertaV2", transformers.DebertaV2Config,
     {**DEBERTA_SIZES, "share_att_key": False, "position_buckets": -1, "max_relative_positions": 6,
      "norm_rel_ebd": "none", "position_biased_input": True, "conv_kernel_size": 1, "pooler_hidden_act": "tanh",
      "hidden_act": "gelu_new", "layer_norm_eps": 1e-3}, deberta_pieces),
]
FAMILIES += DEBERTA
# The same for models that continue a text.
GPT2_SIZES = {"n_embd": 24, "n_layer": 3, "n_head": 4, "n_positions": 128, "bos_token_id": 0, "eos_token_id": 0}
CONTINUING = [
    ("GPT2", transformers.GPT2Config, GPT2_SIZES, end_of_text_pairs),
    ("GPT2", transformers.GPT2Config, {**GPT2_SIZES, "n_inner": 40, "activation_function": "relu",
                                       "layer_norm_epsilon": 1e-3}, end_of_text_pairs),
]


def is_norm_weight(name):
    return ("norm" in name.lower() or ".ln_" in name) and name.endswith("weight")

IMAGE_SIZES = {"hidden_size": 24, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 40,
               "image_size": 24, "patch_size": 4}
SQUARE, CUT = {"height": 24, "width": 24}, {"height": 29, "width": 33}
# The same for models of images, with the processor and its settings.
IMAGE_FAMILIES = [
    ("ViT", transformers.ViTConfig, IMAGE_SIZES, transformers.ViTImageProcessorPil,
     {"size": SQUARE, "image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]}),
    ("ViT", transformers.ViTConfig, {**IMAGE_SIZES, "patch_size": 8, "qkv_bias": False, "hidden_act": "gelu_new",
                                     "layer_norm_eps": 1e-3},
     transformers.ViTImageProcessorPil,
     {"size": SQUARE, "resample": 3, "rescale_factor": 1 / 127.5, "do_normalize": False}),
    ("DeiT", transformers.DeiTConfig, IMAGE_SIZES, transformers.DeiTImageProcessorPil,
     {"size": CUT, "crop_size": SQUARE}),
]


def drawn_images(folder):
    """Paths of images of noise and waves, smaller and larger than the model's input."""
    generator = torch.Generator().manual_seed(6 + Draws.shift)
    paths = []
    sizes = [(24, 24), (5, 7), (31, 24), (24, 90), (200, 113), (29, 33), (1, 1), (640, 480)]
    for number, (height, width) in enumerate(sizes):
        noise = torch.randint(0, 256, (height, width, 3), generator=generator)
        wave = (torch.arange(height)[:, None, None] * torch.arange(width)[None, :, None] / 50).sin() * 127 + 128
        pixels = noise if number % 2 == 0 else (wave * 3 + noise) / 4
        paths.append(folder / f"drawn{number}.png")
        Image.fromarray(pixels.to(torch.uint8).expand(height, width, 3).contiguous().numpy()).save(paths[-1])
    return paths


def draw_weights(model, seed):
    """Draws weights larger than initial ones, so that differences show; norms are near 1, sinusoids are kept."""
    generator = torch.Generator().manual_seed(seed + Draws.shift)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if not parameter.requires_grad:
                continue
            drawn = torch.randn(parameter.shape, generator=generator) * 0.3
            is_norm = is_norm_weight(name)
            parameter.copy_(1 + drawn / 3 if is_norm else drawn)
    model.tie_weights()
    # Released models of ESM-2 have frequencies that were rounded to float16.
    for name, buffer in model.named_buffers():
        if name.endswith("inv_freq") and getattr(model.config, "token_dropout", False):
            buffer.copy_(buffer.half())
    return model.eval()
