#include "attend/ops/scores.h"

#include <algorithm>
#include <cmath>

#include "attend/base/error.h"
#include "attend/base/settings.h"

namespace attend {
namespace {

using at::Tensor;

// nullptr when the optional parameter is absent.
const Tensor* find(const Parameters& parameters, std::string_view name) {
  const auto found = parameters.find(name);
  return found == parameters.end() ? nullptr : &found->second;
}

// A parameter of one number or one vector, with or without a leading axis of heads, made ready to
// meet tensors [B, H, T, D].
Tensor beside_heads(const Tensor& parameter, int64_t own_axes) {
  if (parameter.dim() == own_axes) return parameter;
  return own_axes == 0 ? parameter.view({-1, 1, 1}) : parameter.unsqueeze(1);
}

Tensor identity(const Tensor& x, const Parameters&) { return x; }

Tensor scale_by_depth(const Tensor& query, const Parameters&) {
  return query * (1.0 / std::sqrt(static_cast<double>(query.size(-1))));
}

Tensor general_query(const Tensor& query, const Parameters& parameters) {
  return at::matmul(query, *find(parameters, "W"));
}

Tensor linear_if_given(const Tensor& x, const Tensor* weight) {
  return weight ? at::matmul(x, weight->transpose(-2, -1)) : x;
}

Tensor additive_query(const Tensor& query, const Parameters& parameters) {
  const Tensor mapped = linear_if_given(query, find(parameters, "W_q"));
  const Tensor* bias = find(parameters, "b");
  return bias ? mapped + beside_heads(*bias, 1) : mapped;
}

Tensor additive_key(const Tensor& key, const Parameters& parameters) {
  return linear_if_given(key, find(parameters, "W_k"));
}

Tensor unit_length(const Tensor& x) {
  // The floor keeps a zero vector zero instead of dividing by its length.
  return x / at::linalg_vector_norm(x, 2, at::IntArrayRef{-1}, true).clamp_min(1e-12);
}

Tensor cosine_query(const Tensor& query, const Parameters& parameters) {
  const Tensor* beta = find(parameters, "beta");
  const Tensor unit = unit_length(query);
  return beta ? unit * beside_heads(*beta, 0) : unit;
}

Tensor cosine_key(const Tensor& key, const Parameters&) { return unit_length(key); }

Tensor location_query(const Tensor& query, const Parameters& parameters) {
  return linear_if_given(query, find(parameters, "W"));
}

std::string axis_names(const std::vector<Axis>& shape) {
  std::string text;
  for (const Axis axis : shape) {
    if (!text.empty()) text += ", ";
    switch (axis) {
      case Axis::query_depth:
        text += "query depth";
        break;
      case Axis::key_depth:
        text += "key depth";
        break;
      case Axis::attention_depth:
        text += "attention depth";
        break;
      case Axis::keys:
        text += "keys";
        break;
    }
  }
  return "[" + text + "]";
}

void check_parameters(const ScoreRow& row, const Parameters& parameters) {
  std::vector<std::string> names;
  for (const ParameterRow& parameter : row.parameters) {
    names.emplace_back(parameter.name);
    const Tensor* tensor = find(parameters, parameter.name);
    if (!tensor || !tensor->defined()) {
      if (parameter.required)
        fail("[score {}] parameter {} is missing; it is {} of shape {}", row.name, parameter.name,
             parameter.meaning, axis_names(parameter.shape));
      continue;
    }
    const auto axes = static_cast<int64_t>(parameter.shape.size());
    if (tensor->dim() != axes && tensor->dim() != axes + 1)
      fail(
          "[score {}] parameter {} has {} axes; it must have shape {}, or that after an axis of "
          "heads",
          row.name, parameter.name, tensor->dim(), axis_names(parameter.shape));
  }
  for (const auto& [name, tensor] : parameters) {
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    if (names.empty()) fail("[score {}] has no parameters, got {}", row.name, name);
    fail("[score {}] has no parameter {}; it has {}", row.name, name, fmt::join(names, ", "));
  }
}

void check_depth(const Score& score, const Tensor& x, const char* what, Axis axis) {
  for (const ParameterRow& parameter : score.row().parameters) {
    const Tensor* tensor = find(score.parameters(), parameter.name);
    if (!tensor) continue;
    for (size_t i = 0; i < parameter.shape.size(); ++i) {
      const auto from_end = static_cast<int64_t>(i) - static_cast<int64_t>(parameter.shape.size());
      if (parameter.shape[i] == axis && tensor->size(from_end) != x.size(-1))
        fail("[attention] {} have depth {}, parameter {} of score {} expects {}; they must match",
             what, x.size(-1), parameter.name, score.row().name, tensor->size(from_end));
    }
  }
}

}  // namespace

const std::vector<ScoreRow>& score_table() {
  static const std::vector<ScoreRow> table = {
      {"dot", "q . k", "Luong et al. 2015, eq. 8", Family::dot, {}, identity, identity},
      {"scaled_dot",
       "q . k / sqrt(D)",
       "Vaswani et al. 2017, eq. 1",
       Family::dot,
       {},
       scale_by_depth,
       identity},
      {"general",
       "q . W k",
       "Luong et al. 2015, eq. 8",
       Family::dot,
       {{"W", {Axis::query_depth, Axis::key_depth}, true, "the bilinear form"}},
       general_query,
       identity},
      {"additive",
       "v . tanh(W_q q + W_k k + b)",
       "Bahdanau et al. 2015, A.1.2; concat in Luong et al. 2015, eq. 8",
       Family::additive,
       {{"v", {Axis::attention_depth}, true, "the weight of each hidden unit"},
        {"W_q",
         {Axis::attention_depth, Axis::query_depth},
         false,
         "query projection, else identity"},
        {"W_k", {Axis::attention_depth, Axis::key_depth}, false, "key projection, else identity"},
        {"b", {Axis::attention_depth}, false, "offset, else 0"}},
       additive_query,
       additive_key},
      {"cosine",
       "beta q . k / (|q| |k|)",
       "Graves et al. 2014, eq. 5-6",
       Family::dot,
       {{"beta", {}, false, "key strength, else 1"}},
       cosine_query,
       cosine_key},
      {"location",
       "(W q)_j",
       "Luong et al. 2015, eq. 9",
       Family::location,
       {{"W", {Axis::keys, Axis::query_depth}, false, "a row a key position, else identity"}},
       location_query,
       identity},
  };
  return table;
}

const ScoreRow& score_row(std::string_view name) {
  std::vector<std::string> names;
  for (const ScoreRow& row : score_table()) {
    if (row.name == name) return row;
    names.emplace_back(row.name);
  }
  const std::string suggestion = nearest(name, names);
  if (!suggestion.empty()) fail("no score is called \"{}\"; did you mean {}?", name, suggestion);
  fail("no score is called \"{}\"; there are {}", name, fmt::join(names, ", "));
}

Score::Score(std::string_view name, Parameters parameters)
    : row_(&score_row(name)), parameters_(std::move(parameters)) {
  check_parameters(*row_, parameters_);
}

Tensor Score::map_query(const Tensor& query) const {
  check_depth(*this, query, "queries", Axis::query_depth);
  return row_->map_query(query, parameters_);
}

Tensor Score::map_key(const Tensor& key) const {
  check_depth(*this, key, "keys", Axis::key_depth);
  return row_->map_key(key, parameters_);
}

Score Score::mapped() const {
  switch (row_->family) {
    case Family::dot:
      return Score("dot");
    case Family::additive:
      return Score("additive", {{"v", *find(parameters_, "v")}});
    case Family::location:
      return Score("location");
  }
  fail("[score {}] belongs to no family", row_->name);
}

Tensor pairwise_scores(const Score& score, const Tensor& mapped_query, const Tensor& mapped_key) {
  const int64_t query_depth = mapped_query.size(-1);
  const int64_t keys = mapped_key.size(-2);
  if (score.row().family == Family::location) {
    if (query_depth < keys)
      fail("[attention] the location score has {} positions, the keys {}; give W more rows",
           query_depth, keys);
    return mapped_query.narrow(-1, 0, keys);
  }
  if (query_depth != mapped_key.size(-1))
    fail(
        "[attention] queries have depth {}, keys depth {} where score {} compares them; they must "
        "match",
        query_depth, mapped_key.size(-1), score.row().name);
  if (score.row().family == Family::dot)
    return at::matmul(mapped_query, mapped_key.transpose(-2, -1));
  const Tensor& v = *find(score.parameters(), "v");
  if (v.size(-1) != query_depth)
    fail("[attention] parameter v of score {} has depth {}, the mapped queries {}; they must match",
         score.row().name, v.size(-1), query_depth);
  const Tensor hidden = (mapped_query.unsqueeze(-2) + mapped_key.unsqueeze(-3)).tanh();
  if (v.dim() == 1) return at::matmul(hidden, v);
  return at::matmul(hidden, v.view({v.size(0), 1, v.size(1), 1})).squeeze(-1);
}

}  // namespace attend
