#pragma once

#include <string_view>

#include "attend/kernels/attention.h"

namespace attend::kernels {

// Throws attend::Error if the problem does not fit, with the name, the value and the requirement of
// the argument.
template <class S>
void check(const Problem<S>& problem);

// The same for the other inputs and outputs of the passes.
template <class S>
void check(const Problem<S>& problem, const Result<S>& result);
template <class S>
void check(const Problem<S>& problem, const Upstream<S>& upstream, const Gradients<S>& gradients);

void check(const Dropout& dropout);

// Checks an array of `count` numbers; `name` is its name in messages.
void check_array(std::string_view name, const void* data, int64_t count);

}  // namespace attend::kernels
