"""Runs the commands of docs/serving.md unchanged and in order, with models of these names."""

import json
import pathlib
import re
import shlex
import shutil
import subprocess

import program
from program import PAIRS, SMALL, settings
from test_serve import Server
from test_serve_routes import MODELS

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs/serving.md"
JUDGED = "".join(f"who won? {number}\tthe red team\t{number % 2}\n" for number in range(40))
# Trained for an epoch: other tests check learning.
TRAINED = MODELS | {"ranker": ("judged.tsv", JUDGED, {"model.type": "classifier", "model.depth": 8,
                                                     "data.pairs": "always", "data.target": "probability"}),
                    "words": ("pairs.tsv", PAIRS, SMALL), "sentences": ("pairs.tsv", PAIRS, SMALL)}


def indented_blocks(page):
    """Returns the indented blocks of a page, without the indentation."""
    text = re.sub(r"(?ms)^```.*?^```$", "", page.read_text(encoding="utf-8"))
    found = re.findall(r"(?:^    .*\n)+", text, re.MULTILINE)
    return [re.sub(r"^    ", "", block, flags=re.MULTILINE) for block in found]


class ServingDocs(program.Case):
    def train(self, names):
        for name in names:
            self.assertIn(name, TRAINED, f"tell test_serving_docs.py what the model {name} is")
            data, lines, small = TRAINED[name]
            self.write(data, lines)
            self.succeed("train", "--data", data, "--out", name, *settings(small | {"train.epochs": 1}))

    def serve(self, arguments, models=()):
        """Ends the last server and starts one at a free port, which replaces the page's port."""
        if self.server is not None:
            self.assertEqual(self.server.end(), 0)
        arguments = list(arguments)
        self.port = arguments[arguments.index("--port") + 1] if "--port" in arguments else "8080"
        if "--port" in arguments:
            del arguments[arguments.index("--port"):arguments.index("--port") + 2]
        self.server = Server(*models, *arguments, "--port", 0, cwd=self.folder)
        self.addCleanup(self.server.end)
        self.assertEqual(self.server.said, "attend: ready\n", self.server.errors)

    def ask(self, command):
        """Returns the output of curl; fails for an error response."""
        port = self.server.url.rsplit(":", 1)[1]
        command = command.replace(f"localhost:{self.port}", f"localhost:{port}")
        run = subprocess.run(["sh", "-c", command.replace("curl ", "curl -sS --fail-with-body ", 1)],
                             cwd=self.folder, capture_output=True, text=True, timeout=300)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        return run.stdout

    def test_every_command_runs(self):
        if shutil.which("curl") is None:
            program.skip("curl is missing: install it")
        self.server = None
        named = set(re.findall(r'"model": "(\w+)"', PAGE.read_text(encoding="utf-8")))
        self.train(sorted(named | {"words", "sentences"}))
        asked = 0
        for block in indented_blocks(PAGE):
            if block.startswith("[serve]"):
                self.serve(["--config", self.write("serve.toml", block)])
                status, _, _ = self.server.ask("GET", "/", headers={"Host": "attend.example"})
                self.assertEqual(status, 200)
                continue
            for command in block.replace("\\\n", " ").splitlines():
                with self.subTest(command=command):
                    if command.startswith("attend serve "):
                        arguments = shlex.split(command)[2:]
                        self.serve(arguments, models=sorted(named - set(arguments)))
                    elif command.startswith("curl "):
                        self.assertTrue(self.ask(command))
                        asked += 1
                    else:
                        subprocess.run(["sh", "-c", command], cwd=self.folder, check=True,
                                       capture_output=True)
        self.assertGreaterEqual(asked, 4)

    def test_the_first_answer_is_that_of_predict(self):
        self.server = None
        self.train(["words"])
        first = next(block for block in indented_blocks(PAGE) if block.startswith("curl "))
        body = json.loads(re.search(r"-d '(.*)'", first, re.DOTALL)[1])
        self.serve(["words"])
        status, _, answer = self.server.ask("POST", "/v1/predict", body)
        self.assertEqual(status, 200, answer)
        (text,) = body["texts"]
        printed = self.succeed("predict", "words", "--json", "--beam", body["beam"], "--nbest",
                               body["nbest"], stdin=f"{text}\n").stdout
        self.assertEqual(json.loads(answer)["answers"], [json.loads(printed)])


if __name__ == "__main__":
    program.main()
