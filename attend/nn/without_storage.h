#pragma once

#include <c10/core/impl/LocalDispatchKeySet.h>

namespace attend {

// While it lives, what this thread makes of tensors has shapes and dtypes and neither storage nor
// values: LibTorch's meta device, wherever the code says the CPU. A module built then tells what it
// would take, at no cost; it cannot be used.
class WithoutStorage {
 public:
  WithoutStorage();

 private:
  c10::impl::IncludeDispatchKeyGuard guard_;
};

}  // namespace attend
