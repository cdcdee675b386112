#!/usr/bin/env bash
# Four items with the same score, one of them right: one would guess that one library has one rule for ties.
# scikit-learn's ranking metrics have three. ndcg_score takes the mean over the orders,
# label_ranking_average_precision_score the worst position, and top_k_accuracy_score counts a hit or a miss by the
# number of the class (the largest number wins).
. "$(dirname "${BASH_SOURCE[0]}")/setup.bash"
environment python scikit-learn==1.9.1 numpy==2.4.6
python/bin/python - <<'PY'
import numpy
from sklearn import metrics

rows = []
for right in range(4):
    relevant, scores = numpy.eye(4, dtype=int)[[right]], numpy.zeros((1, 4))
    rows.append((metrics.top_k_accuracy_score([right], scores, k=1, labels=range(4)),
                 metrics.ndcg_score(relevant, scores, k=1),
                 metrics.label_ranking_average_precision_score(relevant, scores)))
    print(f"right class {right}: top-1 accuracy {rows[-1][0]}, NDCG@1 {rows[-1][1]}, reciprocal rank {rows[-1][2]}")
assert [row[0] for row in rows] == [0, 0, 0, 1]
assert {row[1:] for row in rows} == {(0.25, 0.25)}
assert metrics.ndcg_score(numpy.eye(3, dtype=int)[[0]], numpy.zeros((1, 3)), k=2) > 0.5  # (1 + 1 / log2 3) / 3
assert metrics.label_ranking_average_precision_score(numpy.eye(3, dtype=int)[[0]], numpy.zeros((1, 3))) == 1 / 3
PY
