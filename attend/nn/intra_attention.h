#pragma once

#include <torch/nn/modules/linear.h>

#include <string>
#include <utility>

#include "attend/nn/learned_attention.h"
#include "attend/nn/pass.h"

namespace attend {

// Attention over the layer's own past. In all tensors carried from step to step, axis 0 is the
// batch, so hypotheses can be selected.

// Past steps that later steps attend to.
struct PastSteps {
  at::Tensor keys;    // [B, t, A], mapped by the score
  at::Tensor values;  // [B, t, Dv]
};

// The long short-term memory-network (Cheng et al. 2016, eq. 4-9): an LSTM that keeps all its past
// states on a tape. At each step the input and the previous read h~ query the hidden states h on
// the tape. The weighted sums h~ and c~ of past hidden and memory states replace the last state of
// the LSTM:
//   h~, c~ = sum_{i<t} w_i h_i, sum_{i<t} w_i c_i;         w = softmax of the scores;
//   c = sigmoid(f) c~ + sigmoid(i) tanh(g);                i, f, o, g linear in h~ and the input;
//   h = sigmoid(o) tanh(c).
class IntraAttentionCell : public torch::nn::Module {
 public:
  struct State {
    PastSteps tape;   // values: h and c concatenated, [B, t, 2 hidden]
    at::Tensor read;  // h~ and c~ of the last step, concatenated
  };

  // `score` is a row of score_table(); the paper's is additive. Error as LearnedAttention.
  IntraAttentionCell(int64_t input_depth, int64_t hidden, int64_t attention_depth,
                     const std::string& score = "additive");

  // State with an empty tape; the first step reads 0.
  State start(int64_t batch) const;

  // input [B, D] -> h [B, hidden] and the state after the step.
  std::pair<at::Tensor, State> step(const at::Tensor& input, const State& state,
                                    const Pass& pass = {});

  // The weights [B, t] over the tape in step(input, state).
  at::Tensor weights(const at::Tensor& input, const State& state) const;

  // x [B, T, D], lengths [B] int64 (undefined: no padding) -> [B, T, hidden], 0 at padding.
  at::Tensor forward(const at::Tensor& x, const at::Tensor& lengths = {}, const Pass& pass = {});

 private:
  at::Tensor query(const at::Tensor& input, const State& state) const;

  int64_t hidden_;
  std::shared_ptr<LearnedAttention> attention_;
  torch::nn::Linear gates_{nullptr};  // i, f, o, g
};

// Intra-decoder attention (Paulus et al. 2017, eq. 6-8): each decoder state attends to the earlier
// states. The context of the first state is 0.
class IntraDecoderAttention : public torch::nn::Module {
 public:
  // `score` is a row of score_table(); the paper's is general. Error as LearnedAttention.
  explicit IntraDecoderAttention(int64_t depth, const std::string& score = "general",
                                 int64_t attention_depth = 0);

  // All steps at once: states [B, T, D] -> context [B, T, D] and lse [B, T].
  AttentionResult forward(const at::Tensor& states, const Pass& pass = {}) const;

  // The weights [B, T, T] of forward(states), computed from its lse.
  at::Tensor weights(const at::Tensor& states, const at::Tensor& lse) const;

  // An empty past for states of the shape of `state`.
  PastSteps start(const at::Tensor& state) const;

  // One step: state [B, D] -> context [B, D], lse [B] and the past including this state, for the
  // next step. {} is also a valid past for the first step.
  std::pair<AttentionResult, PastSteps> step(const at::Tensor& state, const PastSteps& past,
                                             const Pass& pass = {}) const;

 private:
  AttentionSpec spec() const;

  std::shared_ptr<LearnedAttention> attention_;
};

}  // namespace attend
