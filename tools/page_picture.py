#!/usr/bin/env python3
"""Draws the page of `attend serve` for docs/serving.md with a headless Chromium.

    tools/page_picture.py build/demo/model build/demo/model-without-attention --text economique --off 3
"""

import argparse
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
for folder in ("tests/support", "tests/cli"):
    sys.path.insert(0, str(ROOT / folder))

import program  # noqa: E402
import webdriver  # noqa: E402
from test_serve import Server  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", help="folders; two are shown next to each other")
    parser.add_argument("--text", default="economique")
    parser.add_argument("--off", type=int, metavar="N", help="the token that is switched off, from 1")
    parser.add_argument("--width", type=int, default=1280)
    parser.add_argument("--height", type=int, default=900)
    parser.add_argument("--dark", action="store_true")
    parser.add_argument("--out", default="docs/page.png")
    options = parser.parse_args()
    program.PROGRAM = program.PROGRAM or str(ROOT / "build/release/attend")
    server = Server(*options.models, "--port", 0, cwd=pathlib.Path.cwd())
    try:
        with webdriver.Browser(options.width, options.height, dark=options.dark, touch=options.width < 600) as browser:
            browser.open(server.url + "/")
            browser.wait("document.querySelectorAll('#model option').length")
            if len(options.models) > 1:
                browser.run("document.getElementById('other').selectedIndex = 2")
            browser.keys("#text", options.text + "\ue007")
            browser.wait("document.querySelector('.first')?.textContent && !document.querySelector('.busy')")
            if options.off:
                browser.click(f".token:nth-of-type({options.off})")
                browser.wait("document.querySelector('.instead .answer')")
            browser.run("document.activeElement.blur(); scrollTo(0, 0)")
            browser.screenshot(options.out)
    finally:
        server.end()


if __name__ == "__main__":
    main()
