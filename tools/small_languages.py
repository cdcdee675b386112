#!/usr/bin/env python3
"""Trains `attend init pronunciation`, unchanged, on the languages of 8,000 words of SIGMORPHON 2021.

    tools/small_languages.py ../shared/data [--out build/small_languages] [--seeds 5]

Task 1, medium: Dutch, French, Serbo-Croatian, Hungarian and Vietnamese, with 8,000 words for training and 1,000 each
for validation and test. Prints a Markdown table of test words wrong with beam 5: for single models (mean, lowest and
highest), for their ensemble, and for the published baseline, an ensemble of neural transducers. The last column has
the minutes per training. Existing models in --out are not trained again.
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
# Words wrong by the baseline (Ashby et al. 2021).
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
    """Returns the model's folder; writes the minutes of training into it."""
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
