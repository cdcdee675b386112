#!/usr/bin/env python3
"""Imports netra-transliterate, a Keras model with additive attention, and compares it with the package.

    python3 -m venv build/netra && build/netra/bin/pip install tensorflow-cpu==2.20.0 khmerspell Levenshtein flask
    build/netra/bin/python tools/transliterators.py --words ../shared/data/cmudict/cmudict.dict.xz

Fetches netra-transliterate 1.0.1 from PyPI, pinned by its hash. The package's own code writes words in Khmer letters by
greedy search. The import must give the same answers, and probabilities that differ by at most 1e-4 of them. Words are
names of places, some that test the package's rules and, with --words, every N-th word of a file. Answers with beams are
not compared: the package's search also returns answers that are not finished, which are more probable than their ends.
"""

import argparse
import json
import lzma
import math
import pathlib
import subprocess
import sys
import tempfile

import pronouncers

PACKAGE = "netra-transliterate==1.0.1"
HASH = "sha256:6878e5ad5e6b756c823a3dd752f4f4987a46c9a4817d5b96aafbe0470a664219"
WORDS = ["phnom", "penh", "angkor", "wat", "kampuchea", "siem", "reap", "battambang", "mekong", "tonle", "sap", "khmer",
         "srey", "bong", "sok", "sabay", "chnam", "thmey", "a", "q", "Sok-Sabay", "x y z", "naïve", "123", "ab1cd",
         "preahsihanoukville", "abcdefghijklmnopqrstuvwxyz", "zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz"]
LONGEST = 32  # the package's max_length, with the token that begins an answer


def package_search(folder):
    """The package's own greedy search, which returns a text and its probability."""
    sys.path.insert(0, str(folder.parent))
    from khmer_transliterator._inference import Transliterator
    model = Transliterator()
    model._load()
    for name in ("_encoder", "_decoder"):  # called directly, which is 20 times as fast as predict
        layers = getattr(model, name)

        class Direct:
            def __init__(self, called):
                self.called = called

            def predict(self, values, verbose=0):
                return [each.numpy() for each in self.called(values)]

        setattr(model, name, Direct(layers))

    def search(word):
        best, = model._beam_search(model._encode(word), 1, LONGEST)
        return model._decode_beam(best), float(best["prob"])

    return search


def answers(program, model, words):
    done = subprocess.run([program, "predict", model, "--json", "--length-penalty", "0",
                           "--maximum-length", str(LONGEST - 1)],
                          input="".join(f"{word}\n" for word in words), capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr)
    found = [json.loads(line)["predictions"][0] for line in done.stdout.splitlines()]
    return [(each["target"], math.exp(each["log_probability"])) for each in found]


def read_words(path, step):
    opened = lzma.open if path.suffix == ".xz" else open
    with opened(path, "rt", encoding="utf-8") as lines:
        words = [line.split()[0] for line in lines if line[:1].isalpha() and "(" not in line]
    return words[::step]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", default="build/release/attend")
    parser.add_argument("--words", type=pathlib.Path)
    parser.add_argument("--step", type=int, default=700)
    options = parser.parse_args()
    words = WORDS + (read_words(options.words, options.step) if options.words else [])
    differing, largest = 0, 0.0
    with tempfile.TemporaryDirectory() as folder:
        package = pronouncers.fetch(folder, PACKAGE, HASH, "khmer_transliterator")
        imported = f"{folder}/imported"
        model = next((package / "weights").glob("*.keras"))
        subprocess.run([options.program, "import", model, "--out", imported], check=True)
        search = package_search(package)
        for word, (text, probability) in zip(words, answers(options.program, imported, words), strict=True):
            theirs, expected = search(word)
            differing += theirs != text
            if theirs != text:
                print(f"{word}: the package says {theirs} ({expected:.3g}), the import {text} ({probability:.3g})")
            largest = max(largest, abs(probability - expected) / expected)
    print(f"{len(words)} words: {differing} are answered otherwise by {PACKAGE} and by its import; "
          f"probabilities differ by at most {largest:.1e} of them")
    sys.exit(differing > 0 or largest > 1e-4)


if __name__ == "__main__":
    main()
