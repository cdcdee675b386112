#!/usr/bin/env python3
"""Trains `attend init pronunciation`, as it is, on the languages of 8,000 words of SIGMORPHON 2021.

    tools/small_languages.py ../shared/data [--out build/small_languages] [--seeds 5]

Task 1, medium: Dutch, French, Serbo-Croatian, Hungarian and Vietnamese, 8,000 words to train with and
1,000 each to validate and to test. Prints a Markdown table: the share of the test words that are wrong
by beam 5, of single models (mean, lowest and highest) and of all of them as one, and the minutes that a
training took, beside the published baseline, an ensemble of neural transducers. A model that is in
--out is not trained again.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import tarfile
import time

PROGRAM = pathlib.Path(os.environ.get("ATTEND_PROGRAM") or pathlib.Path(__file__).resolve().parent
                       .parent / "build" / "release" / "attend")
# Ashby et al. 2021, words wrong by the baseline.
PUBLISHED = {"dut": 14.7, "fre": 8.5, "hbs_latn": 32.1, "hun": 1.8, "vie_hanoi": 2.5}


def attend(*arguments):
    return subprocess.run([PROGRAM, *map(str, arguments)], check=True, capture_output=True, text=True).stdout


def unpack(archive, folder):
    folder.mkdir(parents=True, exist_ok=True)
    with tarfile.open(archive) as packed:
        for member in packed:
            name = pathlib.PurePosixPath(member.name)
            if member.isfile() and name.parent.name == "medium":
                (folder / name.name).write_bytes(packed.extractfile(member).read())


def trained(data, language, config, folder, seed):
    """The model folder; writes the minutes of its training into it."""
    minutes = folder / "minutes.txt"
    if not minutes.exists():
        began = time.monotonic()
        attend("train", "--data", data / f"{language}_train.tsv", "--valid", data / f"{language}_dev.tsv",
               "--out", folder, "--config", config, "--set", f"train.seed={seed}")
        minutes.write_text(f"{(time.monotonic() - began) / 60:.2f}\n")
    return folder


def words_wrong(models, test):
    told = json.loads(attend("evaluate", *models, "--data", test, "--beam", 5, "--json"))
    return 100 * told["sequence_error_rate"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, default="build/small_languages")
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    data = options.out / "data"
    unpack(options.data / "sigmorphon2021-g2p" / "sigmorphon2021-g2p.tar.xz", data)
    config = options.out / "pronunciation.toml"
    config.write_text(attend("init", "pronunciation"))
    print(f"| language | one model | of {options.seeds} | together | published | minutes a training |\n"
          "|---|---|---|---|---|---|")
    rows = []
    for language, published in PUBLISHED.items():
        models = [trained(data, language, config, options.out / f"{language}-{seed}", seed)
                  for seed in range(1, options.seeds + 1)]
        test = data / f"{language}_test.tsv"
        single = [words_wrong([model], test) for model in models]
        minutes = [float((model / "minutes.txt").read_text()) for model in models]
        rows.append((statistics.mean(single), words_wrong(models, test), published))
        print(f"| {language} | {rows[-1][0]:.1f} % | {min(single):.1f}-{max(single):.1f} | {rows[-1][1]:.1f} % "
              f"| {published} % | {min(minutes):.1f}-{max(minutes):.1f} |", flush=True)
    means = [statistics.mean(column) for column in zip(*rows)]
    print(f"| mean | {means[0]:.1f} % | | {means[1]:.1f} % | {means[2]:.1f} % | |")


if __name__ == "__main__":
    main()
