#pragma once

#include "attend/ops/attention.h"
#include "attend/ops/lowered_spec.h"

// The composed twin: what the fused paths compute, by tensor operations.

namespace attend {

// The context is in the dtype of the arithmetic.
AttentionResult composed_attention(const Parts& parts, const LoweredSpec& spec);
at::Tensor composed_scores(const Parts& parts, const LoweredSpec& spec);
at::Tensor composed_weights(const Parts& parts, const LoweredSpec& spec);

// What dropout multiplies the weights by, [B, H, Tq, Tk].
at::Tensor dropout_factors(const LoweredSpec& spec, const at::TensorOptions& options);

}  // namespace attend
