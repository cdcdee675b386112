#include "attend/nn/near_convolution.h"

#include <vector>

#include "attend/base/error.h"
#include "attend/nn/dropout.h"

namespace attend {

using at::Tensor;

NearConvolution::NearConvolution(const NearConvolutionConfig& config) : config_(config) {
  if (config.width < 1 || config.width % 2 != 1)
    fail("[convolution] the width is {}; it must be odd, so that a position is in the middle",
         config.width);
  map_ = register_module("map", xavier_linear(config.width * config.depth, config.depth));
  norm_ = register_module("norm",
                          std::make_shared<Norm>(config.depth, NormKind::layer, config.epsilon));
}

Tensor NearConvolution::forward(const Tensor& input, const Tensor& x, const Tensor& present,
                                const Pass& pass) {
  const int64_t reach = config_.width / 2, length = input.size(1);
  const Tensor shown =
      present.defined() ? input.masked_fill(present.logical_not().unsqueeze(2), 0.0) : input;
  const Tensor padded = at::constant_pad_nd(shown, {0, 0, reach, reach});
  std::vector<Tensor> near;
  near.reserve(static_cast<size_t>(config_.width));
  for (int64_t first = 0; first < config_.width; ++first)
    near.push_back(padded.narrow(1, first, length));
  const Tensor made = map_->forward(at::cat(near, 2), pass);
  return norm_->forward(
      x + activated(attend::dropout(made, config_.dropout, pass), config_.activation, pass), pass);
}

}  // namespace attend
