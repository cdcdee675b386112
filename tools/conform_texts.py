#!/usr/bin/env python3
"""Compares BLEU, chrF and chrF++ of `attend score` with sacreBLEU, for each tokenizer and smoothing.

A row of `./dev conform`. Draws one to three references per line in several alphabets. Answers are changed references.
Some lines are empty, equal, or end in blanks. Compares corpus figures with their parts, and the figures of each line.
Figures must agree to 1e-9.
"""

import itertools
import json
import pathlib
import random
import subprocess
import sys
import tempfile

from sacrebleu.metrics import BLEU, CHRF

from conform_report import Report, arguments

LARGEST = 1e-9
LINES = 40
TOKENIZERS = ("13a", "intl", "zh", "char", "none")
SMOOTHINGS = (("exp", None), ("floor", None), ("floor", 0.03), ("add-k", None), ("add-k", 2.5), ("none", None))
LATIN = "aabcdeefghiijklmnoopqrstuuvwxyz"
ALPHABETS = {
    "latin": LATIN,
    "accents": LATIN + "äöüßéèñçøåÄÖÉ" + "\u0301\u0308ıİſ",
    "cyrillic and greek": "абвгдежзиклмнопрстАБВабвαβγδεσςΣΩ",
    "chinese": "的一是不了人我在有他这中大来上国个到说们為子和你地出道也時年得就那要下以生會自著去之過家",
    "japanese": "あいうえおかきくけこさしすせそアイウエオカキクケコ日本語東京漢字ー々",
    "others": "กขคงअआकखगابتثج가나다라마" + "ԱԲԳაბგ" + "𝒳𝒴𠀀𠀁",
    "pictures": "ab😀😂👍🏽🇩🇪❤️©™→≤√½²①",
}
MARKS = [*".,!?;:-'\"()&%$€/…“”„«»¿。，！、「」·–_*#+=~`^|\\{}[]§°№", "--", "...", "@-@", "&quot;", "&amp;", "&lt;", "&gt;",
         "<skipped>"]
NUMBERS = ["{}", "{}.{}", "{},{}", "{}-{}", "{}%", "${}", "{}th", "{}:{}", ".{}", "{}.", "x{}", "{}/{}"]


def word(draw, letters):
    one = "".join(draw.choice(letters) for _ in range(draw.randint(1, 7)))
    return one.capitalize() if draw.random() < 0.15 else one.upper() if draw.random() < 0.05 else one


def number(draw):
    return draw.choice(NUMBERS).format(draw.randint(0, 3000), draw.randint(0, 99))


def line(draw, words):
    parts = []
    for _ in range(draw.randint(1, 18)):
        parts.append(number(draw) if draw.random() < 0.08 else draw.choice(words))
        if draw.random() < 0.25:
            mark = draw.choice(MARKS)
            parts[-1] = draw.choice([parts[-1] + mark, mark + parts[-1], f"{parts[-1]} {mark}"])
    return draw.choice([" "] * 8 + ["  ", "\u00a0", "\u3000", "\t"]).join(parts)


def changed(draw, text, words):
    """The line with some words removed, repeated, replaced or changed; sometimes the same, an empty or a new line."""
    kind = draw.random()
    if kind < 0.06:
        return ""
    if kind < 0.15:
        return text
    if kind < 0.2:
        return line(draw, words)
    parts = text.split(" ")
    for _ in range(draw.randint(1, 1 + len(parts) // 2)):
        place = draw.randrange(len(parts))
        one = parts[place]
        parts[place:place + 1] = draw.choice(
            [[], [one, one], [draw.choice(words)], [one.lower()], [one + draw.choice(MARKS)]])
        if not parts:
            return ""
    return " ".join(parts) + draw.choice(["", "", "", " ", "  "])


class Drawn:
    """Answers and references of one alphabet; files of references have one per line."""

    def __init__(self, program, draw, folder, alphabet, references):
        words = [word(draw, ALPHABETS[alphabet]) for _ in range(60)]
        self.program = program
        self.references = [[line(draw, words) for _ in range(LINES)]]
        for _ in range(references - 1):
            self.references.append([changed(draw, text, words) for text in self.references[0]])
        self.references[0][draw.randrange(LINES)] = ""
        self.answers = [changed(draw, draw.choice(texts), words) for texts in zip(*self.references)]
        self.files = []
        for number_of_file, lines in enumerate(self.references):
            path = folder / f"references{number_of_file}.txt"
            path.write_text("".join(f"{one}\n" for one in lines), encoding="utf-8")
            self.files += ["--reference", path]

    def score(self, *options):
        """JSON objects that the program prints, one per line."""
        run = subprocess.run([self.program, "score", "--json", *self.files, *map(str, options)],
                             input="".join(f"{one}\n" for one in self.answers), capture_output=True, text=True,
                             check=True, encoding="utf-8")
        return [json.loads(one) for one in run.stdout.splitlines()]


def parts_of(bleu):
    return [bleu.score, *bleu.precisions, bleu.bp, bleu.sys_len, bleu.ref_len]


def our_parts(bleu):
    return [bleu["score"], *bleu["precisions"], bleu["brevity_penalty"], bleu["hypothesis_length"],
            bleu["reference_length"]]


def compare_bleu(report, name, drawn, tokenizer, smoothing, lowercase):
    method, value = smoothing
    options = ["--metric", "bleu", "--tokenise", tokenizer, "--smooth", method, *(["--lowercase"] * lowercase),
               *(["--smooth-value", value] if value is not None else [])]
    theirs = {effective: BLEU(tokenize=tokenizer, smooth_method=method, smooth_value=value, lowercase=lowercase,
                              effective_order=effective) for effective in (False, True)}
    name = f"{name}, {tokenizer}, {method}{value or ''}{', lowercase' if lowercase else ''}"
    whole, = drawn.score(*options)
    report.compare(f"{name}, BLEU", our_parts(whole["bleu"]),
                   parts_of(theirs[False].corpus_score(drawn.answers, drawn.references)), LARGEST)
    compare_lines(report, f"{name}, BLEU", "bleu", drawn, options, theirs[True])


def compare_lines(report, name, key, drawn, options, metric):
    """Compares figures of each line; the detail shows the line with the largest difference."""
    ours = [one[key] for one in drawn.score(*options, "--sentences")]
    theirs = [metric.sentence_score(answer, references).score
              for answer, *references in zip(drawn.answers, *drawn.references)]
    far, place = max((abs(a - b), i) for i, (a, b) in enumerate(zip(ours, theirs)))
    report.state(f"{name} of each line", far <= LARGEST and len(ours) == len(theirs),
                 f"difference {far:.3g}, allowed {LARGEST:.3g}; line {place}: ours {ours[place]}, theirs "
                 f"{theirs[place]}, answer {drawn.answers[place]!r}, references "
                 f"{[lines[place] for lines in drawn.references]!r}")


def compare_chrf(report, name, drawn, key, order, lowercase):
    options = ["--metric", key, *(["--lowercase"] * lowercase)]
    theirs = CHRF(word_order=order, lowercase=lowercase)
    name = f"{name}, {key}{', lowercase' if lowercase else ''}"
    whole, = drawn.score(*options)
    report.compare(name, whole[key]["score"], theirs.corpus_score(drawn.answers, drawn.references).score, LARGEST)
    compare_lines(report, name, key, drawn, options, theirs)


def main():
    options = arguments(__doc__.splitlines()[0]).parse_args()
    draw, report = random.Random(options.seed), Report()
    smoothings = itertools.cycle(SMOOTHINGS)
    for alphabet, references in itertools.product(ALPHABETS, (1, 2, 3)):
        with tempfile.TemporaryDirectory() as folder:
            drawn = Drawn(options.program, draw, pathlib.Path(folder), alphabet, references)
            name = f"{alphabet}, {references} references"
            for tokenizer in TOKENIZERS:
                compare_bleu(report, name, drawn, tokenizer, next(smoothings), draw.random() < 0.3)
            for key, order in (("chrf", 0), ("chrf++", 2)):
                compare_chrf(report, name, drawn, key, order, draw.random() < 0.3)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
