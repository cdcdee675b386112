#pragma once

#include <ATen/ATen.h>

#include "attend/nn/pass.h"

namespace attend {

// Zeroes elements with the given probability and scales the rest by 1 / (1 - probability), so that
// the expectation stays; the identity without a generator (Srivastava et al. 2014). What is dropped
// follows from the place in x, of a SharedSequence from that in the whole sequence, whatever the
// dtype and the device.
at::Tensor dropout(const at::Tensor& x, double probability, const Pass& pass);

}  // namespace attend
