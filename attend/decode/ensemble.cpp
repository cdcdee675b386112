#include "attend/decode/ensemble.h"

#include <cmath>
#include <limits>
#include <utility>

#include "attend/base/error.h"

namespace attend {
namespace {

// Sums in the order of the models, because LibTorch's reductions use another order in some columns
// of a batch.
at::Tensor mean(const std::vector<at::Tensor>& values) {
  at::Tensor sum = values[0];
  for (size_t i = 1; i < values.size(); ++i) sum = sum + values[i];
  return sum / static_cast<double>(values.size());
}

// log((1 / n) sum_m p_m)
at::Tensor log_mean(const std::vector<at::Tensor>& log_probabilities) {
  at::Tensor largest = log_probabilities[0];
  for (const at::Tensor& each : log_probabilities) largest = at::maximum(largest, each);
  // If all are -inf, the difference would be NaN.
  largest = largest.masked_fill(largest == -std::numeric_limits<double>::infinity(), 0.0);
  at::Tensor sum = at::zeros_like(largest);
  for (const at::Tensor& each : log_probabilities) sum = sum + (each - largest).exp();
  return sum.log() + largest - std::log(static_cast<double>(log_probabilities.size()));
}

}  // namespace

Ensemble::Ensemble(std::vector<std::unique_ptr<DecodingState>> members)
    : members_(std::move(members)) {
  if (members_.empty()) fail("[ensemble] no models; give at least one");
}

StepResult Ensemble::step(const at::Tensor& tokens, bool with_weights, const Pass& pass) {
  std::vector<at::Tensor> log_probabilities, weights;
  log_probabilities.reserve(members_.size());
  weights.reserve(members_.size());
  for (size_t i = 0; i < members_.size(); ++i) {
    StepResult result = members_[i]->step(tokens, with_weights, pass);
    if (i > 0 && result.log_probabilities.size(1) != log_probabilities[0].size(1))
      fail("[ensemble] model {} has {} tokens, the first {}; they must be the same", i + 1,
           result.log_probabilities.size(1), log_probabilities[0].size(1));
    log_probabilities.push_back(std::move(result.log_probabilities));
    if (result.weights.defined()) weights.push_back(std::move(result.weights));
  }
  StepResult result;
  result.log_probabilities = log_mean(log_probabilities);
  if (!weights.empty()) result.weights = mean(weights);
  return result;
}

void Ensemble::reorder(const at::Tensor& rows, bool same_sources) {
  for (const auto& member : members_) member->reorder(rows, same_sources);
}

}  // namespace attend
