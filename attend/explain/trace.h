#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "attend/models/pair_network.h"
#include "attend/nn/attention_trace.h"

namespace attend {

// The weights [heads, rows, columns] of one pair, in the network's dtype; only those of `heads` are
// computed, or all where it is empty. Error where the attention has none.
at::Tensor traced_weights(const TracedAttention& attention, const std::vector<int64_t>& heads = {});

// Which keys those weights may fall on: bool [heads, rows, columns], true where the score is not
// -inf.
at::Tensor traced_scope(const TracedAttention& attention);

// Weights, lse or values [.., rows, columns] with axes of batch and heads.
at::Tensor with_heads(const at::Tensor& x);

// What a layer made of the vectors that an attention of its added to.
struct TracedBlock {
  Site site;                 // of that attention
  at::Tensor input, output;  // [B, rows, depth]
  // What the norm behind the sum multiplied its numbers by, but for their mean: [B, rows, depth].
  // Undefined: there is no such norm.
  at::Tensor scale;
};

// What an answer was computed by.
struct NetworkTrace {
  std::vector<TracedAttention> attentions;  // in the order of their computation
  std::vector<TracedBlock> blocks;          // of those that the network tells them of
  at::Tensor
      input;  // [B, vectors, depth], before positions; undefined where the network tells none
  std::vector<at::Tensor> layers;  // what each layer read, [B, vectors, depth]
  std::vector<at::Tensor> steps;   // as WatchedVectors::step has them; empty without
  at::Tensor logits;               // as WatchedVectors::logits has them; undefined without
  at::Tensor distributions;        // log probabilities [B, T, V]
  at::Tensor log_probabilities;    // [B, T] of the target's tokens
};

// Options of a pass, besides its inputs.
struct TraceOptions {
  bool gradients = false;     // `input`, `layers` and contexts are variables to differentiate by
  bool hold_weights = false;  // those of attention count as constants, where it forms some
  // Those are what `weights` returns. What precedes them is not recorded, which takes far less
  // memory.
  bool weight_gradients = false;
  bool attentions = true;  // whether they are kept
  bool blocks = true;      // whether these are, where attentions are
  // What the source's vectors become before they enter; undefined: as they are.
  std::function<at::Tensor(const at::Tensor& input)> input = {};
  // What the weights [B, H, rows, keys] of an attention become; `call` counts the calls from 0.
  // The attention is then computed from these weights by tensor operations, and what copies by
  // weights copies by these. An undefined tensor leaves it as it is.
  std::function<at::Tensor(const Site& site, size_t call, const at::Tensor& weights)> weights = {};
};

// Has the network compute batch.target, without dropout.
NetworkTrace trace_network(PairNetwork& network, const Batch& batch,
                           const TraceOptions& options = {});

// The log probabilities [N, V] behind one step from a state, watched alike.
at::Tensor trace_step(DecodingState& state, const at::Tensor& tokens,
                      const TraceOptions& options = {});

// Copies of the network's state before each token of batch.target, one pair, as
// DecodingState::joined makes them; empty where there are none.
std::vector<std::unique_ptr<DecodingState>> trace_states(PairNetwork& network, const Batch& batch);

}  // namespace attend
