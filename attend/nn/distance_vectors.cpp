#include "attend/nn/distance_vectors.h"

#include "attend/nn/dropout.h"

namespace attend {

// Small, like learned positions.
DistanceVectors::DistanceVectors(const DistanceVectorsConfig& config)
    : dropout_(config.dropout),
      table_(register_parameter("table", at::randn({config.rows, config.depth}) * 0.02)) {
  if (config.normalised)
    norm_ = register_module("norm",
                            std::make_shared<Norm>(config.depth, NormKind::layer, config.epsilon));
}

at::Tensor DistanceVectors::vectors(const Pass& pass) const {
  const at::Tensor all = table_.unsqueeze(0);
  return dropout(norm_ ? norm_->forward(all, pass) : all, dropout_, pass);
}

}  // namespace attend
