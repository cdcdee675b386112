#pragma once

#include "attend/ops/lower-inl.h"

// Runs queries one after another, for scores and normalisers that look back.

namespace attend {

// True if there are several queries and each needs the weights of the previous ones.
bool runs_in_order(const Lowered& lowered);

// Results, including contexts, have the dtype of the arithmetic. Weights and scores: [B, H, Tq,
// Tk].
AttentionResult attention_in_order(const Lowered& whole, Path path);
at::Tensor weights_in_order(const Lowered& whole, const at::Tensor& lse, Path path);
at::Tensor scores_in_order(const Lowered& whole);

}  // namespace attend
