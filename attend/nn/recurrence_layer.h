#pragma once

#include <torch/nn/module.h>

#include "attend/nn/linear.h"
#include "attend/nn/pass.h"
#include "attend/ops/recurrence.h"

namespace attend {

struct RecurrenceLayerConfig {
  const RecurrenceRow* row = nullptr;
  int64_t depth = 0;  // depth of x
  int64_t heads = 1;  // must divide the depth
  // The second half of the heads reads from the end to the beginning. Requires an even number.
  bool both_ways = false;
  double epsilon = 1e-5;  // added to the mean square in the norm
};

// A recurrence between the steps of a sequence. Unless steps are watched, its size does not depend
// on the number of tokens.
struct RecurrenceLayerState {
  at::Tensor state;   // [B, heads, depth of a head, depth of a head]; undefined before the first
  at::Tensor inputs;  // the last inputs of the convolution, [B, 3, 3 depth]; undefined: none
  // In place of `state` if each step was watched. They grow with the tokens: the state for rows of
  // the identity as values, [B, heads, depth of a head, tokens], and the values.
  at::Tensor map, values;

  // As MultiHeadState::reorder.
  void reorder(const at::Tensor& rows);
};

// A layer around linear_recurrence(), for any row of recurrence_table(). Each W is another linear
// map with a bias. Queries, keys and values are W x; some rows convolve them over 4 tokens.
// Constant decays are log(1 - 2^(-5 - head)). Decays of a token are -e^a softplus(W x), decays of a
// row of the state logsigmoid(W x) / 16. Strengths are sigmoid(W x), or the softplus of the decays.
// The output is W (o / rms(o) * weight * gate(W x)), with the root mean square of each head.
//
// Unlike layers of Mamba-2, it adds no multiple of the values to o.
class RecurrenceLayer : public torch::nn::Module {
 public:
  static constexpr int64_t convolution_width = 4;
  static constexpr double row_decay_divisor = 16;  // Yang 2023, 4.4: slow decays at first

  // The constant decays of the heads, [heads]: log(1 - 2^(-5 - head)).
  static at::Tensor constant_decays(int64_t heads, const at::TensorOptions& options);

  // Error if the heads do not divide the depth, or are odd and read both ways.
  explicit RecurrenceLayer(const RecurrenceLayerConfig& config);

  // x [B, T, depth] -> the same shape. `present` [B, T] bool: false at padding, which changes no
  // other token; undefined: no padding. Over a SharedSequence, x has the positions of this process.
  // Otherwise, up to 2,048 tokens, a watch sees the recurrence as attention() with the weights that
  // it applies to the values: one call, or one per direction.
  at::Tensor forward(const at::Tensor& x, const at::Tensor& present = {}, const Pass& pass = {});

  // The next positions x [B, T, depth] of a sequence. Results equal forward over the whole
  // sequence. Error if heads read both ways.
  at::Tensor step(const at::Tensor& x, RecurrenceLayerState& state, const Pass& pass = {});

 private:
  // The sequence as each head reads it; time is axis 1.
  at::Tensor turned(const at::Tensor& x, int64_t head_axis) const;
  // Decays and strengths for x [B, T, depth], each head in its own order.
  RecurrenceSpec spec_of(const at::Tensor& x, const Pass& pass);
  // [B, heads, T, .], each head in its own order.
  struct Heads {
    at::Tensor query, key, value;
  };
  // `in` [B, T, 3, heads, depth of a head].
  static Heads heads_of(const at::Tensor& in);
  // The same after the convolution, if the layer has one; updates the state.
  Heads convolved(at::Tensor in, RecurrenceLayerState& state) const;
  // Contexts of the heads for the positions that this process holds of a shared sequence. `in` [B,
  // T, 3, heads, depth of a head], each head in its own order.
  at::Tensor shared_contexts(const at::Tensor& in, const RecurrenceSpec& spec,
                             const Pass& pass) const;
  // Contexts of the heads; updates the state.
  at::Tensor read(const Heads& in, RecurrenceSpec spec, RecurrenceLayerState& state,
                  const Pass& pass) const;
  // The same as a watch returns them.
  at::Tensor watched(const Heads& in, RecurrenceSpec spec, RecurrenceLayerState& state,
                     const Pass& pass) const;
  static bool can_be_watched(const RecurrenceLayerState& state, int64_t tokens);
  at::Tensor computed(const at::Tensor& x, const at::Tensor& present, RecurrenceLayerState& state,
                      const Pass& pass);

  RecurrenceLayerConfig config_;
  Linear projection_{nullptr}, gate_{nullptr}, output_{nullptr};
  Linear decay_{nullptr};     // null if decays are constant, or there are none
  Linear strength_{nullptr};  // null if the strength is 1 or follows from decay_
  at::Tensor rate_;           // a, [heads]; undefined unless decays are one number per token
  at::Tensor convolution_;    // [3 depth, 4]; undefined: none
  at::Tensor bonus_;          // c, [heads, depth of a head]; undefined: none
  at::Tensor norm_;           // [depth of a head]
};

}  // namespace attend
