#!/usr/bin/env python3
"""Trains the recipes of molecules on five random splits of MoleculeNet's tables and evaluates each.

    tools/molecules.py [esol] [bbbp] [esol_bonds] [bbbp_bonds] [--data ../shared/data/molecules]
        [--out build/molecules] [--seeds 5]

A seed decides the split and the training, which takes one thread. The split has 80 % of the molecules for training and
10 % each for validation and test; all spellings of a molecule are in one part. Prints the figures of the test and
validation parts per seed, then mean and deviation over the seeds. Existing models in --out are not trained again.
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
# Table, target column and metric of each recipe.
SOLUBILITY = ("esol", "measured log solubility in mols per litre", "rmse")
PASSAGE = ("bbbp", "BBBP", "roc_auc")
RECIPES = {"esol": SOLUBILITY, "bbbp": PASSAGE, "esol_bonds": SOLUBILITY, "bbbp_bonds": PASSAGE}
# With these units the split keeps all spellings of a molecule in one part.
UNITS = {recipe: "molecule" if recipe.endswith("_bonds") else "smiles" for recipe in RECIPES}


def attend(*arguments):
    return subprocess.run([PROGRAM, *map(str, arguments)], check=True, capture_output=True, text=True,
                          env=os.environ | {"OMP_NUM_THREADS": "1"}).stdout


def trained(tables, recipe, seed, out):
    """The folders of the data and of the model, and the file with the seconds of training."""
    table, column, _ = RECIPES[recipe]
    data, model, seconds = (out / f"{recipe}-{seed}-{part}" for part in ("data", "model", "seconds.txt"))
    if not seconds.exists():
        attend("data", "split", tables / f"{table}.csv.gz", "--source-column", "smiles",
               "--target-column", column, "--seed", seed, "--set", f"data.source_units={UNITS[recipe]}", "--out", data)
        began = time.monotonic()
        attend("train", "--config", ROOT / "recipes" / f"{recipe}.toml", "--data", data, "--out", model,
               "--set", f"train.seed={seed}", "--set", "train.replicas=1")
        seconds.write_text(f"{time.monotonic() - began:.0f}\n")
    return data, model, seconds


def measured(data, model, metric):
    return json.loads(attend("evaluate", model, "--data", data, "--metric", metric, "--json"))[metric]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recipes", nargs="*", default=list(RECIPES), metavar="recipe", help=", ".join(RECIPES))
    parser.add_argument("--data", type=pathlib.Path, default=ROOT.parent / "shared" / "data" / "molecules")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "build" / "molecules")
    parser.add_argument("--seeds", type=int, default=5, help="1 to this")
    options = parser.parse_args()
    for recipe in options.recipes:
        if recipe not in RECIPES:
            parser.error(f"{recipe} is none of {', '.join(RECIPES)}")
    options.out.mkdir(parents=True, exist_ok=True)
    for recipe in options.recipes:
        metric = RECIPES[recipe][2]
        figures = []
        for seed in range(1, options.seeds + 1):
            data, model, seconds = trained(options.data, recipe, seed, options.out)
            figures.append(measured(data, model, metric))
            valid = measured(data / "valid.tsv", model, metric)
            print(f"{recipe} seed {seed}: {metric} {figures[-1]:.4f}, on the validation part {valid:.4f}, "
                  f"{seconds.read_text().strip()} s", flush=True)
        deviation = statistics.stdev(figures) if len(figures) > 1 else 0
        print(f"{recipe}: {metric} {statistics.mean(figures):.4f} +- {deviation:.4f} of {len(figures)} seeds", flush=True)


if __name__ == "__main__":
    main()
