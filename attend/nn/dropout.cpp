#include "attend/nn/dropout.h"

#include <limits>

namespace attend {

at::Tensor dropout(const at::Tensor& x, double probability, const Noise& noise) {
  if (!noise || probability == 0) return x;
  at::NoGradGuard no_gradient;
  const at::Tensor mask =
      at::empty_like(x).bernoulli_(1 - probability, noise).div_(1 - probability);
  at::AutoGradMode with_gradient(true);
  return x * mask;
}

uint64_t draw_seed(const Noise& noise) {
  if (!noise) return 0;
  const at::Tensor seed = at::empty({}, at::kLong);
  seed.random_(1, std::numeric_limits<int64_t>::max(), noise);
  return static_cast<uint64_t>(seed.item<int64_t>());
}

}  // namespace attend
