"""Measures the time and memory that it takes to make and use explanation pages, next to their bars.

Needs chromium and chromium-driver.

The long page has 10,000 x 10,000 tokens with 32 heads, the model page 12 layers x 12 heads x 512 tokens."""
# Needs the targets: make_page

import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/support"))

import webdriver  # noqa: E402
from pages import (  # noqa: E402
    MAKE_PAGE, MATRIX_GESTURES, SHOWN, centre, make, show_all_heads, show_heads, wheel)

TRIES = 3  # the median counts
# Bars: seconds, MB, MB, milliseconds, milliseconds, MB.
MADE, MAKING, FILE, PAINTED, FRAME, HEAP = 60, 1000, 42, 1000, 33, 300
RECORD = """
const times = window.frameTimes = [];
const step = now => {
  if (window.frameTimes !== times) return;
  times.push(now);
  requestAnimationFrame(step);
};
requestAnimationFrame(step);
"""


def row(what, value, unit, bar):
    print(f"{what:<34}{value:9.1f} {unit:<3}{bar:6} {unit:<3}{'' if value <= bar else '  MISSED'}", flush=True)


def median(values):
    return sorted(values)[len(values) // 2]


def make_long(folder):
    """Makes the long page and reports its cost; returns the file."""
    path = pathlib.Path(folder, "long.html")
    start = time.monotonic()
    process = subprocess.Popen([MAKE_PAGE, "long", path])
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{MAKE_PAGE} long exits with {process.returncode}")
    row("long, the file is made", time.monotonic() - start, "s", MADE)
    row("long, memory while it is made", usage.ru_maxrss * 1024 / 1e6, "MB", MAKING)
    row("long, the file", path.stat().st_size / 1e6, "MB", FILE)
    return path


def p95_of_frames(browser, act):
    """95th percentile of the milliseconds between frames during an action."""
    browser.run(RECORD)
    act()
    times = browser.run("const times = window.frameTimes; window.frameTimes = null; return times")
    gaps = sorted(after - before for before, after in zip(times, times[1:]))
    return gaps[int(0.95 * (len(gaps) - 1))]


def first_paint(path, view):
    """Milliseconds to the frame after the first map, or to the first text if that is later."""
    with webdriver.Browser(1280, 900) as browser:
        browser.open(f"file://{path}#{view}")
        browser.wait(SHOWN)
        browser.wait("performance.getEntriesByName('first-contentful-paint').length")
        return browser.run("return Math.max(...['first map', 'first-contentful-paint'].map("
                           "name => performance.getEntriesByName(name)[0].startTime))")


def frames(browser, name, act):
    row(f"{name}, p95 of frames", median([p95_of_frames(browser, act) for _ in range(TRIES)]), "ms", FRAME)


def gestures(path):
    with webdriver.Browser(1280, 900) as browser:
        browser.open(f"file://{path}#matrix")
        browser.wait(SHOWN)
        middle = centre(browser, "#view-matrix canvas")
        for name, act in MATRIX_GESTURES.items():
            frames(browser, "long, " + name, lambda act=act: act(browser, middle))
        middle = show_heads(browser)
        frames(browser, "long, scroll of four heads", lambda: wheel(browser, middle, 120, 40))
        show_all_heads(browser, 32)
        frames(browser, "long, scroll of all heads", lambda: wheel(browser, middle, 120, 40))


def heap(path):
    """Reports the scripts' memory after showing every head: objects, the browser's memory for them, and buffers."""
    with webdriver.Browser(1280, 900) as browser:
        browser.open(f"file://{path}#matrix")
        browser.wait(SHOWN)
        for number in range(32):
            browser.run("const select = document.querySelectorAll('#view-matrix select')[1];"
                        "select.value = arguments[0]; select.dispatchEvent(new Event('change'))", number)
            browser.wait(f"[...decoded].some(([about, promise]) => about.block === {number} && promise.bytes)")
        browser.cdp("HeapProfiler.collectGarbage")
        usage = browser.cdp("Runtime.getHeapUsage")
        held = sum(usage[key] for key in ("usedSize", "embedderHeapUsedSize", "backingStorageSize"))
        row("long, heap after every head", held / 1e6, "MB", HEAP)


def main():
    absent = webdriver.missing()
    if absent:
        sys.exit(f"page_bench needs {', '.join(absent)}")
    with tempfile.TemporaryDirectory() as folder:
        print(f"{'':<34}{'measured':>12}  {'at most':>8}")
        path = make_long(folder)
        for page in (path, make("model", folder)):
            for view in ("model", "heads", "matrix"):
                row(f"{page.stem}, first map in {view}", median([first_paint(page, view) for _ in range(TRIES)]),
                    "ms", PAINTED)
        gestures(path)
        heap(path)


main()
