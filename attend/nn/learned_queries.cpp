#include "attend/nn/learned_queries.h"

#include <torch/nn/init.h>

#include "attend/base/error.h"

namespace attend {

using at::Tensor;

LearnedQueries::LearnedQueries(const LearnedQueriesConfig& config) : dropout_(config.dropout) {
  if (config.queries < 1) fail("[learned queries] got {}; take 1 or more", config.queries);
  query_ = register_parameter("query", torch::empty({config.queries, config.depth}));
  torch::nn::init::xavier_uniform_(query_);
  attention_ = register_module(
      "attention",
      std::make_shared<MultiHeadAttention>(MultiHeadConfig{
          .depth = config.depth, .groups = {config.heads}, .dropout = config.attention_dropout}));
  if (attention_->is_positional())
    fail(
        "[learned queries] the heads depend on positions, which a set lacks; take scope all, no "
        "bias of positions and no rotation");
  feed_forward_ = register_module("feed_forward",
                                  std::make_shared<FeedForward>(config.depth, config.feed_forward,
                                                                config.dropout, config.activation));
  const auto norm = [&](const char* name) {
    return register_module(name, torch::nn::LayerNorm(torch::nn::LayerNormOptions({config.depth})));
  };
  attention_norm_ = norm("attention_norm");
  feed_forward_norm_ = norm("feed_forward_norm");
}

Tensor LearnedQueries::forward(const Tensor& source, const Tensor& lengths, const Pass& pass) {
  const Tensor query = query_.unsqueeze(0).expand({source.size(0), -1, -1});
  const auto normalised = [&](const Tensor& x, const torch::nn::LayerNorm& norm) {
    return pass.normalised({x, norm->weight, norm->bias, norm->options.eps()});
  };
  const Tensor read = normalised(
      query + attend::dropout(attention_->forward(query, source, lengths, pass), dropout_, pass),
      attention_norm_);
  return normalised(read + attend::dropout(feed_forward_->forward(read, pass), dropout_, pass),
                    feed_forward_norm_);
}

}  // namespace attend
