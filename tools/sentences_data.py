#!/usr/bin/env python3
"""Writes labelled sentences as TSV, text TAB label, for `attend train --set model.type=classifier`.

    tools/sentences_data.py ../shared/data build/sentences

rt-polarity (Pang & Lee 2005), two files of sentences: rt-polarity/fold0 to fold9. Each fold has a tenth of either label
for testing, in the order of a hash, and a tenth of the rest for validation.
SST-2 (Socher et al. 2013): sst2, trained on the phrases of sst2-glue/train.tsv, validated and tested on the sentences
of sst-sentence. Phrases that equal one of these sentences, except for case, spacing and punctuation, are left out of
training and printed.
"""

import gzip
import hashlib
import pathlib
import sys

LABELS = {"0": "negative", "1": "positive"}

# The treebank's spelling of characters with a meaning in its trees.
TREEBANK = {"-lrb-": "(", "-rrb-": ")", "\\/": "/", "\\*": "*"}


def lines(path):
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [line.strip() for line in file]


def write(path, rows):
    """Replaces the file only if its content differs: another run may be reading it."""
    content = "".join(f"{text}\t{label}\n" for text, label in rows).encode()
    if path.exists() and path.read_bytes() == content:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def same(text):
    """Equal for texts that differ only in case, spacing and punctuation."""
    return "".join(c for c in text.lower() if c.isalnum())


def rt_polarity(source, target, folds=10):
    tenths = [[] for _ in range(folds)]
    for label, name in (("negative", "neg"), ("positive", "pos")):
        texts = sorted(filter(None, lines(source / f"rt-polarity.{name}.gz")),
                       key=lambda text: hashlib.sha256(text.encode()).digest())
        for place, text in enumerate(texts):
            tenths[place * folds // len(texts)].append((text, label))
    for fold, test in enumerate(tenths):
        rest = [row for tenth in tenths if tenth is not test for row in tenth]
        write(target / f"fold{fold}" / "test.tsv", test)
        write(target / f"fold{fold}" / "valid.tsv", rest[::10])
        write(target / f"fold{fold}" / "train.tsv",
              [row for place, row in enumerate(rest) if place % 10])


def sentence_file(path):
    rows = []
    for line in filter(None, lines(path)):
        label, text = line.split(" ", 1)
        for written, meant in TREEBANK.items():
            text = text.replace(written, meant)
        rows.append((text.strip(), LABELS[label]))
    return rows


def sst2(sentences, phrases, target):
    parts = {part: sentence_file(sentences / f"stsa.binary.{name}.gz")
             for part, name in (("valid", "dev"), ("test", "test"))}
    held_out = {same(text) for rows in parts.values() for text, _ in rows}
    train, left_out = [], []
    for line in filter(None, lines(phrases / "train.tsv.gz")[1:]):
        text, label = line.rsplit("\t", 1)
        row = (text.strip(), LABELS[label])
        (left_out if same(text) in held_out else train).append(row)
    for part, rows in (("train", train), *parts.items()):
        write(target / f"{part}.tsv", rows)
    print(f"sst2: {len(train)} phrases; left out, since a test or validation sentence says the "
          f"same: {len(left_out)} ({', '.join(sorted({text for text, _ in left_out}))})",
          file=sys.stderr)


def write_all(source, target):
    source, target = pathlib.Path(source), pathlib.Path(target)
    rt_polarity(source / "rt-polarity", target / "rt-polarity")
    sst2(source / "sst-sentence", source / "sst2-glue", target / "sst2")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    write_all(*sys.argv[1:])
