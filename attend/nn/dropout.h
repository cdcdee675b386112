#pragma once

#include <ATen/ATen.h>

#include "attend/nn/pass.h"

namespace attend {

// Zeroes elements with this probability and scales the rest by 1 / (1 - probability), so that the
// expectation stays; the identity without a generator (Srivastava et al. 2014). An element's place
// in x, or in the whole sequence of a SharedSequence, decides whether it is dropped, whatever the
// dtype and the device.
at::Tensor dropout(const at::Tensor& x, double probability, const Pass& pass);

}  // namespace attend
