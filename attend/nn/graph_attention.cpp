#include "attend/nn/graph_attention.h"

#include "attend/base/error.h"

namespace attend {

using at::Tensor;

GraphAttention::GraphAttention(const GraphAttentionConfig& config) : config_(config) {
  const AttentionSizes sizes{.query_depth = config.head_depth,
                             .key_depth = config.head_depth,
                             .attention_depth = config.attention_depth};
  spec_ = register_module("attention",
                          std::make_shared<LearnedAttention>(config.choices, sizes, config.heads));
  bias_ = register_parameter(
      "bias", torch::zeros({(config.averages ? 1 : config.heads) * config.head_depth}));
}

Tensor GraphAttention::forward(const Tensor& vectors, const Scope& scope, const Pass& pass) {
  if (vectors.dim() != 3 || vectors.size(2) != config_.heads * config_.head_depth)
    fail("[graph attention] vectors must be [B, T, {}], got [{}]",
         config_.heads * config_.head_depth, fmt::join(vectors.sizes(), ", "));
  const int64_t nodes = vectors.size(1);
  const Tensor heads =
      vectors.reshape({-1, nodes, config_.heads, config_.head_depth}).transpose(1, 2).contiguous();
  const uint64_t seed = spec_->draws() ? pass.draw_seed() : 0;
  AttentionSpec spec = spec_->spec(heads, {.keys = nodes, .seed = seed});
  spec.scope = scope;
  if (pass.generator && config_.dropout > 0) spec.dropout = {config_.dropout, pass.draw_seed()};
  const Tensor context = pass.attention(heads, heads, heads, spec).context;
  return (config_.averages ? context.mean(1) : context.transpose(1, 2).flatten(2)) + bias_;
}

}  // namespace attend
