#!/usr/bin/env python3
"""Compares `attend explain` of imported models with Captum, SciPy, TransformerLens and published rules.

A row of `./dev conform`. Draws a BERT that labels texts and a GPT-2, each with a tokenizer and texts. Saves them with
transformers and imports them. Compares:

- occlusion with Captum's FeatureAblation, which omits words and keeps [CLS] and [SEP];
- gradients and integrated gradients with Captum's; the baseline is [UNK] between the special tokens;
- rollout and relevance with the rules of Abnar & Zuidema 2020 and Chefer et al. 2021 (relevance of the logit);
- figures of the evidence with SciPy's Kendall tau and with an enumeration of random orders;
- patterns of heads with TransformerLens's detector.
"""

import importlib.util
import itertools
import json
import pathlib
import subprocess
import sys
import tempfile
import types

import numpy
import torch
import transformers
from captum.attr import FeatureAblation, LayerGradientXActivation, LayerIntegratedGradients
from scipy.stats import kendalltau
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

from conform_report import Report, arguments

TEXTS = 6
SHARE = 1e-3  # tolerance relative to the largest score; the program computes in float32
LETTERS = "abcdefghijklmnoprstuvw"


def detector():
    """TransformerLens's head_detector.py, loaded without the package, which has many dependencies."""
    package = types.ModuleType("transformer_lens")
    package.__path__ = importlib.util.find_spec("transformer_lens").submodule_search_locations
    sys.modules["transformer_lens"] = package
    for name, parts in (("ActivationCache", {"ActivationCache": None}),
                        ("model_protocol", {"TransformerLensModel": None}),
                        ("utilities", {"is_square": lambda x: x.ndim == 2 and x.shape[0] == x.shape[1],
                                       "is_lower_triangular": lambda x: x.equal(x.tril())})):
        module = sys.modules[f"transformer_lens.{name}"] = types.ModuleType(name)
        vars(module).update(parts)
    return importlib.import_module("transformer_lens.head_detector")


class Program:
    """`attend explain` of one model."""

    def __init__(self, program, folder):
        self.program, self.folder = program, folder

    def run(self, *arguments):
        run = subprocess.run([self.program, *map(str, arguments)], capture_output=True, text=True, check=False)
        if run.returncode:
            raise SystemExit(f"attend {' '.join(map(str, arguments))}: {run.stderr}")
        return run.stdout

    def maps(self, text, *options):
        return [json.loads(line) for line in self.run("explain", self.folder, text, "--json", *options).splitlines()]

    def map(self, text, method, *options):
        record, = self.maps(text, "--method", method, *options)
        return record


def words(draw, count):
    return ["".join(draw.choice(list(LETTERS), size=draw.integers(2, 6))) for _ in range(count)]


def saved(model, tokenizer, folder, **special):
    for weight in model.parameters():
        torch.nn.init.normal_(weight, 1 if weight.dim() == 1 else 0, 0.1 if weight.dim() == 1 else 0.4)
    model.eval().save_pretrained(folder)
    transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special).save_pretrained(folder)
    return model


def draw_bert(draw, folder):
    known = sorted(set(words(draw, 40)))
    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer = Tokenizer(models.WordPiece({token: i for i, token in enumerate(specials + known)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    tokenizer.add_special_tokens(specials)
    config = transformers.BertConfig(
        vocab_size=len(specials) + len(known), hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=24, max_position_embeddings=32, num_labels=3, attn_implementation="eager")
    return saved(transformers.BertForSequenceClassification(config), tokenizer, folder, unk_token="[UNK]",
                 cls_token="[CLS]", sep_token="[SEP]", pad_token="[PAD]", mask_token="[MASK]"), known


def draw_gpt2(draw, folder):
    known = words(draw, 60)
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator([" ".join(known)], trainers.BpeTrainer(
        vocab_size=330, special_tokens=["<|endoftext|>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False))
    config = transformers.GPT2Config(
        vocab_size=tokenizer.get_vocab_size(), n_positions=128, n_embd=16, n_layer=2, n_head=2, bos_token_id=0,
        eos_token_id=0, attn_implementation="eager")
    end = "<|endoftext|>"
    return saved(transformers.GPT2LMHeadModel(config), tokenizer, folder, unk_token=end, bos_token=end,
                 eos_token=end), known


def compare_scores(report, name, ours, theirs):
    theirs = torch.as_tensor(theirs).double().tolist()
    report.compare(name, ours, theirs, SHARE * max(map(abs, theirs)) + 1e-6)


class Texts:
    """One text for the reference model. `ids` are the tokens that the program reads; the words are at `inside`. `row`
    computes the logits at the position of the answer, [batch, tokens]."""

    def __init__(self, embedding, ids, inside, blank, row, target):
        self.embedding, self.ids, self.inside, self.row, self.target = embedding, ids, list(inside), row, target
        self.blank = list(ids)
        for place in self.inside:
            self.blank[place] = blank

    def log_probability(self, ids):
        return self.row(ids).log_softmax(-1)[:, self.target]

    def occlusion(self):
        def without(mask):
            kept = [i for i, keep in enumerate(mask[0].tolist()) if keep or i not in self.inside]
            return self.log_probability(torch.tensor([[self.ids[i] for i in kept]]))
        with torch.no_grad():
            scores = FeatureAblation(without).attribute(torch.ones(1, len(self.ids)), baselines=0)[0]
        return [score if i in self.inside else 0.0 for i, score in enumerate(scores.tolist())]

    def gradient_x_input(self):
        return LayerGradientXActivation(self.log_probability, self.embedding).attribute(
            torch.tensor([self.ids])).sum(-1)[0].detach()

    def integrated_gradients(self):
        return LayerIntegratedGradients(self.log_probability, self.embedding).attribute(
            torch.tensor([self.ids]), torch.tensor([self.blank]), n_steps=64,
            method="gausslegendre").sum(-1)[0].detach()

    def probability_without(self, left_out):
        ids = [token for i, token in enumerate(self.ids) if i not in left_out]
        with torch.no_grad():
            return self.log_probability(torch.tensor([ids])).exp().item()


def compare_methods(report, name, ours, text, asked, options=(), place=0):
    for method in ("occlusion", "gradient_x_input", "integrated_gradients"):
        scores = ours.map(text, method, *options)["scores"][place]
        compare_scores(report, f"{name}, {method}", scores, getattr(asked, method)())


def maps_of(model, ids):
    """Outputs of the reference model, and its attention maps [batch, heads, rows, keys] per layer."""
    outputs = model(torch.tensor([ids]), output_attentions=True)
    return outputs, outputs.attentions


def relevance(model, ids, row, target):
    """Relevance for the logit by Chefer et al. 2021, eq. 5 and 6, without the identity."""
    outputs, attentions = maps_of(model, ids)
    logits = outputs.logits[0] if outputs.logits.dim() == 2 else outputs.logits[0, row]
    slopes = torch.autograd.grad(logits[target], attentions)
    own = torch.eye(len(ids))
    relevant = own
    for attention, slope in zip(attentions, slopes):
        relevant = relevant + (attention * slope).clamp(min=0)[0].mean(0) @ relevant
    return (relevant - own)[row].detach()


def rollout(model, ids, row):
    with torch.no_grad():
        followed = torch.eye(len(ids))
        for attention in maps_of(model, ids)[1]:
            followed = (0.5 * attention[0].mean(0) + 0.5 * torch.eye(len(ids))) @ followed
    return followed[row]


def compare_evidence(report, name, ours, text, asked):
    """Compares figures of a map with the same figures by SciPy and by enumeration."""
    with torch.no_grad():
        before = asked.log_probability(torch.tensor([asked.ids])).exp().item()
    lost = numpy.array([before - asked.probability_without([place]) for place in asked.inside])
    count = len(asked.inside)
    sizes = [max(1, int(share * count + 0.5)) for share in (0.01, 0.05, 0.1, 0.2, 0.5)]

    def enumerated(size, kept):
        sets = itertools.combinations(asked.inside, count - size if kept else size)
        return numpy.mean([before - asked.probability_without(one) for one in sets])

    for method, signed in (("gradient_x_input", True), ("gradient", False)):
        record = ours.map(text, method, "--evidence")
        figures = {one["name"]: one for one in record["evidence"]}
        scores = numpy.array([record["scores"][0][place] for place in asked.inside])
        if count >= 4:
            tau = kendalltau(scores, lost if signed else abs(lost)).statistic
            report.compare(f"{name}, tau_occlusion of {method}", figures["tau_occlusion"]["value"], float(tau), 1e-9)
        order = [asked.inside[i] for i in numpy.argsort(-scores, kind="stable")]
        for figure, kept in (("comprehensiveness", False), ("sufficiency", True)):
            own = numpy.mean([before - asked.probability_without(order[size:] if kept else order[:size])
                              for size in sizes])
            report.compare(f"{name}, {figure} of {method}", figures[figure]["value"], float(own), 1e-5)
            shown = float(figures[figure]["bar"].split()[-1])  # has three digits
            report.compare(f"{name}, {figure} of a random order", shown,
                           float(numpy.mean([enumerated(size, kept) for size in sizes])), 6e-4)


def compare_bert(report, program, draw, folder):
    model, known = draw_bert(draw, folder / "bert")
    ours = Program(program, folder / "bert.model")
    ours.run("import", folder / "bert", "--out", ours.folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder / "bert")
    for number in range(TEXTS):
        count = int(draw.integers(2, 8))
        text = " ".join(draw.choice(known, size=count)) + (" ?" if number % 3 == 2 else "")
        ids = tokenizer(text)["input_ids"]
        with torch.no_grad():
            target = int(model(torch.tensor([ids])).logits[0].argmax())
        asked = Texts(model.bert.embeddings.word_embeddings, ids, range(1, len(ids) - 1), tokenizer.unk_token_id,
                      lambda some: model(some).logits, target)
        name = f"BERT, text {number + 1} of {len(ids)} tokens"
        report.compare(f"{name}, its label", ours.map(text, "occlusion")["target"], [model.config.id2label[target]])
        compare_methods(report, name, ours, text, asked)
        compare_scores(report, f"{name}, relevance", ours.map(text, "relevance")["scores"][0],
                       relevance(model, ids, 0, target))
        compare_scores(report, f"{name}, rollout", ours.map(text, "rollout")["scores"][0], rollout(model, ids, 0))
        compare_evidence(report, name, ours, text, asked)


def compare_gpt2(report, program, draw, folder):
    model, known = draw_gpt2(draw, folder / "gpt2")
    ours = Program(program, folder / "gpt2.model")
    ours.run("import", folder / "gpt2", "--out", ours.folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder / "gpt2")
    for number in range(TEXTS):
        text = " ".join(draw.choice(known, size=int(draw.integers(2, 6))))
        ids = tokenizer(text)["input_ids"]
        with torch.no_grad():
            target = int(model(torch.tensor([ids])).logits[0, -1].argmax())
        asked = Texts(model.transformer.wte, ids, range(len(ids)), 0, lambda some: model(some).logits[:, -1], target)
        name = f"GPT-2, text {number + 1} of {len(ids)} tokens"
        options = ("--maximum-length", 1)
        compare_methods(report, name, ours, text, asked, options)
        compare_scores(report, f"{name}, relevance", ours.map(text, "relevance", *options)["scores"][0],
                       relevance(model, ids, len(ids) - 1, target))
    compare_patterns(report, ours, model, text)


def compare_patterns(report, ours, model, text):
    """Compares patterns on repeated tokens, drawn as in the program. The token of the answer is not read."""
    lens = detector()
    heads = ours.maps(text, "--view", "model", "--maximum-length", 1)
    drawn = torch.randperm(model.config.vocab_size, generator=torch.Generator().manual_seed(1))[:25]
    tokens = torch.cat([drawn, drawn])
    with torch.no_grad():
        attentions = maps_of(model, tokens.tolist())[1]
    patterns = {"previous_token": lens.get_previous_token_head_detection_pattern,
                "duplicate_token": lens.get_duplicate_token_head_detection_pattern,
                "induction": lens.get_induction_head_detection_pattern}
    number = 0
    for layer, attention in enumerate(attentions):
        for head in range(attention.shape[1]):
            for name, pattern_of in patterns.items():
                pattern = pattern_of(tokens.unsqueeze(0))
                rows = pattern.any(1, keepdim=True)
                theirs = lens.compute_head_attention_similarity_score(
                    attention[0, head] * rows, detection_pattern=pattern, exclude_bos=False,
                    exclude_current_token=False, error_measure="mul")
                report.compare(f"GPT-2, layer {layer + 1}, head {head + 1}, {name}", heads[number]["patterns"][name],
                               float(theirs), 1e-5)
            number += 1


def main():
    options = arguments(__doc__.splitlines()[0]).parse_args()
    torch.manual_seed(options.seed)
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    draw = numpy.random.default_rng(options.seed)
    report = Report()
    with tempfile.TemporaryDirectory() as folder:
        compare_bert(report, options.program, draw, pathlib.Path(folder))
        compare_gpt2(report, options.program, draw, pathlib.Path(folder))
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
