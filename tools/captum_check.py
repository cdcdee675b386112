#!/usr/bin/env python3
"""Compares methods of `attend explain` with Captum (Kokhlikyan et al. 2020) on the same weights.

    python3 -m venv build/captum && build/captum/bin/pip install captum torch
    build/captum/bin/python tools/captum_check.py MODEL TEXTS [--attend build/release/attend] [--lines 20]

MODEL is a recurrent classifier with additive pooling, as tools/jain_wallace.py trains it. The script has the same
network in PyTorch, in float64. TEXTS has one text per line; text after a tab is ignored. Prints the largest difference
of each method, relative to the text's largest score. Exits with 1 if one is above 1e-4.
"""

import argparse
import json
import pathlib
import struct
import subprocess
import sys
import tomllib

import torch
from captum.attr import InputXGradient, IntegratedGradients, Saliency

UNKNOWN = 3
LARGEST = 1e-4


def parameters(path):
    data = path.read_bytes()
    length, = struct.unpack("<Q", data[:8])
    found = {}
    for name, about in json.loads(data[8:8 + length]).items():
        if name == "__metadata__":
            continue
        first, last = about["data_offsets"]
        values = torch.frombuffer(bytearray(data[8 + length + first:8 + length + last]), dtype=torch.float32)
        found[name] = values.reshape(about["shape"]).double()
    return found


class Classifier:
    """A bidirectional recurrent layer, additive pooling with one learned query, and a linear map to labels."""

    def __init__(self, folder):
        weights = parameters(folder / "weights.safetensors")
        config = tomllib.loads((folder / "config.toml").read_text(encoding="utf-8"))["model"]
        if config.get("recurrent_layers") != 1 or config.get("pooling") != "fixed_mlp":
            sys.exit(f"{folder}: is not a classifier with one recurrent layer and pooling fixed_mlp")
        self.ids = {token: place for place, token in
                    enumerate((folder / "source.vocab").read_text(encoding="utf-8").splitlines())}
        self.labels = (folder / "target.vocab").read_text(encoding="utf-8").splitlines()[UNKNOWN + 1:]
        self.embedding = weights["encoder.input.weight"]
        depth = self.embedding.shape[1]
        layer = torch.nn.LSTM if config["cell"] == "lstm" else torch.nn.GRU
        self.recurrent = layer(depth, depth // 2, bidirectional=True, batch_first=True).double()
        prefix = "encoder.recurrent.layer0."
        self.recurrent.load_state_dict({name: weights[prefix + name]
                                        for name in self.recurrent.state_dict()})
        self.keys, self.query, self.v = (weights["fixed." + name] for name in ("keys.weight", "query", "v"))
        self.output = weights["output.weight"], weights["output.bias"]

    def vectors(self, tokens):
        return self.embedding[[self.ids.get(token, UNKNOWN) for token in tokens]].unsqueeze(0)

    def log_probabilities(self, vectors):
        states, _ = self.recurrent(vectors)
        scores = torch.tanh(self.query + states @ self.keys.T) @ self.v[0]
        context = (scores.softmax(-1).unsqueeze(-1) * states).sum(1)
        return torch.nn.functional.linear(context, *self.output).log_softmax(-1)


def theirs(model, tokens, label):
    vectors = model.vectors(tokens).requires_grad_()
    unknown = model.embedding[UNKNOWN].expand_as(vectors)
    target = model.labels.index(label)
    return {
        "gradient": Saliency(model.log_probabilities).attribute(vectors, target, abs=False).norm(dim=-1),
        "gradient_x_input": InputXGradient(model.log_probabilities).attribute(vectors, target).sum(-1),
        "integrated_gradients": IntegratedGradients(model.log_probabilities).attribute(
            vectors, unknown, target, n_steps=64, method="gausslegendre").sum(-1),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("texts", type=pathlib.Path)
    parser.add_argument("--attend", type=pathlib.Path, default="build/release/attend")
    parser.add_argument("--lines", type=int, default=20)
    options = parser.parse_args()
    model = Classifier(options.model)
    texts = [line.split("\t")[0] for line in options.texts.read_text(encoding="utf-8").splitlines()]
    worst = {}
    for text in texts[:options.lines]:
        for method in ("gradient", "gradient_x_input", "integrated_gradients"):
            told = json.loads(subprocess.run(
                [options.attend, "explain", options.model, text, "--method", method, "--json"],
                check=True, capture_output=True, text=True).stdout)
            ours = torch.tensor(told["scores"][0], dtype=torch.float64)
            expected = theirs(model, told["source"], told["target"][0])[method].detach()[0]
            difference = ((ours - expected).abs().max() / expected.abs().max()).item()
            worst[method] = max(worst.get(method, 0), difference)
    for method, difference in worst.items():
        print(f"{method:<22} {difference:.1e}{'' if difference <= LARGEST else '  above ' + str(LARGEST)}")
    sys.exit(any(difference > LARGEST for difference in worst.values()))


main()
