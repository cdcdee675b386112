#pragma once

#include "attend/ops/normalisers.h"

namespace attend {

// log sum_j exp(s_ij). The gradient of at::logsumexp would be exp(s_ij - lse_i): beside large
// scores the lse is rounded too coarsely for that to be the weight.
at::Tensor log_sum_exp(const at::Tensor& scores);

// NormaliserRow::normalise of the rows of the same names, which choose one key, or expect to.
Normalised hard(const at::Tensor& scores, const at::Tensor& empty, const NormaliserOptions&);
Normalised gumbel(const at::Tensor& scores, const at::Tensor& empty, const NormaliserOptions&);
Normalised monotonic(const at::Tensor& scores, const at::Tensor& empty, const NormaliserOptions&);
Normalised monotonic_hard(const at::Tensor& scores, const at::Tensor& empty,
                          const NormaliserOptions&);

}  // namespace attend
