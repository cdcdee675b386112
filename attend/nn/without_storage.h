#pragma once

#include <c10/core/impl/LocalDispatchKeySet.h>

namespace attend {

// During its lifetime, tensors that this thread creates have shapes and dtypes but no storage or
// values. They are on LibTorch's meta device although the code names the CPU. A module built
// meanwhile has sizes of weights but no memory for them; it cannot compute.
class WithoutStorage {
 public:
  WithoutStorage();

 private:
  c10::impl::IncludeDispatchKeyGuard guard_;
};

}  // namespace attend
