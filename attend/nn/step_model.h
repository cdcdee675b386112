#pragma once

#include <ATen/ATen.h>

#include <vector>

namespace attend {

// What decoding carries from step to step. Axis 0 of every tensor is the hypothesis.
struct StepState {
  std::vector<at::Tensor> carried;  // replaced by each step
  std::vector<at::Tensor> memory;   // read by each step, the same throughout
};

struct StepResult {
  at::Tensor log_probabilities;     // [N, V]
  std::vector<at::Tensor> carried;  // the state after the step
  at::Tensor weights;               // [N, S] when asked for, and when the model attends
};

// A model that predicts a sequence one symbol at a time.
class StepModel {
 public:
  virtual ~StepModel() = default;

  // tokens [N] int64: the symbol before, of each hypothesis.
  virtual StepResult step(const at::Tensor& tokens, const StepState& state, bool with_weights) = 0;
};

}  // namespace attend
