#pragma once

#include "attend/ops/normalisers.h"

namespace attend {

// NormaliserRow::normalise of the rows of the same names, which choose one key, or expect to.
Normalised hard(const at::Tensor& scores, const at::Tensor& empty, const NormaliserOptions&);
Normalised gumbel(const at::Tensor& scores, const at::Tensor& empty, const NormaliserOptions&);
Normalised monotonic(const at::Tensor& scores, const at::Tensor& empty, const NormaliserOptions&);
Normalised monotonic_hard(const at::Tensor& scores, const at::Tensor& empty,
                          const NormaliserOptions&);

}  // namespace attend
