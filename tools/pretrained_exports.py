"""Compares the answers of `transformers` with exported folders and with the first models; for pretrained_check.py.

Both compute in float64, so that any difference results from the written weights.
"""

import json
import math

import torch
import transformers
from PIL import Image

from pretrained_languages import LANGUAGE_FAMILIES, drawn_model, language_tokenizer, starts_answers, token_of
from pretrained_models import (ALBERT, CONTINUING, DEBERTA, ELECTRA, ESM, FAMILIES, IMAGE_FAMILIES, MPNET,
                               draw_weights, drawn_texts, sources_of)
from pretrained_t5 import T5_FAMILIES, answered, drawn_t5, sentinel_tokenizer
from pretrained_texts import continued_differ, difference, encoded, losses_differ, shown
from pretrained_translators import (TRANSLATORS, drawn_translator, given_differ, logs_differ, names_of, translated,
                                    translating_tokenizer)

LABELS = ("ForMaskedLM", "ForSequenceClassification", "ForTokenClassification")
# Family, suffixes of classes, further settings.
EXPORTS = [
    (FAMILIES[0], ("Model", *LABELS), {}),
    (FAMILIES[0], ("ForSequenceClassification",), {"num_labels": 1}),
    (FAMILIES[2], ("ForSequenceClassification",), {}),
    (FAMILIES[3], ("Model",), {}),
    (FAMILIES[4], ("ForSequenceClassification",), {}),
    (FAMILIES[5], ("Model", *LABELS), {}),
    (FAMILIES[6], ("Model", *LABELS), {}),
    (FAMILIES[6], ("ForSequenceClassification",), {"num_labels": 1}),
    (ESM[0], ("Model", *LABELS), {}),
    (ESM[1], ("Model", "ForMaskedLM"), {}),
    (ELECTRA[0], ("Model", "ForPreTraining", *LABELS), {}),
    (ELECTRA[1], ("ForPreTraining", *LABELS), {}),
    (ALBERT[0], ("Model", *LABELS), {}),
    (ALBERT[1], ("Model", "ForMaskedLM"), {}),
    (MPNET[0], ("Model", *LABELS), {}),
    (DEBERTA[0], ("Model", *LABELS), {}),
    (DEBERTA[1], ("Model", *LABELS), {}),
    (DEBERTA[2], ("Model", *LABELS), {}),
    (DEBERTA[2], ("ForSequenceClassification",), {"num_labels": 1}),
    (CONTINUING[0], ("LMHeadModel",), {}),
    (CONTINUING[1], ("LMHeadModel",), {}),
]


def answer_of(model, inputs):
    with torch.no_grad():
        output = model(**inputs)
    if "logits" not in output:
        return output.last_hidden_state[0]
    logits = output.logits[0]
    return logits if logits.numel() == 1 else logits.log_softmax(-1)


def exported(program, model, files):
    """The folder that `attend export` writes, its class, and the model as transformers loads it."""
    ours = program.imported(model, files)
    out = program.folder / f"written{program.count}"
    written = program.run("export", ours, "--out", out).split()[-1]
    return out, written, getattr(transformers, written).from_pretrained(out).eval().double()


def text_row(program, family, kind, more):
    name, make_config, values, make_tokenizer = family
    tokenizer = make_tokenizer()
    config = make_config(vocab_size=len(tokenizer) + 3, **values, **more)
    model = draw_weights(getattr(transformers, name + kind)(config), 4)
    out, written, again = exported(program, model, tokenizer)
    their_tokenizer = transformers.AutoTokenizer.from_pretrained(out)
    worst = max(difference(answer_of(again, encoded(their_tokenizer, text)),
                           answer_of(model, encoded(tokenizer, text))) for text in sources_of(name)(20, 2, 12))
    return config.model_type, name + kind, f"export as {written}", worst


def image_row(program, family, paths):
    name, make_config, values, make_processor, processing = family
    config = make_config(**values, num_labels=5)
    model = draw_weights(getattr(transformers, name + "ForImageClassification")(config), 4)
    processor = make_processor(**processing)
    out, written, again = exported(program, model, processor)
    their_processor = transformers.AutoImageProcessor.from_pretrained(out, backend="pil")
    worst = 0
    for path in paths:
        image = Image.open(path).convert("RGB")
        answers = [answer_of(one, reader(image, return_tensors="pt").to(torch.float64))
                   for one, reader in ((again, their_processor), (model, processor))]
        worst = max(worst, difference(*answers))
    return config.model_type, written, "export", worst


def translations_differ(models, tokenizers, texts):
    """Compares the answers of two models to given translations, each with its own tokenizer."""
    worst = 0
    for text in texts:
        target = tokenizers[0](text_target=text.upper(), return_tensors="pt")["input_ids"]
        answers = [answer_of(model, {**encoded(tokenizer, text), "decoder_input_ids": target})
                   for model, tokenizer in zip(models, tokenizers)]
        worst = max(worst, difference(*answers))
    return worst


def answers_differ(program, folder, out, texts, names, tokens=8):
    """Compares the greedy answers of a folder and the log probabilities of their tokens with `generate` of its
    export, with the languages and the search of its files."""
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(out).eval().double()
    tokenizer = transformers.AutoTokenizer.from_pretrained(out)
    first = model.generation_config.forced_bos_token_id
    certain = 0 if first is None else 1
    worst = 0
    lines = program.lines("predict", folder, texts, "--details", "--maximum-length", tokens, "--unknown", "keep")
    for text, line in zip(texts, lines, strict=True):
        answer = translated(model, tokenizer, text, tokens + certain)
        found = line["predictions"][0]
        said = [id for id in answer.tolist() if id != model.generation_config.eos_token_id]
        if found["tokens"] != names(tokenizer, said):
            return math.inf
        logs = found["log_probabilities"][certain:len(answer)]
        worst = max(worst, logs_differ(logs, model, tokenizer, text, answer, certain))
    return worst


def trained_export(program, folder, kind="pairs"):
    """The folder of an imported model after further training on pairs or a text, its export and the class of it."""
    texts = drawn_texts(40, 3, 12)
    data = program.folder / ("training.tsv" if kind == "pairs" else "training.txt")
    data.write_text("".join(f"{text}\t{text[::-1]}\n" if kind == "pairs" else f"{text}\n" for text in texts))
    tuned, out = (program.folder / f"{name}{program.count}-{kind}" for name in ("tuned", "tuned-written"))
    program.run("train", "--data", data, "--init", folder, "--out", tuned, "--set", "train.epochs=2", "--set",
                "train.learning_rate=0.003", "--set", "train.replicas=1")
    return tuned, out, program.run("export", tuned, "--out", out).split()[-1]


def exported_rows(program, name, model, tokenizer, names, longest=12):
    """Rows of the export of an imported translator: answers to given translations, and its own by `generate`."""
    texts = drawn_texts(20, 2, longest)
    out, written, again = exported(program, model, tokenizer)
    splitters = (transformers.AutoTokenizer.from_pretrained(out), tokenizer)
    folder = program.folder / f"ours{program.count}"
    differences = {"export": translations_differ((again, model), splitters, texts),
                   "answers of an export": answers_differ(program, folder, out, texts, names)}
    return [(model.config.model_type, written, f"{what}; {name}", worst) for what, worst in differences.items()]


def trained_row(program, name, model, names=names_of, longest=12):
    """A row of an export after training of the model of exported_rows()."""
    tuned, out, written = trained_export(program, program.folder / f"ours{program.count}")
    return (model.config.model_type, written, f"answers of an export after training; {name}",
            answers_differ(program, tuned, out, drawn_texts(20, 2, longest), names))


def given_row(program, name, model):
    """A row of given answers, for the export of trained_row()."""
    tuned, out = (program.folder / f"{each}{program.count}-pairs" for each in ("tuned", "tuned-written"))
    again = transformers.AutoModelForSeq2SeqLM.from_pretrained(out).eval().double()
    return (model.config.model_type, type(again).__name__, f"nats a token of given answers after training; {name}",
            given_differ(program, tuned, again, transformers.AutoTokenizer.from_pretrained(out),
                         drawn_texts(20, 2, 12)))


def t5_export_rows(program):
    rows = []
    for family in T5_FAMILIES:
        tokenizer = sentinel_tokenizer(program.folder / f"written-spiece{program.count}")
        model = drawn_t5(tokenizer, family)
        rows += [*exported_rows(program, family[0], model, tokenizer, answered),
                 trained_row(program, family[0], model, answered), given_row(program, family[0], model)]
    # The bytes of longer texts sum up more rounding of float32 than the bar.
    name, tokenizer, longest = "ByT5's tokens", transformers.ByT5Tokenizer(), 4
    model = drawn_t5(tokenizer, T5_FAMILIES[3], vocab_size=len(tokenizer))
    return rows + [*exported_rows(program, name, model, tokenizer, spelled_names, longest),
                   trained_row(program, name, model, spelled_names, longest), given_row(program, name, model)]


def spelled_names(tokenizer, ids):
    return shown(tokenizer, tokenizer.convert_ids_to_tokens(ids))


def continuing_export_rows(program):
    """Rows of exports of GPT-2 after training on pairs and on a text."""
    rows = []
    for name, make_config, values, make_tokenizer in CONTINUING:
        tokenizer = make_tokenizer()
        model = draw_weights(getattr(transformers, name + "LMHeadModel")(
            make_config(vocab_size=len(tokenizer) + 3, **values)), 4)
        folder, texts = program.imported(model, tokenizer), drawn_texts(20, 2, 12)
        for kind in ("pairs", "text"):
            tuned, out, written = trained_export(program, folder, kind)
            again = transformers.AutoModelForCausalLM.from_pretrained(out).eval().double()
            splitter = transformers.AutoTokenizer.from_pretrained(out)
            for what, differ in (("continuations", continued_differ), ("nats a token of a text", losses_differ)):
                rows.append((model.config.model_type, written, f"{what} of an export after training on {kind}",
                             differ(program, tuned, again, splitter, texts)))
    return rows


def translator_export_rows(program):
    rows = []
    for name, values in TRANSLATORS:
        tokenizer = translating_tokenizer(program.folder / f"written-pieces{program.count}")
        model = drawn_translator(tokenizer, **values)
        rows += [*exported_rows(program, name, model, tokenizer, names_of), trained_row(program, name, model)]
    for family in LANGUAGE_FAMILIES:
        tokenizer = language_tokenizer(program.folder / f"written-languages{program.count}", family)
        model = drawn_model(tokenizer, family)
        if not starts_answers(family):
            model.generation_config.forced_bos_token_id = token_of(tokenizer, family[6])
        rows += [*exported_rows(program, family[0], model, tokenizer, names_of), trained_row(program, family[0], model)]
    return rows


def export_rows(program, images):
    rows = [text_row(program, family, kind, more) for family, kinds, more in EXPORTS for kind in kinds]
    rows += [image_row(program, family, images) for family in IMAGE_FAMILIES]
    return rows + translator_export_rows(program) + t5_export_rows(program) + continuing_export_rows(program)
