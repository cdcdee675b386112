#!/usr/bin/env python3
"""Measures Attend against PyTorch, PyTorch Geometric, KeOps, ONNX Runtime, CTranslate2 and transformers.

    tools/peers.py                    # everything: about an hour on two idle cores
    tools/peers.py --part attention   # or training, decoding, recurrence, encoders
    tools/peers.py --write            # also writes files of rows, and their table

Makes a virtual environment with the peers' newest versions, and builds the benchmarks and, for attention, the
registered operator against its PyTorch. Recurrences run through the Python package of ./dev wheel. Both sides of each
row run in turns. A ratio is the median of the turns' ratios: above 1, Attend is faster. PyTorch's package for Linux is
built with CUDA, so the operator's build needs nvcc, though nothing runs on a GPU.
"""

import argparse
import csv
import datetime
import json
import os
import pathlib
import re
import subprocess
import sys

import bench_page

ROOT = pathlib.Path(__file__).resolve().parent.parent
PACKAGES = ["torch", "torch_geometric", "pykeops", "onnx", "onnxruntime", "ctranslate2", "transformers",
            "safetensors", "numpy"]
TOLD = ["torch", "torch_geometric", "pykeops", "onnxruntime", "ctranslate2", "transformers"]
COLUMNS = ("work", "against", "attend", "peer", "unit", "ratio", "bar", "processor", "packages")
BAR = 1.1  # rows without a bar of their own have this one


def say(text):
    print(f"[peers] {text}", file=sys.stderr, flush=True)


def run(command, **options):
    return subprocess.run([str(part) for part in command], check=True, text=True, **options)


def environment(folder):
    python = folder / "bin" / "python"
    if not python.exists():
        say(f"installing {', '.join(PACKAGES)} into {folder}")
        run([sys.executable, "-m", "venv", folder])
        run([python, "-m", "pip", "install", "--quiet", *PACKAGES])
    return python


def versions(python):
    code = f"import importlib.metadata as m; print(', '.join(f'{{n}} {{m.version(n)}}' for n in {TOLD}))"
    return run([python, "-c", code], capture_output=True).stdout.strip()


def built_operators(python, folder):
    """The registered operator, built against the environment's PyTorch."""
    prefix = run([python, "-c", "import torch; print(torch.utils.cmake_prefix_path)"],
                 capture_output=True).stdout.strip()
    say("building the operator against that PyTorch")
    # Without a list, CMake would run a program to detect the GPU.
    run(["cmake", "-B", folder, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}", "-DATTEND_TESTS=OFF", ROOT],
        stdout=subprocess.DEVNULL, env=os.environ | {"TORCH_CUDA_ARCH_LIST": "9.0"})
    run(["cmake", "--build", folder, "--target", "attend_operators"], stdout=sys.stderr)
    return folder / "libattend_operators.so"


def build_programs():
    folder = ROOT / "build" / "release"
    run([ROOT / "dev", "build"], stdout=sys.stderr)
    run(["cmake", "--build", folder, "--target", "train_bench", "answer_bench"], stdout=sys.stderr)
    return folder


def rows_of(command):
    """The rows of a part, which prints one JSON object per line."""
    with subprocess.Popen([str(part) for part in command], stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            if not line.startswith("{"):  # KeOps prints messages of its compiler
                continue
            row = json.loads(line)
            say(f"{row['work']}, {row['peer']}: {row['ratio']:.2f}x")
            yield row
    if process.returncode:
        raise SystemExit(process.returncode)


def attention_rows(python, folder):
    yield from rows_of([python, ROOT / "tools/peers_attention.py", built_operators(python, folder / "torch")])


def training_rows(python, _):
    yield from rows_of([python, ROOT / "tools/peers_train.py", build_programs()])


def decoding_rows(python, _):
    yield from rows_of([python, ROOT / "tools/peers_decode.py", "--build", build_programs()])


def recurrence_rows(python, _):
    packages = list((ROOT / "build/wheel/dist").glob("*.whl"))
    if not packages:
        raise SystemExit("build/wheel/dist has no package; run ./dev wheel first")
    run([python, "-m", "pip", "install", "--quiet", "--force-reinstall", "--no-deps", packages[0]])
    yield from rows_of([python, ROOT / "tools/peers_recurrence.py"])


def encoder_rows(python, _):
    yield from rows_of([python, ROOT / "tools/peers_encoders.py", build_programs()])


PARTS = {"attention": attention_rows, "training": training_rows, "decoding": decoding_rows,
         "recurrence": recurrence_rows, "encoders": encoder_rows}
# The parts of each file FILE-DATE-MACHINE.csv.
FILES = {"peers": ("attention", "training", "decoding"), "recurrence": ("recurrence",), "encoders": ("encoders",)}


def number(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def machine():
    lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    facts = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
    return (f"{os.cpu_count()} cores of an {facts.get('model name', 'unknown processor')} "
            f"(family {facts.get('cpu family', '?')}, model {facts.get('model', '?')})")


def table(rows, packages):
    text = [f"{machine()}, {datetime.date.today()}; {packages}.", "",
            "| work | against | Attend | peer | Attend's advantage |", "|---|---|---|---|---|"]
    for row in rows:
        bar = row.get("bar", BAR)
        missed = "" if row["ratio"] >= bar else f", below {bar}"
        text.append(f"| {row['work']} | {row['peer']} | {number(row['ours'])} {row['unit']} "
                    f"| {number(row['theirs'])} {row['unit']} | {row['ratio']:.2f}x{missed} |")
    return "\n".join(text)


def write_rows(path, rows, processor, packages):
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for row in rows:
            ours, theirs = (number(row[side]).replace(",", "") for side in ("ours", "theirs"))
            writer.writerow((row["work"], row["peer"], ours, theirs, row["unit"], f"{row['ratio']:.2f}",
                             row.get("bar", BAR), processor, packages))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "build" / "peers")
    parser.add_argument("--part", choices=PARTS, action="append", help="default: all")
    parser.add_argument("--write", action="store_true", help="write bench/results and docs/peers.md")
    parser.add_argument("--machine", help="name in bench/results, such as zen5; default: the processor's family")
    options = parser.parse_args()
    parts = options.part or list(PARTS)
    whole = {name: need for name, need in FILES.items() if set(need) <= set(parts)}
    if options.write and set(parts) - {part for need in whole.values() for part in need}:
        parser.error("--part attention --part training --part decoding write one file")
    python = environment(options.folder / "venv")
    rows = {part: list(PARTS[part](python, options.folder)) for part in parts}
    packages = versions(python)
    print(table([row for part in parts for row in rows[part]], packages))
    if options.write:
        name = options.machine or re.sub(r"\W+", "-", machine().partition("an ")[2]).strip("-").lower()
        for own, need in whole.items():
            write_rows(bench_page.RESULTS / f"{own}-{datetime.date.today()}-{name}.csv",
                       [row for part in need for row in rows[part]], machine(), packages)
        bench_page.write()


if __name__ == "__main__":
    main()
