"""The explanation page in a headless Chromium: its content, and its amount of work.

bench/page_bench.py measures its speed and memory.
"""

import base64
import html
import json
import pathlib
import re
import struct
import sys
import tempfile
import unittest
import zlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/support"))

import cases  # noqa: E402
import webdriver  # noqa: E402
from pages import (  # noqa: E402
    MAKE_PAGE, MATRIX_GESTURES, SHOWN, centre, make, show_all_heads, show_heads, wheel)

browsers = {}  # by options of opening, for all tests: each takes a second to start


def element_text(page, name):
    return re.search(rf'<script [^>]*id="{name}">(.*?)</script>', page, re.DOTALL)[1]


def weights_of(path, layer, head):
    """Returns the rows of a map that the page stores completely, and its texts."""
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


def kept_of(path, head):
    """Returns the kept weights per row of the first map, by column, and the head's metadata."""
    page = path.read_text(encoding="utf-8")
    about = json.loads(element_text(page, "page"))["maps"][0]["heads"][head]
    data = zlib.decompress(base64.b64decode(element_text(page, f"block{about['block']}")))
    kept = about["kept"]
    count = about["rows"] * kept
    steps = numbers(data, 0, count, 3)
    weights = struct.unpack(f"<{count}f", struct.pack(f"<{count}I", *numbers(data, 3 * count, count, 4)))
    rows = []
    for start in range(0, count, kept):
        columns = [sum(steps[start:start + i + 1]) for i in range(kept)]
        rows.append(dict(zip(columns, weights[start:start + kept])))
    return rows, about | {"bytes": len(data)}


class PageCase(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        absent = webdriver.missing()
        if absent or not MAKE_PAGE:
            what = f"not installed: {', '.join(absent)}" if absent else "MAKE_PAGE names no program"
            print(f"NO TEST OF THE PAGE IN A BROWSER: {what}. Install chromium and chromium-driver of packages.txt.",
                  flush=True)
            raise unittest.SkipTest(what)
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)

    def browse(self, path, view="", width=1280, height=900, **options):
        key = (width, height, *sorted(options.items()))
        if key not in browsers:
            browsers[key] = webdriver.Browser(width, height, **options)
            unittest.addModuleCleanup(browsers[key].close)
        browser = browsers[key]
        browser.open("about:blank")  # otherwise another view of the same page would not be loaded again
        browser.actions({"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"},
                         "actions": [{"type": "pointerMove", "duration": 0, "x": 0, "y": 0}]})
        for kind in ("browser", "performance"):
            browser.logs(kind)  # discards the logs of earlier pages
        browser.open(f"file://{path}#{view}")
        return browser


class Large(PageCase):
    """8 heads over 1,000 tokens: the page keeps the largest weights per row and draws tiles of them."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.large = make("large", cls.folder.name)
        cls.rows, cls.about = kept_of(cls.large, 7)

    def matrix(self):
        """Returns a browser that shows head 8, with its matrix available to scripts."""
        browser = self.browse(self.large, "matrix")
        browser.wait(SHOWN)
        self.choose(browser, 7)
        browser.run("return views.matrix.made.then(({matrix}) => { window.matrix = matrix; })")
        return browser

    def choose(self, browser, head):
        browser.run("const select = document.querySelectorAll('#view-matrix select')[1];"
                    "select.value = arguments[0]; select.dispatchEvent(new Event('change'))", head)
        browser.wait("document.querySelector('#view-matrix canvas').getAttribute('aria-label')"
                     f".startsWith('encoder 1, head {head + 1}:')")

    def test_holds_as_many_weights_of_each_row(self):
        self.assertEqual([self.about[key] for key in ("rows", "columns", "kept")], [1000, 1000, 16])
        overview = self.about["pooledRows"] * self.about["pooledColumns"]
        self.assertEqual(overview, 512 * 512)
        # Three bytes per column, four per weight, one per cell of the overview.
        self.assertEqual(self.about["bytes"], 1000 * 16 * (3 + 4) + overview)

    def test_the_largest_weights_are_exact_and_bound_the_others(self):
        browser = self.matrix()
        cells = [(row, column) for row in (0, 1, 500, 999) for column in range(1000)]
        read = browser.run("return arguments[0].map(([row, column]) => matrix.head.at(row, column))", cells)
        for (row, column), answer in zip(cells, read):
            if column in self.rows[row]:
                self.assertEqual(answer, {"weight": self.rows[row][column]})
            else:
                self.assertEqual(answer, {"bound": min(self.rows[row].values())})

    def test_tiles_show_the_largest_weights(self):
        browser = self.matrix()
        # A cell has 4 x 4 pixels, and the first cell is in the corner.
        browser.run("matrix.zoom(4 / matrix.scaleX, matrix.left, matrix.top)")
        browser.wait("!matrix.requested")
        cells = [(row, column, self.rows[row].get(column, 0)) for row in (0, 20, 90) for column in range(200)]
        wrong = browser.run(
            "const {width, height} = matrix.canvas;"
            "const pixels = new Uint32Array(matrix.context.getImageData(0, 0, width, height).data.buffer);"
            "return arguments[0].filter(([row, column, weight]) => {"
            "  const {x, y} = matrix.pointOf([row, column]);"
            "  return pixels[Math.floor(y) * width + Math.floor(x)] !== matrix.words[128 + codeOf(weight, matrix.head.scale)];"
            "})", cells)
        self.assertEqual(wrong, [])
        self.assertGreater(len({weight for _, _, weight in cells}), 20)

    def test_pan_and_zoom(self):
        browser = self.matrix()
        middle = centre(browser, "#view-matrix canvas")
        seen = "return [matrix.scaleX, matrix.x, matrix.y]"
        for name, act in MATRIX_GESTURES.items():
            before = browser.run(seen)
            act(browser, middle)
            browser.wait("!matrix.requested")
            after = browser.run(seen)
            if name.startswith("pan"):
                self.assertEqual(after[0], before[0], name)
                self.assertNotEqual(after[1:], before[1:], name)
            else:
                self.assertEqual(after[0] > before[0], name.startswith("zoom in"), name)

    def test_a_tile_is_made_once(self):
        browser = self.matrix()
        browser.run("const paint = matrix.tiles.paint; window.painted = [];"
                    "matrix.tiles.paint = function(...tile) {"
                    "  painted.push(String(tile)); return paint.apply(this, tile); };"
                    "matrix.zoom(4 / matrix.scaleX, matrix.left, matrix.top)")
        for pixels in (400, 400, -800, 2800, -2800):
            browser.run("matrix.pan(arguments[0], arguments[0])", pixels)
            browser.wait("!matrix.requested")
        painted = browser.run("return painted")
        self.assertEqual(len(painted), len(set(painted)))
        # Only tiles along the way, of 4 x 4.
        self.assertGreater(len(painted), 4)
        self.assertLessEqual(len(painted), 16)

    def test_tiles_that_were_not_seen_for_long_make_room(self):
        browser = self.matrix()
        browser.run("matrix.zoom(matrix.scaleX * 4, matrix.left, matrix.top);"
                    "for (let i = 0; i < 200; ++i) matrix.tiles.tile(i, 0, 1, true)")
        self.assertEqual(browser.run("return [matrix.tiles.made.size, matrix.tiles.made.has('1/199/0'),"
                                     "matrix.tiles.made.has('1/50/0')]"), [128, True, False])

    def test_heads_that_were_not_seen_for_long_make_room(self):
        browser = self.browse(self.large, "matrix")
        browser.wait(SHOWN)
        # As if each had 20 MiB; 96 MiB are kept.
        browser.run("Object.defineProperty(Head.prototype, 'bytes', {value: 20 << 20})")
        for head in (1, 2, 3, 4, 5, 6, 7):
            self.choose(browser, head)
        self.assertEqual(browser.run("return [...decoded.keys()].map(about => about.block)"), [4, 5, 6, 7])

    def test_lines_of_all_heads_scroll(self):
        browser = self.browse(self.large, "heads")
        browser.wait(SHOWN)
        middle = show_heads(browser)
        show_all_heads(browser, 8)
        # Each line begins with moveTo, and each picture with clearRect.
        browser.run("const {moveTo, clearRect} = CanvasRenderingContext2D.prototype;"
                    "Object.assign(CanvasRenderingContext2D.prototype, {"
                    "  moveTo(...to) { ++window.lines; moveTo.apply(this, to); },"
                    "  clearRect(...box) { window.lines = 0; clearRect.apply(this, box); }});"
                    "window.before = document.querySelector('#view-heads canvas').toDataURL()")
        wheel(browser, middle, 120, 20)
        browser.wait("document.querySelector('#view-heads canvas').toDataURL() !== before")
        # 1,500 lines of visible rows, and the lines of two rows at the border.
        self.assertIn(browser.run("return window.lines"), range(1, 1500 + 2 * 8 * 16 + 1))

    def test_no_request(self):
        browser = self.browse(self.large)
        browser.wait(SHOWN)
        for view in ("heads", "matrix"):
            browser.click("#tab-" + view)
        browser.wait("document.readyState === 'complete'")
        events = [json.loads(entry["message"])["message"] for entry in browser.logs("performance")]
        urls = [event["params"]["request"]["url"] for event in events
                if event["method"] == "Network.requestWillBeSent"]
        self.assertEqual([url for url in urls if not url.startswith("data:")], [f"file://{self.large}"])
        self.assertEqual(browser.run("return performance.getEntriesByType('resource').length"), 0)
        # Requests by the page are refused.
        self.assertTrue(browser.run("return fetch('data:text/plain,').then(() => false, () => true)"))


class Use(PageCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.small = make("small", cls.folder.name)
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

    def test_the_lens_shows_what_each_layer_would_answer(self):
        browser = self.browse(self.small, "lens")
        browser.wait(SHOWN)
        rows = browser.run("return [...document.querySelectorAll('.lens tbody tr')].map(row => "
                           "[...row.children].map(cell => cell.textContent))")
        self.assertEqual([row[0] for row in rows], ["decoder 1", "input"])
        self.assertEqual(rows[0][1:3], ["l'0.5", "accord0.5"])
        self.assertEqual(rows[1][1:3], ["la0.25", "la0.25"])
        # The whole last layer, and "la" if it is the answer.
        self.assertEqual(browser.run("return document.querySelectorAll('.lens .settled').length"), len(rows[0]))

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
            # The page reports the position of a cell; its text is compared with the file.
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
        browser.run("window.colour = () => {"
                    "const canvas = document.querySelector('#view-alignment canvas');"
                    "const data = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;"
                    "let most = 0; for (let i = 0; i < data.length; i += 4)"
                    "most = Math.max(most, Math.abs(data[i] - data[i + 2])); return most; }")
        self.assertGreater(browser.run("return colour()"), 100)
        self.assertFalse(browser.run("return document.querySelector('.failed').offsetHeight"))
        browser.run("document.querySelectorAll('input[name=method]')[1].click()")
        browser.wait("document.querySelector('.failed').offsetHeight")
        browser.wait("colour() < 60")
        self.assertIn("random weights", browser.run("return document.querySelector('.failed').textContent"))
        card = browser.run("return document.querySelector('.card').textContent")
        for part in ("1 of 2 tests passed", "0.91 (95 %: 0.88 to 0.93)", "at most 0.5"):
            self.assertIn(part, card)

    def panel_colour(self, browser, panel, part):
        """Returns the colour (red, green, blue) at the centre of a part of a panel of 2 x 3 parts."""
        return browser.run(
            "const canvas = document.querySelectorAll('.panels canvas')[arguments[0]];"
            "const x = (arguments[1] % 3 + 0.5) * canvas.width / 3;"
            "const y = (Math.floor(arguments[1] / 3) + 0.5) * canvas.height / 2;"
            "return [...canvas.getContext('2d').getImageData(x, y, 1, 1).data].slice(0, 3)", panel, part)

    def test_panels_show_weights_over_the_picture(self):
        path = make("picture", self.folder.name)
        browser = self.browse(path)
        browser.wait(SHOWN)
        self.assertEqual(browser.run("return [...document.querySelectorAll('.panels figcaption')].map("
                                     "caption => caption.textContent)"), ["source", "7", "1"])
        self.assertEqual(self.panel_colour(browser, 0, 0), [0, 0, 0])
        self.assertEqual(self.panel_colour(browser, 0, 1), [255, 255, 255])
        # 0.8 of the relative weight over black: 0.25 of orange, and all of blue.
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
        path = make("picture", self.folder.name)
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
        picture = make("picture", self.folder.name)
        for view in ("alignment", "model", "heads", "matrix", "lens", "picture"):
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
        picture = make("picture", self.folder.name)
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
        path = make("hostile", self.folder.name)
        browser = self.browse(path)
        browser.wait(SHOWN)
        title = browser.run("return document.title")
        self.assertEqual(title, "</title><script>document.title = 'broken'</script>")
        self.assertEqual(browser.run("return document.getElementById('title').textContent"), title)
        self.assertFalse(browser.run("return document.querySelectorAll('main b, main i, main u, img').length"))
        self.assertTrue(browser.run("return document.getElementById('problem').hidden"))
        self.assertEqual([entry for entry in browser.logs("browser") if entry["level"] == "SEVERE"], [])

    def test_a_frame_without_an_address_shows_the_page(self):
        frame = html.escape(self.small.read_text(encoding="utf-8"))
        path = pathlib.Path(self.folder.name, "frame.html")
        path.write_text(f'<iframe srcdoc="{frame}" width="1000" height="800"></iframe>', encoding="utf-8")
        browser = self.browse(path)
        browser.wait(f"document.querySelector('iframe').contentWindow.{SHOWN}")
        browser.run("document.querySelector('iframe').contentDocument.getElementById('tab-matrix').click()")
        browser.wait("document.querySelector('iframe').contentDocument.querySelector('#view-matrix canvas')")
        self.assertEqual([entry for entry in browser.logs("browser") if entry["level"] == "SEVERE"], [])

    def test_an_empty_page_says_so(self):
        path = make("empty", self.folder.name)
        browser = self.browse(path)
        self.assertIn("holds no map", browser.run("return document.body.innerText"))


if __name__ == "__main__":
    cases.main()
