#!/usr/bin/env python3
"""Trains models that differ only in their seed, evaluates each, and prints the figures and their mean.
Unknown options are passed to `attend train`.

    tools/seeds.py --recipe cora --data ../shared/data/cora --metric accuracy --seeds 10
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import resource
import statistics
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent


def run(*command):
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(done.stderr or done.stdout)
    return json.loads(done.stdout)


def measure(program, data, metric, seed, training):
    with tempfile.TemporaryDirectory(prefix="attend-seeds-") as folder:
        model = f"{folder}/model"
        trained = run(program, "train", "--data", data, "--out", model, "--json", *training,
                      "--set", f"train.seed={seed}")
        figures = run(program, "evaluate", model, "--data", data, "--json", "--metric", metric)
        return trained["steps"], figures[metric]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--data", required=True)
    parser.add_argument("--metric", default="accuracy")
    parser.add_argument("--seeds", type=int, default=10, help="seeds 1 to this")
    parser.add_argument("--at-once", type=int, default=os.cpu_count())
    parser.add_argument("--program", default=ROOT / "build/release/attend")
    options, training = parser.parse_known_args()
    start = time.monotonic()
    # Each training uses one thread; several run at once.
    with concurrent.futures.ThreadPoolExecutor(options.at_once) as pool:
        waiting = [pool.submit(measure, options.program, options.data, options.metric, seed, training)
                   for seed in range(1, options.seeds + 1)]
        found = []
        for seed, one in enumerate(waiting, 1):
            steps, figure = one.result()
            found.append(figure)
            print(f"seed {seed:<3} {steps:>6} steps  {options.metric} {figure:.4f}", flush=True)
    deviation = statistics.stdev(found) if len(found) > 1 else 0
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"mean {statistics.mean(found):.4f} +- {deviation:.4f} of {len(found)} seeds in "
          f"{time.monotonic() - start:.0f} s, {used.ru_utime + used.ru_stime:.0f} s of processors")


if __name__ == "__main__":
    main()
