#!/usr/bin/env python3
"""Measures calls of the Python package `attend` against the C++ operator and against PyTorch.

Run it with the Python of an environment that has the wheel (./dev wheel makes build/wheel/torch-2.15.0), after
`./dev bench attention --list`, which builds the C++ benchmark. All times are processor times of one thread. The sides
take turns: the C++ benchmark is a process that runs between two measurements of Python, PyTorch runs in this one. All
processes keep freed memory, since otherwise the C library decides by chance how often memory is cleared anew.
Prints figures with their bars; --json FILE adds them to a file of bench/results. Exits with 1 if a bar is missed.
"""

import argparse
import datetime
import json
import math
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import time

import torch
import torch.nn.functional as F

import attend
from attend import scores

BENCH = pathlib.Path(__file__).resolve().parent.parent / "build" / "release" / "attention_bench"
LEAST_SECONDS = 0.02  # per measurement
KEPT_MEMORY = {"MALLOC_TRIM_THRESHOLD_": str(2**30), "MALLOC_MMAP_THRESHOLD_": str(2**25),
               "MALLOC_TOP_PAD_": str(2**24)}
EMPTY = "operator, scaled_dot, batch 1, 1 heads of 1, T=1, d=1"
# Names of cases of the C++ benchmark, with batch, heads, heads of keys, tokens and depth.
SHAPES = {EMPTY: (1, 1, 1, 1, 1),
          "operator, scaled_dot, batch 64, 4 heads of 4, T=32, d=32": (64, 4, 4, 32, 32),
          "operator, scaled_dot, batch 1, 8 heads of 8, T=1024, d=64": (1, 8, 8, 1024, 64),
          "operator, scaled_dot, batch 1, 8 heads of 2, T=1024, d=128": (1, 8, 2, 1024, 128),
          "operator, additive, batch 1, 1 heads of 1, T=1024, d=128": (1, 1, 1, 1024, 128)}


def processor():
    for line in open("/proc/cpuinfo", encoding="utf-8"):
        if line.startswith("model name"):
            flags = [f for f in ("avx512f", "avx512_bf16", "amx_bf16") if f in open("/proc/cpuinfo", encoding="utf-8").read()]
            return f"{line.split(':')[1].strip()} ({', '.join(flags)})"
    return platform.processor()


def results_file(text):
    """A path for --json. The file must exist, so that no measured figure is lost at the end."""
    path = pathlib.Path(text)
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise argparse.ArgumentTypeError(f"{path}: {error}; write its machine, processor, date and rows [] first")
    if "rows" not in content:
        raise argparse.ArgumentTypeError(f"{path}: has no rows; write rows [] first")
    return path


def seconds_of(call):
    """Seconds of one call; short calls are repeated."""
    count = 1
    while True:
        began = time.thread_time()
        for _ in range(count):
            call()
        spent = time.thread_time() - began
        if spent >= LEAST_SECONDS:
            return spent / count
        count = max(count + 1, math.ceil(1.2 * count * LEAST_SECONDS / max(spent, 1e-6)))


def tensors(batch, heads, key_heads, tokens, depth, dtype=torch.float32):
    generator = torch.Generator().manual_seed(1)
    return [torch.randn(batch, count, tokens, depth, generator=generator).to(dtype).requires_grad_()
            for count in (heads, key_heads, key_heads)]


def passes(function, inputs, upstream):
    """The seconds of two calls: forward without autograd, and forward and backward."""
    def forward():
        with torch.no_grad():
            return seconds_of(lambda: function(*inputs))

    def both():
        return seconds_of(lambda: torch.autograd.grad(function(*inputs), inputs, upstream))

    return forward, both


def attend_passes(name, shape):
    inputs = tensors(*shape)
    upstream = torch.randn(inputs[0].shape)
    if ", additive," in name:
        inputs.append(torch.randn(shape[-1]).requires_grad_())
        return passes(lambda q, k, v, w: attend.attention(q, k, v, score=scores.additive(w)), inputs, upstream)
    return passes(lambda q, k, v: attend.attention(q, k, v), inputs, upstream)


def native_times(names):
    """Microseconds of the C++ operator: (forward, both) for each name."""
    run = subprocess.run([BENCH, "--json", "--only", "operator, "], check=True, capture_output=True, text=True)
    found = {(entry["case"], entry["metric"]): entry["value"] for entry in json.loads(run.stdout)}
    return {name: (found[name, "forward, us"], found[name, "both, us"]) for name in names}


def rounded(value):
    number = float(f"{value:.3g}")
    return int(number) if number.is_integer() else number


class Figures:
    """Figures of one bench of a file in bench/results, and how many of them miss their bars."""

    def __init__(self, bench):
        self.bench, self.rows, self.missed = bench, [], 0

    def add(self, case, metric, value, unit, bar=None, at_most=False):
        row = {"bench": self.bench, "case": case, "metric": metric, "value": rounded(value), "unit": unit}
        shown = ""
        if bar is not None:
            row |= {"bar": bar, "met": value <= bar if at_most else value >= bar}
            self.missed += not row["met"]
            shown = f"  {'<=' if at_most else '>='} {bar:g}{'' if row['met'] else ', missed'}"
        self.rows.append(row)
        print(f"{case}; {metric}: {row['value']:g} {unit}{shown}", flush=True)

    def add_to(self, path):
        """Replaces the bench's figures of the same cases in a file that has its machine, processor and date."""
        content = json.loads(path.read_text(encoding="utf-8"))
        cases = {(row["bench"], row["case"]) for row in self.rows}
        content["rows"] = [row for row in content["rows"] if (row["bench"], row["case"]) not in cases] + self.rows
        path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def against_native(figures, turns):
    """The time that Python adds to the C++ operator."""
    calls = {name: attend_passes(name, shape) for name, shape in SHAPES.items()}
    rounds = []
    for _ in range(turns):
        native = native_times(SHAPES)
        # A core that has slept is slow at first.
        for measure in calls[EMPTY] * 10:
            measure()
        rounds.append({name: [(1e6 * statistics.median(measure() for _ in range(5)), native[name][index])
                              for index, measure in enumerate(pair)] for name, pair in calls.items()})
    for name in SHAPES:
        for index, kind in enumerate(("forward", "both passes")):
            ours, other = (statistics.median(turn[name][index][side] for turn in rounds) for side in (0, 1))
            case = f"{name.removeprefix('operator, ')}, {kind}"
            figures.add(case, "attend", ours, "us")
            if name == EMPTY:
                # Both passes have no bar, since they include PyTorch's autograd of functions in Python.
                figures.add(case, "more than C++", ours - other, "us", 25 if index == 0 else None, at_most=True)
            else:
                figures.add(case, "over C++", ours / other, "x", 1.03, at_most=True)


def eager_additive(q, k, v, w):
    weights = torch.softmax(torch.tanh(q.unsqueeze(-2) + k.unsqueeze(-3)) @ w, dim=-1)
    return weights @ v


def against_torch(figures, turns):
    """PyTorch's attention of the same inputs, with the bars of tools/peers.py; contexts are compared first."""
    sides = []
    for dtype in (torch.float32, torch.bfloat16):
        inputs = tensors(1, 8, 8, 1024, 64, dtype)
        sides.append((f"scaled dot, 8 heads x 1,024, depth 64, {str(dtype)[6:]}", "sdpa", inputs, 1.1,
                      lambda q, k, v: attend.attention(q, k, v), F.scaled_dot_product_attention))
    inputs = [*tensors(1, 1, 1, 1024, 128), torch.randn(128).requires_grad_()]
    sides.append(("additive, 1,024 keys, depth 128, float32", "eager", inputs, 50,
                  lambda q, k, v, w: attend.attention(q, k, v, score=scores.additive(w)), eager_additive))
    for name, peer, inputs, bar, ours, theirs in sides:
        with torch.no_grad():
            tolerance = 2e-2 if inputs[0].dtype == torch.bfloat16 else 1e-4
            torch.testing.assert_close(ours(*inputs), theirs(*inputs), rtol=tolerance, atol=tolerance)
        upstream = torch.randn(inputs[0].shape).to(inputs[0].dtype)
        pairs = zip(passes(ours, inputs, upstream), passes(theirs, inputs, upstream))
        for kind, (our_call, their_call) in zip(("forward", "both passes"), pairs):
            rounds = [(our_call(), their_call()) for _ in range(turns + 1)][1:]
            ratio = statistics.median(other / mine for mine, other in rounds)
            figures.add(f"{name}, {kind}", "attend", 1e3 * statistics.median(mine for mine, _ in rounds), "ms")
            figures.add(f"{name}, {kind}", f"{peer} over attend", ratio, "x", bar)


def resident():
    pages = int(pathlib.Path("/proc/self/statm").read_text(encoding="utf-8").split()[1])
    return pages * 4096 / 1e6


def memory_of_calls(figures, calls):
    """Growth of the resident memory over calls with gradients, after the first tenth."""
    q, k, v = tensors(1, 2, 2, 16, 16)
    vector = torch.randn(16).requires_grad_()
    for call in range(calls):
        score = scores.additive(vector) if call % 10 == 0 else "scaled_dot"
        attend.attention(q, k, v, score=score).sum().backward()
        if call == calls // 10:
            before = resident()
    grown = resident() - before
    figures.add(f"{calls:,} calls", "growth of memory", grown, "MB", 1, at_most=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--calls", type=int, default=100_000)
    parser.add_argument("--json", type=results_file, help="file of bench/results")
    options = parser.parse_args()
    if not BENCH.exists():
        sys.exit(f"{BENCH} does not exist; build it by ./dev bench attention --list")
    if not KEPT_MEMORY.items() <= os.environ.items():
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | KEPT_MEMORY)
    torch.set_num_threads(1)
    print(f"{processor()}, one thread, PyTorch {torch.__version__}, attend {attend.__version__}, "
          f"{datetime.date.today()}\n")
    figures = Figures("python")
    against_native(figures, options.turns)
    against_torch(figures, options.turns)
    memory_of_calls(figures, options.calls)
    if options.json:
        figures.add_to(options.json)
    return figures.missed > 0


if __name__ == "__main__":
    sys.exit(main())
