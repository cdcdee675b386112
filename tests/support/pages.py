"""Pages of maps for a headless Chromium, and the gestures of whoever looks at them."""

import os
import pathlib
import subprocess

MAKE_PAGE = os.environ.get("MAKE_PAGE", "")
SHOWN = "performance.getEntriesByName('first map').length"


def make(name, folder):
    """The file of a page."""
    path = pathlib.Path(folder, name + ".html")
    subprocess.run([MAKE_PAGE, name, path], check=True)
    return path


def centre(browser, selector):
    box = browser.run("const box = document.querySelector(arguments[0]).getBoundingClientRect();"
                      "return [box.left, box.top, box.width, box.height]", selector)
    return round(box[0] + box[2] / 2), round(box[1] + box[3] / 2)


def drag(browser, start, steps):
    moves = [{"type": "pointerMove", "duration": 16, "origin": "pointer", "x": x, "y": y} for x, y in steps]
    browser.actions({"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": [
        {"type": "pointerMove", "duration": 0, "x": start[0], "y": start[1]},
        {"type": "pointerDown", "button": 0}, *moves, {"type": "pointerUp", "button": 0}]})


def wheel(browser, place, pixels, times):
    browser.actions({"type": "wheel", "id": "wheel", "actions": [
        {"type": "scroll", "duration": 16, "x": place[0], "y": place[1], "deltaX": 0, "deltaY": pixels}] * times})


CIRCLE = [(6, 3)] * 20 + [(-3, 5)] * 20 + [(-5, -6)] * 20
MATRIX_GESTURES = {  # gestures on a matrix; arguments: browser, middle of the canvas
    "zoom in": lambda browser, place: wheel(browser, place, -60, 20),
    "pan": lambda browser, place: drag(browser, place, CIRCLE),
    "zoom in further": lambda browser, place: wheel(browser, place, -60, 20),
    "pan among tokens": lambda browser, place: drag(browser, place, CIRCLE),
    "zoom out": lambda browser, place: wheel(browser, place, 60, 40),
}


def show_heads(browser):
    """Goes to the lines between tokens; returns the middle of their canvas."""
    browser.click("#tab-heads")
    browser.wait("document.querySelector('#view-heads canvas').height > 200")
    return centre(browser, "#view-heads canvas")


def show_all_heads(browser, count):
    browser.click("#view-heads .chips > button:last-child")
    browser.wait(f"[...decoded.values()].filter(promise => promise.bytes).length === {count}")
