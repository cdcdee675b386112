#pragma once

#include <ATen/ATen.h>

#include "attend/nn/pass.h"

namespace attend {

// Zeroes elements with this probability and scales the rest by 1 / (1 - probability), which keeps
// the expectation (Srivastava et al. 2014). The identity without a generator. Which elements are
// dropped depends on their position in x, or in the whole sequence of a SharedSequence, but not on
// the dtype or device.
at::Tensor dropout(const at::Tensor& x, double probability, const Pass& pass);

}  // namespace attend
