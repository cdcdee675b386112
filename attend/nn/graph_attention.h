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
  AttentionChoices choices = {.score = "additive_leaky_relu"};  // its scope is not read
  bool averages = false;  // the mean of the heads' contexts, and not one behind the other
  double dropout = 0;     // of weights, where there is a generator
};

// Attention of nodes over those that they see, behind a linear map of their vectors: queries, keys
// and values of a head are its part of what was mapped. The score maps queries and keys once more.
// With additive_leaky_relu and one hidden unit that is a layer of GAT (Velickovic et al. 2018, eq.
// 1-6), a . [W h_i, W h_j] being a sum of two numbers, with a bias in LeakyReLU and a factor of it
// that the paper lacks; with more of them it is one of GATv2 (Brody et al. 2022, eq. 7).
class GraphAttention : public torch::nn::Module {
 public:
  // Error as LearnedAttention.
  explicit GraphAttention(const GraphAttentionConfig& config);

  // vectors [B, T, heads * head_depth] -> the same shape, or [B, T, head_depth], with a bias. The
  // scope says whom a node sees, itself too where it lists it: edges() of ops/scopes.h.
  at::Tensor forward(const at::Tensor& vectors, const Scope& scope, const Pass& pass);

 private:
  GraphAttentionConfig config_;
  std::shared_ptr<LearnedAttention> spec_;
  at::Tensor bias_;
};

}  // namespace attend
