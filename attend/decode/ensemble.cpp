#include "attend/decode/ensemble.h"

#include <cmath>
#include <utility>

#include "attend/base/error.h"

namespace attend {

Ensemble::Ensemble(std::vector<StepModel*> models) : models_(std::move(models)) {
  if (models_.empty()) fail("[ensemble] no models; give at least one");
}

StepResult Ensemble::step(const at::Tensor& tokens, StepState& state, bool with_weights) {
  if (state.members.size() != models_.size())
    fail("[ensemble] the state is of {} models; it must be of {}", state.members.size(),
         models_.size());
  std::vector<at::Tensor> log_probabilities, weights;
  log_probabilities.reserve(models_.size());
  weights.reserve(models_.size());
  for (size_t i = 0; i < models_.size(); ++i) {
    StepResult result = models_[i]->step(tokens, state.members[i], with_weights);
    if (i > 0 && result.log_probabilities.size(1) != log_probabilities[0].size(1))
      fail("[ensemble] model {} has {} symbols, the first {}; they must be the same", i + 1,
           result.log_probabilities.size(1), log_probabilities[0].size(1));
    log_probabilities.push_back(std::move(result.log_probabilities));
    if (result.weights.defined()) weights.push_back(std::move(result.weights));
  }
  StepResult result;
  // log((1 / n) sum_m p_m)
  result.log_probabilities =
      at::stack(log_probabilities).logsumexp(0) - std::log(static_cast<double>(models_.size()));
  if (!weights.empty()) result.weights = at::stack(weights).mean(0);
  return result;
}

}  // namespace attend
