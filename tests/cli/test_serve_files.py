"""attend serve: images and sounds in requests are answered and explained like files."""

import base64
import json
import pathlib
import random
import shutil
import tempfile

import program
from program import settings
from test_classify import SMALL as CLASSIFIER
from test_media import VIT, bar, png, tone, wav
from test_serve import Server


class Files(program.Case):
    """Models of images and of sounds, which requests contain."""

    @classmethod
    def setUpClass(cls):
        cls.shared = pathlib.Path(tempfile.mkdtemp(prefix="attend-test-"))
        cls.addClassCleanup(shutil.rmtree, cls.shared)
        chance = random.Random(1)
        cls.files = {"images": [], "sounds": []}
        for i in range(24):
            pixels = bar(i % 2, chance)
            for kind, name, content in (
                    ("images", f"{i}.png", png([pixels[8 * y:8 * y + 8] for y in range(8)])),
                    ("sounds", f"{i}.wav", wav(tone(i % 2, chance)))):
                (cls.shared / name).write_bytes(content)
                cls.files[kind].append((name, content, i % 2))
        for kind, model, units in (("images", VIT, "image"), ("sounds", CLASSIFIER, "sound")):
            (cls.shared / f"{kind}.tsv").write_text(
                "".join(f"{name}\t{label}\n" for name, _, label in cls.files[kind]))
            run = program.attend("train", "--data", f"{kind}.tsv", "--out", kind,
                                 *settings(model | {"data.source_units": units, "train.epochs": 1}),
                                 cwd=cls.shared)
            assert run.returncode == 0, run.stderr
        cls.server = Server("images", "sounds", "--port", 0, cwd=cls.shared)
        cls.addClassCleanup(cls.server.end)

    def test_what_a_request_holds_is_answered_as_its_file(self):
        for kind, type_ in (("images", "image/png"), ("sounds", "audio/wav")):
            files = self.files[kind][:3]
            texts = [f"data:{type_};base64,{base64.b64encode(content).decode()}"
                     for _, content, _ in files]
            status, _, body = self.server.ask("POST", "/v1/predict",
                                              {"model": kind, "texts": texts, "details": True})
            self.assertEqual(status, 200, body)
            run = program.attend("predict", kind, "--json", "--details", cwd=self.shared,
                                 stdin="".join(f"{name}\n" for name, _, _ in files))
            printed = [json.loads(line) for line in run.stdout.splitlines()]
            for found, told, text in zip(json.loads(body)["answers"], printed, texts, strict=True):
                self.assertEqual(found, told | {"source": text})

    def test_what_a_request_holds_is_explained_as_its_file(self):
        for kind, type_ in (("images", "image/png"), ("sounds", "audio/wav")):
            name, content, _ = self.files[kind][0]
            held = f"data:{type_};base64,{base64.b64encode(content).decode()}"
            for suffix in ("svg", "html"):
                path = self.shared / f"{kind}.{suffix}"
                run = program.attend("explain", kind, name, "--method", "occlusion", "--out", path,
                                     cwd=self.shared)
                self.assertEqual(run.returncode, 0, run.stderr)
                status, _, body = self.server.ask("POST", "/v1/explain", {
                    "model": kind, "text": held, "method": "occlusion", "format": suffix})
                self.assertEqual(status, 200, body[:200])
                self.assertEqual(body, path.read_text())
            status, _, body = self.server.ask("POST", "/v1/explain", {"model": kind, "text": name})
            self.assertEqual((status, json.loads(body)["error"]["param"]), (422, "text"))

    def test_no_file_is_opened(self):
        content = base64.b64encode(self.files["images"][0][1]).decode()
        wav_ = base64.b64encode(self.files["sounds"][0][1]).decode()
        for kind, text in (("images", "0.png"), ("images", f"{self.shared}/0.png"),
                           ("sounds", "0.wav"), ("images", f" data:image/png;base64,{content}"),
                           ("images", f"data:image/png;base64,{content} 0.png"),
                           ("images", "data:../0.png"), ("images", "data:image/png;base64,0.png"),
                           ("images", f"data:image/png;base64,{wav_}"),
                           ("sounds", f"data:audio/wav;base64,{content}")):
            for path in ("/v1/predict", "/v1/classify"):
                status, _, body = self.server.ask("POST", path, {"model": kind, "texts": [text]})
                self.assertEqual(status, 422, body)
                error = json.loads(body)["error"]
                self.assertEqual(error["param"], "texts")
                self.assertLess(len(error["message"]), 300)
        self.assertEqual(self.server.ask("POST", "/v1/completions",
                                         {"model": "images", "prompt": "0.png"})[0], 422)


if __name__ == "__main__":
    program.main()
