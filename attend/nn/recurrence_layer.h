#pragma once

#include <torch/nn/module.h>

#include "attend/nn/linear.h"
#include "attend/nn/pass.h"
#include "attend/ops/recurrence.h"

namespace attend {

struct RecurrenceLayerConfig {
  const RecurrenceRow* row = nullptr;
  int64_t depth = 0;  // of the vectors
  int64_t heads = 1;  // must divide the depth
  // The second half of the heads reads from the end to the beginning. Requires an even number.
  bool both_ways = false;
  double epsilon = 1e-5;  // added to the mean square in the norm
};

// A recurrence between the steps of a sequence; its size does not depend on the number of tokens.
struct RecurrenceLayerState {
  at::Tensor state;   // [B, heads, depth of a head, depth of a head]; undefined before the first
  at::Tensor inputs;  // the last inputs of the convolution, [B, 3, 3 depth]; undefined: none

  // As MultiHeadState::reorder.
  void reorder(const at::Tensor& rows);
};

// A layer around linear_recurrence(), for any row of recurrence_table():
//
//   q, k, v = W x, for some rows behind a causal convolution over 4 tokens and SiLU
//   g_t = log(1 - 2^(-5 - head)), -e^a softplus(W x_t) or logsigmoid(W x_t) / 16, by the row's kind
//   b_t = sigmoid(W x_t), or softplus(W x_t), which then also multiplies g_t
//   y_t = W_o (o_t / rms(o_t) * weight * gate(W x_t))         the norm is that of each head
//
// Linear maps have a bias. Unlike the layers of Mamba-2, it adds no multiple of v to o.
class RecurrenceLayer : public torch::nn::Module {
 public:
  // Error if the heads do not divide the depth, or are odd and read both ways.
  explicit RecurrenceLayer(const RecurrenceLayerConfig& config);

  // x [B, T, depth] -> the same shape. `present` [B, T] bool: false at padding, which changes no
  // other token; undefined: no padding. Up to 2,048 tokens, a watch sees the recurrence as one call
  // of attention(), with the weights that it applies to the values.
  at::Tensor forward(const at::Tensor& x, const at::Tensor& present = {}, const Pass& pass = {});

  // The next positions x [B, T, depth] of a sequence. Results equal forward over the whole
  // sequence. Error if heads read both ways.
  at::Tensor step(const at::Tensor& x, RecurrenceLayerState& state, const Pass& pass = {});

 private:
  // The sequence as each head reads it; time is axis 1.
  at::Tensor turned(const at::Tensor& x, int64_t head_axis) const;
  // Decays and strengths for x [B, T, depth], each head in its own order.
  RecurrenceSpec spec_of(const at::Tensor& x, const Pass& pass);
  at::Tensor constant_decays(const at::Tensor& like) const;
  // Contexts of the heads as a watch returns them.
  at::Tensor watched(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                     const RecurrenceSpec& spec, const Pass& pass) const;
  at::Tensor computed(const at::Tensor& x, const at::Tensor& present, RecurrenceLayerState& state,
                      bool is_whole, const Pass& pass);

  RecurrenceLayerConfig config_;
  Linear projection_{nullptr}, gate_{nullptr}, output_{nullptr};
  Linear decay_{nullptr};     // null if decays are constant, or there are none
  Linear strength_{nullptr};  // null if the strength is 1 or follows from decay_
  at::Tensor rate_;           // a, [heads]; undefined unless decays are one number per token
  at::Tensor convolution_;    // [3 depth, 4]; undefined: none
  at::Tensor norm_;           // [depth of a head]
};

}  // namespace attend
