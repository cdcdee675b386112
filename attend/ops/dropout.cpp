#include "attend/base/error.h"
#include "attend/ops/kernel_problem-inl.h"

namespace attend {

at::Tensor dropped(const Form&, const at::TensorOptions&) {
  fail("[attention] dropout of weights has no implementation yet");
}

}  // namespace attend
