#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

#include "attend/decode/search.h"

namespace attend::internal {

// Samples one token per hypothesis from log_probabilities [N, V] by `uniforms` [N] in [0, 1).
NextTokens drawn(const at::Tensor& log_probabilities, const std::vector<double>& uniforms,
                 const Sampling& sampling);

// Random number in [0, 1), a multiple of 2^-48, for one step of an answer.
double uniform(const Sampling& sampling, uint64_t stream, int64_t answer, int64_t step);

}  // namespace attend::internal
