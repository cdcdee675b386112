#pragma once

#include <c10/core/impl/LocalDispatchKeySet.h>

namespace attend {

// During its lifetime, this thread computes the same bits for an entry of a batch whatever the
// other entries and their number, where nothing is padded: float32 on the CPU, without gradients. A
// BLAS orders its sums, and LibTorch its vectors, by the size of the whole batch; here matrix
// products sum row by row (kernels::row_products), convolutions see one image at a time, and a
// sigmoid is one formula for all numbers.
class BatchInvariantGuard {
 public:
  BatchInvariantGuard();

 private:
  c10::impl::IncludeDispatchKeyGuard guard_;
};

}  // namespace attend
