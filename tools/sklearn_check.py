#!/usr/bin/env python3
"""Compares the figures of `attend score` with scikit-learn's, and those of spans with seqeval's.

    python3 -m venv build/sklearn && build/sklearn/bin/pip install scikit-learn seqeval
    build/sklearn/bin/python tools/sklearn_check.py [--program build/release/attend] [--seed 1]

A row of `./dev conform`. Answers are drawn with many ties; exits with 1 if two figures differ by more than 1e-9.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

import numpy
import seqeval.metrics
import sklearn.metrics

import conform_report

LARGEST = 1e-9


def score(program, metrics, answers, references):
    """The figures of one answer per line, by the names of the metrics."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "references.txt"
        path.write_text("".join(f"{line}\n" for line in references), encoding="utf-8")
        run = subprocess.run(
            [program, "score", "--json", "--metric", ",".join(metrics), "--reference", path],
            input="".join(f"{line}\n" for line in answers), capture_output=True, text=True, check=True)
    return json.loads(run.stdout)


def numbers(draw, program):
    """Errors of numbers far from 0, which sums of squares alone would lose."""
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
    """All items in some order, of which one is right."""
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
    labels = ["O", "O", "B-x", "I-x", "B-y", "I-y", "E-x", "S-x", "E-y", "S-y"]
    right, answers = ([[labels[i] for i in draw.integers(0, 10, size=20)] for _ in range(200)]
                      for _ in range(2))
    ours = score(program, ["span_f1"], [" ".join(line) for line in answers],
                 [" ".join(line) for line in right])["span_f1"]
    return ours, {"f1": seqeval.metrics.f1_score(right, answers),
                  "precision": seqeval.metrics.precision_score(right, answers),
                  "recall": seqeval.metrics.recall_score(right, answers)}


def main():
    options = conform_report.arguments(__doc__.splitlines()[0]).parse_args()
    draw, report = numpy.random.default_rng(options.seed), conform_report.Report()
    for compared in (numbers, classes, rankings, spans):
        ours, theirs = compared(draw, options.program)
        for name, figure in theirs.items():
            report.compare(f"{compared.__name__} {name}", ours[name], float(figure), LARGEST)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
