#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <memory>

#include "attend/nn/learned_attention.h"
#include "attend/nn/pass.h"

namespace attend {

struct GraphAttentionConfig {
  int64_t heads = 1;
  int64_t head_depth = 0;
  int64_t attention_depth = 1;                                  // hidden units of additive scores
  AttentionChoices choices = {.score = "additive_leaky_relu"};  // the scope is ignored
  bool averages = false;  // averages the heads' contexts instead of concatenating them
  double dropout = 0;     // dropout of the weights; only with a generator
};

// Attention of nodes over their neighbours, after a linear map of the node vectors. Queries, keys
// and values of a head are its slice of the mapped vectors; the score maps queries and keys again.
// With additive_leaky_relu and one hidden unit it is a layer of GAT (Velickovic et al. 2018, eq.
// 1-6): a . [W h_i, W h_j] is a sum of two numbers. Unlike the paper, the LeakyReLU input has a
// bias and its output a factor. With more hidden units it is a layer of GATv2 (Brody et al. 2022,
// eq. 7).
class GraphAttention : public torch::nn::Module {
 public:
  // Error as LearnedAttention.
  explicit GraphAttention(const GraphAttentionConfig& config);

  // vectors [B, T, heads * head_depth] -> the same shape, or [B, T, head_depth] if averaged. Adds a
  // bias. `scope` lists the neighbours of each node, see edges() in ops/scopes.h; a node attends to
  // itself only if it is listed.
  at::Tensor forward(const at::Tensor& vectors, const Scope& scope, const Pass& pass);

 private:
  GraphAttentionConfig config_;
  std::shared_ptr<LearnedAttention> spec_;
  at::Tensor bias_;
};

}  // namespace attend
