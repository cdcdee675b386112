#pragma once

#include <ATen/ATen.h>
#include <ATen/core/ivalue.h>

#include <array>
#include <string>

#include "attend/ops/attention.h"

namespace attend {

// Attention in the form of the kernels. The maps of the score and the tables of the bias have been
// applied by operations that autograd follows. The rest is the same for every mechanism.

namespace part {
enum Index : size_t {
  query,           // [B, H, Tq, A], mapped
  key,             // [B, Hkv, Tk, A], mapped
  value,           // [B, Hkv, Tk, Dv]
  vector,          // [A] or [H, A]: v of the additive family
  dense,           // [B or 1, H or 1, Tq or 1, Tk]
  slopes,          // [H]
  sinks,           // [H]
  relative,        // [B or 1, H or 1, Tq or 1, distances]
  centres,         // [B, H, Tq]
  widths,          // [B, H, Tq]
  edges,           // [B or 1, H or 1, 1, edges of the longest list]
  query_sums,      // float64 [B, H, Tq]
  key_sums,        // float64 [B, H, Tk]
  alphas,          // [H]: parameter of the normaliser
  query_products,  // [B, H, Tq, columns]: products of queries with vectors of distances
  key_products,    // [B, H, Tk, columns]: products of keys with such vectors
  factors,         // [B, H, Tq]: multiply the scores before the soft cap and the bias
  count
};
}  // namespace part

// Undefined if absent. All but query, key, value and the sums have the dtype of the arithmetic.
using Parts = std::array<at::Tensor, part::count>;

struct LoweredSpec : torch::CustomClassHolder {
  const ScoreRow* score = nullptr;
  const NormaliserRow* normaliser = nullptr;
  NormaliserOptions options;  // previous is [B, H, 1, Tk]
  double scale = 1;
  double soft_cap = 0;
  Scope scope;  // masks of three or more axes have four
  Dropout dropout;
  int64_t slope_offset = 0;     // -slopes |i + slope_offset - j|
  int64_t relative_offset = 0;  // relative[key position - query position + relative_offset]
  at::Tensor query_positions, key_positions;  // int64 [Tq] and [Tk]; undefined: i and j themselves
  // int32 [B or 1, Tq + Tk - 1]: column of the products for the distance j - i = n - Tq + 1.
  at::Tensor columns;
  // For the linear normaliser: logarithms of the factors by which features have been divided to
  // avoid underflow; otherwise undefined. [B, H, Tq, 1] and [B, Hkv, Tk, 1], or 1 for Tk if all
  // queries see the same keys; without a gradient. Scores are exp(query_shift + key_shift) times
  // the scores of the parts.
  at::Tensor query_shift, key_shift;
  int64_t batch = 0, heads = 0, queries = 0, keys = 0;
  // Dtype of the caller's queries. Other tensors have this dtype or the dtype of the arithmetic;
  // within autocast any floating dtype.
  at::ScalarType stored = at::kFloat;
  bool autocast = false;
};

}  // namespace attend
