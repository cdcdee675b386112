#include "attend/nn/norm.h"

namespace attend {

using at::Tensor;

Norm::Norm(int64_t depth, NormKind kind, double epsilon)
    : epsilon_(epsilon), weight_(register_parameter("weight", at::ones(depth))) {
  if (kind == NormKind::layer) bias_ = register_parameter("bias", at::zeros(depth));
}

Tensor Norm::forward(const Tensor& x, const Pass& pass, double scale) const {
  const auto scaled = [scale](const Tensor& each) {
    return scale == 1 || !each.defined() ? each : each * scale;
  };
  return pass.normalised({x, scaled(weight_), scaled(bias_), epsilon_, bias_.defined()});
}

}  // namespace attend
