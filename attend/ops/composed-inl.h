#pragma once

#include "attend/ops/attention.h"
#include "attend/ops/lowered_spec.h"

// Composed path: the results of the fused paths, computed by tensor operations.

namespace attend {

// The context is in the dtype of the arithmetic.
AttentionResult composed_attention(const Parts& parts, const LoweredSpec& spec);
at::Tensor composed_scores(const Parts& parts, const LoweredSpec& spec);
at::Tensor composed_weights(const Parts& parts, const LoweredSpec& spec);

// Weights before dropout, and the normaliser of each row.
Normalised normalised_scores(const Parts& parts, const LoweredSpec& spec);

// Whether composed_attention uses composed_along_edges: the scope is one condition of edges, and
// the normaliser can process each row separately.
bool goes_along_edges(const LoweredSpec& spec);
AttentionResult composed_along_edges(const Parts& parts, const LoweredSpec& spec);

// Returns the weights by edge, [B, H, edges of the longest list], for all heads; 0 for queries
// outside the selected rows. Computed from the parts, or from all weights [B, H, Tq, Tk].
at::Tensor composed_edge_weights(const Parts& parts, const LoweredSpec& spec,
                                 const kernels::Selection& rows);
at::Tensor edges_of_weights(const at::Tensor& weights, const LoweredSpec& spec,
                            const kernels::Selection& rows);

// The bias of edges as [B, H, Tq, Tk]; 0 for pairs without an edge.
at::Tensor dense_of_edges(const at::Tensor& bias, const LoweredSpec& spec);

// Dropout factors of the weights: [B, H, Tq, Tk], or [B, H, Tq, D] for the keys of each query,
// int64 [B, H, Tq, D].
at::Tensor dropout_factors(const LoweredSpec& spec, const at::TensorOptions& options);
at::Tensor dropout_factors_of_keys(const LoweredSpec& spec, const at::Tensor& keys,
                                   const at::TensorOptions& options);

}  // namespace attend
