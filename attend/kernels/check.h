#pragma once

#include "attend/kernels/attention.h"

namespace attend::kernels {

// Throws attend::Error, naming the argument, what it is and what it must be, unless the problem
// fits.
template <class S>
void check(const Problem<S>& problem);

}  // namespace attend::kernels
