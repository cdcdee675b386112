#pragma once

#include <ATen/ATen.h>

namespace attend {

// Converts [T, D] and [B, T, D] to [1, 1, T, D] and [B, 1, T, D], and back.
inline at::Tensor with_four_axes(const at::Tensor& x) {
  if (x.dim() == 4) return x;
  return x.dim() == 3 ? x.unsqueeze(1) : x.unsqueeze(0).unsqueeze(0);
}
inline at::Tensor with_axes_of(const at::Tensor& result, const at::Tensor& query) {
  if (query.dim() == 4) return result;
  return query.dim() == 3 ? result.squeeze(1) : result.squeeze(1).squeeze(0);
}

// Repeats each head group of [B, groups of heads, T, D] once per head that shares it.
inline at::Tensor repeat_heads(const at::Tensor& x, int64_t heads) {
  return x.size(1) == heads ? x : x.repeat_interleave(heads / x.size(1), 1);
}

}  // namespace attend
