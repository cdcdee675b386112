#!/usr/bin/env python3
"""Imports g2p-en, compares it with the package, and draws its errors by word length with the errors of our models.

    python3 -m venv build/g2p && build/g2p/bin/pip install numpy==2.4.6
    attend data cmudict ../shared/data/cmudict/cmudict.dict.xz --out build/cmudict
    attend train --data build/cmudict --config recipes/demo.toml --out build/demo/model
    build/g2p/bin/python tools/pronouncers.py --data build/cmudict/test.tsv \
        --model "demo=build/demo/model" --out docs/pronouncers.svg

Fetches g2p-en 2.1.0 from PyPI, pinned by its hash. The package's own code pronounces each word as if its dictionary
lacked it; import and package must give the same phonemes. Then all models pronounce the words of --data. An answer is
right if it is one of the word's pronunciations, without stress. Exits with 1 if the package and the import differ.
"""

import argparse
import collections
import json
import pathlib
import subprocess
import sys
import tempfile
import types
import unicodedata
import zipfile

PACKAGE = "g2p-en==2.1.0"
HASH = "sha256:2a7aabf1fc7f270fcc3349881407988c9245173c2413debbe5432f4a4f31319f"
LENGTHS = [(1, 4), (5, 6), (7, 8), (9, 10), (11, 12), (13, 99)]
# Words from the package's documentation, and characters that its tokeniser has never seen.
OWN_WORDS = ["activationist", "popular", "pets", "refuse", "collect", "here", "hello", "o'clock", "naive", "a",
             "antidisestablishmentarianism", "pneumonoultramicroscopicsilicovolcanoconiosis", "xyzzy", "é", "x-ray",
             "Naïve", "東京"]
COLOURS = ["#4c72b0", "#dd8452", "#55a868", "#c44e52"]


def fetch(folder, package=PACKAGE, digest=HASH, name="g2p_en"):
    """The folder `name` of a wheel from PyPI, unpacked."""
    requirements = pathlib.Path(folder) / "requirements.txt"
    requirements.write_text(f"{package} --hash={digest}\n")
    subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--require-hashes", "-d", folder,
                    "-r", str(requirements)], check=True)
    with zipfile.ZipFile(next(pathlib.Path(folder).glob("*.whl"))) as archive:
        archive.extractall(folder)
    return pathlib.Path(folder) / name


def package_predictor(folder):
    """The package's own code, without the tagger and the dictionary that it downloads at start."""
    def module(name, **members):
        made = types.ModuleType(name)
        for key, value in members.items():
            setattr(made, key, value)
        sys.modules[name] = made
        return made

    dictionary = types.SimpleNamespace(dict=dict)
    module("nltk", pos_tag=None, data=types.SimpleNamespace(find=lambda path: path),
           corpus=module("nltk.corpus", cmudict=dictionary),
           tokenize=module("nltk.tokenize", TweetTokenizer=lambda: types.SimpleNamespace(tokenize=str.split)))
    module("inflect", engine=lambda: None)
    sys.path.insert(0, str(folder.parent))
    from g2p_en.g2p import G2p
    return G2p().predict


def prepared(word):
    """Normalises a word as the package does."""
    letters = unicodedata.normalize("NFD", word)
    return "".join(each for each in letters if unicodedata.category(each) != "Mn").lower()


def answers(program, model, words, *options):
    done = subprocess.run([program, "predict", model, *options], input="".join(f"{word}\n" for word in words),
                          capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr)
    return done.stdout.splitlines()


def without_stress(phonemes):
    return phonemes.translate(str.maketrans("", "", "012"))


def compare(program, imported, predict, words):
    """Number of words that the package and the import pronounce differently."""
    differing = 0
    for word, ours in zip(words, answers(program, imported, words, "--maximum-length", "20"), strict=True):
        theirs = " ".join(predict(prepared(word)))
        if theirs != ours:
            differing += 1
            print(f"{word}: the package says {theirs}, the import {ours}")
    return differing


def errors_by_length(found, references):
    wrong = collections.Counter()
    for (word, right), answer in zip(references.items(), found, strict=True):
        if without_stress(answer) not in right:
            wrong[len(word)] += 1
    return wrong


def pooled(wrong, counts):
    rows = []
    for low, high in LENGTHS:
        words = sum(counts[length] for length in range(low, high + 1))
        rows.append((words, sum(wrong[length] for length in range(low, high + 1)) / max(words, 1)))
    return rows


def drawn(names, tables):
    """Error rates by word length, as SVG."""
    width, height, left, bottom = 560, 320, 50, 40
    most = max(error for table in tables for _, error in table)
    across = (width - left - 20) / (len(LENGTHS) - 1)

    def place(i, error):
        return f"{left + i * across:.1f},{height - bottom - error / most * (height - bottom - 40):.1f}"

    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="DejaVu Sans" '
             'font-size="12">', f'<rect width="{width}" height="{height}" fill="white"/>']
    for share in (0, 0.5, 1):
        x, y = place(0, share * most).split(",")
        parts.append(f'<text x="{float(x) - 8}" y="{float(y) + 4}" text-anchor="end">{100 * share * most:.0f} %</text>')
    for i, (low, high) in enumerate(LENGTHS):
        name = f"{low}-{high}" if high < 99 else f"{low}+"
        parts.append(f'<text x="{left + i * across:.1f}" y="{height - 18}" text-anchor="middle">{name}</text>')
    parts.append(f'<text x="{width / 2}" y="{height - 3}" text-anchor="middle">letters</text>')
    for number, (name, table) in enumerate(zip(names, tables)):
        points = " ".join(place(i, error) for i, (_, error) in enumerate(table))
        colour = COLOURS[number % len(COLOURS)]
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts.append(f'<text x="{left + 10}" y="{20 + 16 * number}" fill="{colour}">{name}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def read_references(path):
    references = collections.defaultdict(set)
    for line in path.read_text().splitlines():
        word, phonemes = line.split("\t")
        references[word].add(phonemes)
    return references


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", default="build/release/attend")
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--model", action="append", default=[], metavar="NAME=FOLDER")
    parser.add_argument("--out", type=pathlib.Path)
    options = parser.parse_args()
    references = read_references(options.data)
    words = list(references)
    counts = collections.Counter(map(len, words))
    with tempfile.TemporaryDirectory() as folder:
        package = fetch(folder)
        imported = f"{folder}/imported"
        subprocess.run([options.program, "import", package / "checkpoint20.npz", "--out", imported], check=True)
        compared = OWN_WORDS + words
        differing = compare(options.program, imported, package_predictor(package), compared)
        print(f"{len(compared)} words: {differing} are pronounced otherwise by {PACKAGE} and by its import\n")
        models = [("g2p-en", imported, ["--maximum-length", "20"])]
        models += [(*each.rsplit("=", 1), []) for each in options.model]
        tables, whole = [], []
        for _, model, more in models:
            wrong = errors_by_length(answers(options.program, model, words, *more), references)
            tables.append(pooled(wrong, counts))
            whole.append(sum(wrong.values()) / len(words))
    names = [name for name, *_ in models]
    print("| letters | words | " + " | ".join(names) + " |\n|---|---|" + "---|" * len(names))
    for i, (low, high) in enumerate(LENGTHS):
        name = f"{low}-{high}" if high < 99 else f"{low}+"
        print(f"| {name} | {tables[0][i][0]} | " + " | ".join(f"{100 * table[i][1]:.1f} %" for table in tables) + " |")
    print(f"| all | {len(words)} | " + " | ".join(f"{100 * error:.1f} %" for error in whole) + " |")
    if options.out:
        options.out.write_text(drawn(names, tables))
    sys.exit(1 if differing else 0)


if __name__ == "__main__":
    main()
