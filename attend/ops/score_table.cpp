#include <cmath>

#include "attend/base/find_row.h"
#include "attend/ops/score_rows-inl.h"

namespace attend {
namespace {

using at::Tensor;

// Reshapes a parameter of one number or one vector, with or without a head axis, to broadcast with
// tensors [B, H, T, D].
Tensor per_head_axes(const Tensor& parameter, int64_t own_axes) {
  if (parameter.dim() == own_axes) return parameter;
  return own_axes == 0 ? parameter.view({-1, 1, 1}) : parameter.unsqueeze(1);
}

double scale_by_depth(int64_t depth) { return 1.0 / std::sqrt(static_cast<double>(depth)); }

Tensor general_query(const Tensor& query, const Parameters& parameters) {
  return at::matmul(query, *find_parameter(parameters, "W"));
}

Tensor linear_if_given(const Tensor& x, const Tensor* weight) {
  return weight ? at::matmul(x, weight->transpose(-2, -1)) : x;
}

Tensor additive_query(const Tensor& query, const Parameters& parameters) {
  const Tensor mapped = linear_if_given(query, find_parameter(parameters, "W_q"));
  const Tensor* bias = find_parameter(parameters, "b");
  return bias ? mapped + per_head_axes(*bias, 1) : mapped;
}

Tensor additive_key(const Tensor& key, const Parameters& parameters) {
  return linear_if_given(key, find_parameter(parameters, "W_k"));
}

// q -> [w_q . q + b, 1] and k -> [1, w_k . k]; their product is the sum of both.
Tensor linear_query(const Tensor& query, const Parameters& parameters) {
  Tensor number = at::matmul(query, find_parameter(parameters, "w_q")->unsqueeze(-1));
  if (const Tensor* bias = find_parameter(parameters, "b"))
    number = number + per_head_axes(*bias, 0);
  return at::cat({number, at::ones_like(number)}, -1);
}

Tensor linear_key(const Tensor& key, const Parameters& parameters) {
  const Tensor number = at::matmul(key, find_parameter(parameters, "w_k")->unsqueeze(-1));
  return at::cat({at::ones_like(number), number}, -1);
}

Tensor unit_length(const Tensor& x) {
  // A direction has no length. Dividing by the largest entry prevents overflow and underflow of the
  // squares; the derivative through that entry is 0.
  const Tensor largest = x.detach().abs().amax(-1, true);
  const Tensor scaled = x / largest.masked_fill(largest == 0, 1.0);
  // A zero vector stays zero, with finite derivatives.
  const Tensor squares = scaled.square().sum(-1, true).masked_fill(largest == 0, 1.0);
  return scaled * squares.rsqrt();
}

Tensor cosine_query(const Tensor& query, const Parameters& parameters) {
  const Tensor* beta = find_parameter(parameters, "beta");
  const Tensor unit = unit_length(query);
  return beta ? unit * per_head_axes(*beta, 0) : unit;
}

Tensor cosine_key(const Tensor& key, const Parameters&) { return unit_length(key); }

Tensor location_query(const Tensor& query, const Parameters& parameters) {
  return linear_if_given(query, find_parameter(parameters, "W"));
}

ScoreRow dot_row() {
  return {.name = "dot",
          .formula = "q . k",
          .source = "Luong et al. 2015, eq. 8",
          .family = Family::dot,
          .is_plain = true};
}

ScoreRow scaled_dot_row() {
  return {.name = "scaled_dot",
          .formula = "q . k / sqrt(D)",
          .source = "Vaswani et al. 2017, eq. 1",
          .family = Family::dot,
          .scale = scale_by_depth};
}

// The sum of three products with equal variances.
ScoreRow disentangled_dot_row() {
  return {.name = "disentangled_dot",
          .formula = "q . k / sqrt(3 D)",
          .source = "He et al. 2021, eq. 4",
          .family = Family::dot,
          .scale = [](int64_t depth) { return scale_by_depth(3 * depth); }};
}

ScoreRow general_row() {
  return {.name = "general",
          .formula = "q . W k",
          .source = "Luong et al. 2015, eq. 8",
          .family = Family::dot,
          .parameters = {{.name = "W",
                          .shape = {Axis::query_depth, Axis::key_depth},
                          .required = true,
                          .meaning = "the bilinear form"}},
          .map_query = general_query,
          .query_is_affine = true};
}

ScoreRow additive_row(std::string_view name, std::string_view formula, std::string_view source,
                      Activation activation) {
  return {.name = name,
          .formula = formula,
          .source = source,
          .family = Family::additive,
          .parameters = {{.name = "v",
                          .shape = {Axis::attention_depth},
                          .required = true,
                          .meaning = "the weight of each hidden unit",
                          .reader = Reader::pairs},
                         {.name = "W_q",
                          .shape = {Axis::attention_depth, Axis::query_depth},
                          .required = false,
                          .meaning = "query projection, else identity"},
                         {.name = "W_k",
                          .shape = {Axis::attention_depth, Axis::key_depth},
                          .required = false,
                          .meaning = "key projection, else identity"},
                         {.name = "b",
                          .shape = {Axis::attention_depth},
                          .required = false,
                          .meaning = "offset, else 0"}},
          .map_query = additive_query,
          .map_key = additive_key,
          .query_is_affine = true,
          .activation = activation,
          .is_plain = true};
}

ScoreRow linear_row() {
  return {
      .name = "linear",
      .formula = "w_q . q + w_k . k + b",
      .source =
          "additive without v: one linear layer on [q; k]; softmax cancels the term of the query",
      .family = Family::dot,
      .parameters = {{.name = "w_q",
                      .shape = {Axis::query_depth},
                      .required = true,
                      .meaning = "weights of the query; no effect under a softmax"},
                     {.name = "w_k",
                      .shape = {Axis::key_depth},
                      .required = true,
                      .meaning = "weights of the key"},
                     {.name = "b",
                      .shape = {},
                      .required = false,
                      .meaning = "offset, else 0; no effect under a softmax"}},
      .map_query = linear_query,
      .map_key = linear_key,
      .query_is_affine = true};
}

ScoreRow cosine_row() {
  return {.name = "cosine",
          .formula = "beta q . k / (|q| |k|)",
          .source = "Graves et al. 2014, eq. 5-6",
          .family = Family::dot,
          .parameters =
              {{.name = "beta", .shape = {}, .required = false, .meaning = "key strength, else 1"}},
          .map_query = cosine_query,
          .map_key = cosine_key};
}

ScoreRow location_row() {
  return {.name = "location",
          .formula = "(W q)_j",
          .source = "Luong et al. 2015, eq. 9",
          .family = {},
          .parameters = {{.name = "W",
                          .shape = {Axis::keys, Axis::query_depth},
                          .required = false,
                          .meaning = "a row per key position, else identity"}},
          .map_query = location_query,
          .is_plain = true};
}

ScoreRow location_sensitive_row() {
  ScoreRow row = additive_row(
      "location_sensitive", "v . tanh(W_q q + W_k k + U f_j + b)",
      "Chorowski et al. 2015, eq. 8-9; f = F * the weights of the query before", Activation::tanh);
  row.parameters.push_back({.name = "U",
                            .shape = {Axis::attention_depth, Axis::filters},
                            .required = true,
                            .meaning = "projection of the features",
                            .reader = Reader::past});
  row.parameters.push_back({.name = "F",
                            .shape = {Axis::filters, Axis::filter_width},
                            .required = true,
                            .meaning = "filters over positions, of odd width, 0 past the ends",
                            .reader = Reader::past});
  row.map_past = map_past_location_sensitive;
  row.is_plain = false;
  return row;
}

ScoreRow coverage_row() {
  ScoreRow row = additive_row("coverage", "v . tanh(W_q q + W_k k + w_c c_j + b)",
                              "Tu et al. 2016, 3.1; See et al. 2017, eq. 10-11; c = the sum of the "
                              "weights of the queries before",
                              Activation::tanh);
  row.parameters.push_back({.name = "w_c",
                            .shape = {Axis::attention_depth},
                            .required = true,
                            .meaning = "weight of the coverage",
                            .reader = Reader::past});
  row.map_past = map_past_coverage;
  row.is_plain = false;
  return row;
}

}  // namespace

const Tensor* find_parameter(const Parameters& parameters, std::string_view name) {
  const auto found = parameters.find(name);
  return found == parameters.end() ? nullptr : &found->second;
}

const std::vector<ScoreRow>& score_table() {
  static const std::vector<ScoreRow> table = {
      dot_row(),
      scaled_dot_row(),
      disentangled_dot_row(),
      general_row(),
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
      {.name = "squared_distance",
       .formula = "-|q - k|^2",
       .source = "Kim et al. 2021, eq. 6",
       .family = Family::squared_distance,
       .is_plain = true},
      {.name = "absolute_distance",
       .formula = "-sum_a |q_a - k_a|",
       .source = "Kim et al. 2019 (Laplace attention)",
       .family = Family::absolute_distance,
       .is_plain = true},
      cosine_row(),
      location_row(),
      elu_features_row(),
      positive_features_row(),
  };
  return table;
}

const ScoreRow& score_row(std::string_view name) { return find_row(score_table(), "score", name); }

}  // namespace attend
