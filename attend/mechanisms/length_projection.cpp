#include "attend/mechanisms/length_projection.h"

#include <cmath>

#include "attend/base/error.h"

namespace attend {
namespace {

using at::Tensor;

Tensor without_padding(const Tensor& x, const Tensor& lengths) {
  if (lengths.dim() != 1 || lengths.scalar_type() != at::kLong || x.dim() < 3 ||
      lengths.size(0) != x.size(0))
    fail(
        "[length projection] lengths have dtype {} and shape [{}], the input shape [{}]; there "
        "must be one int64 for each entry of its first axis",
        c10::toString(lengths.scalar_type()), fmt::join(lengths.sizes(), ", "),
        fmt::join(x.sizes(), ", "));
  const Tensor positions = at::arange(x.size(-2), lengths.options());
  const Tensor padding = positions.unsqueeze(0) >= lengths.unsqueeze(1);
  std::vector<int64_t> shape(static_cast<size_t>(x.dim()), 1);
  shape[0] = x.size(0);
  shape.end()[-2] = x.size(-2);
  return x.masked_fill(padding.view(shape), 0.0);
}

}  // namespace

LengthProjection::LengthProjection(int64_t maximum_length, int64_t projected) {
  if (projected < 1 || projected > maximum_length)
    fail(
        "[length projection] {} positions were to become {}; there must be 1 or more, and no more "
        "than before",
        maximum_length, projected);
  const double deviation = 1 / std::sqrt(static_cast<double>(projected));
  projection_ =
      register_parameter("projection", torch::randn({projected, maximum_length}) * deviation);
}

Tensor LengthProjection::forward(const Tensor& x, const Tensor& lengths) const {
  if (!x.defined() || x.dim() < 2)
    fail("[length projection] the input has {} axes; it must have shape [..., T, D]",
         x.defined() ? x.dim() : 0);
  if (x.size(-2) > projection_.size(1))
    fail(
        "[length projection] got a sequence of {} positions, the projection has {}; give it a "
        "larger maximum length, or take a score without one",
        x.size(-2), projection_.size(1));
  const Tensor kept = lengths.defined() ? without_padding(x, lengths) : x;
  return at::matmul(projection_.narrow(1, 0, x.size(-2)), kept);
}

}  // namespace attend
