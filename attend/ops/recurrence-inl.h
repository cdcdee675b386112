#pragma once

#include <vector>

#include "attend/ops/recurrence.h"

namespace attend {

// Checked inputs: queries and keys [B, Hk, T, D] and values [B, H, T, Dv]. Decay [B, H, T, 1 or D],
// strength [B, H, T, 1] and initial states have the dtype of the arithmetic, or are undefined.
namespace recurrence_input {
enum Index { query, key, value, decay, strength, initial, count };
}
using RecurrenceInputs = std::vector<at::Tensor>;

// Everything else of a call.
struct RecurrenceCall {
  bool delta = false, l2_normalise = false;
  double scale = 1;
  at::Tensor offsets;  // contiguous, or undefined
};

constexpr double l2_epsilon = 1e-6;

// Output and state by tensor operations.
RecurrenceResult composed_recurrence(const RecurrenceInputs& parts, const RecurrenceCall& call);

}  // namespace attend
