#include "attend/nn/fixed_attention.h"

#include <cmath>

#include "attend/base/error.h"

namespace attend {
namespace {

using at::Tensor;

void check_normaliser(std::string_view name, const ScoreRow& score) {
  const NormaliserRow& given = Normaliser(name).row();
  const std::string_view reason = not_pooled_reason(given, score.features);
  if (reason.empty()) return;
  std::vector<std::string_view> others;
  for (const NormaliserRow& row : normaliser_table())
    if (not_pooled_reason(row, score.features).empty()) others.push_back(row.syntax);
  fail("[fixed attention] normaliser {} {}; take {}", name, reason, fmt::join(others, ", "));
}

void check(const FixedAttentionConfig& config, const ScoreRow& row) {
  if (!row.family)
    fail("[fixed attention] score {} depends on positions, which a set lacks; take dot or additive",
         row.name);
  for (const ParameterRow& parameter : row.parameters)
    if (parameter.required && parameter.reader != Reader::pairs)
      fail(
          "[fixed attention] score {} has a parameter {}, which is redundant with a learned query; "
          "take dot or additive",
          row.name, parameter.name);
  for (const auto& [value, name] :
       {std::pair(config.depth, "depth"), std::pair(config.queries, "queries"),
        std::pair(config.attention_depth, "attention_depth")})
    if (value < 1) fail("[fixed attention] {} is {}; it must be 1 or more", name, value);
  check_normaliser(config.normaliser, row);
}

Tensor as_one_head(const Tensor& x) { return x.unsqueeze(1); }

}  // namespace

std::string_view not_pooled_reason(const NormaliserRow& row, Features scores) {
  if (row.order_dependent) return "depends on the order of the keys, and a set is unordered";
  if (row.training != Training::gradient) return "gives the scores no gradient to train queries by";
  if (row.running_sums && scores == Features::any)
    return "divides by the sum of the scores, which may be negative here";
  return {};
}

FixedAttention::FixedAttention(const FixedAttentionConfig& config) : config_(config) {
  const ScoreRow& row = score_row(config.score);
  check(config, row);
  const bool additive = row.family == Family::additive;
  const int64_t depth = additive ? config.attention_depth : config.depth;
  const double bound = 1 / std::sqrt(static_cast<double>(depth));
  const auto vectors = [&] {
    return torch::empty({config.queries, depth}).uniform_(-bound, bound);
  };
  query_ = register_parameter("query", vectors());
  if (additive) {
    v_ = register_parameter("v", vectors());
    keys_ = register_module(
        "keys", torch::nn::Linear(torch::nn::LinearOptions(config.depth, depth).bias(false)));
  }
  for (const ParameterRow& one : row.parameters) {
    const std::string name(one.name);
    if (one.shape.empty())
      numbers_.emplace(name, register_parameter(name, torch::ones({config.queries})));
  }
}

// Each query is a head, because it has its own parameters; the heads share the keys.
Tensor FixedAttention::query_of(const Tensor& keys) const {
  return query_.view({1, config_.queries, 1, -1}).expand({keys.size(0), -1, -1, -1});
}

Tensor FixedAttention::mapped(const Tensor& keys) const {
  if (keys.dim() != 3 || keys.size(2) != config_.depth)
    fail("[fixed attention] keys have shape [{}]; they must be [B, S, {}]",
         fmt::join(keys.sizes(), ", "), config_.depth);
  torch::nn::Linear layer = keys_;
  return as_one_head(layer ? layer->forward(keys) : keys);
}

AttentionSpec FixedAttention::spec(const Tensor& lengths) const {
  Parameters parameters = numbers_;
  if (v_.defined()) parameters.emplace("v", v_);
  return {.score = Score(config_.score, std::move(parameters)),
          .scope = lengths.defined() ? key_lengths(lengths) : all_keys(),
          .normaliser = Normaliser(config_.normaliser)};
}

AttentionResult FixedAttention::forward(const Tensor& keys, const Tensor& values,
                                        const Tensor& lengths, const Pass& pass) const {
  const auto [context, lse] =
      pass.attention(query_of(keys), mapped(keys), as_one_head(values), spec(lengths));
  return {context.flatten(1), lse.squeeze(2)};
}

Tensor FixedAttention::weights(const Tensor& keys, const Tensor& lse, const Tensor& lengths) const {
  return attention_weights(query_of(keys), mapped(keys), lse.unsqueeze(2), spec(lengths))
      .squeeze(2);
}

}  // namespace attend
