"""Compares the answers of `transformers` with exported folders and with the first models; for pretrained_check.py.

Both compute in float64, so that any difference results from the written weights.
"""

import torch
import transformers
from PIL import Image

from pretrained_models import (ALBERT, CONTINUING, DEBERTA, ELECTRA, ESM, FAMILIES, IMAGE_FAMILIES, MPNET,
                               draw_weights, drawn_texts, sources_of)
from pretrained_texts import difference, encoded
from pretrained_translators import TRANSLATORS, drawn_translator, translating_tokenizer

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
    out = program.folder / f"written{program.count}"
    written = program.run("export", program.imported(model, files), "--out", out).split()[-1]
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


def translation_row(program, family):
    name, values = family
    tokenizer = translating_tokenizer(program.folder / f"written-pieces{program.count}")
    model = drawn_translator(tokenizer, **values)
    out, written, again = exported(program, model, tokenizer)
    their_tokenizer = transformers.AutoTokenizer.from_pretrained(out)
    worst = 0
    for text in drawn_texts(20, 2, 12):
        target = tokenizer(text_target=text.upper(), return_tensors="pt")["input_ids"]
        answers = [answer_of(one, {**encoded(splitter, text), "decoder_input_ids": target})
                   for one, splitter in ((again, their_tokenizer), (model, tokenizer))]
        worst = max(worst, difference(*answers))
    return "marian", written, f"export; {name}", worst


def export_rows(program, images):
    rows = [text_row(program, family, kind, more) for family, kinds, more in EXPORTS for kind in kinds]
    rows += [image_row(program, family, images) for family in IMAGE_FAMILIES]
    return rows + [translation_row(program, family) for family in TRANSLATORS]
