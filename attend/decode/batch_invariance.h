#pragma once

#include <c10/core/impl/LocalDispatchKeySet.h>

namespace attend {

// During its lifetime, the results of this thread for a batch entry are bit-identical for any other
// entries and any batch size. Applies to float32 on the CPU, without padding or gradients. A BLAS
// chooses its order of summation, and LibTorch its vectorisation, by the size of the whole batch.
// Under this guard matrix products sum row by row (kernels::row_products), convolutions process one
// image at a time, and sigmoid uses one formula for all numbers.
class BatchInvariantGuard {
 public:
  BatchInvariantGuard();

 private:
  c10::impl::IncludeDispatchKeyGuard guard_;
};

}  // namespace attend
