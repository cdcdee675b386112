"""The explanation page in a headless Chromium: what it shows and holds. How fast it is: bench/page_bench.py."""

import base64
import json
import pathlib
import re
import struct
import sys
import tempfile
import time
import unittest
import zlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/support"))

import cases  # noqa: E402
import webdriver  # noqa: E402
from pages import (  # noqa: E402
    MAKE_PAGE, MATRIX_GESTURES, SHOWN, centre, make, p95_of_frames, show_all_heads, show_heads, wheel)


def element_text(page, name):
    return re.search(rf'<script [^>]*id="{name}">(.*?)</script>', page, re.DOTALL)[1]


def weights_of(path, layer, head):
    """The rows of a map that the page holds as a whole, and its texts."""
    page = path.read_text(encoding="utf-8")
    texts = json.loads(element_text(page, "page"))
    about = texts["maps"][layer]["heads"][head]
    data = zlib.decompress(base64.b64decode(element_text(page, f"block{about['block']}")))
    count = len(data) // 4
    floats = struct.unpack(f"<{count}f", struct.pack(f"<{count}I", *numbers(data, 0, count, 4)))
    width = about["columns"]
    return [floats[row * width:(row + 1) * width] for row in range(about["rows"])], texts


def numbers(data, start, count, planes):
    return [sum(data[start + plane * count + i] << (8 * plane) for plane in range(planes)) for i in range(count)]


def kept_of(path, block):
    """The weights that the page holds of each row, by column, and how many they are."""
    page = path.read_text(encoding="utf-8")
    texts = json.loads(element_text(page, "page"))
    about = [head for layer in texts["maps"] for head in layer["heads"]][block]
    data = zlib.decompress(base64.b64decode(element_text(page, f"block{block}")))
    kept = about["kept"]
    count = about["rows"] * kept
    steps = numbers(data, 0, count, 3)
    weights = struct.unpack(f"<{count}f", struct.pack(f"<{count}I", *numbers(data, 3 * count, count, 4)))
    rows = []
    for start in range(0, count, kept):
        columns = [sum(steps[start:start + i + 1]) for i in range(kept)]
        rows.append(dict(zip(columns, weights[start:start + kept])))
    return rows, kept


def heap(browser):
    """Bytes that scripts hold: objects, what the browser holds for them, and buffers."""
    browser.cdp("HeapProfiler.collectGarbage")
    usage = browser.cdp("Runtime.getHeapUsage")
    return sum(usage[key] for key in ("usedSize", "embedderHeapUsedSize", "backingStorageSize"))


def report(text):
    print("  " + text, flush=True)


class PageCase(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        absent = webdriver.missing()
        if absent or not MAKE_PAGE:
            what = f"not installed: {', '.join(absent)}" if absent else "MAKE_PAGE names no program"
            report(f"NO TEST OF THE PAGE IN A BROWSER: {what}. Install chromium and chromium-driver of packages.txt.")
            raise unittest.SkipTest(what)
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)

    def browse(self, path, view="", width=1280, height=900, **options):
        browser = webdriver.Browser(width, height, **options)
        self.addCleanup(browser.close)
        browser.open(f"file://{path}#{view}")
        return browser


class Bars(PageCase):
    """10,000 x 10,000 tokens with 32 heads, and 12 layers x 12 heads x 512 tokens."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.long, _, cls.memory = make("long", cls.folder.name)
        cls.model, _, _ = make("model", cls.folder.name)

    def test_a_long_page_is_made_in_a_gigabyte(self):
        size = self.long.stat().st_size
        report(f"long page: {size / 2**20:.1f} MiB, made in {self.memory / 1e6:.0f} MB; "
               f"model page: {self.model.stat().st_size / 2**20:.1f} MiB")
        self.assertLessEqual(size, 40 * 2**20)
        self.assertLessEqual(self.memory, 1e9)

    def test_pan_and_zoom(self):
        browser = self.browse(self.long, "matrix")
        browser.wait(SHOWN)
        at = centre(browser, "#view-matrix canvas")
        seen = "return views.matrix.made.then(({matrix}) => [matrix.scaleX, matrix.x, matrix.y])"
        for name, act in MATRIX_GESTURES.items():
            before = browser.run(seen)
            _, frames = p95_of_frames(browser, lambda act=act: act(browser, at))
            after = browser.run(seen)
            report(f"long, {name}: {frames} frames")
            self.assertGreater(frames, 1, name)
            if name.startswith("pan"):
                self.assertEqual(after[0], before[0], name)
                self.assertNotEqual(after[1:], before[1:], name)
            else:
                self.assertEqual(after[0] > before[0], name.startswith("zoom in"), name)

    def test_lines_of_all_heads_scroll(self):
        browser = self.browse(self.long, "heads")
        browser.wait(SHOWN)
        at = show_heads(browser)
        show_all_heads(browser, 32)
        pixels = "return document.querySelector('#view-heads canvas').toDataURL()"
        before = browser.run(pixels)
        wheel(browser, at, 120, 40)
        self.assertNotEqual(browser.run(pixels), before)

    def test_heap(self):
        browser = self.browse(self.long, "heads")
        browser.wait(SHOWN)
        browser.click("#view-heads .chips > button:last-child")
        browser.wait("[...decoded.values()].filter(promise => promise.bytes).length > 8")
        wheel(browser, centre(browser, "#view-heads canvas"), 400, 20)
        browser.click("#tab-matrix")
        browser.wait("document.querySelector('#view-matrix canvas').height > 200")
        for number in range(32):
            browser.run("const select = document.querySelectorAll('#view-matrix select')[1];"
                        "select.value = arguments[0]; select.dispatchEvent(new Event('change'))", number)
            browser.wait(f"decoded.has({number}) && decoded.get({number}).bytes")
        used = heap(browser)
        report(f"long, after every head: heap {used / 1e6:.0f} MB")
        self.assertLessEqual(used, 300e6)

    def test_the_largest_weights_are_exact_and_bound_the_others(self):
        browser = self.browse(self.model)
        browser.wait(SHOWN)
        rows, kept = kept_of(self.model, 7)
        cells = [(row, column) for row in (0, 1, 255, 511) for column in range(512)]
        read = browser.run("return loadHead(page.maps[0].heads[7]).then("
                           "head => arguments[0].map(([row, column]) => head.at(row, column)))", cells)
        for (row, column), answer in zip(cells, read):
            if column in rows[row]:
                self.assertEqual(answer, {"weight": rows[row][column]})
            else:
                self.assertEqual(answer, {"bound": min(rows[row].values())})
        self.assertEqual(kept, 16)

    def test_no_request(self):
        browser = self.browse("/dev/null")
        browser.logs("performance")  # of the browser's own first page
        browser.open(f"file://{self.long}")
        browser.wait(SHOWN)
        for view in ("heads", "matrix"):
            browser.click("#tab-" + view)
        browser.wait("document.readyState === 'complete'")
        events = [json.loads(entry["message"])["message"] for entry in browser.logs("performance")]
        urls = [event["params"]["request"]["url"] for event in events
                if event["method"] == "Network.requestWillBeSent"]
        self.assertEqual([url for url in urls if not url.startswith("data:")], [f"file://{self.long}"])
        self.assertEqual(browser.run("return performance.getEntriesByType('resource').length"), 0)
        # What the page asked for would be refused.
        self.assertTrue(browser.run("return fetch('data:text/plain,').then(() => false, () => true)"))


class Use(PageCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.small, _, _ = make("small", cls.folder.name)
        cls.rows, cls.texts = weights_of(cls.small, 0, 0)

    def tip(self, browser):
        return browser.run("return [...document.querySelectorAll('#tip tr')].map("
                           "row => [...row.cells].map(cell => cell.textContent))")

    def assertTells(self, lines, row, column):
        tokens = self.texts["lists"][0]["tokens"]
        self.assertEqual(lines[0], ["source", tokens[row], f"{row + 1} of {len(tokens)}"])
        self.assertEqual(lines[1], ["source", tokens[column], f"{column + 1} of {len(tokens)}"])
        told = struct.unpack("<f", struct.pack("<f", float(lines[2][1])))[0]
        self.assertEqual(told, self.rows[row][column])

    def test_keys_tell_exact_weights(self):
        browser = self.browse(self.small, "matrix")
        browser.wait(SHOWN)
        canvas = "#view-matrix canvas"
        right, down, enter, end = "\ue014", "\ue015", "\ue007", "\ue010"
        browser.keys(canvas, right)
        self.assertTells(self.tip(browser), 0, 0)
        browser.keys(canvas, right + right + down)
        self.assertTells(self.tip(browser), 1, 2)
        said = browser.run("return document.getElementById('said').textContent")
        self.assertIn(self.tip(browser)[2][1], said)
        browser.keys(canvas, enter)
        self.assertTells(self.tip(browser), 1, self.rows[1].index(max(self.rows[1])))
        browser.keys(canvas, end)
        self.assertTells(self.tip(browser), 1, len(self.rows[1]) - 1)

    def test_pointing_tells_exact_weights(self):
        browser = self.browse(self.small, "matrix")
        browser.wait(SHOWN)
        for row, column in ((0, 0), (5, 7), (12, 12), (3, 9)):
            # The page knows where a cell is; what it tells of it is compared with the file.
            x, y = browser.run(
                "const box = document.querySelector('#view-matrix canvas').getBoundingClientRect();"
                "return views.matrix.made.then(({matrix}) => { const at = matrix.pointOf(arguments[0]);"
                "return [Math.round(box.left + at.x), Math.round(box.top + at.y)]; })", [row, column])
            browser.actions({"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"},
                             "actions": [{"type": "pointerMove", "duration": 0, "x": x, "y": y}]})
            self.assertTells(self.tip(browser), row, column)

    def test_lines_tell_exact_weights(self):
        browser = self.browse(self.small, "heads")
        browser.wait(SHOWN)
        for number in (2, 3, 4):  # leaves the first head
            browser.click(f"#view-heads .chip:nth-child({number})")
        browser.keys("#view-heads canvas", "\ue015\ue015\ue015")
        lines = self.tip(browser)
        self.assertEqual(lines[0][2], "looks at")
        best = sorted(self.rows[2], reverse=True)[:8]
        self.assertEqual([struct.unpack("<f", struct.pack("<f", float(line[2])))[0] for line in lines[1:]], best)

    def test_two_fingers_zoom(self):
        browser = self.browse(self.small, "matrix", width=390, height=844, touch=True)
        browser.wait(SHOWN)
        scale = "return views.matrix.made.then(({matrix}) => matrix.scaleX)"
        before = browser.run(scale)
        x, y = centre(browser, "#view-matrix canvas")
        browser.actions(*[{
            "type": "pointer", "id": f"finger{sign}", "parameters": {"pointerType": "touch"}, "actions": [
                {"type": "pointerMove", "duration": 0, "x": x + 20 * sign, "y": y},
                {"type": "pointerDown", "button": 0},
                {"type": "pointerMove", "duration": 100, "x": x + 80 * sign, "y": y},
                {"type": "pointerUp", "button": 0}]} for sign in (-1, 1)])
        self.assertGreater(browser.run(scale), 1.5 * before)

    def test_a_failed_method_is_grey_and_says_why(self):
        browser = self.browse(self.small, "alignment")
        browser.wait(SHOWN)
        colour = ("const canvas = document.querySelector('#view-alignment canvas');"
                  "const data = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;"
                  "let most = 0; for (let i = 0; i < data.length; i += 4)"
                  "most = Math.max(most, Math.abs(data[i] - data[i + 2])); return most")
        self.assertGreater(browser.run(colour), 100)
        self.assertFalse(browser.run("return document.querySelector('.failed').offsetHeight"))
        browser.run("document.querySelectorAll('input[name=method]')[1].click()")
        browser.wait("document.querySelector('.failed').offsetHeight")
        time.sleep(0.3)
        self.assertIn("random weights", browser.run("return document.querySelector('.failed').textContent"))
        self.assertLess(browser.run(colour), 60)
        card = browser.run("return document.querySelector('.card').textContent")
        for part in ("1 of 2 tests passed", "0.91 (95 %: 0.88 to 0.93)", "at most 0.5"):
            self.assertIn(part, card)

    def panel_colour(self, browser, panel, part):
        """Red, green and blue in the middle of a part of a panel of 2 x 3 parts."""
        return browser.run(
            "const canvas = document.querySelectorAll('.panels canvas')[arguments[0]];"
            "const x = (arguments[1] % 3 + 0.5) * canvas.width / 3;"
            "const y = (Math.floor(arguments[1] / 3) + 0.5) * canvas.height / 2;"
            "return [...canvas.getContext('2d').getImageData(x, y, 1, 1).data].slice(0, 3)", panel, part)

    def test_panels_show_weights_over_the_picture(self):
        path, _, _ = make("picture", self.folder.name)
        browser = self.browse(path)
        browser.wait(SHOWN)
        self.assertEqual(browser.run("return [...document.querySelectorAll('.panels figcaption')].map("
                                     "caption => caption.textContent)"), ["source", "7", "1"])
        self.assertEqual(self.panel_colour(browser, 0, 0), [0, 0, 0])
        self.assertEqual(self.panel_colour(browser, 0, 1), [255, 255, 255])
        # 0.8 of the largest weight's share over black: 0.25 of orange, and the whole of blue.
        for panel, part, wanted in ((1, 2, [51, 28, 6]), (2, 4, [89, 164, 255]), (2, 2, [0, 0, 0])):
            for told, expected in zip(self.panel_colour(browser, panel, part), wanted):
                self.assertLessEqual(abs(told - expected), 2, (panel, part))
        canvas = ".panels figure:nth-child(2) canvas"
        browser.keys(canvas, "\ue007")  # Enter
        self.assertEqual(self.tip(browser)[1:], [["source", "row 1, column 2", "2 of 6"], ["weight", "0.75"]])
        browser.keys(canvas, "\ue014")
        self.assertEqual(self.tip(browser)[2], ["weight", "0.25"])
        browser.keys(canvas, "\ue015")
        self.assertEqual(self.tip(browser)[1], ["source", "row 2, column 3", "6 of 6"])
        self.assertIn("row 2, column 3", browser.run("return document.getElementById('said').textContent"))
        x, y = centre(browser, canvas)
        browser.actions({"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"},
                         "actions": [{"type": "pointerMove", "duration": 0, "x": x, "y": y - 20}]})
        self.assertEqual(self.tip(browser)[1][1], "row 1, column 2")

    def test_the_map_of_a_picture_is_chosen(self):
        path, _, _ = make("picture", self.folder.name)
        browser = self.browse(path)
        browser.wait(SHOWN)
        choose = ("const select = document.querySelector('#view-picture select');"
                  "select.value = arguments[0]; select.dispatchEvent(new Event('change'))")
        names = "return [...document.querySelector('#view-picture select').options].map(o => o.textContent)"
        self.assertEqual(browser.run(names), ["attention", "rollout", "encoder 1, head 1"])
        browser.run(choose, 1)
        browser.wait("document.querySelector('#view-picture .failed').offsetHeight")
        red, _, blue = self.panel_colour(browser, 1, 2)
        self.assertLess(red - blue, 15, "a map that fails its card is grey")
        browser.run(choose, 2)
        browser.wait("document.querySelectorAll('.panels canvas').length === 7")
        self.assertTrue(browser.run("return document.querySelector('#view-picture .card').hidden"))

    def test_a_thumbnail_opens_its_matrix(self):
        browser = self.browse(self.small, "model")
        browser.wait(SHOWN)
        browser.click("[title='encoder 2, head 3']")
        browser.wait("document.querySelector('#view-matrix canvas').getAttribute('aria-label')"
                     "?.startsWith('encoder 2, head 3')")
        self.assertEqual(browser.run("return location.hash"), "#matrix")

    def test_tabs_take_arrow_keys(self):
        browser = self.browse(self.small)
        browser.wait(SHOWN)
        browser.keys("#tab-alignment", "\ue014")
        self.assertEqual(browser.run("return document.activeElement.id"), "tab-model")
        self.assertTrue(browser.run("return document.getElementById('view-alignment').hidden"))

    def test_fits_a_phone(self):
        picture, _, _ = make("picture", self.folder.name)
        for view in ("alignment", "model", "heads", "matrix", "picture"):
            page = picture if view == "picture" else self.small
            browser = self.browse(page, view, width=390, height=844, touch=True)
            browser.wait(SHOWN)
            self.assertLessEqual(browser.run("return document.documentElement.scrollWidth"), 390, view)

    def test_dark_where_the_reader_prefers_that(self):
        background = "return getComputedStyle(document.body).backgroundColor"
        light = self.browse(self.small).run(background)
        dark = self.browse(self.small, dark=True).run(background)
        self.assertEqual((light, dark), ("rgb(246, 248, 250)", "rgb(1, 4, 9)"))

    def test_whatever_takes_the_keyboard_has_a_name(self):
        picture, _, _ = make("picture", self.folder.name)
        for view in ("alignment", "model", "heads", "matrix", "picture"):
            browser = self.browse(picture if view == "picture" else self.small, view)
            browser.wait(SHOWN)
            nodes = browser.cdp("Accessibility.getFullAXTree")["nodes"]
            named = 0
            for node in nodes:
                properties = {entry["name"]: entry["value"].get("value") for entry in node.get("properties", [])}
                if node.get("ignored") or not properties.get("focusable") or node["role"]["value"] == "RootWebArea":
                    continue
                self.assertTrue(node.get("name", {}).get("value"), f"{view}: {node['role']}")
                named += 1
            self.assertGreater(named, 5, view)

    def test_hostile_texts_stay_texts(self):
        path, _, _ = make("hostile", self.folder.name)
        browser = self.browse(path)
        browser.wait(SHOWN)
        title = browser.run("return document.title")
        self.assertEqual(title, "</title><script>document.title = 'broken'</script>")
        self.assertEqual(browser.run("return document.getElementById('title').textContent"), title)
        self.assertFalse(browser.run("return document.querySelectorAll('main b, main i, main u, img').length"))
        self.assertTrue(browser.run("return document.getElementById('problem').hidden"))
        self.assertEqual([entry for entry in browser.logs("browser") if entry["level"] == "SEVERE"], [])

    def test_an_empty_page_says_so(self):
        path, _, _ = make("empty", self.folder.name)
        browser = self.browse(path)
        self.assertIn("holds no map", browser.run("return document.body.innerText"))


if __name__ == "__main__":
    cases.main()
