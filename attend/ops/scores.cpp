#include "attend/ops/scores.h"

#include <ATen/OpMathType.h>

#include <algorithm>

#include "attend/base/error.h"
#include "attend/ops/kernel_tensors.h"
#include "attend/ops/score_rows-inl.h"

namespace attend {
namespace {

using at::Tensor;

std::string axis_names(const std::vector<Axis>& shape) {
  std::vector<std::string_view> names;
  names.reserve(shape.size());
  for (const Axis axis : shape) names.push_back(axis_name(axis));
  return fmt::format("[{}]", fmt::join(names, ", "));
}

int64_t axes_of(const ParameterRow& row) { return static_cast<int64_t>(row.shape.size()); }

void check_names(const ScoreRow& row, const Parameters& parameters) {
  std::vector<std::string_view> names;
  names.reserve(row.parameters.size());
  for (const ParameterRow& parameter : row.parameters) names.push_back(parameter.name);
  for (const auto& [name, tensor] : parameters) {
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    if (names.empty()) fail("[score {}] has no parameters, got {}", row.name, name);
    fail("[score {}] has no parameter {}; it has {}", row.name, name, fmt::join(names, ", "));
  }
}

void check_axes(const ScoreRow& row, const Parameters& parameters) {
  for (const ParameterRow& parameter : row.parameters) {
    const Tensor* tensor = find_parameter(parameters, parameter.name);
    if (!tensor) {
      if (parameter.required)
        fail("[score {}] parameter {} is missing; it is {} of shape {}", row.name, parameter.name,
             parameter.meaning, axis_names(parameter.shape));
      continue;
    }
    const int64_t axes = axes_of(parameter);
    if (tensor->dim() != axes && tensor->dim() != axes + 1)
      fail(
          "[score {}] parameter {} has {} axes; it must have shape {}, or that after an axis of "
          "heads",
          row.name, parameter.name, tensor->dim(), axis_names(parameter.shape));
  }
}

// Calls visit(parameter row, axis, length) for every axis; the axis is unset for heads.
template <class Visit>
void visit_axes(const ScoreRow& row, const Parameters& parameters, Visit visit) {
  for (const ParameterRow& parameter : row.parameters) {
    const Tensor* tensor = find_parameter(parameters, parameter.name);
    if (!tensor) continue;
    const int64_t axes = axes_of(parameter);
    if (tensor->dim() > axes) visit(parameter, std::optional<Axis>(), tensor->size(0));
    for (int64_t i = 0; i < axes; ++i)
      visit(parameter, std::optional(parameter.shape[static_cast<size_t>(i)]),
            tensor->size(i - axes));
  }
}

// Number of heads of the parameters. Error if two parameters disagree about any axis.
std::optional<int64_t> agreed_heads(const ScoreRow& row, const Parameters& parameters) {
  std::map<std::optional<Axis>, std::pair<std::string_view, int64_t>> seen;
  visit_axes(row, parameters, [&](const ParameterRow& parameter, auto axis, int64_t length) {
    const auto [entry, is_new] = seen.try_emplace(axis, parameter.name, length);
    const auto [name, expected] = entry->second;
    if (!is_new && expected != length)
      fail("[score {}] parameter {} has {} {}, parameter {} {}; they must match", row.name,
           parameter.name, axis ? axis_name(*axis) : "heads", length, name, expected);
  });
  const auto heads = seen.find(std::nullopt);
  return heads == seen.end() ? std::optional<int64_t>() : heads->second.second;
}

// The parameter that determines the length of an axis, and that length.
std::optional<std::pair<std::string_view, int64_t>> expected_length(const Score& score, Axis axis) {
  std::optional<std::pair<std::string_view, int64_t>> expected;
  visit_axes(score.row(), score.parameters(),
             [&](const ParameterRow& parameter, auto own_axis, int64_t length) {
               if (own_axis == axis) expected = {parameter.name, length};
             });
  if (expected || axis == Axis::attention_depth) return expected;
  for (const ParameterRow& parameter : score.row().parameters) {
    if (parameter.shape == std::vector{Axis::attention_depth, axis})
      return expected_length(score, Axis::attention_depth);
  }
  return expected;
}

void check_input(const Score& score, const Tensor& x, const char* what, Axis depth) {
  const std::string_view name = score.row().name;
  if (x.dim() < 2) fail("[attention] {} have {} axes; they must have 2 or more", what, x.dim());
  for (const auto& [parameter, tensor] : score.parameters()) {
    const bool fits = tensor.scalar_type() == x.scalar_type() ||
                      tensor.scalar_type() == at::toOpMathType(x.scalar_type());
    if (!fits)
      fail("[attention] {} have dtype {}, parameter {} of score {} {}; they must match", what,
           c10::toString(x.scalar_type()), parameter, name, c10::toString(tensor.scalar_type()));
    if (tensor.device() != x.device())
      fail("[attention] {} are on {}, parameter {} of score {} on {}; they must match", what,
           x.device().str(), parameter, name, tensor.device().str());
  }
  const auto heads = score.heads();
  if (heads && (x.dim() != 4 || x.size(1) != *heads))
    fail(
        "[attention] {} have shape [{}], the parameters of score {} {} heads; the axis before the "
        "last two must be as long",
        what, fmt::join(x.sizes(), ", "), name, *heads);
  const auto expected = expected_length(score, depth);
  if (expected && expected->second != x.size(-1))
    fail("[attention] {} have depth {}, parameter {} of score {} expects {}; they must match", what,
         x.size(-1), expected->first, name, expected->second);
}

// With float32 parameters, 16-bit inputs become float32.
Tensor as_parameters(const Tensor& x, const Parameters& parameters) {
  return parameters.empty() ? x : x.to(parameters.begin()->second.scalar_type());
}

Tensor activated(const Tensor& hidden, Activation activation) {
  switch (activation) {
    case Activation::tanh:
      return hidden.tanh();
    case Activation::sigmoid:
      return hidden.sigmoid();
    case Activation::relu:
      return hidden.relu();
    case Activation::leaky_relu:
      return at::leaky_relu(hidden, leaky_slope);
  }
  fail("an activation has no function");
}

Tensor additive_scores(const Score& score, const Tensor& query, const Tensor& key) {
  const Tensor& v = *find_parameter(score.parameters(), "v");
  const Tensor hidden = activated(query.unsqueeze(-2) + key.unsqueeze(-3), score.row().activation);
  if (v.dim() == 1) return at::matmul(hidden, v);
  return at::matmul(hidden, v.view({v.size(0), 1, v.size(1), 1})).squeeze(-1);
}

void check_vector(const Score& score, const Tensor& query) {
  const Tensor& v = *find_parameter(score.parameters(), "v");
  if (v.size(-1) != query.size(-1))
    fail("[attention] parameter v of score {} has depth {}, the mapped queries {}; they must match",
         score.row().name, v.size(-1), query.size(-1));
  if (v.dim() > 1 && (query.dim() != 4 || query.size(1) != v.size(0)))
    fail("[attention] parameter v of score {} has {} heads, the mapped queries shape [{}]",
         score.row().name, v.size(0), fmt::join(query.sizes(), ", "));
}

// Parameters that the maps do not read: parameters of the pairs and of the past.
Parameters left_by_maps(const ScoreRow& row, const Parameters& parameters) {
  Parameters left;
  for (const ParameterRow& one : row.parameters)
    if (const Tensor* tensor = find_parameter(parameters, one.name);
        tensor && one.reader != Reader::maps)
      left.emplace(one.name, *tensor);
  return left;
}

}  // namespace

std::string_view axis_name(Axis axis) {
  switch (axis) {
    case Axis::query_depth:
      return "query_depth";
    case Axis::key_depth:
      return "key_depth";
    case Axis::attention_depth:
      return "attention_depth";
    case Axis::keys:
      return "keys";
    case Axis::filters:
      return "filters";
    case Axis::filter_width:
      return "filter_width";
  }
  fail("an axis has no name");
}

Score::Score(std::string_view name, Parameters parameters)
    : row_(&score_row(name)), parameters_(std::move(parameters)) {
  std::erase_if(parameters_, [](const auto& entry) { return !entry.second.defined(); });
  check_names(*row_, parameters_);
  check_axes(*row_, parameters_);
  heads_ = agreed_heads(*row_, parameters_);
  visit_axes(*row_, parameters_, [&](const ParameterRow& parameter, auto axis, int64_t length) {
    if (axis == Axis::filter_width && length % 2 == 0)
      fail("[score {}] parameter {} has {} {}; it must be odd, for equal reach to both sides",
           row_->name, parameter.name, axis_name(*axis), length);
  });
}

Tensor Score::query_before_exp(const Tensor& query) const {
  check_input(*this, query, "queries", Axis::query_depth);
  if (leaves_inputs() || !row_->map_query) return query;
  const WithoutAutocast no_autocast;
  return row_->map_query(as_parameters(query, parameters_), parameters_);
}

Tensor Score::exact_features(const Tensor& x, const char* what, Axis depth) const {
  check_input(*this, x, what, depth);
  const WithoutAutocast no_autocast;
  return row_->exact_features(x);
}

double Score::scale(int64_t query_depth) const {
  return row_->scale ? row_->scale(query_depth) : 1.0;
}

Tensor Score::map_query(const Tensor& query) const {
  if (row_->exact_features) return exact_features(query, "queries", Axis::query_depth);
  const Tensor mapped = query_before_exp(query);
  if (row_->features == Features::logarithms) return mapped.exp();
  return row_->scale ? mapped * scale(query.size(-1)) : mapped;
}

bool Score::leaves_inputs() const {
  if (row_->family == Family::additive)
    return left_by_maps(*row_, parameters_).size() == parameters_.size();
  return !row_->map_query && !row_->map_key;
}

Tensor Score::key_before_exp(const Tensor& key) const {
  check_input(*this, key, "keys", Axis::key_depth);
  if (leaves_inputs() || !row_->map_key) return key;
  const WithoutAutocast no_autocast;
  return row_->map_key(as_parameters(key, parameters_), parameters_);
}

Tensor Score::map_key(const Tensor& key) const {
  if (row_->exact_features) return exact_features(key, "keys", Axis::key_depth);
  const Tensor mapped = key_before_exp(key);
  return row_->features == Features::logarithms ? mapped.exp() : mapped;
}

Tensor Score::of_pairs() const {
  for (const ParameterRow& one : row_->parameters)
    if (one.reader == Reader::pairs) return *find_parameter(parameters_, one.name);
  return {};
}

Score Score::mapped() const {
  // Scores that look back need their own row.
  if (row_->map_past) return Score(row_->name, left_by_maps(*row_, parameters_));
  return pair_score(*row_, of_pairs());
}

Score pair_score(const ScoreRow& row, const Tensor& of_pairs) {
  const auto is_its_plain_row = [&](const ScoreRow& other) {
    return other.is_plain && other.family == row.family && other.activation == row.activation;
  };
  const auto plain = std::find_if(score_table().begin(), score_table().end(), is_its_plain_row);
  Parameters parameters;
  for (const ParameterRow& one : plain->parameters)
    if (one.reader == Reader::pairs) parameters.emplace(one.name, of_pairs);
  return Score(plain->name, std::move(parameters));
}

void check_pairs(const Score& score, const Tensor& mapped_query, const Tensor& mapped_key) {
  const int64_t query_depth = mapped_query.size(-1), keys = mapped_key.size(-2);
  if (!score.row().family) {
    if (query_depth < keys)
      fail("[attention] the location score has {} positions, the keys {}; give W more rows",
           query_depth, keys);
    return;
  }
  if (query_depth != mapped_key.size(-1))
    fail(
        "[attention] queries have depth {}, keys depth {}, and score {} compares them; they must "
        "match",
        query_depth, mapped_key.size(-1), score.row().name);
  if (score.row().family == Family::additive) check_vector(score, mapped_query);
}

Tensor pairwise_scores(const Score& score, const Tensor& mapped_query, const Tensor& mapped_key) {
  check_pairs(score, mapped_query, mapped_key);
  // A copy: the caller may change scores in place.
  if (!score.row().family) return mapped_query.narrow(-1, 0, mapped_key.size(-2)).clone();
  switch (*score.row().family) {
    case Family::dot:
      return at::matmul(mapped_query, mapped_key.transpose(-2, -1));
    case Family::additive:
      return additive_scores(score, mapped_query, mapped_key);
    case Family::squared_distance:
      return -(mapped_query.unsqueeze(-2) - mapped_key.unsqueeze(-3)).square().sum(-1);
    case Family::absolute_distance:
      return -(mapped_query.unsqueeze(-2) - mapped_key.unsqueeze(-3)).abs().sum(-1);
  }
  fail("[score {}] belongs to no family", score.row().name);
}

}  // namespace attend
