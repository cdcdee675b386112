#pragma once

#include <ATen/ATen.h>
#include <ATen/core/ivalue.h>

#include <array>
#include <string>

#include "attend/ops/attention.h"

namespace attend {

// Attention as the kernels take it. The maps of the score and the tables of the bias have been
// applied, by operations that autograd follows; the rest is the same for every mechanism.

namespace part {
enum Index : size_t {
  query,     // [B, H, Tq, A], mapped
  key,       // [B, Hkv, Tk, A], mapped
  value,     // [B, Hkv, Tk, Dv]
  vector,    // [A] or [H, A]: v of the additive family
  dense,     // [B or 1, H or 1, Tq or 1, Tk]
  slopes,    // [H]
  sinks,     // [H]
  relative,  // [B or 1, H or 1, Tq or 1, distances]
  centres,   // [B, H, Tq]
  widths,    // [B, H, Tq]
  edges,     // [B or 1, H or 1, 1, edges of the longest list]
  count
};
}  // namespace part

// Undefined where there is none. All but the first three are in the dtype of the arithmetic.
using Parts = std::array<at::Tensor, part::count>;

struct LoweredSpec : torch::CustomClassHolder {
  const ScoreRow* score = nullptr;
  const NormaliserRow* normaliser = nullptr;
  NormaliserOptions options;  // previous is [B, H, 1, Tk]
  double scale = 1;
  double soft_cap = 0;
  Scope scope;  // masks have four axes where they have three or more
  Dropout dropout;
  int64_t slope_offset = 0;     // -slopes |i + slope_offset - j|
  int64_t relative_offset = 0;  // relative[key position - query position + relative_offset]
  at::Tensor query_positions, key_positions;  // int64 [Tq] and [Tk]; undefined: i and j themselves
  // Where the normaliser is linear, features have been divided by exp of these, or their products
  // would underflow: [B, H, Tq, 1] and [B, Hkv, Tk, 1], or 1 for Tk where all queries see the same
  // keys; without a gradient. Scores are exp(query_shift + key_shift) times those of the parts.
  // Else undefined.
  at::Tensor query_shift, key_shift;
  int64_t batch = 0, heads = 0, queries = 0, keys = 0;
  // Dtype of the caller's queries. Other tensors have it or that of the arithmetic; within autocast
  // any floating one.
  at::ScalarType stored = at::kFloat;
  bool autocast = false;
};

}  // namespace attend
