#pragma once

#include <ATen/ATen.h>

#include <cstdint>

namespace attend {

// The generator that a forward pass draws its dropout masks from; none at inference. Each replica
// of a model has its own, so that masks do not depend on how threads interleave.
using DropoutGenerator = c10::optional<at::Generator>;

// Zeroes elements with the given probability and scales the rest by 1 / (1 - probability), so that
// the expectation stays; the identity without a generator (Srivastava et al. 2014). What is dropped
// follows from the place in x, with a SharedSequence from that in the whole sequence, whatever the
// dtype and the device.
at::Tensor dropout(const at::Tensor& x, double probability, const DropoutGenerator& generator);

// A seed other than 0 for what draws by a seed; 0, nothing is drawn, without a generator.
uint64_t draw_seed(const DropoutGenerator& generator);

}  // namespace attend
