#include "attend/ops/scores.h"

#include <algorithm>
#include <cmath>

#include "attend/base/error.h"
#include "attend/base/settings.h"
#include "attend/ops/feature_maps-inl.h"
#include "attend/ops/past_weights-inl.h"

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

double scale_by_depth(int64_t depth) { return 1.0 / std::sqrt(static_cast<double>(depth)); }

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

// q -> [w_q . q + b, 1] and k -> [1, w_k . k], whose product is the sum of both.
Tensor linear_query(const Tensor& query, const Parameters& parameters) {
  Tensor number = at::matmul(query, find(parameters, "w_q")->unsqueeze(-1));
  if (const Tensor* bias = find(parameters, "b")) number = number + beside_heads(*bias, 0);
  return at::cat({number, at::ones_like(number)}, -1);
}

Tensor linear_key(const Tensor& key, const Parameters& parameters) {
  const Tensor number = at::matmul(key, find(parameters, "w_k")->unsqueeze(-1));
  return at::cat({at::ones_like(number), number}, -1);
}

Tensor unit_length(const Tensor& x) {
  // A direction has no length: dividing by the largest entry keeps the squares from overflowing and
  // underflowing, and the derivative through that entry is 0.
  const Tensor largest = x.detach().abs().amax(-1, true);
  const Tensor scaled = x / largest.masked_fill(largest == 0, 1.0);
  // A vector of zeros stays zero, with finite derivatives.
  const Tensor squares = scaled.square().sum(-1, true).masked_fill(largest == 0, 1.0);
  return scaled * squares.rsqrt();
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
    const Tensor* tensor = find(parameters, parameter.name);
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

// Calls visit(parameter row, what the axis is, its length) for every axis of what is given.
template <class Visit>
void visit_axes(const ScoreRow& row, const Parameters& parameters, Visit visit) {
  for (const ParameterRow& parameter : row.parameters) {
    const Tensor* tensor = find(parameters, parameter.name);
    if (!tensor) continue;
    const int64_t axes = axes_of(parameter);
    if (tensor->dim() > axes) visit(parameter, std::optional<Axis>(), tensor->size(0));
    for (int64_t i = 0; i < axes; ++i)
      visit(parameter, std::optional(parameter.shape[static_cast<size_t>(i)]),
            tensor->size(i - axes));
  }
}

// The parameters' common number of heads. Error when two parameters disagree about any axis.
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

// The parameter that says how long the axis is, and that length.
std::optional<std::pair<std::string_view, int64_t>> expected_length(const Score& score, Axis axis) {
  std::optional<std::pair<std::string_view, int64_t>> expected;
  visit_axes(score.row(), score.parameters(),
             [&](const ParameterRow& parameter, auto of, int64_t length) {
               if (of == axis) expected = {parameter.name, length};
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
    if (tensor.scalar_type() != x.scalar_type())
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
  const Tensor& v = *find(score.parameters(), "v");
  const Tensor hidden = activated(query.unsqueeze(-2) + key.unsqueeze(-3), score.row().activation);
  if (v.dim() == 1) return at::matmul(hidden, v);
  return at::matmul(hidden, v.view({v.size(0), 1, v.size(1), 1})).squeeze(-1);
}

void check_vector(const Score& score, const Tensor& query) {
  const Tensor& v = *find(score.parameters(), "v");
  if (v.size(-1) != query.size(-1))
    fail("[attention] parameter v of score {} has depth {}, the mapped queries {}; they must match",
         score.row().name, v.size(-1), query.size(-1));
  if (v.dim() > 1 && (query.dim() != 4 || query.size(1) != v.size(0)))
    fail("[attention] parameter v of score {} has {} heads, the mapped queries shape [{}]",
         score.row().name, v.size(0), fmt::join(query.sizes(), ", "));
}

ScoreRow additive_row(std::string_view name, std::string_view formula, std::string_view source,
                      Activation activation) {
  return {
      name,
      formula,
      source,
      Family::additive,
      {{"v", {Axis::attention_depth}, true, "the weight of each hidden unit"},
       {"W_q",
        {Axis::attention_depth, Axis::query_depth},
        false,
        "query projection, else identity"},
       {"W_k", {Axis::attention_depth, Axis::key_depth}, false, "key projection, else identity"},
       {"b", {Axis::attention_depth}, false, "offset, else 0"}},
      additive_query,
      additive_key,
      activation};
}

ScoreRow linear_row() {
  return {"linear",
          "w_q . q + w_k . k + b",
          "additive without v: one linear layer on [q; k]; softmax cancels what the query adds",
          Family::dot,
          {{"w_q", {Axis::query_depth}, true, "weights of the query; no effect behind a softmax"},
           {"w_k", {Axis::key_depth}, true, "weights of the key"},
           {"b", {}, false, "offset, else 0; no effect behind a softmax"}},
          linear_query,
          linear_key};
}

ScoreRow cosine_row() {
  return {"cosine",
          "beta q . k / (|q| |k|)",
          "Graves et al. 2014, eq. 5-6",
          Family::dot,
          {{"beta", {}, false, "key strength, else 1"}},
          cosine_query,
          cosine_key};
}

ScoreRow location_row() {
  return {"location",
          "(W q)_j",
          "Luong et al. 2015, eq. 9",
          Family::location,
          {{"W", {Axis::keys, Axis::query_depth}, false, "a row a key position, else identity"}},
          location_query,
          identity};
}

ScoreRow location_sensitive_row() {
  ScoreRow row = additive_row(
      "location_sensitive", "v . tanh(W_q q + W_k k + U f_j + b)",
      "Chorowski et al. 2015, eq. 8-9; f = F * the weights of the query before", Activation::tanh);
  row.parameters.push_back(
      {"U", {Axis::attention_depth, Axis::filters}, true, "projection of the features"});
  row.parameters.push_back({"F",
                            {Axis::filters, Axis::filter_width},
                            true,
                            "filters over positions, of odd width, 0 past the ends"});
  row.map_past = map_past_location_sensitive;
  return row;
}

ScoreRow coverage_row() {
  ScoreRow row = additive_row("coverage", "v . tanh(W_q q + W_k k + w_c c_j + b)",
                              "Tu et al. 2016, 3.1; See et al. 2017, eq. 10-11; c = the sum of the "
                              "weights of the queries before",
                              Activation::tanh);
  row.parameters.push_back({"w_c", {Axis::attention_depth}, true, "weight of the coverage"});
  row.map_past = map_past_coverage;
  return row;
}

// The maps have used these; what else the additive family has stays with the pairs and the past.
bool belongs_to_maps(std::string_view parameter) {
  return parameter == "W_q" || parameter == "W_k" || parameter == "b";
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

const std::vector<ScoreRow>& score_table() {
  static const std::vector<ScoreRow> table = {
      {"dot", "q . k", "Luong et al. 2015, eq. 8", Family::dot, {}, identity, identity},
      {"scaled_dot",
       "q . k / sqrt(D)",
       "Vaswani et al. 2017, eq. 1",
       Family::dot,
       {},
       identity,
       identity,
       Activation::tanh,
       scale_by_depth},
      {"general",
       "q . W k",
       "Luong et al. 2015, eq. 8",
       Family::dot,
       {{"W", {Axis::query_depth, Axis::key_depth}, true, "the bilinear spec"}},
       general_query,
       identity},
      additive_row("additive", "v . tanh(W_q q + W_k k + b)",
                   "Bahdanau et al. 2015, A.1.2; concat in Luong et al. 2015, eq. 8",
                   Activation::tanh),
      additive_row("additive_sigmoid", "v . sigmoid(W_q q + W_k k + b)",
                   "additive with another activation", Activation::sigmoid),
      additive_row("additive_relu", "v . max(0, W_q q + W_k k + b)",
                   "additive with another activation", Activation::relu),
      additive_row("additive_leaky_relu", "v . leaky_relu(W_q q + W_k k + b), slope 0.2",
                   "Brody et al. 2022, eq. 7", Activation::leaky_relu),
      linear_row(),
      location_sensitive_row(),
      coverage_row(),
      {"squared_distance",
       "-|q - k|^2",
       "Kim et al. 2021, eq. 6",
       Family::squared_distance,
       {},
       identity,
       identity},
      {"absolute_distance",
       "-sum_a |q_a - k_a|",
       "Kim et al. 2019 (Laplace attention)",
       Family::absolute_distance,
       {},
       identity,
       identity},
      cosine_row(),
      location_row(),
      elu_features_row(),
      positive_features_row(),
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
  std::erase_if(parameters_, [](const auto& entry) { return !entry.second.defined(); });
  check_names(*row_, parameters_);
  check_axes(*row_, parameters_);
  heads_ = agreed_heads(*row_, parameters_);
  visit_axes(*row_, parameters_, [&](const ParameterRow& parameter, auto axis, int64_t length) {
    if (axis == Axis::filter_width && length % 2 == 0)
      fail("[score {}] parameter {} has {} {}; it must be odd, as many positions to each side",
           row_->name, parameter.name, axis_name(*axis), length);
  });
}

Tensor Score::query_before_exp(const Tensor& query) const {
  check_input(*this, query, "queries", Axis::query_depth);
  return row_->map_query(query, parameters_);
}

double Score::scale(int64_t query_depth) const {
  return row_->scale ? row_->scale(query_depth) : 1.0;
}

Tensor Score::map_query(const Tensor& query) const {
  const Tensor mapped = query_before_exp(query);
  if (row_->features == Features::logarithms) return mapped.exp();
  return row_->scale ? mapped * scale(query.size(-1)) : mapped;
}

bool Score::leaves_inputs() const {
  if (row_->family == Family::additive)
    return std::none_of(parameters_.begin(), parameters_.end(),
                        [](const auto& entry) { return belongs_to_maps(entry.first); });
  return row_->map_query == identity && row_->map_key == identity;
}

Tensor Score::key_before_exp(const Tensor& key) const {
  check_input(*this, key, "keys", Axis::key_depth);
  return row_->map_key(key, parameters_);
}

Tensor Score::map_key(const Tensor& key) const {
  const Tensor mapped = key_before_exp(key);
  return row_->features == Features::logarithms ? mapped.exp() : mapped;
}

Score Score::mapped() const {
  switch (row_->family) {
    case Family::dot:
      return Score("dot");
    case Family::additive: {
      Parameters kept = parameters_;
      std::erase_if(kept, [](const auto& entry) { return belongs_to_maps(entry.first); });
      return Score(row_->name, std::move(kept));
    }
    case Family::squared_distance:
    case Family::absolute_distance:
      return Score(row_->name);
    case Family::location:
      return Score("location");
  }
  fail("[score {}] belongs to no family", row_->name);
}

void check_pairs(const Score& score, const Tensor& mapped_query, const Tensor& mapped_key) {
  const int64_t query_depth = mapped_query.size(-1), keys = mapped_key.size(-2);
  if (score.row().family == Family::location) {
    if (query_depth < keys)
      fail("[attention] the location score has {} positions, the keys {}; give W more rows",
           query_depth, keys);
    return;
  }
  if (query_depth != mapped_key.size(-1))
    fail(
        "[attention] queries have depth {}, keys depth {} where score {} compares them; they must "
        "match",
        query_depth, mapped_key.size(-1), score.row().name);
  if (score.row().family == Family::additive) check_vector(score, mapped_query);
}

Tensor pairwise_scores(const Score& score, const Tensor& mapped_query, const Tensor& mapped_key) {
  check_pairs(score, mapped_query, mapped_key);
  switch (score.row().family) {
    case Family::dot:
      return at::matmul(mapped_query, mapped_key.transpose(-2, -1));
    case Family::additive:
      return additive_scores(score, mapped_query, mapped_key);
    case Family::squared_distance:
      return -(mapped_query.unsqueeze(-2) - mapped_key.unsqueeze(-3)).square().sum(-1);
    case Family::absolute_distance:
      return -(mapped_query.unsqueeze(-2) - mapped_key.unsqueeze(-3)).abs().sum(-1);
    case Family::location:
      // A copy, for the caller may change scores in place.
      return mapped_query.narrow(-1, 0, mapped_key.size(-2)).clone();
  }
  fail("[score {}] belongs to no family", score.row().name);
}

}  // namespace attend
