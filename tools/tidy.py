#!/usr/bin/env python3
"""Runs clang-tidy on the sources of attend/: tidy.py [--all] [--jobs N] [--minutes M]

A file that passed is checked again only if it, one of our headers that it includes, its compiler flags or .clang-tidy
change: tools/passed.txt, which is committed, has a line per file. --all checks every file.
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import time

import passed

ROOT = pathlib.Path(__file__).resolve().parent.parent
CACHE = ROOT / "build" / "tidy"
COMMANDS = CACHE / "commands" / "compile_commands.json"
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]([^>"]+)[>"]', re.MULTILINE)
TORCH_HEADER = re.compile(r"(torch|ATen|c10)/")


def output(*command):
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    return run.stdout.strip() if run.returncode == 0 else ""


def clang_command(entry, torch, compiler_headers):
    """The compile command without the compiler cache and GCC's precompiled header."""
    words = shlex.split(entry["command"])
    while words and not re.search(r"(^|/)(c\+\+|g\+\+|clang\+\+)[-\d]*$", words[0]):
        words.pop(0)
    kept = [words[0]]
    rest = iter(words[1:])
    for word in rest:
        if word == "-include":
            next(rest)
        elif word not in ("-Winvalid-pch", "-fpch-preprocess"):
            kept.append(word)
    # GCC's folder has <omp.h>; -idirafter keeps it after clang's own headers.
    kept += ["-Wno-unknown-warning-option", "-idirafter", compiler_headers]
    return kept + (["-include", str(ROOT / "tools" / "clang_vector.h")] if torch else [])


def headers(path):
    """The file and our headers that it includes, and whether any of them includes LibTorch."""
    found, torch, todo = {path}, False, [path]
    while todo:
        for name in INCLUDE.findall(todo.pop().read_text(encoding="utf-8")):
            torch = torch or bool(TORCH_HEADER.match(name))
            header = ROOT / name
            if name.startswith("attend/") and header not in found and header.is_file():
                found.add(header)
                todo.append(header)
    return found, torch


class Unit:
    """One source file, with a digest of all that clang-tidy reads of it."""

    def __init__(self, entry, common, compiler_headers):
        self.path = pathlib.Path(entry["file"])
        self.name = f"tidy {self.path.relative_to(ROOT)}"
        self.headers, self.torch = headers(self.path)
        self.command = clang_command(entry, self.torch, compiler_headers)
        # The digest ignores the path of the sources, the processor, and flags of optimisation and warnings.
        command = "\0".join(word for word in self.command
                            if not re.match("-(DHWY_DISABLED_TARGETS=|[fOW])", word))
        found = hashlib.sha256(common + command.replace(str(ROOT), "").encode())
        for header in sorted(self.headers):
            found.update(header.read_bytes())
        self.digest = found.hexdigest()[:16]

    def tidy(self, end):
        start = time.monotonic()
        if start > end:
            return self, None, "", 0
        run = subprocess.run(["clang-tidy", "--quiet", "-p", CACHE, self.path], cwd=ROOT,
                             capture_output=True, text=True)
        return self, run.returncode == 0, run.stdout + run.stderr, time.monotonic() - start


def read_units():
    common = (ROOT / ".clang-tidy").read_bytes() + (ROOT / "tools" / "clang_vector.h").read_bytes()
    common += output("clang-tidy", "--version").encode()
    compiler_headers = output("g++", "-print-file-name=include")
    units = [Unit(entry, common, compiler_headers)
             for entry in json.loads(COMMANDS.read_text())
             if pathlib.Path(entry["file"]).is_relative_to(ROOT / "attend")]
    CACHE.mkdir(parents=True, exist_ok=True)
    (CACHE / "compile_commands.json").write_text(json.dumps(
        [{"directory": str(ROOT), "file": str(unit.path), "arguments": unit.command}
         for unit in units]))
    return units


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--all", action="store_true", help="files that passed, too")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--minutes", type=float, default=float("inf"),
                        help="begin no file after this time; prints the number of files left")
    arguments = parser.parse_args()
    units = read_units()
    known = {} if arguments.all else passed.read()
    todo = [unit for unit in units if known.get(unit.name) != unit.digest]
    print(f"{len(units)} files: {len(units) - len(todo)} passed before, {len(todo)} to look at", flush=True)
    end = time.monotonic() + 60 * arguments.minutes
    failed = left = 0
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        # Quick files first, so that a time limit leaves the fewest files.
        runs = [pool.submit(unit.tidy, end) for unit in sorted(todo, key=lambda unit: unit.torch)]
        for run in concurrent.futures.as_completed(runs):
            unit, clean, text, seconds = run.result()
            if clean is None:
                left += 1
                continue
            print(f"{unit.path.relative_to(ROOT)}: {'passed' if clean else 'FAILED'} in "
                  f"{seconds:.0f} s", flush=True)
            if clean:
                passed.record({unit.name: unit.digest})
            else:
                failed += 1
                print(text, flush=True)
    passed.record({}, forget={name for name in passed.read() if name.startswith("tidy ")}
                  - {unit.name for unit in units})
    if left:
        print(f"{left} files not looked at for lack of time")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
