#pragma once

#include <torch/nn/modules/linear.h>

#include <string>

#include "attend/nn/pass.h"

namespace attend {

// Why learned queries with such scores cannot pool a set with this normaliser; empty if they can.
std::string_view not_pooled_reason(const NormaliserRow& row, Features scores);

struct FixedAttentionConfig {
  std::string score = "scaled_dot";    // a row of score_table() that allows learned queries: dot,
                                       // cosine, a distance, or additive (the MLP)
  std::string normaliser = "softmax";  // "none": the sum of values weighted by their scores
  int64_t depth = 1;                   // depth of the keys
  int64_t queries = 1;
  int64_t attention_depth = 1;  // hidden units of an additive score
};

// Pools a set into a vector: learned queries attend to the set, and their contexts are
// concatenated. The additive score is v_i . tanh(W k + q_i), a network with one hidden layer per
// query; the queries share W (Lin et al. 2017, eq. 6, with q = 0). The order of the set does not
// matter.
class FixedAttention : public torch::nn::Module {
 public:
  // Error if `score` is not in the table or has more parameters than a learned query needs, if the
  // normaliser cannot pool sets, or if a size is below 1.
  explicit FixedAttention(const FixedAttentionConfig& config);

  // keys [B, S, D]; values [B, S, Dv], often the keys; lengths [B] int64 without padding,
  // undefined: no padding. Returns the context [B, queries * Dv], 0 for an empty set, and lse [B,
  // queries].
  AttentionResult forward(const at::Tensor& keys, const at::Tensor& values,
                          const at::Tensor& lengths = {}, const Pass& pass = {}) const;

  // The weights [B, queries, S] of forward(keys, ., lengths), computed from its lse.
  at::Tensor weights(const at::Tensor& keys, const at::Tensor& lse,
                     const at::Tensor& lengths = {}) const;

 private:
  at::Tensor query_of(const at::Tensor& keys) const;
  at::Tensor mapped(const at::Tensor& keys) const;
  AttentionSpec spec(const at::Tensor& lengths) const;

  FixedAttentionConfig config_;
  at::Tensor query_;                 // [queries, A]
  at::Tensor v_;                     // [queries, A]; only for an additive score
  Parameters numbers_;               // scalar parameters of the score, [queries] each
  torch::nn::Linear keys_{nullptr};  // W; only for an additive score
};

}  // namespace attend
