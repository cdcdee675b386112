#!/usr/bin/env python3
"""Runs the self-test of the kernels on processors that QEMU emulates: Arm with several widths of SVE, and s390x.

A row of `./dev conform`. Needs Debian's g++-aarch64-linux-gnu, g++-s390x-linux-gnu and qemu-user. apt-get downloads the
foreign libraries of Highway and fmt into build/conform/processors, without a change to the system. Every forward and
backward pass of the self-test must be within its bound. s390x is big-endian.
"""

import os
import pathlib
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from conform_report import Report, arguments

ROOT = pathlib.Path(__file__).resolve().parents[1]
FOLDER = ROOT / "build/conform/processors"
DISABLED = "-DHWY_DISABLED_TARGETS=(HWY_SVE|HWY_SVE2|HWY_SVE_256|HWY_SVE2_128)"
# Architecture of GCC and QEMU: Debian's name, and the processors to emulate.
PROCESSORS = {
    "aarch64": ("arm64", ["max,sve=off"] + [f"max,sve{bits}=on" for bits in (128, 256, 512, 2048)]),
    "s390x": ("s390x", ["max"]),
}


def run(*command, **options):
    return subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True, **options)


def fetch_libraries(architecture, folder):
    """Unpacks the libraries of a foreign architecture below `folder`."""
    if (folder / "usr/include/hwy").exists():
        return
    state = folder / "apt"
    (state / "lists/partial").mkdir(parents=True, exist_ok=True)
    (state / "cache/archives/partial").mkdir(parents=True, exist_ok=True)
    (state / "status").touch()
    chosen = ["-o", f"APT::Architecture={architecture}", "-o", f"APT::Architectures={architecture}",
              "-o", f"Dir::State::Lists={state}/lists", "-o", f"Dir::Cache={state}/cache",
              "-o", f"Dir::State::status={state}/status", "-o", "APT::Sandbox::User=root"]
    run("apt-get", *chosen, "update")
    run("apt-get", *chosen, "download", "libhwy1", "libhwy-dev", "libfmt-dev", "libfmt9", cwd=state)
    for package in state.glob("*.deb"):
        run("dpkg-deb", "-x", package, folder)


def built(machine, architecture):
    """Builds the self-test for one architecture; returns its path."""
    folder = FOLDER / machine
    folder.mkdir(parents=True, exist_ok=True)
    fetch_libraries(architecture, folder)
    sources = [*(ROOT / "attend/kernels").rglob("*.cpp"), *(ROOT / "attend/base").glob("cpu*.cpp"),
               ROOT / "tests/support/selftest_program.cpp"]
    compiler = f"{machine}-linux-gnu-g++"
    cache = ["ccache"] if shutil.which("ccache") else []
    options = ["-std=c++20", "-O2", "-fopenmp", f"-I{ROOT}", f"-I{folder}/usr/include", "-DFMT_HEADER_ONLY", DISABLED]

    def compiled(source):
        target = folder / (str(source.relative_to(ROOT)).replace("/", "_") + ".o")
        run(*cache, compiler, *options, "-c", source, "-o", target)
        return target

    with ThreadPoolExecutor(int(os.environ.get("ATTEND_JOBS", "2"))) as pool:
        objects = list(pool.map(compiled, sources))
    libraries = next((folder / "usr/lib").glob("*-linux-gnu"))
    run(compiler, "-fopenmp", *objects, "-o", folder / "selftest", next(libraries.glob("libhwy.so.1")),
        f"-Wl,-rpath,{libraries}")
    return folder / "selftest"


def main():
    options = arguments(__doc__.splitlines()[0]).parse_args()
    del options
    report = Report()
    for machine, (architecture, processors) in PROCESSORS.items():
        missing = [tool for tool in (f"{machine}-linux-gnu-g++", f"qemu-{machine}") if not shutil.which(tool)]
        if missing:
            report.state(machine, False, f"{', '.join(missing)} missing: install g++-{machine}-linux-gnu and qemu-user")
            continue
        try:
            program = built(machine, architecture)
        except subprocess.CalledProcessError as error:
            report.state(machine, False, error.stderr.strip()[-300:])
            continue
        for processor in processors:
            command = [f"qemu-{machine}", "-L", f"/usr/{machine}-linux-gnu", "-cpu", processor, program]
            done = subprocess.run(command, capture_output=True, text=True, check=False,
                                  env=os.environ | {"OMP_NUM_THREADS": "1"})
            said = "; ".join(done.stdout.splitlines()) or done.stderr.strip()
            report.state(f"{machine} {processor}", done.returncode == 0, said)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
