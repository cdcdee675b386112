#pragma once

#include <c10/core/impl/LocalDispatchKeySet.h>

namespace attend {

// During its lifetime, tensors that this thread makes have shapes and dtypes, but neither storage
// nor values: they are on LibTorch's meta device where the code says the CPU. A module that is
// built then has the sizes of its weights but no memory for them; it cannot compute.
class WithoutStorage {
 public:
  WithoutStorage();

 private:
  c10::impl::IncludeDispatchKeyGuard guard_;
};

}  // namespace attend
