#!/usr/bin/env python3
"""Trains a small language model with each mechanism and recurrence and prints one table.

    tools/mechanisms_lm.py [NAME ...] [--data ../shared/data/tinyshakespeare] [--out build/mechanisms] [--steps 1000]

Every model reads the same batches by recipes/mechanisms.toml. Columns: nats per character of the validation text,
characters per second in training, weights, and the numbers that decoding keeps per token and head. A mechanism that a
language model cannot use gets a line with the reason. Models in --out are not trained again.
"""

import argparse
import json
import lzma
import os
import pathlib
import platform
import subprocess
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = os.environ.get("ATTEND_PROGRAM") or ROOT / "build" / "release" / "attend"
RECIPE = ROOT / "recipes" / "mechanisms.toml"
TRAINED = 1003854  # bytes; the rest is for validation


def attend(*arguments):
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, check=False,
                          env=os.environ | {"OMP_NUM_THREADS": "1"})


def texts(source, out):
    """The files of the training and validation texts, cut as in recipes/shakespeare.toml."""
    whole = lzma.decompress((source / "input.txt.xz").read_bytes())
    paths = out / "train.txt", out / "valid.txt"
    for path, part in zip(paths, (whole[:TRAINED], whole[TRAINED:])):
        path.write_bytes(part)
    return paths


def rows():
    """Name, setting and cache of every mechanism and recurrence, the oldest first."""
    table = json.loads(attend("mechanisms", "--json").stdout)
    found = [(row["year"], row["name"], "model.mechanism", row["cache"]) for row in table["mechanisms"]]
    found += [(row["year"], row["name"], "model.layer", "d^2 in all") for row in table["recurrences"]]
    return sorted(found, key=lambda row: row[0])


def trained(key, name, data, folder, steps):
    """Trains unless the model exists; returns the reason if the program refuses."""
    if (folder / "metrics.jsonl").exists():
        return ""
    done = attend("train", "--config", RECIPE, "--data", data[0], "--valid", data[1],
                  "--out", folder, "--set", f"{key}={name}", "--set", f"train.steps={steps}",
                  "--set", "train.replicas=1")
    if done.returncode == 2:
        return done.stderr.strip().splitlines()[-1]
    if done.returncode:
        raise SystemExit(f"{name}: {done.stderr.strip()}")
    return ""


def measured(folder):
    """Nats per character, characters per second in training, and the number of weights."""
    model = json.loads(attend("inspect", folder, "--json").stdout)
    last = model["history"][-1]
    recipe = tomllib.loads(RECIPE.read_text())
    characters = last["step"] * recipe["train"]["batch"] * recipe["model"]["context"]
    return last["valid_loss"], characters / last["seconds"], model["parameter_count"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="mechanisms and recurrences; all if absent")
    parser.add_argument("--data", type=pathlib.Path, default=ROOT.parent / "shared" / "data" / "tinyshakespeare")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "build" / "mechanisms")
    parser.add_argument("--steps", type=int, default=1000)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    data = texts(options.data, options.out)
    print(f"{options.steps} steps, one thread, {platform.machine()}")
    print("| mechanism | year | nats per character | characters per second | weights | cache |")
    print("|---|---|---|---|---|---|")
    refused = []
    for year, name, key, cache in rows():
        if options.names and name not in options.names:
            continue
        folder = options.out / f"{key.split('.')[1]}-{name}"
        if reason := trained(key, name, data, folder, options.steps):
            refused.append(f"{name}: {reason}")
            continue
        nats, speed, weights = measured(folder)
        print(f"| {name} | {year} | {nats:.3f} | {speed:,.0f} | {weights:,} | {cache} |", flush=True)
    print("\n".join(refused))


if __name__ == "__main__":
    main()
