#include "attend/ops/kernel_problem-inl.h"

namespace attend {

using at::Tensor;

// From the kernels, so that both paths drop the same weights.
Tensor dropout_factors(const Form& form, const at::TensorOptions& options) {
  kernels::Shape shape;
  shape.batch = form.batch;
  shape.heads = form.heads;
  shape.queries = form.queries;
  shape.keys = form.keys;
  const at::ScalarType type = options.dtype().toScalarType();
  const Tensor factors =
      at::empty({form.batch, form.heads, form.queries, form.keys}, at::TensorOptions().dtype(type));
  const kernels::Dropout dropout{form.dropout.probability, form.dropout.seed};
  if (type == at::kDouble)
    kernels::dropout_mask(shape, dropout, factors.data_ptr<double>());
  else
    kernels::dropout_mask(shape, dropout, factors.data_ptr<float>());
  return factors.to(options.device());
}

}  // namespace attend
