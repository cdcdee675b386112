#pragma once

#include "attend/ops/backend.h"
#include "attend/ops/lower-inl.h"

// Selects the path for a spec that does not look back, or for one query of a spec that does.

namespace attend {

// Error if the path is fused but the spec has no fused path.
AttentionResult attention_at_once(const Lowered& lowered, Path path);

// The backend that computes the weights; null: tensor operations. Error if the path is fused and no
// backend supports the spec.
const Backend* weights_backend(const Lowered& lowered, const at::Tensor& lse, Path path);

// Returns all weights, [B, H, Tq, Tk].
at::Tensor weights_at_once(const Lowered& lowered, const at::Tensor& lse, Path path);

// 0, 1, ... H - 1.
std::vector<int64_t> all_heads(const LoweredSpec& spec);

}  // namespace attend
