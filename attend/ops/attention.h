#pragma once

#include <ATen/ATen.h>

#include "attend/ops/scopes.h"
#include "attend/ops/scores.h"

namespace attend {

// The four choices of an attention mechanism. Normaliser: softmax.
struct AttentionSpec {
  Score score = {};  // scaled dot
  Scope scope = {};  // all keys
};

struct AttentionResult {
  at::Tensor context;  // [B, H, Tq, Dv]: sum_j w_ij v_j
  at::Tensor lse;      // [B, H, Tq]: log sum_j exp(score_ij) over the scope, the log-normaliser
};

// Attention of queries [B, H, Tq, Dq] over keys [B, Hkv, Tk, Dk] with values [B, Hkv, Tk, Dv]:
// w_ij = softmax_j(score(q_i, k_j)) over the j in scope(i), c_i = sum_j w_ij v_j. All three may
// have two axes ([T, D]) or three ([B, T, D]) instead; the results then have as many fewer. Hkv
// must divide H: heads in groups share keys and values. Differentiable, twice, in the queries,
// keys, values and every parameter of the score. A query with no key in scope has context 0, lse
// -inf and gradient 0. Floating dtypes, one for all. Error on shapes, dtypes or devices that do not
// fit.
AttentionResult attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                          const AttentionSpec& spec = {});

// The scores [B, H, Tq, Tk], -inf outside the scope.
at::Tensor attention_scores(const at::Tensor& query, const at::Tensor& key,
                            const AttentionSpec& spec = {});

// The weights [B, H, Tq, Tk] behind attention(query, key, ., spec), from the lse it returned.
at::Tensor attention_weights(const at::Tensor& query, const at::Tensor& key, const at::Tensor& lse,
                             const AttentionSpec& spec = {});

}  // namespace attend
