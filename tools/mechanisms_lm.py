#!/usr/bin/env python3
"""Trains a small language model with each mechanism and recurrence and prints one table.

    tools/mechanisms_lm.py [NAME ...] [--data ../shared/data/tinyshakespeare] [--out build/mechanisms]

Every model reads the same batches by recipes/mechanisms.toml and has nearly the weight count of masked_self: its
feed-forward layer is wider or narrower. Columns: nats per character of the validation text, characters per processor
second of the whole training, weights, and the numbers that decoding keeps per token and head. A mechanism that a
language model cannot use gets a line with the reason. Models in --out are not trained again.
"""

import argparse
import json
import lzma
import os
import pathlib
import resource
import shutil
import subprocess
import tomllib

from conform import processor

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = os.environ.get("ATTEND_PROGRAM") or ROOT / "build" / "release" / "attend"
RECIPE = ROOT / "recipes" / "mechanisms.toml"
SETTINGS = tomllib.loads(RECIPE.read_text())
BASE = "masked_self"  # the others get nearly its number of weights
ONE_STEP = "--set", "train.steps=1"
NUMBERS = {"partial_rope": ("--set", "model.rotary_share=0.5")}  # settings without a useful default
# Rows that have a setting of their own instead of model.mechanism.
SETTING = {"attention_residuals": ("model.sublayer_input", "attention")}
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
    base = next(row[3] for row in found if row[1] == BASE)
    found = [(*row[:3], base if row[1] in SETTING else row[3]) for row in found]
    found += [(row["year"], row["name"], "model.layer", "d^2 in all") for row in table["recurrences"]]
    return sorted(found, key=lambda row: row[0])


def train(key, name, data, folder, feed_forward, *more):
    """Trains a model; returns the reason if the program refuses."""
    key, value = SETTING.get(name, (key, name))
    done = attend("train", "--config", RECIPE, "--data", data[0], "--valid", data[1], "--out", folder,
                  "--set", f"{key}={value}", "--set", f"model.feed_forward={feed_forward}",
                  "--set", "train.replicas=1", *NUMBERS.get(name, ()), *more)
    if done.returncode == 2:
        return done.stderr.strip().splitlines()[-1]
    if done.returncode:
        raise SystemExit(f"{name}: {done.stderr.strip()}")
    return ""


def inspected(folder):
    return json.loads(attend("inspect", folder, "--json").stdout)


def fitting_feed_forward(key, name, data, folder, weights):
    """Width of the feed-forward layers with which this model has nearly that number of weights, or the reason if it is
    refused. `data` may be short."""
    model = SETTINGS["model"]
    shutil.rmtree(folder, ignore_errors=True)
    if reason := train(key, name, data, folder, model["feed_forward"], *ONE_STEP):
        return None, reason
    surplus = inspected(folder)["parameter_count"] - weights
    shutil.rmtree(folder)
    return model["feed_forward"] - round(surplus / (model["layers"] * (2 * model["depth"] + 1))), ""


def measured(key, name, data, folder, feed_forward):
    """Nats per character, characters per processor second, and the number of weights; trains unless the model exists."""
    figures = folder / "figures.json"
    if not figures.exists():
        shutil.rmtree(folder, ignore_errors=True)
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        if reason := train(key, name, data, folder, feed_forward):
            raise SystemExit(f"{name}: {reason}")
        seconds = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
        model = inspected(folder)
        characters = model["history"][-1]["step"] * SETTINGS["train"]["batch"] * SETTINGS["model"]["context"]
        figures.write_text(json.dumps([model["history"][-1]["valid_loss"], characters / seconds,
                                       model["parameter_count"]]))
    return json.loads(figures.read_text())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="mechanisms and recurrences; all if absent")
    parser.add_argument("--data", type=pathlib.Path, default=ROOT.parent / "shared" / "data" / "tinyshakespeare")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "build" / "mechanisms")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    data = texts(options.data, options.out)
    short = options.out / "short.txt"
    short.write_bytes(data[1].read_bytes()[:20000])
    trial = options.out / "trial"
    print(f"One epoch, one thread, {processor()}")
    print("| mechanism | year | nats per character | characters per second | weights | cache |")
    print("|---|---|---|---|---|---|")
    train("model.mechanism", BASE, (short, short), trial, SETTINGS["model"]["feed_forward"], *ONE_STEP)
    weights = inspected(trial)["parameter_count"]
    refused = []
    for year, name, key, cache in rows():
        if options.names and name not in options.names:
            continue
        folder = options.out / f"{key.split('.')[1]}-{name}"
        feed_forward, reason = fitting_feed_forward(key, name, (short, short), trial, weights)
        if reason:
            refused.append(f"{name}: {reason}")
            continue
        nats, speed, count = measured(key, name, data, folder, feed_forward)
        print(f"| {name} | {year} | {nats:.3f} | {speed:,.0f} | {count:,} | {cache} |", flush=True)
    print("\n".join(refused))


if __name__ == "__main__":
    main()
