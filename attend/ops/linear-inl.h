#pragma once

#include <string>

#include "attend/ops/attention.h"
#include "attend/ops/lowered_spec.h"

// Linear attention: running sums of features instead of weights.

namespace attend {

// Whether the normaliser sums features divided by the largest one.
bool shifts_features(const LoweredSpec& spec);

// Divides the features by the largest one. If the score returns logarithms, also applies exp. Keys
// that later queries read again are divided independently of the queries.
void shift_features(Parts& parts, LoweredSpec& spec, bool for_later_queries);

// LoweredSpec::key_shift in the layout of the scores, [B, H, 1, Tk or 1].
at::Tensor key_shifts(const LoweredSpec& spec);

// Reason why the linear normaliser cannot use running sums; empty if it can.
std::string not_running_sums_reason(const LoweredSpec& spec);

// Runs in O((Tq + Tk) A Dv); the context has the dtype of the arithmetic.
AttentionResult linear_attention(const Parts& parts, const LoweredSpec& spec);

}  // namespace attend
