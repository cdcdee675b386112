#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

#include "attend/decode/search.h"

namespace attend::internal {

// Tokens that may come next, for each of N hypotheses, and the log probability that the model
// gives to each.
struct Candidates {
  at::Tensor log_probabilities;  // [N, K] double on the CPU
  at::Tensor tokens;             // [N, K] int64 on the CPU
};

// The `count` most probable of log_probabilities [N, V], best first, or all where there are fewer.
Candidates most_probable(const at::Tensor& log_probabilities, int64_t count);

// One a hypothesis: tokens [N], given.
Candidates given(const at::Tensor& log_probabilities, const std::vector<int64_t>& tokens);

// One a hypothesis, drawn by `uniforms` [N] in [0, 1).
Candidates drawn(const at::Tensor& log_probabilities, const std::vector<double>& uniforms,
                 const Sampling& sampling);

// The random number in [0, 1), a multiple of 2^-48, of a step of an answer.
double uniform(const Sampling& sampling, uint64_t stream, int64_t answer, int64_t step);

}  // namespace attend::internal
