#pragma once

#include "attend/ops/backend.h"
#include "attend/ops/lower-inl.h"

// Which path takes a spec that does not look back, or one query of a spec that does.

namespace attend {

// Error where the path says fused and cannot be.
AttentionResult attention_at_once(const Lowered& lowered, Path path);

// The backend that computes the weights; null: tensor operations. Error where the path asks for a
// backend and none can.
const Backend* weights_backend(const Lowered& lowered, const at::Tensor& lse, Path path);

// All weights.
at::Tensor weights_at_once(const Lowered& lowered, const at::Tensor& lse, Path path);

// 0, 1, ... to the last.
std::vector<int64_t> all_heads(const LoweredSpec& spec);

}  // namespace attend
