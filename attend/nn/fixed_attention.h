#pragma once

#include <torch/nn/modules/linear.h>

#include <string>

#include "attend/nn/pass.h"

namespace attend {

// Says why learned queries with such scores cannot pool a set by that normaliser; empty: they can.
std::string_view why_not_pooled(const NormaliserRow& row, Features scores);

struct FixedAttentionConfig {
  std::string score = "scaled_dot";    // a row of score_table() whose query can be learned: dot,
                                       // cosine and the distances, or additive, the MLP
  std::string normaliser = "softmax";  // "none": the sum of values weighted by their scores
  int64_t depth = 1;                   // of the keys
  int64_t queries = 1;
  int64_t attention_depth = 1;  // hidden units of an additive score
};

// Turns a set into a vector: learned queries attend to the set, and their contexts are
// concatenated. The additive score is v_i . tanh(W k + q_i), a network with one hidden layer for
// each query that shares W (Lin et al. 2017, eq. 6, where q is 0). The order of the set does not
// matter.
class FixedAttention : public torch::nn::Module {
 public:
  // Error when `score` is no row of the table, or takes more parameters than a learned query needs;
  // on a normaliser that pools no sets; on a size below 1.
  explicit FixedAttention(const FixedAttentionConfig& config);

  // keys [B, S, D], values [B, S, Dv] (often the same), lengths [B] int64, which says where padding
  // begins; undefined: nowhere. Context [B, queries * Dv], those of an empty set 0, and lse
  // [B, queries].
  AttentionResult forward(const at::Tensor& keys, const at::Tensor& values,
                          const at::Tensor& lengths = {}, const Pass& pass = {}) const;

  // The weights [B, queries, S] behind forward(keys, ., lengths), from its lse.
  at::Tensor weights(const at::Tensor& keys, const at::Tensor& lse,
                     const at::Tensor& lengths = {}) const;

 private:
  at::Tensor query_of(const at::Tensor& keys) const;
  at::Tensor mapped(const at::Tensor& keys) const;
  AttentionSpec spec(const at::Tensor& lengths) const;

  FixedAttentionConfig config_;
  at::Tensor query_;                 // [queries, A]
  at::Tensor v_;                     // [queries, A], of an additive score
  Parameters numbers_;               // [queries] each: those of the score that are one number
  torch::nn::Linear keys_{nullptr};  // W, of an additive score
};

}  // namespace attend
