#!/usr/bin/env python3
"""Tests whether classifiers of sentiment read "not": "was great" against "was not great".

    tools/negation.py [--data ../shared/data] [--out build/negation] [--jobs 1]

Trains each system on SST-2's phrases, once without and once with minimal pairs: sentences of a few templates, with and
without a negation, over some of the words that SST-2 labels. A part of the words is for validation. Prints a Markdown
table. For pairs over other words it has the share of answers that change with the negation, in total, for positive and
for negative words; for test sentences, the accuracy with and without a negation. Then prints each system's answers to
four sentences, with a score per word. Existing models in --out are not trained again.
"""

import argparse
import concurrent.futures
import gzip
import hashlib
import json
import pathlib
import sys

import sentences
import sentences_data

# A word after one of these describes something.
DEGREES = {"very", "so", "too", "more", "most", "really", "quite", "truly", "is", "was"}
NEGATIONS = {"not", "n't", "never", "no", "nothing", "without", "hardly", "neither", "nor", "cannot"}
SUBJECTS = ["it", "this", "the film", "the movie", "the story", "the plot", "the acting", "everything"]
TEMPLATES = [(f"{subject} {verb} {{}}", f"{subject} {verb} {negation} {{}}")
             for subject in SUBJECTS for verb in ("is", "was") for negation in ("not", "n't")]
OTHER_TEMPLATES = [("a {} movie", "not a {} movie"), ("really {}", "not really {}"),
                   ("this was {}", "this was never {}")]  # not in training
SHOWN = ["it was great", "it was not great", "it was bad", "it was not bad"]

SEQUENCE = {"model.layers": 2, "model.heads": 4, "model.feed_forward": 200, "model.dropout": 0.3}
SYSTEMS = {name: sentences.SYSTEMS[name] for name in
           ("sum of vectors", "fixed dot, 1 query", "fixed MLP, 1 query", "self-attention, fixed MLP")} | {
    "Transformer, class token": {"model.pooling": "class"} | SEQUENCE,
    "BiLSTM, fixed MLP": {"model.pooling": "fixed_mlp", "model.recurrent_layers": 1, "model.cell": "lstm"},
}
TRAININGS = {"alone": "SST-2's phrases", "pairs": "the phrases and minimal pairs of other words"}
# Word dropout would hide "not" in three of ten pairs.
SETTINGS = {"alone": {}, "pairs": {"model.word_dropout": 0, "train.epochs": 8}}
OPPOSITE = {"positive": "negative", "negative": "positive"}


def phrases(path):
    with gzip.open(path, "rt", encoding="utf-8") as file:
        rows = (line.rstrip("\n").rsplit("\t", 1) for line in file)
        return [(row[0].split(), sentences_data.LABELS[row[1]]) for row in rows if row[1] in sentences_data.LABELS]


def judging_words(rows):
    """{word: label} of words that are a phrase by themselves and elsewhere follow a word of degree."""
    alone = {words[0]: label for words, label in rows if len(words) == 1 and words[0].isalpha()}
    behind = {word for words, _ in rows for before, word in zip(words, words[1:]) if before in DEGREES}
    return {word: alone[word] for word in sorted(alone.keys() & behind - NEGATIONS - DEGREES)}


def use_of(word):
    """A quarter of the words is for validation, else weights that ignore "not" would be kept."""
    return ("asked", "train", "asked", "valid")[hashlib.sha256(word.encode()).digest()[0] % 4]


def pairs_of(words, templates):
    """[(sentence, negated sentence, label of the first)]."""
    return [(plain.format(word), negated.format(word), label)
            for word, label in words.items() for plain, negated in templates]


def write_trainings(out, pairs):
    """Writes the data without and with {part: pairs}; returns the rows of the test."""
    rows = {}
    for part in ("train", "valid", "test"):
        lines = (out / "sst2" / f"{part}.tsv").read_text(encoding="utf-8").splitlines()
        rows[part] = [tuple(line.rsplit("\t", 1)) for line in lines]
    added = {part: [row for plain, negated, label in some for row in ((plain, label), (negated, OPPOSITE[label]))]
             for part, some in pairs.items()}
    for name, more in (("alone", {}), ("pairs", added)):
        for part, content in rows.items():
            sentences_data.write(out / name / f"{part}.tsv", content + more.get(part, []))
    return rows["test"]


def answers(model, texts):
    told = sentences.attend("predict", model, "--json", stdin="\n".join(texts) + "\n")
    return [json.loads(line)["predictions"][0]["target"] for line in told.splitlines()]


def share(values):
    return sum(values) / len(values) if values else float("nan")


def flips(model, pairs):
    """Share of pairs with different answers, of all pairs, of positive words and of negative words."""
    plain, negated = (answers(model, [pair[side] for pair in pairs]) for side in (0, 1))
    return [share([before != after for before, after, pair in zip(plain, negated, pairs) if pair[2] in labels])
            for labels in (("positive", "negative"), ("positive",), ("negative",))]


def row_of(model, asked, others, test):
    cells = flips(model, asked) + flips(model, others)[:1]
    told = answers(model, [text for text, _ in test])
    for wanted in (True, False):
        cells.append(share([answer == label for answer, (text, label) in zip(told, test)
                            if bool(NEGATIONS & set(text.split())) == wanted]))
    return "".join(f" {100 * cell:.1f} |" for cell in cells)


def map_of(model, text):
    """The answer and the score of each word."""
    told = json.loads(sentences.attend("explain", model, text, "--method", "integrated_gradients", "--json"))
    words = " ".join(f"{word} {weight:+.2f}" for word, weight in zip(told["source"], told["scores"][0]))
    return f"{told['target'][0]} ({words})"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=pathlib.Path, default="../shared/data")
    parser.add_argument("--out", type=pathlib.Path, default="build/negation")
    parser.add_argument("--jobs", type=int, default=1, help="trainings at once, a thread each")
    options = parser.parse_args()
    sentences_data.sst2(options.data / "sst-sentence", options.data / "sst2-glue", options.out / "sst2")
    words = judging_words(phrases(options.data / "sst2-glue" / "train.tsv.gz"))
    words_of = {use: {word: label for word, label in words.items() if use_of(word) == use}
          for use in ("train", "valid", "asked")}
    added = {"train": pairs_of(words_of["train"], TEMPLATES), "valid": pairs_of(words_of["valid"], TEMPLATES[::8])}
    asked, others = pairs_of(words_of["asked"], TEMPLATES), pairs_of(words_of["asked"], OTHER_TEMPLATES)
    test = write_trainings(options.out, added)
    print(f"{len(words)} words; {len(added['train'])} pairs to train with, {len(asked)} to ask for", file=sys.stderr)
    models = {(training, system): options.out / "models" / training / system.replace(",", "").replace(" ", "-")
              for training in TRAININGS for system in SYSTEMS}
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        runs = [pool.submit(sentences.measure, sentences.COMMON | sentences.TASKS["sst2"] | SYSTEMS[system] | SETTINGS[training],
                            options.out / training, model) for (training, system), model in models.items()]
        for run in runs:
            run.result()
    for training, meaning in TRAININGS.items():
        print(f"\nTrained on {meaning}, percent:\n\n| system | pairs that flip | of positive words | of negative "
              "words | of other templates | right, sentences with a negation | right, others |\n"
              "|---|---|---|---|---|---|---|")
        for system in SYSTEMS:
            print(f"| {system} |{row_of(models[training, system], asked, others, test)}", flush=True)
    print("\n| system |" + "".join(f" {text} |" for text in SHOWN) + "\n|---|" + "---|" * len(SHOWN))
    for system in SYSTEMS:
        print(f"| {system} |" + "".join(f" {map_of(models['pairs', system], text)} |" for text in SHOWN), flush=True)


if __name__ == "__main__":
    main()
