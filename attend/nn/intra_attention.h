#pragma once

#include <torch/nn/modules/linear.h>

#include <string>
#include <utility>

#include "attend/nn/learned_attention.h"
#include "attend/nn/pass.h"

namespace attend {

// Attention over one's own past. What is carried from step to step has the batch as axis 0 of every
// tensor, so that hypotheses can be picked out of it.

// Steps that later ones attend to.
struct PastSteps {
  at::Tensor keys;    // [B, t, A], mapped by the score
  at::Tensor values;  // [B, t, Dv]
};

// The long short-term memory-network (Cheng et al. 2016, eq. 4-9): an LSTM that keeps every state
// it had. At each step the input and what was read last, h~, query the hidden states h on its tape;
// h~ and c~, the sums of past hidden and memory states with those weights, take the place of the
// LSTM's last state:
//   h~, c~ = sum_{i<t} w_i h_i, sum_{i<t} w_i c_i          w = softmax of the scores
//   c = sigmoid(f) c~ + sigmoid(i) tanh(g)                 i, f, o, g linear in h~ and the input
//   h = sigmoid(o) tanh(c)
class IntraAttentionCell : public torch::nn::Module {
 public:
  struct State {
    PastSteps tape;   // the values: h beside c, [B, t, 2 hidden]
    at::Tensor read;  // [B, 2 hidden]: h~ beside c~ of the last step
  };

  // `score` is a row of score_table(); the paper's is additive. Error as LearnedAttention.
  IntraAttentionCell(int64_t input_depth, int64_t hidden, int64_t attention_depth,
                     const std::string& score = "additive");

  // An empty tape: the first step reads 0.
  State start(int64_t batch) const;

  // input [B, D] -> h [B, hidden] and the state after the step.
  std::pair<at::Tensor, State> step(const at::Tensor& input, const State& state,
                                    const Pass& pass = {});

  // The weights [B, t] that step(input, state) reads the tape with.
  at::Tensor weights(const at::Tensor& input, const State& state) const;

  // x [B, T, D], lengths [B] int64, undefined for no padding -> [B, T, hidden], 0 where padded.
  at::Tensor forward(const at::Tensor& x, const at::Tensor& lengths = {}, const Pass& pass = {});

 private:
  at::Tensor query(const at::Tensor& input, const State& state) const;

  int64_t hidden_;
  std::shared_ptr<LearnedAttention> attention_;
  torch::nn::Linear gates_{nullptr};  // i, f, o, g
};

// Intra-decoder attention (Paulus et al. 2017, eq. 6-8): each state of a decoder attends to those
// before it; the context of the first is 0.
class IntraDecoderAttention : public torch::nn::Module {
 public:
  // `score` is a row of score_table(); the paper's is general. Error as LearnedAttention.
  explicit IntraDecoderAttention(int64_t depth, const std::string& score = "general",
                                 int64_t attention_depth = 0);

  // All steps at once: states [B, T, D] -> context [B, T, D] and lse [B, T].
  AttentionResult forward(const at::Tensor& states, const Pass& pass = {}) const;

  // The weights [B, T, T] behind forward(states), from its lse.
  at::Tensor weights(const at::Tensor& states, const at::Tensor& lse) const;

  // The past of the first step, of states such as this one.
  PastSteps start(const at::Tensor& state) const;

  // One step: state [B, D] -> context [B, D] and lse [B], and the past with this state, for the
  // step after. {} is the first step's past too.
  std::pair<AttentionResult, PastSteps> step(const at::Tensor& state, const PastSteps& past,
                                             const Pass& pass = {}) const;

 private:
  AttentionSpec spec() const;

  std::shared_ptr<LearnedAttention> attention_;
};

}  // namespace attend
