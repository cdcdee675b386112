#pragma once

#include "attend/explain/methods.h"

// Methods that read the weights, and functions that other methods share with them.

namespace attend {

// The values of x, without gradient, as float64 on the CPU; contiguous.
at::Tensor float64_on_cpu(const at::Tensor& x);

// Whether that attention is behind the layers and says what an answer is read off.
bool reads_for_answer(const TracedAttention& one);

// The attention that an answer is read off: a decoder's over its source, a pooling's, or else the
// self-attention of the last layer; always of the chosen layer where there is a choice. Null
// without any.
const TracedAttention* answer_attention(const NetworkTrace& trace, const MethodChoice& choice);

// Why the answer is read off no weights; empty where it is.
std::string why_no_weights(const Subject& subject, const NetworkTrace& trace);

// What the answer's tokens read of a map [.., rows, columns] of that attention: [.., T, columns].
at::Tensor read_by_answer(const Subject& subject, const TracedAttention& attention,
                          const at::Tensor& map);

// The columns of the source's tokens.
at::Tensor source_columns(const Subject& subject, const TracedAttention& attention,
                          const at::Tensor& map);

// Heads by their index, from the choice; empty: all.
std::vector<int64_t> chosen_heads(const TracedAttention& attention, const MethodChoice& choice);

// The values [heads, keys, Dv] of an attention, one for each head of the queries.
at::Tensor head_values(const TracedAttention& attention);

// What each key adds to a layer's output at weight 1, by each of those heads (all where it is
// empty): [heads, keys, depth].
at::Tensor mapped_values(const TracedAttention& attention, const std::vector<int64_t>& heads = {});

// What each key adds to each row of a layer's output, for weights [heads, rows, keys] and mapped
// values: [rows, keys, depth]. Summed over the keys it is the output without bias.
at::Tensor value_parts(const at::Tensor& weights, const at::Tensor& values);

// What the vectors of a layer, or of one of its attentions, are made of: each row of both has
// sum 1.
struct LayerShares {
  NetworkPart part;
  at::Tensor own;     // [rows, rows], of the vectors that it read
  at::Tensor source;  // [rows, vectors of the encoder], of those; undefined: it reads none
};

// Amounts of 0 or more as shares; a row of zeros is its own vector alone.
LayerShares shares_of(NetworkPart part, const at::Tensor& own, const at::Tensor& source);

// What the answer's tokens are made of, [T, S], where the layers are made of those shares, which
// are in the order of their computation.
at::Tensor follow_shares(const Subject& subject, const NetworkTrace& trace,
                         const std::vector<LayerShares>& layers);

// Why the trace does not tell what each layer with an attention made of it; empty where it does.
std::string why_no_blocks(const NetworkTrace& trace);

at::Tensor raw_weights(const Subject&, const NetworkTrace&, const MethodChoice&);
at::Tensor roll_out(const Subject&, const NetworkTrace&, const MethodChoice&);
at::Tensor value_norms(const Subject&, const NetworkTrace&, const MethodChoice&);
at::Tensor shifted_alignment(const Subject&, const NetworkTrace&, const MethodChoice&);
at::Tensor value_zeroing(const Subject&, const NetworkTrace&, const MethodChoice&);
at::Tensor layer_contributions(const Subject&, const NetworkTrace&, const MethodChoice&);
at::Tensor attention_flow(const Subject&, const NetworkTrace&, const MethodChoice&);

// MethodRow::scope of raw_weights, of shifted_alignment, and of what follows the layers.
at::Tensor answer_scope(const Subject&, const NetworkTrace&, const MethodChoice&);
at::Tensor shifted_scope(const Subject&, const NetworkTrace&, const MethodChoice&);
at::Tensor layers_scope(const Subject&, const NetworkTrace&, const MethodChoice&);

// That of methods which follow no weights: the tokens that the answer depends on at all. For a
// network that tells the vectors of its source.
at::Tensor reached_scope(const Subject&, const NetworkTrace&, const MethodChoice&);

// The mean weights of a layer's heads, [rows, columns] in float64; where layers add to what they
// read, half of them kept for that.
at::Tensor layer_map(const Subject& subject, const TracedAttention& attention);

at::Tensor gradient(const Subject&, const NetworkTrace&, const MethodChoice&);
at::Tensor gradient_x_input(const Subject&, const NetworkTrace&, const MethodChoice&);
at::Tensor held_gradient(const Subject&, const NetworkTrace&, const MethodChoice&);
// x_j . d log p_t / d x_j with weights held: what held_gradient() has the magnitudes of.
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
