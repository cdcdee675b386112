#pragma once

#include "attend/ops/lower-inl.h"

// Queries one after another, for scores and normalisers that look back.

namespace attend {

// True where there are several queries and each needs the weights of those before.
bool runs_in_order(const Lowered& lowered);

// The results in the dtype of the arithmetic, contexts too. Weights and scores are [B, H, Tq, Tk].
AttentionResult attention_in_order(const Lowered& whole, Path path);
at::Tensor weights_in_order(const Lowered& whole, const at::Tensor& lse, Path path);
at::Tensor scores_in_order(const Lowered& whole);

}  // namespace attend
