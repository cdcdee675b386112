#!/usr/bin/env python3
"""Times the decoding of a Transformer against CTranslate2 with the same model.

    ./dev build && cmake --build build/release --target answer_bench
    python3 -m venv peers && peers/bin/pip install ctranslate2 safetensors
    peers/bin/python tools/peers_decode.py

Without --model, trains one for an epoch on random words. The weights are converted for CTranslate2. All answers have
--length tokens, so that both sides search the same tree; answers are compared before timing. Both sides take turns.
Prints a JSON object per row. Ratios are medians of the turns' ratios, by the wall clock and by the processor time of
all threads, which depends less on other load.
"""

import argparse
import itertools
import json
import math
import pathlib
import random
import shutil
import statistics
import subprocess
import tempfile
import time
import tomllib
import typing

import ctranslate2
import numpy
import safetensors.numpy
from ctranslate2.specs import common_spec, transformer_spec

BUILD = pathlib.Path(__file__).resolve().parent.parent / "build" / "release"
LONGEST = 1024
END = 2  # as in attend/text/vocabulary.h


def options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=BUILD)
    parser.add_argument("--model", type=pathlib.Path, help="folder of a Transformer of words")
    parser.add_argument("--lines", type=pathlib.Path, help="sources for that model")
    parser.add_argument("--sentences", type=int, default=500)
    parser.add_argument("--length", type=int, default=14, help="tokens of every answer")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--weights", nargs="+", default=["float32", "int8"])
    parser.add_argument("--words", type=int, default=10000, help="distinct words of the trained model")
    return parser.parse_args()


def random_line(words, rng):
    return " ".join(f"w{rng.randrange(words)}" for _ in range(max(4, round(rng.gauss(13.5, 4.5)))))


def train(args, folder):
    """A model of 4 + 4 layers x 128 and sources for it."""
    rng = random.Random(1)
    pairs = [(line, " ".join(reversed(line.split())))
             for line in (random_line(args.words, rng) for _ in range(3 * args.words // 13))]
    data = folder / "pairs.tsv"
    data.write_text("".join(f"{source}\t{target}\n" for source, target in pairs))
    settings = ["model.type=transformer", "model.tied=none", "train.epochs=1",
                "train.validation_examples=16"]
    command = [args.build / "attend", "train", "--data", data, "--out", folder / "model",
               "--source-units", "space", "--target-units", "space"]
    for setting in settings:
        command += ["--set", setting]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    lines = folder / "lines.txt"
    lines.write_text("".join(random_line(args.words, rng) + "\n" for _ in range(args.sentences)))
    return folder / "model", lines


def without_end(folder, out):
    """A copy of the model that never predicts the end: the two sides score a forbidden end differently."""
    shutil.copytree(folder, out)
    path = out / "weights.safetensors"
    weights = safetensors.numpy.load_file(path)
    weights["output.bias"][END] = -1000
    safetensors.numpy.save_file(weights, path)
    return out


def positions(depth):
    angles = numpy.outer(numpy.arange(LONGEST),
                         numpy.exp(numpy.arange((depth + 1) // 2) * (-2 * math.log(10000) / depth)))
    table = numpy.stack([numpy.sin(angles), numpy.cos(angles)], -1).reshape(LONGEST, -1)
    return table[:, :depth].astype(numpy.float32)


class Weights:
    """Copies the weights of a folder into CTranslate2's specification."""

    def __init__(self, folder):
        self.all = safetensors.numpy.load_file(folder / "weights.safetensors")

    def linear(self, spec, *names):
        spec.weight = numpy.concatenate([self.all[name + ".weight"] for name in names])
        spec.bias = numpy.concatenate([self.all[name + ".bias"] for name in names])

    def norm(self, spec, name):
        spec.gamma, spec.beta = self.all[name + ".weight"], self.all[name + ".bias"]

    def embedding(self, spec, place, name):
        place.weight = self.all[name + ".tokens.weight"]
        spec.position_encodings.encodings = positions(place.weight.shape[1])

    def layers(self, spec, name):
        for i, layer in enumerate(spec.layer):
            part = f"{name}.layer{i}_"
            own = part + "self"
            inputs = [own + name for name in (".query", ".key", ".value")]
            self.linear(layer.self_attention.linear[0], *inputs)
            self.linear(layer.self_attention.linear[1], own + ".output")
            self.norm(layer.self_attention.layer_norm, own + "_norm")
            if hasattr(layer, "attention"):
                cross = part + "cross"
                self.linear(layer.attention.linear[0], cross + ".query")
                self.linear(layer.attention.linear[1], cross + ".key", cross + ".value")
                self.linear(layer.attention.linear[2], cross + ".output")
                self.norm(layer.attention.layer_norm, cross + "_norm")
            self.linear(layer.ffn.linear_0, part + "feed_forward.hidden")
            self.linear(layer.ffn.linear_1, part + "feed_forward.output")
            self.norm(layer.ffn.layer_norm, part + "feed_forward_norm")
        self.norm(spec.layer_norm, name + ".norm")


def vocabulary(path):
    return path.read_text().splitlines()


def convert(folder, out):
    model = tomllib.loads((folder / "config.toml").read_text())["model"]
    if model["type"] != "transformer" or model["positions"] != "sinusoidal":
        raise SystemExit(f"{folder}: is not a Transformer with sinusoidal positions")
    spec = transformer_spec.TransformerSpec.from_config(
        (model["encoder_layers"], model["decoder_layers"]), model["heads"],
        pre_norm=model["normalise_first"], activation=common_spec.Activation.RELU)
    weights = Weights(folder)
    weights.embedding(spec.encoder, spec.encoder.embeddings[0], "source_embedding")
    weights.embedding(spec.decoder, spec.decoder.embeddings, "target_embedding")
    weights.layers(spec.encoder, "encoder")
    weights.layers(spec.decoder, "decoder")
    weights.linear(spec.decoder.projection, "output")
    spec.register_source_vocabulary(vocabulary(folder / "source.vocab"))
    spec.register_target_vocabulary(vocabulary(folder / "target.vocab"))
    spec.validate()
    out.mkdir()
    spec.save(str(out))


class Attend:
    def __init__(self, args, model, lines, case):
        command = [args.build / "answer_bench", model, lines, "--threads", str(case.threads),
                   "--beam", str(case.beam), "--length", str(args.length), "--weights",
                   case.weights, "--batch", "1" if case.one_by_one else "0"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True)

    def turn(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Peer:
    def __init__(self, args, model, lines, case):
        # With one sentence at a time, threads can share only the products of a step.
        inside, beside = (case.threads, 1) if case.one_by_one else (1, case.threads)
        self.translator = ctranslate2.Translator(str(model), device="cpu",
                                                 compute_type=case.weights,
                                                 inter_threads=beside, intra_threads=inside)
        self.sources = [line.split() for line in lines.read_text().splitlines()]
        self.options = {"beam_size": case.beam, "max_decoding_length": args.length,
                        "min_decoding_length": args.length, "return_scores": True,
                        "max_batch_size": 64}
        self.one_by_one = case.one_by_one

    def turn(self):
        wall, processor = time.perf_counter(), time.process_time()
        if self.one_by_one:
            found = [self.translator.translate_batch([source], **self.options)[0]
                     for source in self.sources]
        else:
            found = self.translator.translate_batch(self.sources, **self.options)
        result = {"wall": time.perf_counter() - wall, "processor": time.process_time() - processor}
        result["answers"] = [{"text": " ".join(each.hypotheses[0]),
                              "log_probability": each.scores[0] * len(each.hypotheses[0])}
                             for each in found]
        return result

    def close(self):
        self.translator.unload_model()


def agreement(ours, theirs):
    """The share of equal answers, and the largest difference of their log probabilities."""
    pairs = list(zip(ours["answers"], theirs["answers"], strict=True))
    same = [(a, b) for a, b in pairs if a["text"] == b["text"]]
    worst = max((abs(a["log_probability"] - b["log_probability"]) for a, b in same), default=0)
    return len(same) / len(pairs), worst


class Case(typing.NamedTuple):
    weights: str
    beam: int
    threads: int
    one_by_one: bool


def compare(args, models, lines, case):
    sides = [Attend(args, models[0], lines, case), Peer(args, models[1], lines, case)]
    share, worst = agreement(*[side.turn() for side in sides])  # warm-up
    if case.weights == "float32" and (share < 0.97 or worst > 0.01):
        raise SystemExit(f"{share:.3f} of the answers agree, log probabilities by {worst:.4f}")
    turns = [[side.turn() for side in sides] for _ in range(args.turns)]
    for side in sides:
        side.close()
    ours, theirs = ([turn[side]["wall"] for turn in turns] for side in (0, 1))
    how = "one by one" if case.one_by_one else "in batches of 64"
    row = {"work": f"decoding, beam {case.beam}, {case.weights}, {args.sentences} sentences {how}, "
                   f"{case.threads} thread{'s' * (case.threads > 1)}",
           "peer": "CTranslate2", "unit": "s", "ours": statistics.median(ours),
           "theirs": statistics.median(theirs), "same_answers": share}
    for clock, name in (("wall", "ratio"), ("processor", "ratio_of_processor_time")):
        row[name] = statistics.median(turn[1][clock] / turn[0][clock] for turn in turns)
    print(json.dumps(row), flush=True)


def main():
    args = options()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        model, lines = (args.model, args.lines) if args.model else train(args, folder)
        model = without_end(model, folder / "endless")
        convert(model, folder / "peer")
        for case in itertools.product(args.weights, (5, 1), (1, 2), (False, True)):
            compare(args, (model, folder / "peer"), lines, Case(*case))


if __name__ == "__main__":
    main()
