"""The page of attend serve in a headless Chromium: it shows the answers of the program."""

import json
import pathlib
import random
import shutil
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
for folder in ("tests/support", "tests/cli"):
    sys.path.insert(0, str(ROOT / folder))

import program  # noqa: E402
import webdriver  # noqa: E402
from foreign import write_foreign  # noqa: E402
from program import PAIRS, SMALL, settings  # noqa: E402
from test_classify import SMALL as CLASSIFIER  # noqa: E402
from test_media import VIT, png, tone, wav  # noqa: E402
from test_serve import Server  # noqa: E402

ENTER, SPACE, RIGHT, DOWN = "\ue007", "\ue00d", "\ue014", "\ue015"
ANSWERED = "document.querySelector('.first')?.textContent"
TESTED = ANSWERED + " && !document.querySelector('.busy')"  # all methods, of all models


class Page(unittest.TestCase):
    """A server with two models of texts and one of images, and browsers with its page."""

    @classmethod
    def setUpClass(cls):
        absent = webdriver.missing()
        if absent:
            program.skip(f"no test of the server's page in a browser; install {', '.join(absent)}")
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="attend-test-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        (cls.folder / "pairs.tsv").write_text(PAIRS)
        for name, more in (("words", {}), ("plain", {"model.score": "none"})):
            cls.succeed("train", "--data", "pairs.tsv", "--valid", "pairs.tsv", "--out", name,
                        *settings(SMALL | {"train.epochs": 60} | more))
        for i in range(8):
            (cls.folder / f"{i}.png").write_bytes(png([[255 * (row // 4 == i % 2)] * 8 for row in range(8)]))
        (cls.folder / "images.tsv").write_text("".join(f"{i}.png\t{i % 2}\n" for i in range(8)))
        cls.succeed("train", "--data", "images.tsv", "--valid", "images.tsv", "--out", "images",
                    *settings(VIT | {"data.source_units": "image", "train.epochs": 1}))
        write_foreign("DistilBertForSequenceClassification", cls.folder / "theirs")
        cls.succeed("import", "theirs", "--out", "bert")
        cls.server = Server("words", "plain", "images", "--port", 0, "--examples", "pairs.tsv", cwd=cls.folder)
        cls.addClassCleanup(cls.server.end)
        cls.browsers = {}

    @classmethod
    def succeed(cls, *arguments, stdin=""):
        run = program.attend(*arguments, cwd=cls.folder, stdin=stdin)
        assert run.returncode == 0, run.stderr
        return run.stdout

    def answers(self, text, *options, model="words"):
        """Returns the answers of predict --json for the text."""
        line, = self.succeed("predict", model, "--json", *options, stdin=text + "\n").splitlines()
        return [one["target"] for one in json.loads(line)["predictions"]]

    def browse(self, width=1280, height=900, server=None, **options):
        key = (width, height, *sorted(options.items()))
        if key not in self.browsers:
            self.browsers[key] = webdriver.Browser(width, height, **options)
            self.addClassCleanup(self.browsers[key].close)
        browser = self.browsers[key]
        browser.open("about:blank")
        for kind in ("browser", "performance"):
            browser.logs(kind)  # discards the logs of earlier pages
        browser.open((server or self.server).url + "/")
        browser.wait("document.querySelectorAll('#model option').length")
        return browser

    def choose(self, browser, selector, value):
        browser.run("const select = document.querySelector(arguments[0]); select.value = arguments[1];"
                    "select.dispatchEvent(new Event('change'))", selector, value)

    def text(self, browser, selector):
        return browser.run("return document.querySelector(arguments[0]).textContent", selector)

    def texts(self, browser, selector):
        return browser.run("return [...document.querySelectorAll(arguments[0])].map(one => one.textContent)", selector)

    def type(self, browser, text):
        browser.keys("#text", text + ENTER)
        browser.wait(ANSWERED)

    def assertQuiet(self, browser, server=None):
        """Expects a log without errors, and requests only to this host."""
        self.assertEqual([entry for entry in browser.logs("browser") if entry["level"] == "SEVERE"], [])
        events = [json.loads(entry["message"])["message"] for entry in browser.logs("performance")]
        urls = [event["params"]["request"]["url"] for event in events
                if event["method"] == "Network.requestWillBeSent"]
        self.assertGreater(len(urls), 2)
        self.assertEqual([url for url in urls
                          if not url.startswith(((server or self.server).url + "/", "data:", "blob:", "about:"))], [])

    def test_a_text_is_answered_as_predict_answers_it(self):
        browser = self.browse()
        self.type(browser, "bab")
        beams = ("--beam", 5, "--nbest", 5)
        self.assertEqual(self.text(browser, ".first"), self.answers("bab", *beams)[0])
        self.assertEqual(self.texts(browser, ".answers li > span:first-child"), self.answers("bab", *beams))
        self.assertEqual(self.texts(browser, ".token"), ["b", "a", "b"])
        browser.wait(TESTED)
        methods = self.texts(browser, ".side .choice label")
        self.assertTrue(any(name.startswith("integrated_gradients") for name in methods), methods)
        self.assertQuiet(browser)

    def browse_imported(self):
        """Returns a browser with the page of an imported classifier."""
        server = Server("bert", "--port", 0, cwd=self.folder)
        self.addCleanup(server.end)
        return self.browse(server=server), server

    def test_tokens_of_an_imported_model_are_switched_off(self):
        browser, _ = self.browse_imported()
        self.type(browser, "Don't   Paris")
        # [CLS] and [SEP] are not in the text, and the tokens are in lower case.
        self.assertEqual(self.texts(browser, ".token"), ["Don", "'", "t", "Paris"])
        browser.click(".token:nth-of-type(4)")
        browser.wait("document.querySelector('.instead .asked')")
        self.assertEqual(self.text(browser, ".instead .asked"), "Don't")

    def test_a_cell_shows_the_parts_of_its_score(self):
        browser, server = self.browse_imported()
        self.type(browser, "the cat sees")
        browser.wait(TESTED)
        browser.click("#side1-tab-matrix")
        canvas, told = "#side1-view-matrix canvas", "#side1-view-matrix .instead"
        browser.wait(f"document.querySelector('{canvas}').height > 200")
        browser.keys(canvas, DOWN + DOWN + RIGHT + SPACE)  # the first key goes to the first cell
        browser.wait(f"!document.querySelector('{told}').hidden")
        score = json.loads(self.succeed("explain", "bert", "the cat sees", "--json", "--view", "scores",
                                        "--at", "encoder.1.head.1.query.2.key.2"))
        self.assertEqual(self.text(browser, told + " p"), score["title"] + ". The score is the sum of")
        parts = [float(part) for part in self.texts(browser, told + " td:first-child")]
        self.assertAlmostEqual(sum(parts), score["score"], delta=len(parts) * 0.5e-4)
        largest = max((part for row in score["scores"] for part in row), key=abs)
        self.assertAlmostEqual(parts[0], largest, delta=0.5e-4)
        self.choose(browser, "#side1-view-matrix label:nth-of-type(2) select", 1)
        browser.wait(f"document.querySelector('{told}').hidden")
        browser.click(canvas)
        browser.wait(f"!document.querySelector('{told}').hidden")
        self.assertIn("encoder.1.head.2, ", self.text(browser, told + " p"))
        self.assertQuiet(browser, server)

    def test_an_answer_is_compared_with_another(self):
        browser = self.browse()
        self.type(browser, "bab")
        browser.wait(TESTED)
        browser.keys(".why-not input", "U" + ENTER)
        browser.wait("!document.querySelector('.busy') && "
                     "![...document.querySelectorAll('.side .choice label')].some(one => one.textContent.startsWith('norms'))")
        methods = self.texts(browser, ".side .choice label")
        self.assertTrue(any(name.startswith("occlusion") for name in methods), methods)
        browser.run("document.querySelector('.why-not input').value = ''")
        browser.click(".why-not button")
        browser.wait("!document.querySelector('.busy') && "
                     "[...document.querySelectorAll('.side .choice label')].some(one => one.textContent.startsWith('norms'))")
        self.assertQuiet(browser)

    def test_a_head_is_switched_off(self):
        browser = self.browse()
        self.type(browser, "bab")
        browser.wait(TESTED)
        browser.click("#side1-tab-model")
        browser.wait("document.querySelector('.heads .switch')")
        browser.click(".heads .switch")
        browser.wait("document.querySelector('.switches .answer')")
        told = json.loads(self.succeed("explain", "words", "bab", "--beam", 5, "--json",
                                       "--without", "decoder.source.head.1"))
        self.assertEqual(self.text(browser, ".switches .asked"), "decoder.source.head.1")
        self.assertEqual(self.text(browser, ".switches .answer"), told["answer"])
        self.assertEqual(self.text(browser, ".heads .switch"), "off")
        browser.click(".switches .bar button")
        browser.wait("document.querySelector('.effect').textContent")
        self.assertEqual(self.text(browser, ".effect")[0], "−" if told["before"] > told["after"] else "+")
        browser.click(".heads .switch")
        browser.wait("document.querySelector('.switches .instead').hidden")
        browser.run("const slider = document.querySelector('.switches input'); slider.value = slider.max;"
                    "slider.dispatchEvent(new Event('input')); slider.dispatchEvent(new Event('change'))")
        browser.wait("!document.querySelector('.switches .instead').hidden")
        self.assertEqual(set(self.texts(browser, ".heads .switch")), {"off"})
        self.assertRegex(self.text(browser, ".switches label"), r"(\d+) of \1$")
        self.assertQuiet(browser)

    def test_an_answer_is_shown_as_it_grows(self):
        browser = self.browse()
        browser.run("window.grown = []; new MutationObserver(records => {"
                    "  for (const {target, addedNodes} of records)"
                    "    if (target.matches('.first')) grown.push(...[...addedNodes].map(node => node.textContent));"
                    "}).observe(document.getElementById('sides'), {childList: true, subtree: true})")
        self.choose(browser, "#count", "1")
        self.type(browser, "bab")
        browser.wait(TESTED)
        whole, = self.answers("bab")
        grown = browser.run("return window.grown")
        self.assertEqual(grown[-1], whole)
        self.assertGreater(len(set(grown)), 1, grown)
        for text in grown:
            self.assertTrue(whole.startswith(text), grown)
        # Partial answers are not computed again.
        sent = [json.loads(entry["message"])["message"] for entry in browser.logs("performance")]
        asked = [json.loads(event["params"]["request"]["postData"]) for event in sent
                 if event["method"] == "Network.requestWillBeSent"
                 and event["params"]["request"]["url"].endswith("/v1/predict")]
        self.assertEqual([one.get("maximum_length") for one in asked], [1])

    def test_a_token_is_switched_off(self):
        browser = self.browse()
        self.type(browser, "bab")
        without = self.answers("bb")[0]
        self.assertNotEqual(without, self.answers("bab")[0])
        browser.wait(TESTED)
        browser.click(".token:nth-of-type(2)")
        browser.wait("document.querySelector('.instead .answer')")
        self.assertEqual(self.text(browser, ".instead .asked"), "bb")
        self.assertEqual(self.text(browser, ".instead .answer"), without)
        self.assertEqual(browser.run("return document.querySelectorAll('.token')[1].getAttribute('aria-pressed')"), "false")
        browser.wait(TESTED)
        browser.click(".instead button")
        browser.wait("document.querySelectorAll('.token').length === 2")
        self.assertQuiet(browser)

    def test_two_models_beside_each_other(self):
        browser = self.browse()
        self.choose(browser, "#other", "plain")
        self.type(browser, "dad")
        browser.wait("[...document.querySelectorAll('.first')].filter(one => one.textContent).length === 2")
        beams = ("--beam", 5, "--nbest", 5)
        self.assertEqual(self.texts(browser, ".first"),
                         [self.answers("dad", *beams, model=model)[0] for model in ("words", "plain")])
        # One model attends; for the other one only methods without weights apply.
        browser.wait("document.querySelectorAll('.side').length === 2 && [...document.querySelectorAll('.side')]"
                     ".every(side => side.querySelector('.card .value'))")
        sides = browser.run("return [...document.querySelectorAll('.side')].map(side => side.textContent)")
        self.assertIn("attention", sides[0])
        self.assertIn("gradient", sides[1])
        self.assertEqual(browser.run("return new Set([...document.querySelectorAll('[id]')].map(one => one.id)).size"
                                     " === document.querySelectorAll('[id]').length"), True)
        self.assertQuiet(browser)

    def test_an_image_is_chosen(self):
        browser = self.browse()
        self.choose(browser, "#model", "images")
        self.assertEqual(browser.run("return [...document.querySelectorAll('#text-part, #file-part, #other-label')]"
                                     ".map(one => one.hidden)"), [True, False, True])
        browser.keys("#file", str(self.folder / "1.png"))
        browser.wait(TESTED)
        self.assertEqual(self.text(browser, ".first"), self.answers("1.png", "--beam", 5, model="images")[0])
        self.assertEqual(browser.run("return document.getElementById('preview').naturalWidth"), 8)
        self.assertEqual(browser.run("return document.querySelector('#side1-tab-picture').getAttribute('aria-selected')"), "true")
        self.assertQuiet(browser)
        (self.folder / "large.png").write_bytes(bytes(800000))
        browser.keys("#file", str(self.folder / "large.png"))
        browser.wait("!document.getElementById('problem').hidden")
        self.assertIn("800000 bytes", self.text(browser, "#problem"))

    def test_several_labels_have_their_probabilities(self):
        (self.folder / "labels.tsv").write_text("ba\tred|old\nab\told\nbb\tred\naa\t\n" * 4)
        self.succeed("train", "--data", "labels.tsv", "--valid", "labels.tsv", "--out", "labels", *settings(
            CLASSIFIER | {"data.source_units": "char", "data.target": "labels", "train.epochs": 2}))
        server = Server("labels", "--port", 0, cwd=self.folder)
        self.addCleanup(server.end)
        browser = self.browse(server=server)
        self.type(browser, "ba")
        browser.wait(TESTED)
        line = self.succeed("predict", "labels", "--json", stdin="ba\n")
        labels = [one["label"] for one in json.loads(line)["predictions"][0]["labels"]]
        self.assertEqual(self.texts(browser, ".answers li > span:first-child"), labels)
        self.assertTrue(browser.run("return document.querySelector('.why-not').hidden"))
        self.assertEqual([entry for entry in browser.logs("browser") if entry["level"] == "SEVERE"], [])

    def test_a_sound_is_chosen_and_can_be_heard(self):
        chance = random.Random(1)
        for i in range(8):
            (self.folder / f"{i}.wav").write_bytes(wav(tone(i % 2, chance)))
        (self.folder / "sounds.tsv").write_text("".join(f"{i}.wav\t{i % 2}\n" for i in range(8)))
        self.succeed("train", "--data", "sounds.tsv", "--valid", "sounds.tsv", "--out", "sounds",
                     *settings(CLASSIFIER | {"data.source_units": "sound", "train.epochs": 1}))
        server = Server("images", "sounds", "--port", 0, cwd=self.folder)
        self.addCleanup(server.end)
        browser = self.browse(server=server)
        self.choose(browser, "#model", "sounds")
        player = "document.getElementById('player')"
        self.assertTrue(browser.run(f"return {player}.hidden"))
        browser.keys("#file", str(self.folder / "1.wav"))
        browser.wait(TESTED)
        self.assertEqual(self.text(browser, ".first"), self.answers("1.wav", "--beam", 5, model="sounds")[0])
        browser.wait(f"{player}.readyState > 0")
        seconds = ((self.folder / "1.wav").stat().st_size - 44) / 16000
        self.assertAlmostEqual(browser.run(f"return {player}.duration"), seconds, places=3)
        self.assertFalse(browser.run(f"return {player}.hidden"))
        self.assertEqual([entry for entry in browser.logs("browser") if entry["level"] == "SEVERE"], [])
        # The player is hidden for sounds that the browser cannot play.
        (self.folder / "broken.wav").write_bytes(b"no sound")
        browser.keys("#file", str(self.folder / "broken.wav"))
        browser.wait(f"{player}.hidden")
        browser.wait("!document.getElementById('problem').hidden")
        # It is also hidden for images.
        browser.keys("#file", str(self.folder / "2.wav"))
        browser.wait(f"!{player}.hidden && {player}.readyState > 0")
        self.choose(browser, "#model", "images")
        browser.keys("#file", str(self.folder / "1.png"))
        browser.wait(f"{player}.hidden")

    def test_examples(self):
        browser = self.browse()
        example = self.texts(browser, "#examples button")[2]
        self.assertEqual(example, PAIRS.splitlines()[2].split("\t")[0])
        browser.click("#examples button:nth-child(3)")
        browser.wait(ANSWERED)
        self.assertEqual(self.text(browser, ".first"), self.answers(example, "--beam", 5)[0])

    def test_keys_do_all(self):
        browser = self.browse()
        self.type(browser, "bab")
        browser.wait(TESTED)
        browser.keys(".token", SPACE)
        browser.wait("document.querySelector('.instead .answer')")
        self.assertEqual(self.text(browser, ".instead .asked"), "ab")
        browser.keys("#side1-tab-alignment", RIGHT)
        self.assertEqual(browser.run("return document.activeElement.id"), "side1-tab-model")
        browser.click("#side1-tab-matrix")
        browser.wait("document.querySelector('#side1-view-matrix canvas')?.getAttribute('aria-label')")
        browser.keys("#side1-view-matrix canvas", RIGHT)
        self.assertIn("weight", self.text(browser, "#said"))

    def test_an_explanation_is_one_file(self):
        browser = self.browse()
        downloads = self.folder / "downloads"
        browser.cdp("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(downloads), eventsEnabled=True)
        self.type(browser, "bab")
        # Until then the button moves, and a click may miss it.
        browser.wait(TESTED + " && !document.querySelector('.side .bar button').hidden")
        browser.run("window.saved = null; const made = URL.createObjectURL;"
                    "URL.createObjectURL = blob => { window.saved = blob; return made.call(URL, blob); }")
        browser.click(".side .bar button")
        browser.wait("window.saved")
        page = browser.run("return window.saved.text()")
        self.succeed("explain", "words", "bab", "--beam", 5, "--out", "bab.html")
        self.assertEqual(page, (self.folder / "bab.html").read_text())
        self.assertQuiet(browser)

    def test_what_is_wrong_is_said_in_words(self):
        browser = self.browse()
        browser.keys("#text", ENTER)
        self.assertTrue(browser.run("return document.getElementById('problem').hidden"))
        self.assertEqual(self.texts(browser, ".side"), [])
        browser.keys("#text", "é" * 2100 + ENTER)
        browser.wait("!document.getElementById('problem').hidden")
        self.assertIn("4096", self.text(browser, "#problem"))

    def test_a_key_is_asked_for(self):
        (self.folder / "key").write_text("secret\n")
        server = Server("words", "--port", 0, "--key-file", "key", cwd=self.folder)
        self.addCleanup(server.end)
        browser = self.browse_locked(server)
        browser.wait("!document.getElementById('key-label').hidden")
        self.assertIn("key", self.text(browser, "#problem"))
        browser.keys("#key", "secret")
        browser.keys("#text", "bab" + ENTER)
        browser.wait(ANSWERED)
        self.assertEqual(self.text(browser, ".first"), self.answers("bab", "--beam", 5)[0])
        self.assertTrue(browser.run("return document.getElementById('problem').hidden"))

    def browse_locked(self, server):
        browser = self.browse()
        browser.open(server.url + "/")
        return browser

    def test_a_server_that_is_gone_is_told(self):
        server = Server("words", "--port", 0, cwd=self.folder)
        browser = self.browse(server=server)
        server.end()
        browser.keys("#text", "bab" + ENTER)
        browser.wait("!document.getElementById('problem').hidden")
        self.assertIn("does not answer", self.text(browser, "#problem"))

    def test_fits_a_phone(self):
        browser = self.browse(width=390, height=844, touch=True)
        self.choose(browser, "#other", "plain")
        self.type(browser, "bab")
        browser.wait(TESTED)
        for view in ("alignment", "model", "heads", "matrix"):
            browser.click("#side1-tab-" + view)
            self.assertLessEqual(browser.run("return document.documentElement.scrollWidth"), 390, view)

    def test_dark_where_the_reader_prefers_that(self):
        background = "return getComputedStyle(document.body).backgroundColor"
        self.assertEqual((self.browse().run(background), self.browse(dark=True).run(background)),
                         ("rgb(246, 248, 250)", "rgb(1, 4, 9)"))

    def test_whatever_takes_the_keyboard_has_a_name(self):
        browser = self.browse()
        self.type(browser, "bab")
        browser.wait(TESTED)
        named = 0
        for node in browser.cdp("Accessibility.getFullAXTree")["nodes"]:
            properties = {entry["name"]: entry["value"].get("value") for entry in node.get("properties", [])}
            if node.get("ignored") or not properties.get("focusable") or node["role"]["value"] == "RootWebArea":
                continue
            self.assertTrue(node.get("name", {}).get("value"), node["role"])
            named += 1
        self.assertGreater(named, 20)

    def test_nothing_foreign_can_run(self):
        browser = self.browse()
        self.assertTrue(browser.run(
            "const script = document.createElement('script'); script.textContent = 'window.foreign = 1';"
            "document.body.append(script);"
            "return fetch('http://127.0.0.1:1/').then(() => false, () => window.foreign === undefined)"))
        _, headers, body = self.server.ask("GET", "/")
        self.assertIn("default-src 'none'", headers["Content-Security-Policy"])
        self.assertNotIn("unsafe", headers["Content-Security-Policy"])
        self.assertNotIn("http", body.replace("http-equiv", ""))


if __name__ == "__main__":
    program.main()
