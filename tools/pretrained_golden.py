"""Writes answers of transformers, for tests that run without it: pretrained_check.py --golden."""

import base64
import importlib.metadata
import io
import json
import math
import pathlib
import tempfile

import safetensors.torch
import torch
import transformers
from PIL import Image

from pretrained_models import (ALBERT, CONTINUING, DEBERTA, ELECTRA, ESM, FAMILIES, IMAGE_FAMILIES, MPNET,
                               is_norm_weight)
from pretrained_heads import POOLINGS
from pretrained_languages import LANGUAGE_FAMILIES, PIECES, SIZES as LANGUAGE_SIZES, language_tokenizer, token_of
from pretrained_pairs import with_types
from pretrained_readers import found_spans, reading_tokenizer
from pretrained_sentences import NORM_FILE, PROMPTS, encoder_files, vectors_of
from pretrained_t5 import SIZES as T5_SIZES, sentinel_tokenizer
from pretrained_texts import behind, continued, encoded
from pretrained_translators import TRANSLATORS, logs_of, translated, translating_config, translating_tokenizer


def formula(number, shape, is_norm):
    """The tensor with this index in the order of names; equal to the formula of tests/import/golden_test.cpp."""
    count = math.prod(shape)
    values = torch.tensor([((k * 37 + number * 101) % 199 - 99) / 150 for k in range(count)], dtype=torch.float64)
    return ((1 + values / 3) if is_norm else values).float().reshape(shape)


def with_formula(model, folder):
    """The model with weights by the formula, also written to the folder, and their shapes."""
    model.save_pretrained(folder)
    weights = folder / "model.safetensors"
    saved = safetensors.torch.load_file(weights)
    frequencies = {key: saved.pop(key) for key in list(saved) if key.endswith("inv_freq")}  # not part of a case
    drawn = {}
    for number, (key, tensor) in enumerate(sorted(saved.items())):
        drawn[key] = formula(number, list(tensor.shape), is_norm_weight(key))
    safetensors.torch.save_file(drawn | frequencies, weights, {"format": "pt"})
    shapes = {key: list(tensor.shape) for key, tensor in drawn.items()}
    return type(model).from_pretrained(folder).eval(), shapes


def with_digits(numbers):
    return [float(f"{number:.8g}") for number in numbers]


def golden_images(folder, family):
    """As golden_case(), for two images, which are encoded in the sources."""
    name, make_config, values, make_processor, processing = family
    small = {key: {40: 12, 3: 2, 4: 2}.get(value, value) for key, value in values.items()}
    small = {**small, "hidden_size": 8, "image_size": 6, "patch_size": 2}
    sizes = {key: {side: pixels // 4 for side, pixels in value.items()} for key, value in processing.items()
             if isinstance(value, dict)}
    processor = make_processor(**{**processing, **sizes})
    model, shapes = with_formula(getattr(transformers, name + "ForImageClassification")(make_config(**small)), folder)
    processor.save_pretrained(folder)
    sources, answers = [], []
    for height, width in ((6, 6), (11, 5)):
        pixels = torch.tensor([k * 53 % 256 for k in range(height * width * 3)], dtype=torch.uint8)
        image = Image.fromarray(pixels.view(height, width, 3).numpy())
        held = io.BytesIO()
        image.save(held, "PNG")
        sources.append("data:image/png;base64," + base64.b64encode(held.getvalue()).decode())
        with torch.no_grad():
            answers.append(with_digits(model(**processor(image, return_tensors="pt")).logits[0].log_softmax(-1)))
    files = {file: json.loads((folder / file).read_text()) for file in ("config.json", "preprocessor_config.json")}
    return {"name": name + "ForImageClassification", "what": "labels", "files": files, "tensors": shapes,
            "texts": sources, "answers": answers}


def golden_resizing():
    """Images by a formula, as Pillow resizes them."""
    cases = []
    for (height, width), (to_height, to_width) in (((7, 5), (3, 4)), ((3, 4), (8, 9)), ((40, 3), (6, 6))):
        pixels = torch.tensor([k * 53 % 256 for k in range(height * width * 3)], dtype=torch.uint8)
        image = Image.fromarray(pixels.view(height, width, 3).numpy())
        for way in ("bilinear", "bicubic"):
            made = image.resize((to_width, to_height), getattr(Image.Resampling, way.upper()))
            cases.append({"way": way, "from": [height, width], "to": [to_height, to_width],
                          "pixels": list(made.tobytes())})
    return cases


def golden_case(folder, family, kind, what):
    """A small model with weights by the formula, and its results for some texts."""
    name, make_config, values, make_tokenizer = family
    tokenizer = make_tokenizer()
    fewer = {24: 8, 40: 12, 3: 2, 4: 2, 128: 40}
    small = {key: fewer.get(value, value) if isinstance(value, int) else value for key, value in values.items()}
    config = make_config(vocab_size=len(tokenizer) + 3, **small)
    model, shapes = with_formula(getattr(transformers, name + kind)(config), folder)
    tokenizer.save_pretrained(folder)
    texts = ["the cat sees", f"Paris is the {tokenizer.mask_token or 'Grüße'} of France", "don't"]
    if name == "Esm":
        texts = ["MKTAYIAKQR", "MK<mask>AYI AJQ<mask>", "L-a.X"]
    answers, more = [], {}
    for text in texts:
        batch = encoded(tokenizer, text)
        with torch.no_grad():
            output = model(**batch)
        if what == "continuation":
            numbers = behind(model, tokenizer, text, continued(model, tokenizer, text, 5)).exp()
        elif what == "vector":
            numbers = output.last_hidden_state[0].mean(0)
        elif what == "labels":
            numbers = output.logits[0].log_softmax(-1)
        elif what == "replaced":
            numbers = output.logits[0].abs().sigmoid()
        else:
            ids = batch["input_ids"][0].tolist()
            places = [i for i, each in enumerate(ids) if each == tokenizer.mask_token_id]
            numbers = torch.cat([output.logits[0, i].softmax(-1).topk(3).values for i in places] or [torch.empty(0)])
        answers.append(with_digits(numbers))
        if hasattr(model, "predict_contacts"):
            model.set_attn_implementation("eager")
            with torch.no_grad():
                contacts = model.predict_contacts(batch["input_ids"], batch["attention_mask"])[0]
            more.setdefault("contacts", []).append([with_digits(row) for row in contacts.tolist()])
    files = {file: json.loads((folder / file).read_text())
             for file in ("config.json", "tokenizer.json", "tokenizer_config.json") if (folder / file).exists()}
    if name == "Esm":
        files["vocab.txt"] = (folder / "vocab.txt").read_text()
    return {"name": name + kind, "what": what, "files": files, "mask": tokenizer.mask_token,
            "tensors": shapes, "texts": texts, "answers": answers, **more}


def golden_sentences(folder):
    """Makes the folder of the first case a whole sentence encoder. Its vectors by the name of a prompt; "": usual."""
    width = 8 * len(POOLINGS)
    files = encoder_files(8, width - 5)
    shapes = {"norm.bias": [width], "norm.weight": [width]}
    for name, document in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(json.dumps(document))
    drawn = {key: formula(number, shape, is_norm_weight(key)) for number, (key, shape) in enumerate(shapes.items())}
    safetensors.torch.save_file(drawn, folder / NORM_FILE, {"format": "pt"})
    texts = ["the cat sees", "Paris is the capital of France"]
    answers = {name: [with_digits(vector) for vector in vectors_of(folder, texts, prompt_name=name or None).tolist()]
               for name in ("", *PROMPTS)}
    return {"files": files, "tensors": {NORM_FILE: shapes}, "texts": texts, "answers": answers}


def golden_pairs(folder, family, activation=None):
    """As golden_case(), for pairs of texts: labels, or the scores of a cross-encoder with this activation."""
    name, make_config, values, make_tokenizer = family
    tokenizer = with_types(make_tokenizer()) if name == "Bert" else make_tokenizer()
    tokenizer.model_max_length = 14
    small = {key: {24: 8, 40: 12, 3: 2, 4: 2, 128: 40}.get(value, value) for key, value in values.items()}
    config = make_config(vocab_size=len(tokenizer) + 3, **small, num_labels=1 if activation else 3)
    if activation:
        config.sentence_transformers = {"activation_fn": f"torch.nn.modules.{activation}"}
    kind = "ForSequenceClassification"
    model, shapes = with_formula(getattr(transformers, name + kind)(config), folder)
    tokenizer.save_pretrained(folder)
    texts = ["the cat sees\ta dog", "Paris is\tthe capital of France", "a b c d e f g h i j\tk",
             "the cat sees a bird and runs\ta dog sits on the old house slowly"]
    answers = []
    for text in texts:
        batch = tokenizer(*text.split("\t"), return_tensors="pt", truncation="longest_first")
        with torch.no_grad():
            logits = model(**batch).logits[0]
        answers.append(with_digits(logits.sigmoid() if activation else logits.log_softmax(-1)))
    files = {file: json.loads((folder / file).read_text())
             for file in ("config.json", "tokenizer.json", "tokenizer_config.json")}
    return {"name": name + kind, "what": "score" if activation else "labels", "files": files, "tensors": shapes,
            "texts": texts, "answers": answers}


def golden_answers(folder, family):
    """As golden_case(), for questions and passages: the place of the best answer, and log probabilities of five."""
    name, make_config, values, make_tokenizer = family
    tokenizer = reading_tokenizer(name, make_tokenizer)
    tokenizer.model_max_length = 20
    small = {key: {24: 8, 40: 12, 3: 2, 4: 2, 128: 40}.get(value, value) for key, value in values.items()}
    kind = "ForQuestionAnswering"
    model, shapes = with_formula(getattr(transformers, name + kind)(make_config(vocab_size=len(tokenizer) + 3, **small)),
                                 folder)
    tokenizer.save_pretrained(folder)
    texts = ["the cat sees\ta dog", "the bird is\tin Frañce or naïve",
             "the cat\t" + "a bird and a dog or the old house of Paris " * 3]
    answers, said = [], []
    for text in texts:
        question, passage = text.split("\t")
        spans = found_spans(model, tokenizer, question, passage, no_answer=True)[:5]
        answers.append(with_digits([*spans[0][1:], *(math.log(score) for score, _, _ in spans)]))
        said.append(passage[spans[0][1]:spans[0][2]])
    files = {file: json.loads((folder / file).read_text())
             for file in ("config.json", "tokenizer.json", "tokenizer_config.json")}
    return {"name": name + kind, "what": "spans", "files": files, "tensors": shapes, "texts": texts,
            "answers": answers, "said": said}


def five_tokens(model, tokenizer, texts):
    """Answers of up to five tokens: the probabilities of their tokens, and their texts."""
    answers, said = [], []
    for text in texts:
        ids = translated(model, tokenizer, text, 5)
        answers.append(with_digits(logs_of(model, tokenizer, text, ids).exp()))
        said.append(tokenizer.decode(ids, skip_special_tokens=True))
    return answers, said


def golden_translation(folder):
    """A small translator, its answers and the probability of each token."""
    tokenizer = translating_tokenizer(folder, rules="identity", size=50)
    # With these sizes the answers differ from each other.
    values = {key: {24: 10, 40: 12, 2: 1, 3: 2, 4: 2, 128: 40}.get(value, value)
              for key, value in TRANSLATORS[0][1].items()}
    model, shapes = with_formula(transformers.MarianMTModel(translating_config(tokenizer, **values)), folder)
    tokenizer.save_pretrained(folder)
    texts = ["the cat sees", ">>fra<< Paris is the Grüße </s> of France", "don't"]
    answers, said = five_tokens(model, tokenizer, texts)
    files = {file: json.loads((folder / file).read_text())
             for file in ("config.json", "vocab.json", "tokenizer_config.json")}
    files |= {file: base64.b64encode((folder / file).read_bytes()).decode() for file in ("source.spm", "target.spm")}
    return {"name": "MarianMTModel", "what": "translation", "files": files, "tensors": shapes, "texts": texts,
            "answers": answers, "said": said}


def golden_t5(folder):
    """A small T5, its answers and the probability of each token."""
    tokenizer = sentinel_tokenizer(folder, "identity")
    values = {**T5_SIZES, "d_model": 8, "d_kv": 3, "d_ff": 6, "num_layers": 2, "num_decoder_layers": 2, "num_heads": 2,
              "feed_forward_proj": "gated-gelu"}
    config = transformers.T5Config(vocab_size=len(tokenizer), **values)
    model, shapes = with_formula(transformers.T5ForConditionalGeneration(config), folder)
    texts = ["the cat sees", "Paris is <extra_id_0> Grüße </s> of France", "don't"]
    answers, said = five_tokens(model, tokenizer, texts)
    files = {file: json.loads((folder / file).read_text()) for file in ("config.json", "tokenizer_config.json")}
    files["spiece.model"] = base64.b64encode((folder / "spiece.model").read_bytes()).decode()
    return {"name": "T5ForConditionalGeneration", "what": "translation", "files": files, "tensors": shapes,
            "texts": texts, "answers": answers, "said": said}


def golden_t5_encoder(folder):
    """The encoder of a small T5."""
    family = ("T5", transformers.T5Config, {**T5_SIZES, "num_layers": 2, "feed_forward_proj": "gated-gelu"},
              lambda: sentinel_tokenizer(folder.with_name("pieces"), "identity"))
    return golden_case(folder, family, "EncoderModel", "vector")


def golden_encoders(folder):
    """ELECTRA, ALBERT and MPNet."""
    cases = []
    for family, kind, what in (
            (ELECTRA[0], "ForMaskedLM", "masked"), (ELECTRA[0], "ForSequenceClassification", "labels"),
            (ELECTRA[0], "ForPreTraining", "replaced"), (ALBERT[0], "ForMaskedLM", "masked"),
            (ALBERT[1], "Model", "vector"), (MPNET[0], "Model", "vector"), (MPNET[0], "ForMaskedLM", "masked")):
        cases.append(golden_case(folder / f"encoder{len(cases)}", family, kind, what))
    return cases


def golden_deberta(folder):
    return [golden_case(folder / "distances", DEBERTA[1], "Model", "vector"),
            golden_case(folder / "words", DEBERTA[0], "ForMaskedLM", "masked"),
            golden_pairs(folder / "deberta-pairs", DEBERTA[2])]


def golden_languages(folder, family):
    """A small translator between languages, its answers in one of them and the probability of each token."""
    _, make, make_config, make_model, _, _, target, _ = family
    tokenizer = language_tokenizer(folder, family, "identity")
    sizes = {**LANGUAGE_SIZES, "d_model": 12, "encoder_layers": 1, "decoder_layers": 2, "encoder_attention_heads": 2,
             "decoder_attention_heads": 2, "encoder_ffn_dim": 6, "decoder_ffn_dim": 6, "max_position_embeddings": 40}
    config = make_config(vocab_size=len(tokenizer) + 2, decoder_start_token_id=tokenizer.eos_token_id, **sizes)
    model, shapes = with_formula(make_model(config), folder)
    first = token_of(tokenizer, target)
    texts = ["the cat sees", "Paris is not </s> of France", "don't"]
    answers, said = [], []
    for text in texts:
        ids = translated(model, tokenizer, text, 6, forced_bos_token_id=first, forced_eos_token_id=None)
        logs = logs_of(model, tokenizer, text, ids)
        answers.append([1, *with_digits(logs.exp()[1:5])])
        said.append(tokenizer.decode(ids, skip_special_tokens=True))
    if make is not transformers.MBart50Tokenizer:  # its case has the pieces instead
        tokenizer.save_pretrained(folder)
    names = ("config.json", "tokenizer_config.json", "tokenizer.json")
    files = {file: json.loads((folder / file).read_text()) for file in names if (folder / file).exists()}
    if "tokenizer.json" not in files:
        files[PIECES] = base64.b64encode((folder / PIECES).read_bytes()).decode()
    files["generation_config.json"] = {"forced_bos_token_id": first, "decoder_start_token_id": tokenizer.eos_token_id,
                                       "eos_token_id": tokenizer.eos_token_id}
    return {"name": make_model.__name__, "what": "translation", "files": files, "tensors": shapes, "texts": texts,
            "answers": answers, "said": said}


def write_golden(path):
    cases = []
    with tempfile.TemporaryDirectory() as folder:
        for index, kind, what in ((0, "Model", "vector"), (0, "ForMaskedLM", "masked"),
                                  (2, "ForSequenceClassification", "labels"), (3, "ForMaskedLM", "masked"),
                                  (4, "Model", "vector"), (5, "Model", "vector"), (5, "ForMaskedLM", "masked"),
                                  (6, "ForSequenceClassification", "labels")):
            place = pathlib.Path(folder) / str(len(cases))
            cases.append(golden_case(place, FAMILIES[index], kind, what))
        cases.append(golden_case(pathlib.Path(folder) / str(len(cases)), CONTINUING[0], "LMHeadModel",
                                 "continuation"))
        cases.append(golden_translation(pathlib.Path(folder) / "translation"))
        for index in (0, 2):
            cases.append(golden_images(pathlib.Path(folder) / str(len(cases)), IMAGE_FAMILIES[index]))
        for index, kind, what in ((0, "ForMaskedLM", "masked"), (1, "Model", "vector"),
                                  (0, "ForSequenceClassification", "labels")):
            cases.append(golden_case(pathlib.Path(folder) / str(len(cases)), ESM[index], kind, what))
        cases.append(golden_pairs(pathlib.Path(folder) / "pairs", FAMILIES[0]))
        cases.append(golden_pairs(pathlib.Path(folder) / "scores", FAMILIES[3], "activation.Sigmoid"))
        cases.append(golden_t5(pathlib.Path(folder) / "t5"))
        cases.append(golden_t5_encoder(pathlib.Path(folder) / "t5-encoder"))
        for index in (0, 3):
            cases.append(golden_languages(pathlib.Path(folder) / f"languages{index}", LANGUAGE_FAMILIES[index]))
        cases += golden_encoders(pathlib.Path(folder))
        cases += golden_deberta(pathlib.Path(folder))
        for index in (0, 2, 3, 5):
            cases.append(golden_answers(pathlib.Path(folder) / str(len(cases)), FAMILIES[index]))
        sentences = golden_sentences(pathlib.Path(folder) / "0")
    versions = {name: importlib.metadata.version(name) for name in ("transformers", "tokenizers", "torch", "pillow",
                                                                         "sentencepiece", "sentence-transformers")}
    pathlib.Path(path).write_text(json.dumps({"versions": versions, "cases": cases, "sentences": sentences,
                                              "resizing": golden_resizing()}, ensure_ascii=False) + "\n")
