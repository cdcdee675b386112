#pragma once

#include <torch/torch.h>

namespace attend {

// The generator that a forward pass draws its dropout masks from; none at inference. Each replica
// of a model has its own, so that masks do not depend on how threads interleave.
using Noise = c10::optional<at::Generator>;

// Zeroes elements with the given probability and scales the rest by 1 / (1 - probability), so that
// the expectation stays; the identity without noise (Srivastava et al. 2014).
at::Tensor dropout(const at::Tensor& x, double probability, const Noise& noise);

}  // namespace attend
