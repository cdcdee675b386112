#pragma once

#include "attend/explain/methods.h"

// Methods that read the weights, and functions shared with other methods.

namespace attend {

// Returns the values of x, detached, as contiguous float64 on the CPU.
at::Tensor float64_on_cpu(const at::Tensor& x);

// Whether the answer is read from this attention after the layers: cross-attention or pooling.
bool reads_for_answer(const TracedAttention& one);

// Returns the attention that the answer is read from: a decoder's cross-attention, a pooling, or
// else the self-attention of the last layer. With choice.layer, returns that layer's. Null if there
// is none.
const TracedAttention* answer_attention(const NetworkTrace& trace, const MethodChoice& choice);

// Returns why the answer is not read from weights; empty if it is.
std::string no_weights_reason(const Subject& subject, const NetworkTrace& trace);

// Maps [.., rows, columns] of the attention to the rows that the answer's tokens read: [.., T,
// columns].
at::Tensor read_by_answer(const Subject& subject, const TracedAttention& attention,
                          const at::Tensor& map);

// Returns the columns of the source's tokens.
at::Tensor source_columns(const Subject& subject, const TracedAttention& attention,
                          const at::Tensor& map);

// Returns the chosen heads, from 0; empty: all.
std::vector<int64_t> chosen_heads(const TracedAttention& attention, const MethodChoice& choice);

// Returns the values [heads, keys, Dv] of an attention, one per query head.
at::Tensor head_values(const TracedAttention& attention);

// Computes what the keys of an attention add to the rows of its layer's output.
class ValueParts {
 public:
  // `heads` selects at most one head; empty: all. All numbers get the dtype `type`.
  ValueParts(const TracedAttention& attention, const std::vector<int64_t>& heads,
             at::ScalarType type);

  // [rows, keys, depth] for weights [heads, rows, keys] of the rows from `first` on. The sum over
  // the keys is the output without bias.
  at::Tensor rows(const at::Tensor& weights, int64_t first) const;

  int64_t keys() const { return values_.size(1); }
  int64_t depth() const { return maps_.defined() ? maps_.size(2) : values_.size(2); }
  bool has_factors() const { return factors_.defined(); }

 private:
  at::Tensor values_;   // [heads, keys, Dv], or mapped: [heads, keys, depth]
  at::Tensor maps_;     // [heads, Dv, depth]; undefined if the values are mapped
  at::Tensor factors_;  // [heads, rows, Dv] of the contexts; may be undefined
};

// Composition of the vectors of a layer or of one of its attentions. The rows of both tensors
// together sum to 1.
struct LayerShares {
  NetworkPart part;
  at::Tensor own;     // [rows, rows], from the vectors that it read
  at::Tensor source;  // [rows, encoder vectors]; undefined: reads none
};

// Normalises amounts of 0 or more to shares. A row of zeros consists only of its own vector.
LayerShares shares_of(NetworkPart part, const at::Tensor& own, const at::Tensor& source);

// Returns the composition of the answer's tokens, [T, S]. `layers` are in order of computation.
at::Tensor follow_shares(const Subject& subject, const NetworkTrace& trace,
                         const std::vector<LayerShares>& layers);

// Returns why the trace lacks the block of a layer with attention; empty if it has all blocks.
std::string no_blocks_reason(const NetworkTrace& trace);

at::Tensor raw_weights(const Subject&, const NetworkTrace&, const MethodChoice&);
at::Tensor roll_out(const Subject&, const NetworkTrace&, const MethodChoice&);
at::Tensor value_norms(const Subject&, const NetworkTrace&, const MethodChoice&);
at::Tensor shifted_alignment(const Subject&, const NetworkTrace&, const MethodChoice&);
at::Tensor value_zeroing(const Subject&, const NetworkTrace&, const MethodChoice&);
at::Tensor layer_contributions(const Subject&, const NetworkTrace&, const MethodChoice&);
at::Tensor attention_flow(const Subject&, const NetworkTrace&, const MethodChoice&);

// MethodRow::scope of raw_weights, of shifted_alignment, and of the methods that follow the layers.
at::Tensor answer_scope(const Subject&, const NetworkTrace&, const MethodChoice&);
at::Tensor shifted_scope(const Subject&, const NetworkTrace&, const MethodChoice&);
at::Tensor layers_scope(const Subject&, const NetworkTrace&, const MethodChoice&);

// Scope of methods that follow no weights: the tokens that the answer depends on at all. Requires
// NetworkTrace::input.
at::Tensor reached_scope(const Subject&, const NetworkTrace&, const MethodChoice&);

// Returns the mean weights of a layer's heads, [rows, columns] in float64. If layers add to their
// input, averages them with the identity.
at::Tensor layer_map(const Subject& subject, const TracedAttention& attention);

at::Tensor gradient(const Subject&, const NetworkTrace&, const MethodChoice&);
at::Tensor gradient_x_input(const Subject&, const NetworkTrace&, const MethodChoice&);
at::Tensor held_gradient(const Subject&, const NetworkTrace&, const MethodChoice&);
// x_j . d log p_t / d x_j with weights held constant. held_gradient() returns the magnitudes.
at::Tensor held_amounts(const Subject&, const NetworkTrace&, const MethodChoice&);
at::Tensor integrated_gradients(const Subject&, const NetworkTrace&, const MethodChoice&);
at::Tensor smoothed_gradient(const Subject&, const NetworkTrace&, const MethodChoice&);
at::Tensor jacobian_norms(const Subject&, const NetworkTrace&, const MethodChoice&);
at::Tensor grad_cam(const Subject&, const NetworkTrace&, const MethodChoice&);
at::Tensor attention_x_gradient(const Subject&, const NetworkTrace&, const MethodChoice&);
at::Tensor relevance(const Subject&, const NetworkTrace&, const MethodChoice&);
at::Tensor token_parts(const Subject&, const NetworkTrace&, const MethodChoice&);
at::Tensor occlusion(const Subject&, const NetworkTrace&, const MethodChoice&);

}  // namespace attend
