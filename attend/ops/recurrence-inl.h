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

// Error unless x has four axes and a dtype that the recurrences support.
void check_recurrence_array(const char* name, const at::Tensor& x);

// Checks inputs and converts them. Error as linear_recurrence().
RecurrenceInputs recurrence_inputs(const at::Tensor& query, const at::Tensor& key,
                                   const at::Tensor& value, const RecurrenceSpec& spec,
                                   RecurrenceCall& call);

// A recurrence without a bonus: output and state.
using RecurrenceFunction = RecurrenceResult (*)(const RecurrenceInputs&, const RecurrenceCall&);

// The recurrence with a bonus [H, D] in the dtype of the arithmetic, by one without.
RecurrenceResult with_bonus(const RecurrenceInputs& parts, const RecurrenceCall& call,
                            const at::Tensor& bonus, RecurrenceFunction recurrence);

// x / sqrt(x . x + l2_epsilon) over the last axis.
at::Tensor l2_normalised(const at::Tensor& x);

// Output and state by tensor operations.
RecurrenceResult composed_recurrence(const RecurrenceInputs& parts, const RecurrenceCall& call);

}  // namespace attend
