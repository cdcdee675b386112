#!/usr/bin/env python3
"""Imports published model folders: their configuration files with reduced sizes and random weights.

    tools/conform_models.py [FOLDER] [--program build/release/attend] [--seed N] [--only NAME]

FOLDER (default: ../shared/models) has a folder with the small files of each model. For each model, the script reduces
the sizes, draws tensors with the names that transformers saves, adds a tiny tokenizer and runs `attend import`. Further
tensors of older files, such as poolers and position_ids, are drawn, too. A model of a supported type and class must be
imported, or refused for a reason in REFUSED. The script needs numpy, safetensors and, for translators, sentencepiece.
If transformers and torch are installed, transformers loads the same folder. Vectors, labels, masked words and
continuations may differ by BAR. A row of `./dev conform`: prints a line per model and the counts; exits with 1 if one
is wrong.
"""

import json
import math
import pathlib
import random
import subprocess
import sys
import tempfile

import numpy as np
from safetensors.numpy import load_file

import conform_report
from conform_folders import WORDS, head_of, make_folder

BAR = 1e-4
TYPES = {"bert", "distilbert", "roberta", "xlm-roberta", "camembert", "modernbert", "vit", "deit", "gpt2", "marian"}
# Parts of error messages that are right for these types.
REFUSED = ["answers a question", "several labels at once", "vectors of images", "model_type is 'mymodernbert'",
           "'RobertaForRegression', which is not read", "modules.json: is not an array"]


def run(program, *arguments, text=""):
    done = subprocess.run([program, *map(str, arguments)], input=text, capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr.strip()


def drawn_lines(seed, count=4):
    draw = random.Random(seed)
    return [" ".join(draw.choices(WORDS, k=draw.randint(1, 5))) for _ in range(count)]


# ---- transformers -------------------------------------------------------------------------------------------------

class Peer:
    """transformers, if it can be imported."""

    def __init__(self):
        import torch
        import transformers

        transformers.logging.set_verbosity_error()
        transformers.logging.disable_progress_bar()
        self.torch, self.transformers = torch, transformers

    def load(self, folder, architecture):
        model, told = getattr(self.transformers, architecture).from_pretrained(folder, output_loading_info=True)
        missing = [name for name in told["missing_keys"] if "pooler" not in name]
        if missing:
            raise ValueError(f"transformers misses {missing[:3]}")
        self.complete(model, folder)
        return model.eval().double()

    def complete(self, model, folder):
        """Sets tied tensors. transformers 4 leaves both without values if a file has only the output's tensor."""
        embedding = model.get_input_embeddings()
        if getattr(embedding, "weight", None) is not None and embedding.weight.is_meta:
            found = load_file(folder / "model.safetensors")["lm_head.weight"]
            embedding.weight = self.torch.nn.Parameter(self.torch.tensor(found))
            model.tie_weights()

    def compared(self, program, folder, out, kind, architecture):
        """Largest difference between the answers of the two models."""
        model = self.load(folder, architecture)
        head = head_of(kind, architecture)
        with self.torch.no_grad():
            if kind == "vit":
                return self.images(program, folder, out, model)
            if kind == "marian":
                return self.translations(program, folder, out, model)
            if kind == "gpt2":
                return self.continuations(program, folder, out, model)
            ask = {"Model": self.vectors, "ForMaskedLM": self.masked, "ForPreTraining": self.masked,
                   "ForSequenceClassification": self.labels, "ForTokenClassification": self.tags}[head]
            return ask(program, folder, out, model)

    def ids(self, folder, text):
        from tokenizers import Tokenizer

        encoding = Tokenizer.from_file(str(folder / "tokenizer.json")).encode(text)
        return self.torch.tensor([encoding.ids]), encoding.tokens

    def inputs(self, folder, text, model):
        """Inputs of a text, or of two with a TAB between them; BERT also reads their types."""
        from tokenizers import Tokenizer

        encoding = Tokenizer.from_file(str(folder / "tokenizer.json")).encode(*text.split("\t"))
        found = {"input_ids": self.torch.tensor([encoding.ids])}
        if getattr(model.config, "type_vocab_size", 0) == 2:
            found["token_type_ids"] = self.torch.tensor([encoding.type_ids])
        return found

    def asked(self, program, command, out, texts, *options):
        code, answers, errors = run(program, command, out, "--json", *options, text="".join(text + "\n" for text in texts))
        if code != 0:
            raise ValueError(errors)
        return [json.loads(line) for line in answers.splitlines()]

    def far(self, ours, theirs):
        return (self.torch.tensor(ours, dtype=self.torch.float64) - theirs).abs().max().item()

    def vectors(self, program, folder, out, model):
        worst = 0
        texts = drawn_lines(1)
        for text, line in zip(texts, self.asked(program, "embed", out, texts, "--tokens"), strict=True):
            theirs = model(input_ids=self.ids(folder, text)[0]).last_hidden_state[0]
            worst = max(worst, self.far(line["vectors"], theirs))
        return worst

    def labels(self, program, folder, out, model):
        count = model.config.num_labels
        texts = drawn_lines(2)
        settings = (out / "config.toml").read_text()
        if '\npairs = "always"' in settings:
            texts = [f"{first}\t{second}" for first, second in zip(texts, reversed(texts))]
        is_probability = '\ntarget = "probability"' in settings
        options = ("--beam", count, "--nbest", count) if count > 1 else ()
        worst = 0
        for text, line in zip(texts, self.asked(program, "predict", out, texts, *options), strict=True):
            theirs = model(**self.inputs(folder, text, model)).logits[0]
            if is_probability:
                theirs = theirs.sigmoid()
            if count == 1:
                worst = max(worst, self.far(line["predictions"][0]["number"], theirs[0]))
                continue
            found = sorted((each["log_probability"] for each in line["predictions"]), reverse=True)
            worst = max(worst, self.far(found, theirs.log_softmax(-1).sort(descending=True).values))
        return worst

    def tags(self, program, folder, out, model):
        texts = drawn_lines(3)
        worst = 0
        for text, line in zip(texts, self.asked(program, "predict", out, texts, "--details"), strict=True):
            theirs = model(input_ids=self.ids(folder, text)[0]).logits[0].log_softmax(-1)
            worst = max(worst, self.far(line["predictions"][0]["log_probabilities"], theirs.max(-1).values))
        return worst

    def masked(self, program, folder, out, model):
        mask = "[MASK]" if "[MASK]" in (folder / "tokenizer.json").read_text() else "<mask>"
        texts = [f"{line} {mask}" for line in drawn_lines(4)]
        worst = 0
        for text, line in zip(texts, self.asked(program, "predict", out, texts, "--details"), strict=True):
            ids, tokens = self.ids(folder, text)
            answer = model(input_ids=ids)
            logits = answer.logits if hasattr(answer, "logits") else answer.prediction_logits
            place = [token.strip() for token in tokens].index(mask)
            scores = logits[0, place].log_softmax(-1)
            worst = max(worst, self.far(line["predictions"][0]["log_probabilities"][place], scores.max()))
        return worst

    def images(self, program, folder, out, model):
        from PIL import Image

        pixels = np.random.default_rng(5).integers(0, 256, (8, 8, 3), dtype=np.uint8)
        path = folder / "drawn.png"
        Image.fromarray(pixels).save(path)
        settings = json.loads((folder / "preprocessor_config.json").read_text())
        mean, deviation = (self.torch.tensor(settings.get(key, [0.5] * 3)).view(3, 1, 1) for key in ("image_mean", "image_std"))
        values = (self.torch.tensor(pixels).permute(2, 0, 1) / 255 - mean) / deviation
        theirs = model(pixel_values=values[None].double()).logits[0].log_softmax(-1).sort(descending=True).values
        count = len(theirs)
        line = self.asked(program, "predict", out, [str(path)], "--beam", count, "--nbest", count)[0]
        return self.far([each["log_probability"] for each in line["predictions"]], theirs)

    def continuations(self, program, folder, out, model):
        texts = [" ".join(line.split()[:3]) for line in drawn_lines(6)]  # at most half of the positions
        worst = 0
        for text, line in zip(texts, self.asked(program, "predict", out, texts, "--details", "--beam", 1,
                                                "--maximum-length", 6), strict=True):
            ids = self.ids(folder, text)[0]
            worst = max(worst, self.greedy(line, model, ids, lambda read: model(input_ids=read), 6))
        return worst

    def translations(self, program, folder, out, model):
        from transformers import MarianTokenizer

        tokenizer = MarianTokenizer.from_pretrained(folder)
        texts = drawn_lines(7)
        settings = json.loads((folder / "config.json").read_text())
        begin = self.torch.tensor([[settings.get("decoder_start_token_id", settings["pad_token_id"])]])
        worst = 0
        for text, line in zip(texts, self.asked(program, "predict", out, texts, "--details", "--beam", 1,
                                                "--maximum-length", 6, "--unknown", "keep"), strict=True):
            source = tokenizer(text, return_tensors="pt").input_ids
            worst = max(worst, self.greedy(line, model, begin, lambda read, source=source: model(
                input_ids=source, decoder_input_ids=read), 6))
        return worst

    def greedy(self, line, model, read, compute, most):
        """Largest difference of the log probabilities of a greedy answer's tokens."""
        ends = model.config.eos_token_id
        ends = ends if isinstance(ends, list) else [ends]
        found = line["predictions"][0]["log_probabilities"]
        padding = model.config.pad_token_id if model.config.is_encoder_decoder else None
        worst = 0
        for ours in found[:most]:
            scores = compute(read).logits[0, -1].log_softmax(-1)
            allowed = scores.clone()
            if padding is not None:
                allowed[padding] = -math.inf
            best = allowed.argmax()
            worst = max(worst, abs(ours - scores[best].item()))
            if best.item() in ends:
                break
            read = self.torch.cat([read, best.view(1, 1)], 1)
        return worst


def peer_or_none():
    try:
        return Peer()
    except ImportError:
        return None


# ---- all models ---------------------------------------------------------------------------------------------------

def judged(program, state, folder, seed, peer):
    """Outcome for a model, and whether it is right; None without a configuration."""
    kind, architecture = make_folder(state, folder, seed)
    if not (folder / "config.json").exists():
        return None
    out = folder.with_name("ours")
    code, _, errors = run(program, "import", folder, "--out", out)
    lines = errors.replace(str(folder) + "/", "").splitlines()
    notes = [line for line in lines if line.startswith("attend: note")]
    if code != 0:
        reason = lines[-1] if lines else f"exit code {code}"
        is_right = kind is None or any(part in reason for part in REFUSED)
        return f"refused: {reason.removeprefix('attend: ')}", is_right
    told = f"imported, {len(notes)} notes" if notes else "imported"
    if kind is None or peer is None:
        return told, kind is not None
    try:
        worst = peer.compared(program, folder, out, kind, architecture)
    except (ValueError, RuntimeError, KeyError) as error:
        return f"{told}, not compared: {str(error).splitlines()[0][:160]}", False
    return f"{told}, differs by {worst:.1e}", worst <= BAR


def rows(program, seed=1, folder="../shared/models", only=""):
    """(name, outcome, whether it is right) of each model."""
    peer = peer_or_none()
    for number, state in enumerate(sorted(path for path in pathlib.Path(folder).iterdir() if path.is_dir())):
        if only not in state.name:
            continue
        with tempfile.TemporaryDirectory() as here:
            found = judged(program, state, pathlib.Path(here) / "theirs", seed * 1000 + number, peer)
        if found:
            yield state.name, *found


def main():
    parser = conform_report.arguments(__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", default="../shared/models")
    parser.add_argument("--only", default="", help="part of the names of the states")
    options = parser.parse_args()
    report = conform_report.Report()
    for name, told, is_right in rows(options.program, options.seed, options.folder, options.only):
        report.state(name, is_right, told)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
