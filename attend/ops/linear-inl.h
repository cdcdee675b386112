#pragma once

#include <string>

#include "attend/ops/attention.h"
#include "attend/ops/lowered_spec.h"

// Linear attention: running sums of features in place of weights.

namespace attend {

// Whether the normaliser sums features up that are divided by the largest of them.
bool shifts_features(const LoweredSpec& spec);

// Divides them. They are logarithms where the score has these. Keys that later queries read too
// stay apart from the queries.
void shift_features(Parts& parts, LoweredSpec& spec, bool for_later_queries);

// LoweredSpec::key_shift as the scores have it, [B, H, 1, Tk or 1].
at::Tensor key_shifts(const LoweredSpec& spec);

// Why the linear normaliser has no running sums for this; empty where it has.
std::string why_not_running_sums(const LoweredSpec& spec);

// In O((Tq + Tk) A Dv); context in the dtype of the arithmetic.
AttentionResult linear_attention(const Parts& parts, const LoweredSpec& spec);

}  // namespace attend
