#!/usr/bin/env bash
# BILOU marks an entity of one token by U. seqeval reads BILOU in its strict mode, so one would guess that its
# default mode counts two neighbouring units as two entities, as it does for S of BIOES. It joins them into
# one: the default F1 is 1 for a perfect answer, and also for an answer with one joined entity.
. "$(dirname "${BASH_SOURCE[0]}")/setup.bash"
environment python seqeval==1.2.2 scikit-learn==1.9.1 numpy==2.4.6
python/bin/python -W ignore - <<'PY'
from seqeval.metrics import f1_score
from seqeval.metrics.sequence_labeling import get_entities
from seqeval.scheme import BILOU

units, singles = get_entities(["U-x", "U-x"]), get_entities(["S-x", "S-x"])
print("U-x U-x:", units, "S-x S-x:", singles)
assert len(units) == 1 and len(singles) == 2
truth, joined = [["U-x", "U-x", "O"]], [["B-x", "L-x", "O"]]
default, strict = f1_score(truth, joined), f1_score(truth, joined, mode="strict", scheme=BILOU)
print("two units answered as one span: default F1", default, "strict F1", strict)
assert default == 1.0 and strict == 0.0
PY
