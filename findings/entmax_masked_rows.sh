#!/usr/bin/env bash
# Scores of masked keys are usually -inf. One would guess that the functions of entmax, which compute one family,
# agree on such masks. For a row with one masked key, sparsemax gives the key weight 0, and budget_bisect gives NaN
# for the whole row. For a row with only masked keys, as padding has, sparsemax_bisect gives NaN, and sparsemax raises
# an error for the whole batch.
. "$(dirname "${BASH_SOURCE[0]}")/setup.bash"
environment python torch==2.15.0 numpy==2.4.6 entmax==1.3
python/bin/python - <<'PY'
import math

import entmax
import torch

masked = torch.tensor([[1.0, 1.5, -math.inf]])
weights = entmax.sparsemax(masked, dim=-1)
budget = entmax.budget_bisect(masked, dim=-1, budget=1)
print("one key masked: sparsemax", weights.tolist(), "budget_bisect", budget.tolist())
assert weights.tolist() == [[0.25, 0.75, 0.0]] and budget.isnan().all()
batch = torch.cat((masked, torch.full((1, 3), -math.inf)))
bisected = entmax.sparsemax_bisect(batch, dim=-1)
print("all keys masked: sparsemax_bisect", bisected[1].tolist())
assert bisected[1].isnan().all() and not bisected[0].isnan().any()
try:
    entmax.sparsemax(batch, dim=-1)
    raise SystemExit("sparsemax took the batch")
except (RuntimeError, IndexError) as error:
    print("all keys masked: sparsemax raises", error)
PY
