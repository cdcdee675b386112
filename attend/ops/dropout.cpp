#include "attend/kernels/attention.h"
#include "attend/ops/composed-inl.h"
#include "attend/ops/kernel_tensors.h"

namespace attend {
namespace {

using at::Tensor;

// Uses the kernels, which makes both paths drop the same weights.
Tensor factors_on_cpu(const LoweredSpec& spec, at::ScalarType type) {
  kernels::Shape shape;
  shape.batch = spec.batch;
  shape.heads = spec.heads;
  shape.queries = spec.queries;
  shape.keys = spec.keys;
  Tensor factors = at::empty({spec.batch, spec.heads, spec.queries, spec.keys}, type);
  if (type == at::kDouble)
    kernels::dropout_mask(shape, spec.dropout, pointer_of<double>(factors));
  else
    kernels::dropout_mask(shape, spec.dropout, pointer_of<float>(factors));
  return factors;
}

constexpr int64_t low_half = 0xffffffff;

// kernels::dropout_mix of numbers below 2^32 by tensor operations; no product reaches 2^63.
Tensor mixed(Tensor x) {
  x = ((x ^ x.__rshift__(16)) * int64_t{0x21f0aaad}) & low_half;
  x = ((x ^ x.__rshift__(15)) * int64_t{0x735a2d97}) & low_half;
  return x ^ x.__rshift__(15);
}

}  // namespace

Tensor dropout_factors(const LoweredSpec& spec, const at::TensorOptions& options) {
  if (options.device().is_cpu()) return factors_on_cpu(spec, options.dtype().toScalarType());
  return dropout_factors_of_keys(spec, at::arange(spec.keys, options.dtype(at::kLong)), options);
}

// The same draw on the device of the tensors; only one number per row comes from the CPU.
Tensor dropout_factors_of_keys(const LoweredSpec& spec, const Tensor& row_keys,
                               const at::TensorOptions& options) {
  const Dropout& dropout = spec.dropout;
  const Tensor rows = at::empty({spec.batch, spec.heads, spec.queries}, at::kLong);
  auto* next = pointer_of<int64_t>(rows);
  for (int64_t b = 0; b < spec.batch; ++b)
    for (int64_t h = 0; h < spec.heads; ++h)
      for (int64_t i = 0; i < spec.queries; ++i)
        *next++ = kernels::dropout_row_key(dropout, {b, h, i}, spec.heads);
  const Tensor places = row_keys + dropout.first_key;
  const Tensor keys = (places * int64_t{0x9e3779b9}) & low_half;  // dropout_key
  const Tensor drawn = mixed(rows.to(options.device()).unsqueeze(-1) ^ keys);
  const auto threshold = static_cast<int64_t>(kernels::dropout_threshold(dropout));
  return (drawn >= threshold).to(options.dtype()) / (1 - dropout.probability);
}

}  // namespace attend
