"""Small models and `attend serve` for the scripts that test it with other clients."""

import json
import os
import pathlib
import subprocess

KEY = "sesame"

SMALL = ("--set", "model.depth=16", "--set", "train.replicas=1", "--set", "train.epochs=2",
         "--set", "train.batch=16")
LINES = "the cat sat on a mat\nmy dog ran to you\n" * 40
REVIEWS = "".join(f"a {word} film {i}\t{label}\n" for i in range(40)
                  for word, label in (("fine", "good"), ("dull", "bad")))
JUDGED = "".join(f"is it cold? {number}\tthe red team won\t{number % 2}\n" for number in range(40))
# Name: (data file, its text, options of `attend train`).
MODELS = {"text": ("text.txt", LINES, (*SMALL, "--set", "model.type=lm", "--set", "model.context=32",
                                       "--set", "model.layers=1")),
          "reviews": ("reviews.tsv", REVIEWS, (*SMALL, "--set", "model.type=classifier")),
          "ranker": ("judged.tsv", JUDGED, (*SMALL, "--set", "model.type=classifier", "--set", "data.pairs=always",
                                            "--set", "data.target=probability")),
          "words": ("pairs.tsv", LINES.replace("cat", "cat\tdog").replace("dog ran", "dog\tcat ran"),
                    (*SMALL, "--set", "model.type=transformer", "--set", "model.heads=2")),
          "reader": ("questions.tsv", "which animal?\tthe cat sat on a mat\tcat\nwhich animal?\ta dog ran\tdog\n" * 40,
                     (*SMALL, "--set", "model.type=reader", "--set", "model.maximum_source_length=24",
                      "--set", "model.overlap=6")),
          # Slow enough for clients that disconnect early, and for measuring the server under load.
          "large": ("text.txt", LINES, ("--set", "model.type=lm", "--set", "model.context=256", "--set",
                                        "model.depth=256", "--set", "model.layers=2", "--set", "train.replicas=1",
                                        "--set", "train.steps=1", "--set", "train.batch=4"))}


def train(program, folder, name):
    """Trains one of MODELS in `folder`."""
    data, lines, chosen = MODELS[name]
    (folder / data).write_text(lines)
    subprocess.run([program, "train", "--data", data, "--out", name, *chosen], cwd=folder, check=True,
                   capture_output=True)


def predicted(program, folder, model, texts, *options):
    """Lines of `attend predict --json` for the texts."""
    run = subprocess.run([program, "predict", model, "--json", *map(str, options)], cwd=folder, check=True,
                         input="".join(f"{text}\n" for text in texts).encode(), capture_output=True)
    return run.stdout.decode().splitlines()


class Server:
    """`attend serve` of models with the key KEY; writes JSON objects to the file `log`."""

    def __init__(self, program, folder, models, *options):
        folder = pathlib.Path(folder)
        (folder / "key").write_text(KEY + "\n")
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith("ATTEND_")}
        self.log = folder / f"{'-'.join(models)}.log"
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [program, "serve", *models, "--port", "0", "--key-file", "key", "--log", "json", *options],
                cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=log, text=True)
        self.url = self.process.stdout.readline().split()[-1]
        if "ready" not in self.process.stdout.readline():
            raise SystemExit(f"the server did not start: {self.log.read_text()}")

    @property
    def port(self):
        return int(self.url.rsplit(":", 1)[1])

    def events(self):
        """Objects of the log."""
        return [json.loads(line) for line in self.log.read_text().splitlines() if line.startswith("{")]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        self.process.stdout.close()
