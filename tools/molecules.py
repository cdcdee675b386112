#!/usr/bin/env python3
"""Trains the recipes esol and bbbp on five random splits of MoleculeNet's tables and measures each.

    tools/molecules.py [esol] [bbbp] [--data ../shared/data/molecules] [--out build/molecules] [--seeds 5]

A seed decides on the split (80 % to train with, 10 % each to validate and to test) and on the training,
which takes one thread. Prints a line for each seed, with the figure of the test part and that of the
validation part, and then the mean and the deviation over the seeds. What is in --out is not trained again.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = os.environ.get("ATTEND_PROGRAM") or ROOT / "build" / "release" / "attend"
# The column of the targets and the metric.
TABLES = {"esol": ("measured log solubility in mols per litre", "rmse"), "bbbp": ("BBBP", "roc_auc")}


def attend(*arguments):
    return subprocess.run([PROGRAM, *map(str, arguments)], check=True, capture_output=True, text=True,
                          env=os.environ | {"OMP_NUM_THREADS": "1"}).stdout


def trained(table, name, seed, out):
    """The folders of the data and of the model, whose seconds of training are beside it."""
    data, model, seconds = (out / f"{name}-{seed}-{part}" for part in ("data", "model", "seconds.txt"))
    if not seconds.exists():
        attend("data", "split", table, "--source-column", "smiles", "--target-column", TABLES[name][0],
               "--seed", seed, "--out", data)
        began = time.monotonic()
        attend("train", "--config", ROOT / "recipes" / f"{name}.toml", "--data", data, "--out", model,
               "--set", f"train.seed={seed}", "--set", "train.replicas=1")
        seconds.write_text(f"{time.monotonic() - began:.0f}\n")
    return data, model, seconds


def measured(data, model, metric):
    return json.loads(attend("evaluate", model, "--data", data, "--metric", metric, "--json"))[metric]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="*", default=list(TABLES), metavar="table", help="esol, bbbp or both")
    parser.add_argument("--data", type=pathlib.Path, default=ROOT.parent / "shared" / "data" / "molecules")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "build" / "molecules")
    parser.add_argument("--seeds", type=int, default=5, help="1 to this")
    options = parser.parse_args()
    for name in options.tables:
        if name not in TABLES:
            parser.error(f"{name} is none of {', '.join(TABLES)}")
    options.out.mkdir(parents=True, exist_ok=True)
    for name in options.tables:
        metric = TABLES[name][1]
        figures = []
        for seed in range(1, options.seeds + 1):
            data, model, seconds = trained(options.data / f"{name}.csv.gz", name, seed, options.out)
            figures.append(measured(data, model, metric))
            valid = measured(data / "valid.tsv", model, metric)
            print(f"{name} seed {seed}: {metric} {figures[-1]:.4f}, on the validation part {valid:.4f}, "
                  f"{seconds.read_text().strip()} s", flush=True)
        deviation = statistics.stdev(figures) if len(figures) > 1 else 0
        print(f"{name}: {metric} {statistics.mean(figures):.4f} +- {deviation:.4f} of {len(figures)} seeds", flush=True)


if __name__ == "__main__":
    main()
