#!/usr/bin/env python3
"""Compares hit@K, NDCG@K and MRR of `attend score` and `attend evaluate` with trec_eval, through ir_measures.

A row of `./dev conform`. Draws lists of items, some without the right item. Draws interactions in which many items have
equal counts, and trains a recommender on them. The figures of `evaluate` are compared with trec_eval's figures for the
ranking of `predict`. Then groups of items get the same embedding, so that their scores tie. trec_eval does not support
ties. So it is called for each possible place of the right item among items of equal score, and the mean is compared.
Figures must agree to 1e-9.
"""

import collections
import json
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

import ir_measures
from ir_measures import RR, Success, nDCG

from conform_report import Report, arguments

LARGEST = 1e-9
CUTS = (1, 2, 5, 10, 40)
METRICS = {f"{ours}@{cut}": theirs @ cut for ours, theirs in (("hit", Success), ("ndcg", nDCG)) for cut in CUTS} | {
    "mrr": RR}


def run(*command, stdin=""):
    done = subprocess.run(list(map(str, command)), input=stdin, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}: {done.stderr.strip()}")
    return done.stdout


def of_trec_eval(questions):
    """Mean of each metric. A question is the right item and all ranked items, (item, score). The right item may be
    missing from them. Metrics are means over the orders of items of equal score."""
    relevant, ranked, share = {}, {}, {}
    for number, (right, scored) in enumerate(questions):
        scores = dict(scored)
        tied = [item for item in scores if item != right and scores[item] == scores.get(right)]
        for place in range(len(tied) + 1):
            name = f"{number}.{place}"
            order = sorted((item for item in scores if item != right), key=lambda item: -scores[item])
            if right in scores:
                before = sum(scores[item] > scores[right] for item in order)
                order.insert(before + place, right)
            relevant[name], share[name] = {right: 1}, 1 / (len(tied) + 1)
            ranked[name] = {item: float(-i) for i, item in enumerate(order)}
    means = collections.Counter()
    for one in ir_measures.iter_calc(list(METRICS.values()), relevant, ranked):
        means[str(one.measure)] += share[one.query_id] * one.value / len(questions)
    return {name: means[str(measure)] for name, measure in METRICS.items()}


def compare_figures(report, name, ours, theirs):
    for metric, figure in theirs.items():
        report.compare(f"{name}, {metric}", ours[metric], figure, LARGEST)


def compare_lists(report, program, draw, folder):
    """Compares lines of `score`: the best item first, some without the right item."""
    for count, length in ((200, 50), (100, 3), (300, 1)):
        items = [f"i{i}" for i in range(length * 2)]
        lists = [draw.sample(items, draw.randint(1, length)) for _ in range(count)]
        right = [draw.choice(one if draw.random() < 0.7 else items) for one in lists]
        (folder / "right.txt").write_text("".join(f"{item}\n" for item in right), encoding="utf-8")
        ours = json.loads(run(program, "score", "--json", "--metric", ",".join(METRICS), "--reference",
                              folder / "right.txt", stdin="".join(" ".join(one) + "\n" for one in lists)))
        theirs = of_trec_eval([(item, [(other, -i) for i, other in enumerate(one)]) for item, one in zip(right, lists)])
        compare_figures(report, f"lists of up to {length}", ours, theirs)


def drawn_interactions(draw, path):
    """Items of each user, the earliest first. A few items are frequent; most others occur once or twice."""
    items = [f"item{i}" for i in range(60)]
    draw.shuffle(items)
    users = [[items[min(draw.randrange(60) for _ in range(3))] for _ in range(draw.randint(2, 9))] for _ in range(80)]
    lines = [f"u{user}\t{item}\t{time}\n" for user, taken in enumerate(users) for time, item in enumerate(taken)]
    draw.shuffle(lines)
    path.write_text("".join(lines), encoding="utf-8")
    return users


def tie(draw, path):
    """Sets the embedding of each item, which is also its output vector, to one of eight vectors."""
    data = bytearray(path.read_bytes())
    start = 8 + struct.unpack("<Q", data[:8])[0]
    embedding = json.loads(data[8:start])["embedding.tokens.weight"]
    begin, (rows, depth) = start + embedding["data_offsets"][0], embedding["shape"]
    row = [bytes(data[begin + 4 * depth * i:begin + 4 * depth * (i + 1)]) for i in range(rows)]
    for i in range(4, rows):
        data[begin + 4 * depth * i:begin + 4 * depth * (i + 1)] = row[4 + draw.randrange(8)]
    path.write_bytes(data)


def predicted(program, model, users, options):
    """The right item of each user, and all items with their scores by `predict`."""
    items = 4 + len((model / "target.vocab").read_text(encoding="utf-8").split())
    histories = "".join(" ".join(taken[:-1]) + "\n" for taken in users)
    lines = run(program, "predict", model, "--json", "--beam", items, "--nbest", items, *options, stdin=histories)
    answers = [[(one["target"], one["log_probability"]) for one in json.loads(line)["predictions"]]
               for line in lines.splitlines()]
    return [(taken[-1], scored) for taken, scored in zip(users, answers, strict=True)]


def by_popularity(users, keep_seen):
    """Right item and ranking per user: items by their count without each user's last two, then by name."""
    counts = collections.Counter(item for taken in users for item in (taken[:-2] if len(taken) > 2 else ()))
    order = sorted(counts, key=lambda item: (-counts[item], item))
    return [(taken[-1], [(item, -i) for i, item in enumerate(order) if keep_seen or item not in taken[:-1]])
            for taken in users]


def compare_recommender(report, program, draw, folder):
    users = drawn_interactions(draw, folder / "interactions.tsv")
    model = folder / "model"
    run(program, "train", "--data", folder / "interactions.tsv", "--out", model, "--set", "model.type=recommender",
        "--set", "train.epochs=2", "--set", "model.depth=8", "--set", "model.layers=1", "--set", "model.heads=2")
    known = set((model / "target.vocab").read_text(encoding="utf-8").split())
    # `predict` fails if a history has an item that was not in training; `evaluate` skips the item.
    asked = [[item for item in taken[:-1] if item in known] + taken[-1:] for taken in users]
    for tied in (False, True):
        if tied:
            tie(draw, model / "weights.safetensors")
        for options in ((), ("--keep-seen",)):
            ours = json.loads(run(program, "evaluate", model, "--data", folder / "interactions.tsv", "--json",
                                  "--metric", ",".join(METRICS), *options))
            name = f"recommender{', embeddings that tie' if tied else ''}{', ' if options else ''}{''.join(options)}"
            questions = predicted(program, model, asked, options)
            compare_figures(report, name, ours, of_trec_eval(questions))
            if tied:
                distinct = [len(set(score for _, score in scored)) for _, scored in questions]
                report.state(f"{name}, scores tie", max(distinct) <= 8, f"{distinct} different scores")
            if not tied:
                compare_figures(report, f"popularity{''.join(options)}", ours["popularity"],
                                of_trec_eval(by_popularity(users, bool(options))))


def main():
    options = arguments(__doc__.splitlines()[0]).parse_args()
    draw, report = random.Random(options.seed), Report()
    with tempfile.TemporaryDirectory() as folder:
        compare_lists(report, options.program, draw, pathlib.Path(folder))
    for _ in range(3):
        with tempfile.TemporaryDirectory() as folder:
            compare_recommender(report, options.program, draw, pathlib.Path(folder))
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
