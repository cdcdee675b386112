#pragma once

#include <torch/nn/modules/normalization.h>

#include <memory>

#include "attend/nn/feed_forward.h"
#include "attend/nn/multi_head_attention.h"

namespace attend {

struct LearnedQueriesConfig {
  int64_t queries = 1;
  int64_t depth = 128;   // depth of the queries and of the set
  HeadGroup heads = {};  // heads that read the set; their choices must not depend on positions
  int64_t feed_forward = 256;  // hidden units
  HiddenActivation activation = HiddenActivation::relu;
  double dropout = 0;            // applies to each sublayer's output and to the hidden units
  double attention_dropout = 0;  // applies to the weights
};

// Learned vectors S that read a set X through several heads: MAB(S, X) = LayerNorm(H + rFF(H)) with
// H = LayerNorm(S + Multihead(S, X, X)) (Lee et al. 2019, eq. 6 and 7). They pool a set (their eq.
// 11), or serve as inducing points that a layer reads instead of the set (eq. 10). The order of the
// set does not matter.
class LearnedQueries : public torch::nn::Module {
 public:
  // Error as MultiHeadAttention, if `queries` is below 1, or if the heads depend on positions.
  explicit LearnedQueries(const LearnedQueriesConfig& config);

  // source [B, S, depth], lengths [B] int64 without padding (undefined: no padding) -> [B, queries,
  // depth].
  at::Tensor forward(const at::Tensor& source, const at::Tensor& lengths, const Pass& pass);

 private:
  double dropout_;
  at::Tensor query_;  // [queries, depth]
  std::shared_ptr<MultiHeadAttention> attention_;
  std::shared_ptr<FeedForward> feed_forward_;
  torch::nn::LayerNorm attention_norm_{nullptr}, feed_forward_norm_{nullptr};
};

}  // namespace attend
