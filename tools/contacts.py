#!/usr/bin/env python3
"""Trains an encoder on proteins with planted contacts, and compares its attention with the contacts.

    tools/contacts.py [--out build/contacts] [--proteins 200] [--count 2000] [options of attend train]

A map has the mean weights between residues over the heads of the last layer, made symmetric and with average product
correction (Dunn et al. 2008; Rao et al. 2021 read contacts from language models with it). A map predicts the L/5 pairs
with the largest values among the pairs at least six positions apart, for L residues. The printed precision is that
of the mean map of --proteins validation proteins, and the mean precision of single maps.
"""

import argparse
import json
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = os.environ.get("ATTEND_PROGRAM") or ROOT / "build" / "release" / "attend"
APART = 6


def attend(*arguments, stdin=""):
    return subprocess.run([PROGRAM, *map(str, arguments)], check=True, capture_output=True, text=True,
                          input=stdin, env=os.environ | {"OMP_NUM_THREADS": "1"}).stdout


def sequences(path):
    parts = path.read_text().split(">")[1:]
    return ["".join(part.splitlines()[1:]) for part in parts]


def corrected(weights):
    """The symmetric map with average product correction."""
    size = range(len(weights))
    both = [[weights[i][j] + weights[j][i] for j in size] for i in size]
    sums = [sum(row) for row in both]
    total = sum(sums)
    return [[both[i][j] - sums[i] * sums[j] / total for j in size] for i in size]


def strongest(scores, count):
    """The `count` pairs of positions with the highest scores, from 1, at least APART apart."""
    pairs = [(i, j) for i in range(len(scores)) for j in range(i + APART, len(scores))]
    pairs.sort(key=lambda pair: -scores[pair[0]][pair[1]])
    return [(i + 1, j + 1) for i, j in pairs[:count]]


def precision(weights, contacts):
    chosen = strongest(corrected(weights), len(weights) // 5)
    return sum(pair in contacts for pair in chosen) / len(chosen)


def mean_map(maps):
    size = range(len(maps[0]))
    return [[sum(each[i][j] for each in maps) / len(maps) for j in size] for i in size]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "build" / "contacts")
    parser.add_argument("--proteins", type=int, default=200, help="proteins of the validation part with maps")
    parser.add_argument("--count", type=int, default=2000, help="proteins to train with")
    options, training = parser.parse_known_args()
    family, model = options.out / "family", options.out / "model"
    told = json.loads(attend("data", "contacts", "--out", family, "--count", options.count, "--json"))
    contacts = set(map(tuple, told["contacts"]))
    if not (model / "weights.safetensors").exists():
        attend("train", "--config", ROOT / "recipes" / "contacts.toml", "--data", family / "train.fasta",
               "--valid", family / "valid.fasta", "--out", model, "--set", "train.replicas=1", *training)
    proteins = sequences(family / "valid.fasta")[:options.proteins]
    answers = attend("predict", model, "--json", "--details", stdin="\n".join(proteins) + "\n").splitlines()
    maps = [json.loads(answer)["predictions"][0]["weights"] for answer in answers]
    length = len(maps[0])
    pairs = (length - APART) * (length - APART + 1) // 2
    alone = sum(precision(each, contacts) for each in maps) / len(maps)
    print(f"{length // 5} strongest attentions that are contacts: {precision(mean_map(maps), contacts):.3f} "
          f"by the mean of {len(maps)} maps, {alone:.3f} by each map, {len(contacts) / pairs:.3f} by chance")


if __name__ == "__main__":
    main()
