#include "attend/ops/cpu_problem-inl.h"

namespace attend {

using at::Tensor;

// From the kernels, so that both paths drop the same weights.
Tensor dropout_factors(const LoweredSpec& spec, const at::TensorOptions& options) {
  kernels::Shape shape;
  shape.batch = spec.batch;
  shape.heads = spec.heads;
  shape.queries = spec.queries;
  shape.keys = spec.keys;
  const at::ScalarType type = options.dtype().toScalarType();
  const Tensor factors =
      at::empty({spec.batch, spec.heads, spec.queries, spec.keys}, at::TensorOptions().dtype(type));
  const kernels::Dropout dropout{spec.dropout.probability, spec.dropout.seed};
  if (type == at::kDouble)
    kernels::dropout_mask(shape, dropout, factors.data_ptr<double>());
  else
    kernels::dropout_mask(shape, dropout, factors.data_ptr<float>());
  return factors.to(options.device());
}

}  // namespace attend
