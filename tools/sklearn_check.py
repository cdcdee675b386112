#!/usr/bin/env python3
"""Compares the figures of `attend score` with scikit-learn, and figures of spans with seqeval and conlleval.

    python3 -m venv build/sklearn && build/sklearn/bin/pip install scikit-learn seqeval conlleval
    build/sklearn/bin/python tools/sklearn_check.py [--program build/release/attend] [--seed 1]

A row of `./dev conform`. Random answers have many ties; truths are constant, far from 0, or of one class. Exits with 1
if two figures differ by more than 1e-9.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

import conlleval
import numpy
import seqeval.metrics
import sklearn.metrics

import conform_report

LARGEST = 1e-9


def score(program, metrics, answers, references):
    """Figures by the names of the metrics, for one answer per line."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "references.txt"
        path.write_text("".join(f"{line}\n" for line in references), encoding="utf-8")
        run = subprocess.run(
            [program, "score", "--json", "--metric", ",".join(metrics), "--reference", path],
            input="".join(f"{line}\n" for line in answers), capture_output=True, text=True, check=True)
    return json.loads(run.stdout)


def numbers(draw, program):
    """Errors of numbers far from 0, which would cancel in plain sums of squares."""
    right = 1e6 + draw.normal(size=1000).round(1)
    answers = right + draw.normal(size=1000).round(1)
    ours = score(program, ["mse", "rmse", "mae", "r2"], answers, right)
    return ours, {"mse": sklearn.metrics.mean_squared_error(right, answers),
                  "rmse": sklearn.metrics.mean_squared_error(right, answers) ** 0.5,
                  "mae": sklearn.metrics.mean_absolute_error(right, answers),
                  "r2": sklearn.metrics.r2_score(right, answers)}


def classes(draw, program):
    right = draw.integers(0, 2, size=1000)
    scores = (draw.normal(size=1000) + right).round(1)
    ours = score(program, ["roc_auc", "average_precision"], scores, right)
    return ours, {"roc_auc": sklearn.metrics.roc_auc_score(right, scores),
                  "average_precision": sklearn.metrics.average_precision_score(right, scores)}


def rankings(draw, program):
    """Rankings of all items; one item is right."""
    orders = numpy.array([draw.permutation(50) for _ in range(300)])
    right = draw.integers(0, 50, size=300)
    scores = numpy.empty_like(orders)
    for row, order in zip(scores, orders):
        row[order] = numpy.arange(50, 0, -1)
    relevant = numpy.eye(50, dtype=int)[right]
    ours = score(program, ["hit@7", "ndcg@7", "mrr"], [" ".join(map(str, order)) for order in orders],
                 right)
    return ours, {"hit@7": sklearn.metrics.top_k_accuracy_score(right, scores, k=7, labels=range(50)),
                  "ndcg@7": sklearn.metrics.ndcg_score(relevant, scores, k=7),
                  "mrr": sklearn.metrics.label_ranking_average_precision_score(relevant, scores)}


def spans(draw, program):
    labels = ["O", "O", "B-x", "I-x", "B-y", "I-y"]
    return compare_spans(draw, program, labels)


def spans_of_bioes(draw, program):
    """seqeval's default mode, which equals conlleval; labels in any order, also invalid ones."""
    return compare_spans(draw, program, ["O", "O", "O"] + [f"{place}-{kind}" for place in "BIES"
                                                           for kind in "xy"])


def spans_of_bilou(draw, program):
    """The same with L and U for E and S."""
    return compare_spans(draw, program, ["O", "O", "O"] + [f"{place}-{kind}" for place in "BILU"
                                                           for kind in "xy"])


def compare_spans(draw, program, labels):
    right, answers = ([[labels[i] for i in draw.integers(0, len(labels), size=20)] for _ in range(200)]
                      for _ in range(2))
    # A part of the answers is right, so that spans of several labels match.
    for line, wanted in zip(answers[::2], right[::2]):
        line[:] = wanted[:12] + line[12:]
    ours = score(program, ["span_f1"], [" ".join(line) for line in answers],
                 [" ".join(line) for line in right])["span_f1"]

    def as_bioes(lines):
        return [[label.replace("L-", "E-").replace("U-", "S-") for label in line] for line in lines]

    right, answers = as_bioes(right), as_bioes(answers)
    rows = [row for lines in zip(right, answers)
            for row in [f"word {wanted} {answer}" for wanted, answer in zip(*lines)] + [""]]
    by_conlleval = conlleval.evaluate(rows)["overall"]["chunks"]["evals"]
    ours |= {f"{name} by conlleval": ours[name] for name in ("f1", "precision", "recall")}
    return ours, {"f1 by conlleval": by_conlleval["f1"], "precision by conlleval": by_conlleval["prec"],
                  "recall by conlleval": by_conlleval["rec"], "f1": seqeval.metrics.f1_score(right, answers),
                  "precision": seqeval.metrics.precision_score(right, answers),
                  "recall": seqeval.metrics.recall_score(right, answers)}


def constant_truth(draw, program):
    """Constant truths. A power of 2, because scikit-learn rounds the mean of equal numbers."""
    right = numpy.full(100, 0.25)
    answers = right + draw.normal(size=100).round(2)
    ours = score(program, ["r2", "mse", "mae"], answers, right)
    exact = score(program, ["r2"], right, right)
    return ours | {"r2 of right ones": exact["r2"]}, {
        "r2": sklearn.metrics.r2_score(right, answers),
        "r2 of right ones": sklearn.metrics.r2_score(right, right),
        "mse": sklearn.metrics.mean_squared_error(right, answers),
        "mae": sklearn.metrics.mean_absolute_error(right, answers)}


def large_mean(draw, program):
    right = 1.7e9 + (draw.normal(size=500) * 234).round()
    answers = right + draw.normal(size=500).round(3)
    ours = score(program, ["rmse", "r2"], answers, right)
    return ours, {"rmse": sklearn.metrics.mean_squared_error(right, answers) ** 0.5,
                  "r2": sklearn.metrics.r2_score(right, answers)}


def positives_only(draw, program):
    scores = draw.normal(size=50).round(1)
    ones = numpy.ones(50, dtype=int)
    return score(program, ["average_precision"], scores, ones), {
        "average_precision": sklearn.metrics.average_precision_score(ones, scores)}


def ties(draw, program):
    """Nearly all scores tie, and one class is rare."""
    right = (draw.random(2000) < 0.05).astype(int)
    scores = (draw.random(2000) + 0.3 * right).round(1)
    same = numpy.zeros(2000)
    ours = score(program, ["roc_auc", "average_precision"], scores, right)
    flat = score(program, ["roc_auc", "average_precision"], same, right)
    return ours | {f"{name} of one score": figure for name, figure in flat.items()
                   if name != "examples"}, {
        "roc_auc": sklearn.metrics.roc_auc_score(right, scores),
        "average_precision": sklearn.metrics.average_precision_score(right, scores),
        "roc_auc of one score": sklearn.metrics.roc_auc_score(right, same),
        "average_precision of one score": sklearn.metrics.average_precision_score(right, same)}


def labels(draw, program):
    """Five labels; one is never right, another is never answered."""
    right = [f"l {i}" for i in draw.choice([0, 1, 2, 3], p=[.6, .2, .1, .1], size=1000)]
    answers = [f"l {i}" for i in draw.choice([0, 1, 2, 4], p=[.5, .3, .1, .1], size=1000)]
    found = score(program, ["accuracy", "f1"], answers, right)
    options = {"average": "macro", "zero_division": 0}
    return {"accuracy": found["accuracy"], **found["f1"]}, {
        "accuracy": sklearn.metrics.accuracy_score(right, answers),
        "f1": sklearn.metrics.f1_score(right, answers, **options),
        "precision": sklearn.metrics.precision_score(right, answers, **options),
        "recall": sklearn.metrics.recall_score(right, answers, **options),
        "micro_f1": sklearn.metrics.f1_score(right, answers, average="micro")}


def label_sets(draw, program):
    """Any number of six labels; one is never right, another is never answered."""
    right, answers = (draw.random((500, 6)) < 0.4 for _ in range(2))
    answers[::3] = right[::3]
    right[:, 0] = answers[:, 1] = False
    words = [[" ".join(f"l{i}" for i in line.nonzero()[0]) for line in lines] for lines in (answers, right)]
    ours = score(program, ["micro_f1", "macro_f1", "exact_match"], *words)
    options = {"zero_division": 0}
    return ours | {"macro_f1": ours["macro_f1"]["f1"]}, {
        "micro_f1": sklearn.metrics.f1_score(right, answers, average="micro", **options),
        "macro_f1": sklearn.metrics.f1_score(right, answers, average="macro", **options),
        "exact_match": sklearn.metrics.accuracy_score(right, answers)}


COMPARED = (numbers, large_mean, constant_truth, classes, ties, positives_only, labels, label_sets, rankings, spans,
            spans_of_bioes, spans_of_bilou)


def main():
    options = conform_report.arguments(__doc__.splitlines()[0]).parse_args()
    draw, report = numpy.random.default_rng(options.seed), conform_report.Report()
    for compared in COMPARED:
        ours, theirs = compared(draw, options.program)
        for name, figure in theirs.items():
            report.compare(f"{compared.__name__} {name}", ours[name], float(figure), LARGEST)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
