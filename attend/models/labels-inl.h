#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <limits>

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

}  // namespace attend::internal
