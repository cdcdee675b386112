#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <limits>

#include "attend/data/batches.h"
#include "attend/text/vocabulary.h"

namespace attend::internal {

// Labels are the target tokens after the fixed tokens.
constexpr int64_t first_label = Vocabulary::unknown + 1;

// Scores [.., labels] -> log probabilities [.., target tokens] of dtype `type`; default: dtype of
// the scores.
inline at::Tensor label_log_probabilities(const at::Tensor& scores,
                                          c10::optional<at::ScalarType> type = {}) {
  return at::constant_pad_nd(scores.log_softmax(-1, type), {first_label, 0},
                             -std::numeric_limits<double>::infinity());
}

// As above; if the answer is a number, the score is the number.
inline at::Tensor label_or_number(const at::Tensor& scores, bool is_number,
                                  c10::optional<at::ScalarType> type = {}) {
  return is_number ? scores.to(type.value_or(scores.scalar_type()))
                   : label_log_probabilities(scores, type);
}

// PairNetwork::objective for the scores [B, labels], or [B, 1] of numbers.
inline at::Tensor label_objective(const at::Tensor& scores, const Batch& batch, bool is_number,
                                  double smoothing) {
  if (is_number)
    return at::mse_loss(scores.squeeze(1), batch.numbers.to(scores.device()), at::Reduction::Sum);
  const at::Tensor labels = batch.target.to(scores.device()).select(1, 0) - first_label;
  return at::cross_entropy_loss(scores, labels, {}, at::Reduction::Sum, /*ignore_index=*/-100,
                                smoothing);
}

}  // namespace attend::internal
