#pragma once

#include "attend/ops/normalisers.h"

namespace attend {

// log sum_j exp(s_ij). The gradient of at::logsumexp would be exp(s_ij - lse_i): beside large
// scores the lse is rounded too coarsely for that to be the weight.
at::Tensor log_sum_exp(const at::Tensor& scores);

// The rows of the table that choose one key, or expect to.
std::vector<NormaliserRow> one_key_rows();

}  // namespace attend
