#pragma once

#include <ATen/ATen.h>

#include <string_view>
#include <vector>

#include "attend/ops/scopes.h"
#include "attend/ops/scores.h"

namespace attend {

// One row of the table of normalisers.
struct NormaliserRow {
  std::string_view name;
  std::string_view formula;
  std::string_view source;
};

// Every normaliser, in the order of the documentation.
const std::vector<NormaliserRow>& normaliser_table();

// The choices of an attention mechanism. Normaliser: softmax.
struct AttentionSpec {
  Score score = {};  // scaled dot
  Scope scope = {};  // all keys
};

struct AttentionResult {
  at::Tensor context;  // [B, H, Tq, Dv]: sum_j w_ij v_j
  at::Tensor lse;      // [B, H, Tq]: log sum_j exp(score_ij) over the scope, the log-normaliser;
                       // float32 or float64
};

// Attention of queries [B, H, Tq, Dq] over keys [B, Hkv, Tk, Dk] with values [B, Hkv, Tk, Dv]:
// w_ij = softmax_j(score(q_i, k_j)) over the j in scope(i), c_i = sum_j w_ij v_j.
//
// All three may have two axes ([T, D]) or three ([B, T, D]) instead; the results then have as many
// fewer. Hkv must divide H: heads in groups share keys and values. Parameters with an axis of heads
// have H of them.
//
// Floating dtypes, one for all; bfloat16 and float16 are storage, the arithmetic is float32.
// Differentiable, twice, in the queries, keys, values and every parameter of the score. A query
// with no key in scope has context 0, lse -inf and gradient 0. Keys and values outside the scope
// have weight 0 but are read: NaN or infinity in them spreads.
//
// Error on shapes, dtypes or devices that do not fit.
AttentionResult attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                          const AttentionSpec& spec = {});

// The scores [B, H, Tq, Tk], -inf outside the scope; float32 or float64.
at::Tensor attention_scores(const at::Tensor& query, const at::Tensor& key,
                            const AttentionSpec& spec = {});

// The weights [B, H, Tq, Tk] behind attention(query, key, ., spec), from the lse it returned: 0
// outside the scope.
at::Tensor attention_weights(const at::Tensor& query, const at::Tensor& key, const at::Tensor& lse,
                             const AttentionSpec& spec = {});

}  // namespace attend
