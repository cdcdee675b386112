#include "attend/nn/attention_network.h"

#include <algorithm>
#include <cmath>

#include "attend/base/error.h"

namespace attend {
namespace {

using at::Tensor;

int64_t axis_size(Axis axis, const AttentionSizes& sizes) {
  switch (axis) {
    case Axis::query_depth:
      return sizes.query_depth;
    case Axis::key_depth:
      return sizes.key_depth;
    case Axis::attention_depth:
      return sizes.attention_depth;
    case Axis::keys:
      return sizes.keys;
    case Axis::filters:
      return sizes.filters;
    case Axis::filter_width:
      return sizes.filter_width;
  }
  return 0;
}

// Vectors and numbers start small or at one; matrices so that variance is kept (Glorot & Bengio
// 2010).
Tensor initial_value(const ParameterRow& row, const AttentionSizes& sizes) {
  if (row.shape.empty()) return torch::ones({});
  std::vector<int64_t> shape;
  for (const Axis axis : row.shape) shape.push_back(axis_size(axis, sizes));
  const Tensor value = torch::empty(shape);
  if (shape.size() > 1) return torch::nn::init::xavier_uniform_(value);
  const double bound = 1 / std::sqrt(static_cast<double>(shape[0]));
  return value.uniform_(-bound, bound);
}

Tensor one_query(const Tensor& query) { return query.unsqueeze(1); }

AttentionSpec mapped_spec(const Score& score, const AttentionMemory& memory) {
  return {.score = score.mapped(),
          .scope = memory.mask.defined() ? dense_mask(memory.mask) : all()};
}

}  // namespace

AttentionNetwork::AttentionNetwork(const std::string& score, const AttentionSizes& sizes)
    : score_name_(score) {
  const ScoreRow& row = score_row(score);
  const auto maps = [](const ParameterRow& parameter) {
    return std::find(parameter.shape.begin(), parameter.shape.end(), Axis::query_depth) !=
           parameter.shape.end();
  };
  const bool compares = std::none_of(row.parameters.begin(), row.parameters.end(), maps);
  if (compares && sizes.query_depth != sizes.key_depth)
    fail("score {} compares queries of depth {} with keys of depth {}; use general or additive",
         score, sizes.query_depth, sizes.key_depth);
  for (const ParameterRow& parameter : row.parameters)
    register_parameter(std::string(parameter.name), initial_value(parameter, sizes));
}

Score AttentionNetwork::score() const {
  Parameters parameters;
  for (const auto& item : named_parameters(false)) parameters.emplace(item.key(), item.value());
  return Score(score_name_, std::move(parameters));
}

AttentionMemory AttentionNetwork::prepare(const Tensor& keys, const Tensor& values,
                                          const Tensor& lengths) const {
  AttentionMemory memory{score().map_key(keys), values, {}};
  // Masking costs every step, and batches of one length are the rule.
  if (lengths.numel() > 0 && lengths.min().item<int64_t>() < keys.size(1))
    memory.mask = scope_mask(key_lengths(lengths), keys.size(0), 1, 1, keys.size(1), keys.device());
  return memory;
}

AttentionResult AttentionNetwork::forward(const Tensor& query,
                                          const AttentionMemory& memory) const {
  const Score whole = score();
  const auto [context, lse] = attention(one_query(whole.map_query(query)), memory.keys,
                                        memory.values, mapped_spec(whole, memory));
  return {context.squeeze(1), lse.squeeze(1)};
}

Tensor AttentionNetwork::weights(const Tensor& query, const Tensor& lse,
                                 const AttentionMemory& memory) const {
  const Score whole = score();
  return attention_weights(one_query(whole.map_query(query)), memory.keys, lse.unsqueeze(1),
                           mapped_spec(whole, memory))
      .squeeze(1);
}

}  // namespace attend
