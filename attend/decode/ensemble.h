#pragma once

#include <vector>

#include "attend/nn/step_model.h"

namespace attend {

// Several models of the same tokens as one: a token's probability is the mean of theirs, and so
// are the weights. Its state holds theirs, in StepState::members.
class Ensemble : public StepModel {
 public:
  // The models must outlive it. Error on none.
  explicit Ensemble(std::vector<StepModel*> models);

  StepResult step(const at::Tensor& tokens, StepState& state, bool with_weights) override;

 private:
  std::vector<StepModel*> models_;
};

}  // namespace attend
