#pragma once

#include "attend/ops/normalisers.h"

namespace attend {

// NormaliserRow::normalise of the rows of the same names, which choose one key, or expect to.
// log sum_j exp(s_ij). Of at::logsumexp the gradient would be exp(s_ij - lse_i): beside large
// scores the lse is rounded to where that is no weight.
at::Tensor log_sum_exp(const at::Tensor& scores);

Normalised hard(const at::Tensor& scores, const at::Tensor& empty, const NormaliserOptions&);
Normalised gumbel(const at::Tensor& scores, const at::Tensor& empty, const NormaliserOptions&);
Normalised monotonic(const at::Tensor& scores, const at::Tensor& empty, const NormaliserOptions&);
Normalised monotonic_hard(const at::Tensor& scores, const at::Tensor& empty,
                          const NormaliserOptions&);

}  // namespace attend
