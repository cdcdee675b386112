#!/usr/bin/env python3
"""Compares squad_exact_match and squad_f1 of `attend score` with torchmetrics, for answers of several alphabets.

A row of `./dev conform`. Answers are changed references with other case, articles, marks and blanks; some are empty.
There are one to three references per line. Figures of each line must agree to 1e-6, the precision of float32.
"""

import json
import pathlib
import random
import subprocess
import sys
import tempfile

import conform_texts
from conform_report import Report, arguments
from torchmetrics.functional.text import squad

LARGEST = 1e-6
LINES = 60
ARTICLES = ["a", "an", "the", "The", "AN", "a.", "the,"]


def answer(draw, words):
    """A few words of a passage."""
    parts = [draw.choice(words) for _ in range(draw.randint(0, 6))]
    for _ in range(draw.randint(0, 2)):
        parts.insert(draw.randint(0, len(parts)), draw.choice(ARTICLES))
    return conform_texts.changed(draw, " ".join(parts), words) if draw.random() < 0.5 else " ".join(parts)


def their_figures(prediction, references):
    figures = squad([{"prediction_text": prediction, "id": "1"}],
                    [{"answers": {"answer_start": [0] * len(references), "text": references}, "id": "1"}])
    return [float(figures["exact_match"]) / 100, float(figures["f1"]) / 100]


def compare(report, program, draw, alphabet, count):
    words = [conform_texts.word(draw, conform_texts.ALPHABETS[alphabet]) for _ in range(12)]
    references = [[answer(draw, words) for _ in range(count)] for _ in range(LINES)]
    answers = [conform_texts.changed(draw, draw.choice(texts), words) for texts in references]
    with tempfile.TemporaryDirectory() as folder:
        files = []
        for number in range(count):
            path = pathlib.Path(folder, f"references{number}.txt")
            path.write_text("".join(f"{texts[number]}\n" for texts in references), encoding="utf-8")
            files += ["--reference", path]
        run = subprocess.run([program, "score", "--json", "--sentences", "--metric", "squad_exact_match,squad_f1",
                              *map(str, files)], input="".join(f"{one}\n" for one in answers), capture_output=True,
                             text=True, check=True, encoding="utf-8")
    ours = [[one["squad_exact_match"], one["squad_f1"]] for one in map(json.loads, run.stdout.splitlines())]
    for place, (figures, one, texts) in enumerate(zip(ours, answers, references)):
        theirs = their_figures(one, texts)
        far = max(abs(a - b) for a, b in zip(figures, theirs))
        report.state(f"{alphabet}, {count} references, line {place + 1}", far <= LARGEST,
                     f"ours {figures}, theirs {theirs}, answer {one!r}, references {texts!r}")


def main():
    options = arguments(__doc__.splitlines()[0]).parse_args()
    draw, report = random.Random(options.seed), Report()
    for alphabet in conform_texts.ALPHABETS:
        for count in (1, 2, 3):
            compare(report, options.program, draw, alphabet, count)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
