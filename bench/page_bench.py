"""How fast an explanation page is made and used, beside the bars; needs chromium and chromium-driver.

A long page has 10,000 x 10,000 tokens with 32 heads, a model page 12 layers x 12 heads x 512 tokens."""

import pathlib
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/support"))

import webdriver  # noqa: E402
from pages import (  # noqa: E402
    MATRIX_GESTURES, SHOWN, centre, make, p95_of_frames, show_all_heads, show_heads, wheel)

TRIES = 3  # the median counts
MADE, PAINTED, FRAME = 60, 1000, 33  # bars: seconds, milliseconds, milliseconds


def row(what, value, unit, bar):
    print(f"{what:<34}{value:9.1f} {unit:<3}{bar:6} {unit:<3}{'' if value <= bar else '  MISSED'}", flush=True)


def median(values):
    return sorted(values)[len(values) // 2]


def first_paint(path, view):
    """Milliseconds to the frame behind the one with the first map, and to the first text at least."""
    with webdriver.Browser(1280, 900) as browser:
        browser.open(f"file://{path}#{view}")
        browser.wait(SHOWN)
        browser.wait("performance.getEntriesByName('first-contentful-paint').length")
        return browser.run("return Math.max(...['first map', 'first-contentful-paint'].map("
                           "name => performance.getEntriesByName(name)[0].startTime))")


def frames(browser, name, act):
    row(f"{name}, p95 of frames", median([p95_of_frames(browser, act)[0] for _ in range(TRIES)]), "ms", FRAME)


def gestures(path):
    with webdriver.Browser(1280, 900) as browser:
        browser.open(f"file://{path}#matrix")
        browser.wait(SHOWN)
        at = centre(browser, "#view-matrix canvas")
        for name, act in MATRIX_GESTURES.items():
            frames(browser, "long, " + name, lambda act=act: act(browser, at))
        at = show_heads(browser)
        frames(browser, "long, scroll of four heads", lambda: wheel(browser, at, 120, 40))
        show_all_heads(browser, 32)
        frames(browser, "long, scroll of all heads", lambda: wheel(browser, at, 120, 40))


def main():
    absent = webdriver.missing()
    if absent:
        sys.exit(f"page_bench needs {', '.join(absent)}")
    with tempfile.TemporaryDirectory() as folder:
        print(f"{'':<34}{'measured':>12}  {'at most':>8}")
        path, seconds, _ = make("long", folder)
        row("long, the file is made", seconds, "s", MADE)
        for page in (path, make("model", folder)[0]):
            for view in ("model", "heads", "matrix"):
                row(f"{page.stem}, first map in {view}", median([first_paint(page, view) for _ in range(TRIES)]),
                    "ms", PAINTED)
        gestures(path)


main()
