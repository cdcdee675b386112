#pragma once

#include "tests/kernels/case.h"

// The reference of the kernel tests: the formulas in the arithmetic R.

namespace attend::kernels::testing {

template <class R, class S>
NaiveResults<R> reference(const Case<S>& c, const Noise<R>& noise = {}) {
  const Shape& s = c.shape;
  const PlacedCase<S> placed{c, Layout::heads_first};
  return NaiveAttention<R, S>(placed.problem(),
                              contiguous(c.grad_context.data(), s.heads, s.queries, s.value_depth),
                              pointer(c.grad_lse), noise)
      .run();
}

}  // namespace attend::kernels::testing
