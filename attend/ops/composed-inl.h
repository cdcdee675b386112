#pragma once

#include "attend/ops/attention.h"
#include "attend/ops/lowered_spec.h"

// The composed twin: what the fused paths compute, by tensor operations.

namespace attend {

// The context is in the dtype of the arithmetic.
AttentionResult composed_attention(const Parts& parts, const LoweredSpec& spec);
at::Tensor composed_scores(const Parts& parts, const LoweredSpec& spec);
at::Tensor composed_weights(const Parts& parts, const LoweredSpec& spec);

// Weights before dropout, and what normalised them.
Normalised normalised_scores(const Parts& parts, const LoweredSpec& spec);

// Whether queries see edges, without more conditions, and a normaliser that takes rows of their
// own: composed_attention is then composed_along_edges.
bool goes_along_edges(const LoweredSpec& spec);
AttentionResult composed_along_edges(const Parts& parts, const LoweredSpec& spec);

// The weights by edge, [B, H, edges of the longest list], 0 where the query is not of the selected
// rows; all heads. From the parts, or from all weights [B, H, Tq, Tk].
at::Tensor composed_edge_weights(const Parts& parts, const LoweredSpec& spec,
                                 const kernels::Selection& rows);
at::Tensor edges_of_weights(const at::Tensor& weights, const LoweredSpec& spec,
                            const kernels::Selection& rows);

// The bias of edges as [B, H, Tq, Tk], 0 where there is no edge.
at::Tensor dense_of_edges(const at::Tensor& bias, const LoweredSpec& spec);

// What dropout multiplies the weights by: [B, H, Tq, Tk], or [B, H, Tq, D] for as many keys of each
// query, int64 of that shape.
at::Tensor dropout_factors(const LoweredSpec& spec, const at::TensorOptions& options);
at::Tensor dropout_factors_of_keys(const LoweredSpec& spec, const at::Tensor& keys,
                                   const at::TensorOptions& options);

}  // namespace attend
