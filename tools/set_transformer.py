#!/usr/bin/env python3
"""Trains the network of Set Transformer's authors on the files of `attend data sets`.

    git clone https://github.com/juho-lee/set_transformer build/set_transformer
    python3 -m venv build/sets && build/sets/bin/pip install torch
    build/sets/bin/python tools/set_transformer.py build/set_transformer train.tsv test.tsv

Prints the mean absolute error of the maxima of the second file. The layers are from the authors' modules.py (commit
73432c6); size, loss and optimiser are from their max_regression_demo.ipynb. The notebook draws 500 batches of 1,024
sets, with one set size per batch; 51,200 sets and 10 epochs give the same number of sets.
"""

import argparse
import collections
import pathlib
import random
import sys
import time

import torch


def read(path):
    """Tensors [sets, size, 1] and [sets, 1] per set size."""
    by_size = collections.defaultdict(list)
    for line in pathlib.Path(path).read_text(encoding="utf-8").splitlines():
        source, target = line.split("\t")
        numbers = [float(word) for word in source.split()]
        by_size[len(numbers)].append((numbers, float(target)))
    return [(torch.tensor([numbers for numbers, _ in rows]).unsqueeze(2),
             torch.tensor([[target] for _, target in rows])) for rows in by_size.values()]


def batches(parts, size, draw):
    """The shuffled batches of one epoch; each has sets of one size."""
    all_batches = []
    for sets, targets in parts:
        order = torch.randperm(len(sets))
        all_batches += [(sets[rows], targets[rows]) for rows in order.split(size)]
    draw.shuffle(all_batches)
    return all_batches


def network(modules):
    return torch.nn.Sequential(modules.SAB(dim_in=1, dim_out=64, num_heads=4),
                               modules.SAB(dim_in=64, dim_out=64, num_heads=4),
                               modules.PMA(dim=64, num_heads=4, num_seeds=1),
                               torch.nn.Linear(64, 1), torch.nn.Flatten(1))


def mean_absolute_error(model, parts):
    with torch.no_grad():
        errors = [(model(sets) - targets).abs().sum().item() for sets, targets in parts]
    return sum(errors) / sum(len(targets) for _, targets in parts)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("code", help="a clone of juho-lee/set_transformer")
    parser.add_argument("train")
    parser.add_argument("test")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch", type=int, default=1024)
    parser.add_argument("--learning-rate", type=float, default=1e-4)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    sys.path.insert(0, options.code)
    import modules

    torch.manual_seed(options.seed)
    draw = random.Random(options.seed)
    train, test = read(options.train), read(options.test)
    model = network(modules)
    optimiser = torch.optim.Adam(model.parameters(), lr=options.learning_rate)
    begin = time.monotonic()
    for _ in range(options.epochs):
        for sets, targets in batches(train, options.batch, draw):
            loss = torch.nn.functional.l1_loss(model(sets), targets)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    print(f"{mean_absolute_error(model, test):.4f} mean absolute error, "
          f"{time.monotonic() - begin:.0f} s of training")


if __name__ == "__main__":
    main()
