#!/usr/bin/env python3
"""Sentences as sets of words: bags, fixed attention and self-attention, on rt-polarity and SST-2.

    tools/sentences.py [--data ../shared/data] [--out build/sentences] [--folds 10] [--jobs 1]

Trains each system from random vectors with `attend train`, keeps the best weights in validation and measures the test
part once. Prints a Markdown table with published figures and the minutes of training on one processor, then each
system's answers to "was great" and "was not great". Figures are kept in --out and not measured again, so that a stopped
run continues.
"""

import argparse
import concurrent.futures
import json
import math
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

import sentences_data

PROGRAM = pathlib.Path(os.environ.get("ATTEND_PROGRAM") or pathlib.Path(__file__).resolve().parent
                       .parent / "build" / "release" / "attend")

# Chosen only on validation parts.
COMMON = {"model.type": "classifier", "model.depth": 100, "model.attention_depth": 50,
          "model.word_dropout": 0.3, "model.output_dropout": 0.5, "train.replicas": 1,
          "train.label_smoothing": 0.1, "train.learning_rate": 2e-3, "train.warmup_steps": 100,
          "train.patience": 3, "train.weight_average": 0.995, "train.checkpoint_seconds": 600}

# The smaller set takes more epochs and smaller batches.
TASKS = {"rt-polarity": {"train.batch": 64, "train.epochs": 6},
         "sst2": {"train.batch": 256, "train.epochs": 4}}

DOT, MLP = {"model.pooling": "fixed_dot"}, {"model.pooling": "fixed_mlp"}
UNNORMALISED = {"model.pooling_normaliser": "none"}
SIGMOID = {"model.pooling_normaliser": "sigmoid"}
FOUR = {"model.queries": 4}
SYSTEMS = {
    "sum of vectors": {"model.pooling": "sum"},
    "mean and hidden layer": {"model.pooling": "mean", "model.hidden": 100},
    "fixed dot, 1 query": DOT | UNNORMALISED,
    "fixed dot, 4 queries": DOT | UNNORMALISED | FOUR,
    "fixed MLP, 1 query": MLP | SIGMOID,
    "fixed MLP, 4 queries": MLP | SIGMOID | FOUR,
    "fixed MLP, 1 query, softmax": MLP,
    "self-attention, fixed MLP": MLP | SIGMOID | {"model.layers": 1, "model.feed_forward": 200,
                                                  "model.dropout": 0.3},
}

# From random vectors, on rt-polarity (10-fold) and on SST-2 trained with its phrases.
PUBLISHED = [("bag of vectors (published)", 76.2, 81.4),
             ("averaging network (published)", 77.3, 83.2),
             ("convolutional network (published)", 76.1, 82.7)]

PAIRS = ["was great", "was not great", "was bad", "was not bad"]


def attend(*arguments, stdin=""):
    return timed(*arguments, stdin=stdin)[0]


def timed(*arguments, stdin=""):
    """Standard output, and the processor time in minutes, which does not depend on other load."""
    with tempfile.TemporaryFile("w+") as given, tempfile.TemporaryFile("w+") as out, \
            tempfile.TemporaryFile("w+") as errors:
        given.write(stdin)
        given.seek(0)
        run = subprocess.Popen([PROGRAM, *map(str, arguments)], stdin=given, stdout=out,
                               stderr=errors, env=os.environ | {"OMP_NUM_THREADS": "1"})
        _, status, used = os.wait4(run.pid, 0)
        run.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        errors.seek(0)
        if run.returncode != 0:
            sys.exit(errors.read())
        return out.read(), (used.ru_utime + used.ru_stime) / 60


def measure(settings, data, out):
    """Figures of a model with these settings on one split, read from `out` if they are there."""
    stored = out / "figures.json"
    if stored.exists():
        return json.loads(stored.read_text())
    shutil.rmtree(out, ignore_errors=True)
    training, minutes = timed("train", "--data", data, "--out", out, "--json",
                              *(part for key, value in settings.items()
                                for part in ("--set", f"{key}={value}")))
    figures = {"minutes": minutes,
               "valid": json.loads(training)["valid_accuracy"],
               "test": json.loads(attend("evaluate", out, "--data", data, "--threads", 1,
                                         "--json"))["accuracy"]}
    (out / "checkpoint.safetensors").unlink()
    stored.write_text(json.dumps(figures))
    print(f"{out}: validation {100 * figures['valid']:.1f}, test {100 * figures['test']:.1f}, "
          f"{figures['minutes']:.1f} minutes", file=sys.stderr, flush=True)
    return figures


def splits(task, folds):
    return [f"fold{i}" for i in range(folds)] if task == "rt-polarity" else ["."]


def folder(out, task, system, split):
    name = system.replace(",", "").replace(" ", "-")
    return out / "models" / task / name / ("all" if split == "." else split)


def measure_all(options):
    """{task, system: figures of each split}."""
    figures = {}
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for task in options.tasks:
            for split in splits(task, options.folds):
                for system in SYSTEMS:
                    figures.setdefault((task, system), []).append(pool.submit(
                        measure, COMMON | TASKS[task] | SYSTEMS[system], options.out / task / split,
                        folder(options.out, task, system, split)))
        return {key: [run.result() for run in runs] for key, runs in figures.items()}


def cell(runs):
    tests = [100 * run["test"] for run in runs]
    spread = f" ± {statistics.stdev(tests):.1f}" if len(tests) > 1 else ""
    return f"{statistics.mean(tests):.1f}{spread}"


def print_table(figures, tasks):
    print("| system |" + "".join(f" {task} | minutes |" for task in tasks))
    print("|---|" + "---|---|" * len(tasks))
    for system in SYSTEMS:
        cells = "".join(
            f" {cell(figures[task, system])} | "
            f"{sum(run['minutes'] for run in figures[task, system]):.1f} |" for task in tasks)
        print(f"| {system} |{cells}")
    for name, *values in PUBLISHED:
        published = dict(zip(TASKS, values))
        print(f"| {name} |" + "".join(f" {published[task]} | |" for task in tasks))


def positive(model, text):
    answers = json.loads(attend("predict", model, "--beam", 2, "--nbest", 2, "--json", stdin=text))
    return {answer["target"]: math.exp(answer["log_probability"])
            for answer in answers["predictions"]}["positive"]


def weighed(model, system, text):
    """The words with their weights, or nothing for systems without weights."""
    if not SYSTEMS[system]["model.pooling"].startswith("fixed"):
        return ""
    picture = json.loads(attend("explain", model, text, "--json"))
    return " ".join(f"{word} {weight:.2f}"
                    for word, weight in zip(picture["source"], picture["weights"][0]))


def print_pairs(out, task):
    print(f"\nProbability of positive, and the weight of each word ({task}):\n")
    print("| system |" + "".join(f" {text} |" for text in PAIRS))
    print("|---|" + "---|" * len(PAIRS))
    for system in SYSTEMS:
        model = folder(out, task, system, splits(task, 1)[0])
        cells = []
        for text in PAIRS:
            weights = weighed(model, system, text)
            cells.append(f" {positive(model, text):.2f}{' (' + weights + ')' if weights else ''} |")
        print(f"| {system} |" + "".join(cells))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=pathlib.Path, default="../shared/data")
    parser.add_argument("--out", type=pathlib.Path, default="build/sentences")
    parser.add_argument("--tasks", nargs="+", choices=list(TASKS), default=list(TASKS))
    parser.add_argument("--folds", type=int, choices=range(1, 11), default=10)
    parser.add_argument("--jobs", type=int, default=1, help="trainings at once, a thread each")
    options = parser.parse_args()
    if not PROGRAM.exists():
        sys.exit(f"{PROGRAM} is not there; run ./dev build")
    sentences_data.write_all(options.data, options.out)
    figures = measure_all(options)
    print_table(figures, options.tasks)
    print_pairs(options.out, options.tasks[-1])


if __name__ == "__main__":
    main()
