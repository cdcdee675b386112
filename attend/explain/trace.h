#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "attend/models/pair_network.h"
#include "attend/nn/attention_trace.h"

namespace attend {

// Returns the weights [heads, rows, columns] of one pair, in the network's dtype. Computes only the
// weights of `heads`, or all weights if `heads` is empty. Error if the attention forms no weights.
at::Tensor traced_weights(const TracedAttention& attention, const std::vector<int64_t>& heads = {});

// Returns which keys the weights may fall on: bool [heads, rows, columns], true if the score is not
// -inf.
at::Tensor traced_scope(const TracedAttention& attention);

// Adds the axes of batch and heads to weights, lse or values [.., rows, columns].
at::Tensor with_heads(const at::Tensor& x);

// Input and output of a residual sum around an attention of a layer.
struct TracedBlock {
  Site site;                 // site of the attention
  at::Tensor input, output;  // [B, rows, depth]
  // Factor of the norm after the sum, [B, rows, depth], applied to the sum, less its mean if
  // `centred`. Undefined without such a norm.
  at::Tensor scale;
  bool centred = true;
};

// Vectors of the stack of layers that is read last: a decoder's if it has layers.
struct TracedStack {
  NetworkPart part = NetworkPart::none;
  std::vector<at::Tensor> vectors;  // inputs of the layers, then the output; empty if not reported
};

// Record of the computation of an answer.
struct NetworkTrace {
  std::vector<TracedAttention> attentions;  // in order of computation
  std::vector<TracedBlock> blocks;          // if the network reports them
  at::Tensor input;  // [B, vectors, depth], before positions; undefined if not reported
  std::vector<at::Tensor> layers;  // input of each layer, [B, vectors, depth]
  TracedStack last_stack;
  std::vector<at::Tensor> steps;  // WatchedVectors::step; empty if not reported
  at::Tensor logits;              // WatchedVectors::logits; undefined if not reported
  at::Tensor distributions;       // log probabilities [B, T, V]
  at::Tensor log_probabilities;   // [B, T] of the target's tokens
};

// Parts that a trace keeps in addition to vectors and results. Each value includes the ones before.
enum class TraceParts {
  vectors,     // nothing
  attentions,  // NetworkTrace::attentions
  blocks,      // NetworkTrace::blocks
};

// Options of a pass, other than its inputs.
struct TraceOptions {
  bool gradients = false;     // makes `input`, `layers` and contexts differentiable variables
  bool hold_weights = false;  // treats attention weights as constants, if there are some
  // Records gradients by the tensors that `weights` returns, but not the operations before them.
  // This takes far less memory.
  bool weight_gradients = false;
  TraceParts keeps = TraceParts::blocks;
  // Replaces the source's vectors before they enter the network; empty: leaves them.
  std::function<at::Tensor(const at::Tensor& input)> input = {};
  // Replaces the weights [B, H, rows, keys] of an attention; `call` counts the calls from 0. The
  // context is then computed from the new weights by tensor operations, and copying by weights uses
  // them. An undefined tensor leaves the attention unchanged.
  std::function<at::Tensor(const Site& site, size_t call, const at::Tensor& weights)> weights = {};
};

// Makes the network compute batch.target, without dropout.
NetworkTrace trace_network(PairNetwork& network, const Batch& batch,
                           const TraceOptions& options = {});

// Returns the log probabilities [N, V] after one step from a state, recorded in the same way.
at::Tensor trace_step(DecodingState& state, const at::Tensor& tokens,
                      const TraceOptions& options = {});

// Returns copies of the network's state before each token of batch.target, one pair, as
// DecodingState::joined makes them. Empty if states cannot be copied.
std::vector<std::unique_ptr<DecodingState>> trace_states(PairNetwork& network, const Batch& batch);

}  // namespace attend
