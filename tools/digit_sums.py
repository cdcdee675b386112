#!/usr/bin/env python3
"""Trains the recipe digit_sums, by soft and then by hard attention, and measures both on the test part.

    tools/digit_sums.py [--data ../shared/data/mnist] [--out build/digit_sums] [--count 20000] [options of attend train]

Prints the share of exact answers. For the words of digits and of signs, prints how often the patch with the
largest weight overlaps the box around that digit or sign. Existing models in --out are not trained again.
"""

import argparse
import json
import os
import pathlib
import subprocess
import time
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = os.environ.get("ATTEND_PROGRAM") or ROOT / "build" / "release" / "attend"
HARD = {"model.mechanism": "hard", "model.entropy_weight": 0.01}


def attend(*arguments, stdin="", cwd=None):
    return subprocess.run([PROGRAM, *map(str, arguments)], check=True, capture_output=True, text=True,
                          input=stdin, cwd=cwd, env=os.environ | {"OMP_NUM_THREADS": "1"}).stdout


def draw(options, data):
    for part, files, more in (("train", "train", ["--count", options.count, "--valid", 1000]),
                              ("test", "t10k", ["--count", 2000, "--seed", 2])):
        attend("data", "digit-sums", "--images", options.data / f"{files}-images-idx3-ubyte.gz", "--labels",
               options.data / f"{files}-labels-idx1-ubyte.gz", "--out", data, "--part", part, *more)


def train(name, options, training, *more):
    """Returns the model's folder; prints the seconds of training."""
    model = options.out / name
    if not (model / "weights.safetensors").exists():
        began = time.monotonic()
        attend("train", "--config", ROOT / "recipes" / "digit_sums.toml", "--data", options.out / "data", "--out",
               model, "--set", "train.replicas=1", *training, *more)
        print(f"{name}: trained in {time.monotonic() - began:.0f} s", flush=True)
    return model


def patch_box(index, frames):
    """Top, left, height and width. The grid of patches is centred on the picture."""
    patch, height, width = (frames[key] for key in ("patch", "image_height", "image_width"))
    rows, columns = -(-height // patch), -(-width // patch)
    row, column = divmod(index, columns)
    return (row * patch - (rows * patch - height) // 2, column * patch - (columns * patch - width) // 2,
            patch, patch)


def overlap(one, other):
    return all(one[axis] < other[axis] + other[axis + 2] and other[axis] < one[axis] + one[axis + 2]
               for axis in (0, 1))


def measure(model, data):
    """Shares of exact answers, and of the words of digits and of signs that look at their box."""
    rows = [line.split("\t") for line in (data / "test.tsv").read_text().splitlines()]
    places = [tuple(map(int, line.split("\t")[2:])) for line in (data / "test-places.tsv").read_text().splitlines()]
    frames = tomllib.loads((model / "config.toml").read_text())["data"]
    names = "".join(f"{picture}\n" for picture, _ in rows)
    answers = attend("predict", model.resolve(), "--json", "--details", stdin=names, cwd=data).splitlines()
    exact, looked = 0, [0, 0, 0]
    for i, ((_, target), line) in enumerate(zip(rows, answers, strict=True)):
        best = json.loads(line)["predictions"][0]
        exact += best["target"] == target
        for word, weights in enumerate(best["weights"][:3]):
            patch = patch_box(weights.index(max(weights)), frames)
            looked[word] += overlap(patch, places[3 * i + word])
    return exact / len(rows), (looked[0] + looked[2]) / 2 / len(rows), looked[1] / len(rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=pathlib.Path, default=ROOT.parent / "shared" / "data" / "mnist")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "build" / "digit_sums")
    parser.add_argument("--count", type=int, default=20000, help="pictures to train with")
    options, training = parser.parse_known_args()
    data = options.out / "data"
    if not (data / "test.tsv").exists():
        draw(options, data)
    soft = train("soft", options, training)
    hard_settings = [part for key, value in HARD.items() for part in ("--set", f"{key}={value}")]
    hard = train("hard", options, training, "--init", soft, *hard_settings)
    for model in (soft, hard):
        exact, digits, signs = measure(model, data)
        print(f"{model.name}: {exact:.4f} of the answers exact, {digits:.4f} of the digits looked at, "
              f"{signs:.4f} of the signs", flush=True)


if __name__ == "__main__":
    main()
