#pragma once

#include <torch/nn/modules/normalization.h>

#include <memory>

#include "attend/nn/feed_forward.h"
#include "attend/nn/multi_head_attention.h"

namespace attend {

struct LearnedQueriesConfig {
  int64_t queries = 1;
  int64_t depth = 128;         // of the queries and of the set
  HeadGroup heads = {};        // that read the set; their choices know no positions
  int64_t feed_forward = 256;  // hidden units
  HiddenActivation activation = HiddenActivation::relu;
  double dropout = 0;            // of what each sublayer adds and of the hidden units
  double attention_dropout = 0;  // of the weights
};

// Learned vectors that read a set through several heads: MAB(S, X) = LayerNorm(H + rFF(H)) with
// H = LayerNorm(S + Multihead(S, X, X)), S the vectors (Lee et al. 2019, eq. 6 and 7). They pool a
// set (their eq. 11), or are the inducing points that a layer reads in place of the set (eq. 10).
// The order of the set does not matter.
class LearnedQueries : public torch::nn::Module {
 public:
  // Error as MultiHeadAttention, and where there are no queries or the heads go by positions.
  explicit LearnedQueries(const LearnedQueriesConfig& config);

  // source [B, S, depth], lengths [B] int64, which says where padding begins; undefined: nowhere.
  // [B, queries, depth].
  at::Tensor forward(const at::Tensor& source, const at::Tensor& lengths, const Pass& pass);

 private:
  double dropout_;
  at::Tensor query_;  // [queries, depth]
  std::shared_ptr<MultiHeadAttention> attention_;
  std::shared_ptr<FeedForward> feed_forward_;
  torch::nn::LayerNorm attention_norm_{nullptr}, feed_forward_norm_{nullptr};
};

}  // namespace attend
