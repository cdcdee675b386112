#include "attend/nn/dropout.h"

namespace attend {

at::Tensor dropout(const at::Tensor& x, double probability, const Noise& noise) {
  if (!noise || probability == 0) return x;
  at::NoGradGuard no_gradient;
  const at::Tensor mask =
      at::empty_like(x).bernoulli_(1 - probability, noise).div_(1 - probability);
  at::AutoGradMode with_gradient(true);
  return x * mask;
}

}  // namespace attend
