#pragma once

#include <c10/core/impl/LocalDispatchKeySet.h>

namespace attend {

// While it lives, what this thread computes of each entry of a batch has the same bits whatever
// entries are beside it and however many, where nothing is padded: float32 on the CPU, without
// gradients. A BLAS orders its sums, and LibTorch its vectors, by the size of the whole batch; here
// matrix products sum row by row (kernels::row_products), convolutions see one image at a time, and
// a sigmoid is one formula for all numbers.
class BatchInvariantGuard {
 public:
  BatchInvariantGuard();

 private:
  c10::impl::IncludeDispatchKeyGuard guard_;
};

}  // namespace attend
