#pragma once

#include "attend/ops/lowered_spec.h"

// Tensors of a spec in the dtype that the arithmetic has.

namespace attend {

// Whether a tensor of the spec may have that dtype.
bool is_taken(at::ScalarType type, const LoweredSpec& spec);

// The numbers that an expanded tensor holds: its axes of stride 0 become axes of 1. As it is where
// it is differentiated, for then each repetition has a gradient of its own.
at::Tensor without_repetitions(const at::Tensor& x);

// Error on another dtype or device.
at::Tensor in_arithmetic(const at::Tensor& given, const char* name, const Parts& parts,
                         const LoweredSpec& spec);
// The same, [H], from that or from one number.
at::Tensor per_head(const at::Tensor& given, const char* name, const Parts& parts,
                    const LoweredSpec& spec);

}  // namespace attend
