#pragma once

#include <string_view>

#include "attend/kernels/attention.h"

namespace attend::kernels {

// Throws attend::Error, naming the argument, what it is and what it must be, unless the problem
// fits.
template <class S>
void check(const Problem<S>& problem);

// Likewise what the passes read and write besides.
template <class S>
void check(const Problem<S>& problem, const Result<S>& result);
template <class S>
void check(const Problem<S>& problem, const Upstream<S>& upstream, const Gradients<S>& gradients);

void check(const Dropout& dropout);

// An array of so many numbers; name is what the message calls it.
void check_array(std::string_view name, const void* data, int64_t count);

}  // namespace attend::kernels
