#include "attend/ops/kernel_tensors.h"

#include "attend/base/error.h"

namespace attend {

void check_readable(const at::Tensor& x, at::ScalarType type) {
  if (x.scalar_type() != type)
    fail("a kernel that reads {} was given {}; convert the tensor", c10::toString(type),
         c10::toString(x.scalar_type()));
  if (x.is_neg() || x.is_conj()) fail("a kernel was given a tensor that is negated later");
}

bool autocast_enabled() {
  return !c10::impl::tls_local_dispatch_key_set().excluded_.has_all(c10::autocast_dispatch_keyset);
}

bool has_forward_gradient(const at::Tensor& x) { return x.defined() && x._fw_grad(0).defined(); }

}  // namespace attend
