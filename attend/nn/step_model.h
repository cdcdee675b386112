#pragma once

#include <ATen/ATen.h>

#include <vector>

#include "attend/nn/multi_head_state.h"

namespace attend {

// The state of decoding between two steps. Axis 0 of every tensor is the hypothesis.
struct StepState {
  std::vector<at::Tensor> recurrent;        // replaced by each step
  std::vector<at::Tensor> constant;         // of the source, the same at every step
  std::vector<MultiHeadState> self_cache;   // keys and values of the answer so far, a layer each
  std::vector<MultiHeadState> cross_cache;  // keys and values of the source, a layer each
  std::vector<StepState> members;           // of several models that decode as one

  // Goes on with these rows, int64 [rows], in that order; one may be there more than once.
  // `same_sources`: each row stays with its source, so that only what differs between the
  // hypotheses of a source moves.
  void reorder(const at::Tensor& rows, bool same_sources);
};

struct StepResult {
  at::Tensor log_probabilities;  // [N, V]
  at::Tensor weights;            // [N, S] when asked for, and when the model attends
};

// A model that predicts a sequence one token at a time.
class StepModel {
 public:
  virtual ~StepModel() = default;

  // tokens [N] int64: the token before, of each hypothesis. The state becomes that after the step.
  virtual StepResult step(const at::Tensor& tokens, StepState& state, bool with_weights) = 0;
};

}  // namespace attend
