#include "attend/ops/score_rows-inl.h"

namespace attend {
namespace {

using at::Tensor;

// [A, C] or [H, A, C] applied to the last axis of x [B, H, Tk, C].
Tensor projected(const Tensor& x, const Tensor& weight) {
  return at::matmul(x, weight.transpose(-2, -1));
}

}  // namespace

PastWeights after(const PastWeights& past, const Tensor& weights) {
  return {weights, past.total.defined() ? past.total + weights : weights};
}

Tensor map_past_location_sensitive(const PastWeights& past, const Parameters& parameters) {
  const Tensor& previous = past.previous;
  if (!previous.defined() || previous.size(-1) == 0) return {};
  const Tensor &filters = parameters.find("F")->second, &projection = parameters.find("U")->second;
  const int64_t width = filters.size(-1), reach = (width - 1) / 2;
  const Tensor windows = at::constant_pad_nd(previous, {reach, reach}, 0.0).unfold(-1, width, 1);
  return projected(projected(windows, filters), projection);
}

Tensor map_past_coverage(const PastWeights& past, const Parameters& parameters) {
  if (!past.total.defined()) return {};
  const Tensor& weight = parameters.find("w_c")->second;
  return past.total.unsqueeze(-1) * (weight.dim() == 2 ? weight.unsqueeze(1) : weight);
}

}  // namespace attend
