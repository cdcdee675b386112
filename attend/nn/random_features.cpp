#include "attend/nn/random_features.h"

#include <torch/utils.h>

#include <vector>

#include "attend/base/error.h"

namespace attend {
namespace {

using at::Tensor;

// Uniform among the orthogonal matrices, because it removes the arbitrary signs of the
// decomposition.
Tensor orthogonal_block(int64_t depth, const at::Generator& generator) {
  const Tensor normal = at::randn({depth, depth}, generator, at::TensorOptions(at::kDouble));
  const auto [q, r] = at::linalg_qr(normal);
  return q * (1 - 2 * (r.diagonal() < 0).to(at::kDouble));
}

}  // namespace

Tensor orthogonal_features(int64_t features, int64_t depth, const at::Generator& generator) {
  if (features < 1 || depth < 1)
    fail("[random features] {} features of depth {} were asked for; both must be 1 or more",
         features, depth);
  std::vector<Tensor> blocks;
  blocks.reserve(static_cast<size_t>((features + depth - 1) / depth));
  for (int64_t rows = 0; rows < features; rows += depth)
    blocks.push_back(orthogonal_block(depth, generator));
  const Tensor lengths =
      at::randn({features, depth}, generator, at::TensorOptions(at::kDouble)).norm(2, {1}, true);
  return (at::cat(blocks).narrow(0, 0, features) * lengths).to(at::kFloat);
}

void redraw_features(const Tensor& omega, const at::Generator& generator) {
  if (!omega.defined() || omega.dim() < 2)
    fail("[random features] omega has {} axes; it must have shape [features, depth]",
         omega.defined() ? omega.dim() : 0);
  torch::NoGradGuard no_gradient;
  const Tensor matrices = omega.view({-1, omega.size(-2), omega.size(-1)});
  for (int64_t i = 0; i < matrices.size(0); ++i)
    matrices[i].copy_(orthogonal_features(omega.size(-2), omega.size(-1), generator));
}

}  // namespace attend
