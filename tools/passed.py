#!/usr/bin/env python3
"""Remembers for every clone which long checks passed: passed.py is|record CHECK

tools/passed.txt has a line per check: its name and a digest of the sources that it depends on. The file is committed,
so that a fresh clone repeats a check only if its sources differ. `is` exits with 0 if they are unchanged.
tools/tidy.py keeps a line per source file there.
"""

import argparse
import hashlib
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FILE = ROOT / "tools" / "passed.txt"
CHECKS = {
    # The kernels, their tests and their fuzzer's corpus under the sanitizers.
    "sanitized-kernels": ["attend/base/*.h", "attend/kernels/**/*", "tests/kernels/*", "tests/fuzz/attention_fuzz.cpp",
                          "tests/fuzz/corpus/attention/*", "cmake/AttendOptions.cmake"],
    # Layers compiled as one.
    "joined": ["attend/**/*.h", "attend/**/*.cpp", "cmake/AttendLayer.cmake", "CMakeLists.txt"],
    # The kernels for all x86 targets and for Arm.
    "targets": ["attend/base/*.h", "attend/kernels/**/*", "tests/kernels/*", "cmake/AttendTargets.cmake"],
}


def digest(patterns):
    files = sorted({path for pattern in patterns for path in ROOT.glob(pattern) if path.is_file()})
    found = hashlib.sha256()
    for path in files:
        content = path.read_bytes()
        found.update(f"{path.relative_to(ROOT)}\0{len(content)}\0".encode() + content)
    return found.hexdigest()[:16]


def read():
    """{name: digest}."""
    lines = FILE.read_text().splitlines() if FILE.exists() else []
    return dict(line.rsplit(" ", 1) for line in lines)


def record(digests, forget=()):
    """Adds {name: digest}; removes the names in `forget`."""
    known = {name: value for name, value in read().items() if name not in forget} | digests
    text = "".join(f"{name} {value}\n" for name, value in sorted(known.items()))
    if not FILE.exists() or FILE.read_text() != text:
        FILE.write_text(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("action", choices=["is", "record"])
    parser.add_argument("check", choices=sorted(CHECKS))
    arguments = parser.parse_args()
    found = digest(CHECKS[arguments.check])
    if arguments.action == "record":
        record({arguments.check: found})
        return 0
    return 0 if read().get(arguments.check) == found else 1


if __name__ == "__main__":
    sys.exit(main())
