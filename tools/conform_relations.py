#!/usr/bin/env python3
"""Checks relations that hold for any right answers, on small models trained on random data.

    python3 tools/conform_relations.py [--program build/release/attend] [--answer build/release/answer]
                                       [--seed 1] [RELATION..]

Needs only Python. `--answer` is examples/answer.cpp, built by `ninja answer`. Without it, the relation to C++ is
omitted. A row of `./dev conform`: prints each relation with its measured and its allowed difference; exits with 1 if
one is larger than allowed. Takes about three minutes.
"""

import csv
import gzip
import itertools
import json
import math
import pathlib
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
import zipfile

import conform_report

QUICK = {"train.replicas": 1, "train.batch": 20, "train.learning_rate": 1e-2, "train.weight_average": 0.9,
         "train.patience": 0, "train.warmup_steps": 10}
GOOD, BAD = "good fine lovely warm happy".split(), "bad dull awful cold sad".split()
FILL = "the film story actor was is a very really so this that plot music".split()

# Tolerance of figures that float32 rounds in the last digits.
ROUNDING = 1e-6


class Workplace:
    """A folder with random data and the models of the relations, each trained once."""

    def __init__(self, folder, program, seed):
        self.folder, self.program, self.seed = pathlib.Path(folder), str(program), seed
        self.trained = {}

    def run(self, *arguments, stdin=""):
        run = subprocess.run([self.program, *map(str, arguments)], input=stdin, cwd=self.folder,
                             capture_output=True, text=True, check=False)
        if run.returncode != 0:
            raise RuntimeError(f"attend {' '.join(map(str, arguments))}: {run.stderr.strip()}")
        return run.stdout

    def write(self, name, lines):
        (self.folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        return name

    def train(self, name, data, valid, values, *options):
        assignments = [part for key, value in (QUICK | values).items() for part in ("--set", f"{key}={value}")]
        self.run("train", "--data", data, *(["--valid", valid] if valid else []), "--out", name,
                 *options, *assignments)
        return name

    def model(self, name):
        """Returns training and test lines of a kind of model; trains the model on first use."""
        if name not in self.trained:
            kind = KINDS[name]
            rows = kind["rows"](random.Random(f"{self.seed} {name}"), 260)
            train, test = rows[:200], rows[200:]
            for part, lines in (("train", train), ("test", test)):
                self.write(f"{name}-{part}{kind['suffix']}", lines)
            self.train(name, f"{name}-train{kind['suffix']}", f"{name}-test{kind['suffix']}",
                       kind["settings"])
            self.trained[name] = train, test
        return self.trained[name]

    def test_file(self, name):
        return f"{name}-test{KINDS[name]['suffix']}"

    def predictions(self, name, sources, *options):
        output = self.run("predict", name, "--json", *options, stdin="".join(f"{line}\n" for line in sources))
        return [json.loads(line)["predictions"] for line in output.splitlines()]

    def figures(self, name, data, *options):
        figures = json.loads(self.run("evaluate", name, "--data", data, "--json", *options))
        # Intervals depend on the order of lines.
        return flat({key: value for key, value in figures.items()
                     if key not in ("decode_seconds", "by_length", "confusion", *COUNTS)
                     and not key.endswith("_interval")})


COUNTS = ("examples", "sources", "references", "tokens", "asked_tokens", "unknown_tokens", "beam")


def flat(figures, prefix=""):
    """Numbers of nested objects and lists by their path."""
    numbers = {}
    items = figures.items() if isinstance(figures, dict) else enumerate(figures)
    for key, value in items:
        if isinstance(value, (dict, list)):
            numbers |= flat(value, f"{prefix}{key}.")
        elif isinstance(value, (int, float)):
            numbers[f"{prefix}{key}"] = value
    return numbers


def largest(ours, theirs):
    """Largest relative difference of two objects of numbers; infinite if their keys differ."""
    if ours.keys() != theirs.keys():
        return math.inf
    return max((abs(ours[key] - theirs[key]) / max(1, abs(ours[key])) for key in ours), default=0)


def unlike(ours, theirs):
    """Number of answers that differ in any bit."""
    return sum(a != b for a, b in itertools.zip_longest(ours, theirs))


# Random data

def text(draw, positive):
    words = [draw.choice(FILL) for _ in range(draw.randint(3, 9))]
    words.insert(draw.randrange(len(words) + 1), draw.choice(GOOD if positive else BAD))
    return " ".join(words)


def labelled(draw, count):
    return [f"{text(draw, good)}\t{'pos' if good else 'neg'}" for good in
            (draw.random() < 0.5 for _ in range(count))]


def worth(line):
    return sum(3 * (word in GOOD) - 2 * (word in BAD) + 0.25 * (word == "film") for word in line.split())


def measured(draw, count):
    lines = [text(draw, draw.random() < 0.5) for _ in range(count)]
    return [f"{line}\t{worth(line)}" for line in lines]


def tagged(draw, count):
    def label(word):
        return "B-G" if word in GOOD else "B-B" if word in BAD else "O"

    rows = []
    for _ in range(count):
        words = text(draw, draw.random() < 0.5).split()
        rows.append(f"{' '.join(words)}\t{' '.join(label(word) for word in words)}")
    return rows


def spelled(draw, count):
    words = ["".join(draw.choice("abcdefgh") for _ in range(draw.randint(2, 7))) for _ in range(count)]
    return [f"{word}\t{' '.join(word.upper())}" for word in words]


def plain(draw, count):
    return [text(draw, draw.random() < 0.5) for _ in range(count)]


SMALL = {"model.word_dropout": 0, "model.output_dropout": 0, "model.depth": 16, "train.epochs": 6}
WIDTH = {"model.depth": 16, "model.feed_forward": 32, "model.heads": 2, "model.dropout": 0}
KINDS = {
    "classifier": {"rows": labelled, "suffix": ".tsv",
                   "settings": SMALL | {"model.type": "classifier", "data.source_units": "space"}},
    "number": {"rows": measured, "suffix": ".tsv",
               "settings": SMALL | {"model.type": "classifier", "data.source_units": "space",
                                    "data.target": "number", "model.pooling": "sum"}},
    "tagger": {"rows": tagged, "suffix": ".tsv",
               "settings": SMALL | {"model.type": "tagger", "data.source_units": "space",
                                    "data.target_units": "space"}},
    "seq2seq": {"rows": spelled, "suffix": ".tsv",
                "settings": {"model.embedding": 16, "model.hidden": 32, "model.attention_depth": 16,
                             "model.dropout": 0, "train.epochs": 8}},
    "transformer": {"rows": spelled, "suffix": ".tsv",
                    "settings": WIDTH | {"model.type": "transformer", "model.encoder_layers": 1,
                                         "model.decoder_layers": 1, "train.epochs": 6}},
    "lm": {"rows": plain, "suffix": ".txt",
           "settings": WIDTH | {"model.type": "lm", "model.layers": 1, "model.context": 32,
                                "train.epochs": 2}},
    "encoder": {"rows": plain, "suffix": ".txt",
                "settings": WIDTH | {"model.type": "encoder", "model.layers": 1, "train.epochs": 4}},
}
ANSWERING = ("classifier", "number", "tagger", "seq2seq", "transformer")


def sources_of(rows):
    return [row.split("\t")[0] for row in rows]


# Relations: each yields (name of the comparison, difference, allowed difference).

def order_of_lines(work):
    for name in (*ANSWERING, "encoder"):
        _, test = work.model(name)
        order = random.Random(work.seed).sample(range(len(test)), len(test))
        shuffled = work.write(f"{name}-shuffled{KINDS[name]['suffix']}", [test[i] for i in order])
        yield (f"{name}: figures of shuffled lines", largest(work.figures(name, work.test_file(name)),
                                                             work.figures(name, shuffled)), ROUNDING)
        if name == "encoder":
            continue
        sources = sources_of(test)
        apart = work.predictions(name, [sources[i] for i in order])
        whole = work.predictions(name, sources)
        yield f"{name}: answers that differ, of shuffled lines", unlike(apart, [whole[i] for i in order]), 0


def batches(work):
    for name in ANSWERING:
        sources = sources_of(work.model(name)[1])[:8]
        alone = [work.predictions(name, [source])[0] for source in sources]
        yield f"{name}: answers that differ, line by line", unlike(alone, work.predictions(name, sources)), 0


def threads(work):
    for name in (*ANSWERING, "lm"):
        sources = sources_of(work.model(name)[1])
        options = ["--maximum-length", 20] if name == "lm" else []
        one, two = (work.predictions(name, sources, "--threads", count, *options) for count in (1, 2))
        yield f"{name}: answers that differ, by one thread and two", unlike(one, two), 0


def units_of_targets(work):
    train, test = work.model("number")
    deviation = None
    found = {}
    for name, factor, shift in (("as-is", 1, 0), ("times-1000", 1000, 0), ("plus-1e9", 1, 10 ** 9)):
        files = [work.write(f"{name}-{part}.tsv",
                            [f"{source}\t{float(target) * factor + shift!r}" for source, target in
                             (row.split("\t") for row in rows)]) for part, rows in
                 (("train", train), ("test", test))]
        model = work.train(f"number-{name}", *files, KINDS["number"]["settings"])
        answers = [one[0]["number"] for one in work.predictions(model, sources_of(test))]
        found[name] = [(answer - shift) / factor for answer in answers]
        figures = work.figures(model, files[1])
        yield (f"number: R2, {name}", abs(figures["r2"] - found.setdefault("r2", figures["r2"])), 1e-3)
        mean = sum(found["as-is"]) / len(found["as-is"])
        deviation = (sum((x - mean) ** 2 for x in found["as-is"]) / len(found["as-is"])) ** 0.5
    for name in ("times-1000", "plus-1e9"):
        difference = max(abs(a - b) for a, b in zip(found["as-is"], found[name])) / deviation
        # float32 rounds these targets differently, and training keeps the difference.
        yield f"number: answers in deviations, {name}", difference, 1e-3


def renamed(work):
    """New names in the same order, so that vocabularies keep their order."""
    train, test = work.model("classifier")

    def other(row):
        source, label = row.split("\t")
        return " ".join(f"w{word}" for word in source.split()) + f"\tl{label}"

    files = [work.write(f"renamed-{part}.tsv", map(other, rows)) for part, rows in
             (("train", train), ("test", test))]
    model = work.train("renamed", *files, KINDS["classifier"]["settings"])
    yield ("classifier: figures with other names of labels and tokens",
           largest(fl := work.figures("classifier", work.test_file("classifier")),
                   dict(zip(fl, work.figures(model, files[1]).values()))), 0)


def doubled(work):
    for name in (*ANSWERING, "encoder"):
        _, test = work.model(name)
        twice = work.write(f"{name}-twice{KINDS[name]['suffix']}", test + test)
        figures, double = work.figures(name, work.test_file(name)), work.figures(name, twice)
        yield f"{name}: figures of every line twice", largest(figures, double), ROUNDING


def split_and_whole(work):
    train, test = work.model("classifier")
    folder = work.folder / "folder"
    folder.mkdir()
    for part, rows in (("train", train), ("valid", test), ("test", test)):
        (folder / f"{part}.tsv").write_text("".join(f"{row}\n" for row in rows))
    with open(work.folder / "whole.csv", "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("text", "label"), *(row.split("\t") for row in train)])
    with gzip.open(work.folder / "whole.tsv.gz", "wt") as file:
        file.writelines(f"{row}\n" for row in train)
    for part, place in (("source", 0), ("target", 1)):
        for name, rows in (("train", train), ("test", test)):
            work.write(f"{name}.{part}", [row.split("\t")[place] for row in rows])
    wanted = (work.folder / "classifier" / "weights.safetensors").read_bytes()
    valid = work.test_file("classifier")
    for name, data, validation, options in (
            ("a folder", "folder", None, []),
            ("packed by gzip", "whole.tsv.gz", valid, []),
            ("two files", "train.source", "test.source",
             ["--target", "train.target", "--valid-target", "test.target"])):
        model = work.train(f"by {name}", data, validation, KINDS["classifier"]["settings"], *options)
        yield (f"classifier: bytes of weights, {name}",
               unlike(wanted, (work.folder / model / "weights.safetensors").read_bytes()), 0)
    half = len(test) // 3
    parts = [(test[:half], "first.tsv"), (test[half:], "second.tsv")]
    whole = work.figures("classifier", valid)["accuracy"]
    mean = sum(len(rows) * work.figures("classifier", work.write(name, rows))["accuracy"]
               for rows, name in parts) / len(test)
    yield "classifier: accuracy of a file and of its two parts", abs(whole - mean), 1e-12


def predict_and_evaluate(work):
    for name, metrics in (("classifier", "accuracy,f1"), ("number", "rmse,mae,r2"),
                          ("transformer", "token_error,sequence_error,bleu,chrf")):
        _, test = work.model(name)
        answers = work.run("predict", name, stdin="".join(f"{line}\n" for line in sources_of(test)))
        references = work.write(f"{name}.reference", [row.split("\t")[1] for row in test])
        units = "line" if name != "transformer" else "space"
        score = json.loads(work.run("score", "--metric", metrics, "--reference", references, "--units", units,
                                    "--json", stdin=answers))
        figures = work.figures(name, work.test_file(name), "--metric", metrics)
        score = {key: value for key, value in flat(score).items() if key not in COUNTS}
        yield (f"{name}: evaluate, and score of what predict prints",
               largest(score, {key: figures.get(key, math.inf) for key in score}), ROUNDING)


def asked(port, texts, maximum_length):
    """Predictions of `attend serve` for each text, in requests of the maximum size."""
    found = []
    for first in range(0, len(texts), 32):
        fields = {"texts": texts[first:first + 32]} | ({"maximum_length": maximum_length} if maximum_length else {})
        request = urllib.request.Request(f"http://127.0.0.1:{port}/v1/predict", json.dumps(fields).encode(),
                                         {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=120) as reply:
                found += [one["predictions"] for one in json.loads(reply.read())["answers"]]
        except urllib.error.HTTPError as error:
            raise RuntimeError(f"{error}: {error.read().decode()}") from error
    return found


def served(work):
    for name in (*ANSWERING, "lm"):
        sources = sources_of(work.model(name)[1])
        options = ["--maximum-length", 20] if name == "lm" else []
        server = subprocess.Popen([work.program, "serve", name, "--port", "0"], cwd=work.folder,
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            port = re.search(r"http://[^ ]*:(\d+)", server.stdout.readline()).group(1)
            server.stdout.readline()  # waits for "ready"
            found = asked(port, sources, 20 if name == "lm" else None)
        finally:
            server.terminate()
            server.communicate()
        yield (f"{name}: answers that differ, predict and serve",
               unlike(found, work.predictions(name, sources, *options)), 0)


def in_cpp(work):
    if work.answer is None:
        return
    for name in ("classifier", "seq2seq", "transformer"):
        sources = sources_of(work.model(name)[1])
        output = subprocess.run([work.answer, name], input="".join(f"{line}\n" for line in sources),
                                cwd=work.folder, capture_output=True, text=True, check=True).stdout
        found = [tuple(line.split("\t")[:2]) for line in output.splitlines()]
        wanted = [(source, one["target"]) for source, each in
                  zip(sources, work.predictions(name, sources, "--beam", 5, "--nbest", 3)) for one in each]
        yield f"{name}: candidates that differ, predict and C++", unlike(found, wanted), 0


def npy(path, kind, shape, numbers):
    header = f"{{'descr': '<{kind}', 'fortran_order': False, 'shape': {shape}, }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    form = {"f4": "f", "f8": "d"}[kind]
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode()
                     + struct.pack(f"<{len(numbers)}{form}", *numbers))


def read_context(path):
    with zipfile.ZipFile(path) as arrays:
        data = arrays.read("context.npy")
    start = 10 + struct.unpack("<H", data[8:10])[0]
    kind = "d" if b"'<f8'" in data[:start] else "f"
    size = struct.calcsize(kind)
    return struct.unpack(f"<{(len(data) - start) // size}{kind}", data[start:])


def float32_and_float64(work):
    draw = random.Random(work.seed)
    arrays = {name: [struct.unpack("f", struct.pack("f", draw.gauss(0, 1)))[0] for _ in range(2 * 9 * 8)]
              for name in ("query", "key", "value")}
    for choices in (["--score", "scaled_dot"], ["--score", "scaled_dot", "--scope", "causal"], ["--score", "cosine"],
                    ["--score", "squared_distance"], ["--score", "scaled_dot", "--normaliser", "sparsemax"],
                    ["--mechanism", "linear"]):
        contexts = []
        for kind in ("f4", "f8"):
            for name, numbers in arrays.items():
                npy(work.folder / f"{name}.npy", kind, (2, 9, 8), numbers)
            work.run("compute", "--query", "query.npy", "--key", "key.npy", "--value", "value.npy", *choices,
                     "--out", f"context-{kind}.npz")
            contexts.append(read_context(work.folder / f"context-{kind}.npz"))
        differences = [abs(a - b) for a, b in zip(*contexts, strict=True)]
        # float32 rounds squared distances, here up to 60, by 4e-6.
        allowed = 1e-5 if "squared_distance" in choices else ROUNDING
        yield f"compute: context by float32 and float64, {' '.join(choices[1::2])}", max(differences), allowed


def save_and_load(work):
    for name in ("classifier", "seq2seq"):
        train, test = work.model(name)
        copy = work.folder / f"{name}-copy"
        shutil.copytree(work.folder / name, copy)
        (copy / "checkpoint.safetensors").unlink(missing_ok=True)
        sources = sources_of(test)
        yield (f"{name}: answers that differ, of a copy without its checkpoint",
               unlike(work.predictions(name, sources), work.predictions(copy.name, sources)), 0)
        again = work.train(f"{name}-again", f"{name}-train.tsv", f"{name}-test.tsv",
                           KINDS[name]["settings"])
        yield (f"{name}: bytes of weights of a second training",
               unlike((work.folder / name / "weights.safetensors").read_bytes(),
                      (work.folder / again / "weights.safetensors").read_bytes()), 0)
        resumed = f"{name}-resumed"
        command = [work.program, "train", "--data", f"{name}-train.tsv", "--valid", f"{name}-test.tsv", "--out",
                   resumed, "--resume", *(part for key, value in (QUICK | KINDS[name]["settings"]).items()
                                          for part in ("--set", f"{key}={value}"))]
        stopped = subprocess.Popen(command, cwd=work.folder, stderr=subprocess.PIPE, text=True)
        for line in stopped.stderr:
            if re.match("epoch [23] ", line):
                stopped.terminate()
                break
        stopped.communicate()
        subprocess.run(command, cwd=work.folder, capture_output=True, check=True)
        yield (f"{name}: bytes of weights of a training that was stopped and resumed",
               unlike((work.folder / name / "weights.safetensors").read_bytes(),
                      (work.folder / resumed / "weights.safetensors").read_bytes()), 0)


RELATIONS = (order_of_lines, batches, threads, units_of_targets, renamed, doubled, split_and_whole,
             predict_and_evaluate, served, in_cpp, float32_and_float64, save_and_load)


def check(report, relation, work):
    """Counts the cases of a relation. If the program fails, the case differs and the next relation follows."""
    try:
        for what, difference, allowed in relation(work):
            report.compare(f"{relation.__name__}: {what}", float(difference), 0.0, allowed)
    except (RuntimeError, OSError, subprocess.CalledProcessError) as error:
        report.state(f"{relation.__name__}: all of it", False, str(error))


def main():
    parser = conform_report.arguments(__doc__.splitlines()[0])
    parser.add_argument("--answer", help="examples/answer.cpp, built; otherwise next to the program")
    parser.add_argument("relations", nargs="*", metavar="RELATION",
                        help=", ".join(each.__name__ for each in RELATIONS))
    options = parser.parse_args()
    chosen = [each for each in RELATIONS if not options.relations or each.__name__ in options.relations]
    report, program = conform_report.Report(), pathlib.Path(options.program).resolve()
    with tempfile.TemporaryDirectory(prefix="attend-relations-") as folder:
        work = Workplace(folder, program, options.seed)
        answer = pathlib.Path(options.answer).resolve() if options.answer else program.parent / "answer"
        work.answer = answer if answer.exists() else None
        for relation in chosen:
            check(report, relation, work)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
