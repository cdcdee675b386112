#pragma once

#include "attend/ops/lowered_spec.h"

// Converts the tensors of a spec to the dtype of the arithmetic.

namespace attend {

// Whether a tensor of the spec may have this dtype.
bool is_taken(at::ScalarType type, const LoweredSpec& spec);

// Reduces each expanded axis (stride 0) to length 1. Returns x unchanged if it is differentiated,
// since each repetition then has a gradient of its own.
at::Tensor without_repetitions(const at::Tensor& x);

// Error on a dtype or device that does not fit the query.
at::Tensor in_arithmetic(const at::Tensor& given, const char* name, const Parts& parts,
                         const LoweredSpec& spec);
// The same for a tensor [H] or one number; returns [H].
at::Tensor per_head(const at::Tensor& given, const char* name, const Parts& parts,
                    const LoweredSpec& spec);

}  // namespace attend
