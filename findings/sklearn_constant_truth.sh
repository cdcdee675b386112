#!/usr/bin/env bash
# r2_score documents that a constant truth gives 1 or 0 instead of a division by zero. One would guess that this holds
# for every constant. In floating point the mean of three times 0.1 is not 0.1, so the variance is 6e-34 and the score
# -1.7e31. The same errors around 0.5 give 0.0.
. "$(dirname "${BASH_SOURCE[0]}")/setup.bash"
environment python scikit-learn==1.9.1 numpy==2.4.6
python/bin/python - <<'PY'
from sklearn.metrics import r2_score

scores = {truth: r2_score([truth] * 3, [truth, truth, truth + 0.1]) for truth in (0.5, 0.1)}
print(scores)
assert scores[0.5] == 0.0 and scores[0.1] < -1e31
PY
