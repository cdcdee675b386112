#include "attend/mechanisms/worked_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "attend/mechanisms/steps_text.h"

namespace attend {
namespace {

using at::Tensor;

// Number of queries shown one by one if they look back.
constexpr int64_t shown_queries = 3;

std::string drawn_by(const Normaliser& normaliser) {
  const uint64_t seed = normaliser.options().seed;
  return seed == 0 ? "the largest, because --seed is 0" : fmt::format("drawn by seed {}", seed);
}

// Steps of the normaliser before the weights, and the formula of the weights.
struct Normalising {
  std::string steps;
  std::string formula;
};

// The formula of these rows says more than a softmax.
Normalising summed_steps(const NormaliserRow& row, const Tensor& lse) {
  return {step("Logarithms of the divisors", lse, "lse_i"), std::string(row.formula)};
}

Normalising softmax_steps(const AttentionSpec& spec, const Tensor& scores) {
  const double temperature = spec.normaliser.options().temperature;
  std::string steps;
  if (temperature != 1)
    steps = step("Divided scores S / T", scores / temperature,
                 fmt::format("s_ij / {:g}, from here on s_ij", temperature));
  if (spec.sink.defined())
    return {steps,
            "w_ij = exp(s_ij) / (exp(sink) + sum_j exp(s_ij)), so each row sums to less "
            "than 1"};
  return {steps, "w_ij = exp(s_ij) / sum_j exp(s_ij), so each row sums to 1"};
}

Normalising threshold_steps(const AttentionSpec& spec, const Tensor& thresholds) {
  return {step("Thresholds t", thresholds, "t_i so that sum_j w_ij = 1"),
          std::string(spec.normaliser.row().formula)};
}

Normalising drawn_steps(const AttentionSpec& spec, const Tensor& scores) {
  return {step("Probabilities P", scores.softmax(-1), "p_ij = exp(s_ij) / sum_j exp(s_ij)"),
          "w_ij = 1 for one key of the row, " + drawn_by(spec.normaliser)};
}

Normalising linear_steps(const Attended& given, const Tensor& scores) {
  const Tensor key = given.spec.score.map_key(given.key);
  const Tensor sums = scores.masked_fill(scores.isinf(), 0.0).sum(-1);
  return {step("Running sums M over all keys", at::matmul(key.transpose(0, 1), given.value),
               "M = sum_j k'_j v_j^T: c_i = q'_i M / z_i needs no pairs") +
              step("Row sums z", sums, "z_i = q'_i . sum_j k'_j = sum_j s_ij"),
          "w_ij = s_ij / z_i"};
}

Normalising stopping_steps(const AttentionSpec& spec, const Tensor& scores) {
  return {step("Stopping probabilities p_i", scores.sigmoid(), "1 / (1 + exp(-s_ij))"),
          std::string(spec.normaliser.row().formula)};
}

Normalising normalising(const Attended& given, const Tensor& scores, const Tensor& lse) {
  const NormaliserRow& row = given.spec.normaliser.row();
  if (row.sequential) return stopping_steps(given.spec, scores);
  if (row.draws == Draws::keys) return drawn_steps(given.spec, scores);
  if (row.running_sums) return linear_steps(given, scores);
  if (row.lse == Lse::threshold) return threshold_steps(given.spec, lse);
  const bool is_softmax = row.sums_to_one && !row.number;
  if (row.lse == Lse::logarithm)
    return is_softmax ? softmax_steps(given.spec, scores) : summed_steps(row, lse);
  return {{}, std::string(row.formula)};
}

std::string scope_steps(const AttentionSpec& spec, const Tensor& scores) {
  if (spec.scope.any_of.empty()) return "";
  return step("Scores in scope", scores, "-inf for the keys out of scope");
}

// Steps of query i, given the past.
std::string query_steps(const Attended& given, int64_t i, const PastWeights& past) {
  Attended one = given;
  one.query = given.query.narrow(0, i, 1);
  one.spec.scope = shifted(given.spec.scope, i, 1);
  one.spec.bias = shifted(given.spec.bias, i, 1);
  one.spec.past = past;
  const auto [context, lse] = attention(one.query, one.key, one.value, one.spec);
  const Tensor scores = attention_scores(one.query, one.key, one.spec);
  const Normalising steps = normalising(one, scores, lse);
  std::string text = fmt::format("Query {}\n", i + 1);
  if (const auto map_past = one.spec.score.row().map_past; map_past && past.total.defined()) {
    const PastWeights three_axes{past.previous.view({1, 1, -1}), past.total.view({1, 1, -1})};
    text += step("Term of the past", map_past(three_axes, one.spec.score.parameters())[0][0],
                 "added to k'_j for earlier weights");
  }
  text += step("Scores s_i", scores, std::string(one.spec.score.row().formula));
  text += steps.steps;
  text += step("Weights w_i", attention_weights(one.query, one.key, lse, one.spec), steps.formula);
  return text + step("Context c_i", context, "c_i = sum_j w_ij v_j");
}

std::string sequential_steps(const Attended& given, const Tensor& weights) {
  std::string text;
  PastWeights past;
  const int64_t queries = given.query.size(0);
  for (int64_t i = 0; i < std::min(queries, shown_queries); ++i) {
    text += query_steps(given, i, past);
    past = after(past, weights[i]);
  }
  return text + step("Weights W", weights, "all queries, one row each");
}

}  // namespace

std::string weights_steps(const Attended& given) {
  const auto [context, lse] = attention(given.query, given.key, given.value, given.spec);
  const Tensor weights = attention_weights(given.query, given.key, lse, given.spec);
  std::string text;
  if (given.spec.score.row().map_past || given.spec.normaliser.row().sequential) {
    text = sequential_steps(given, weights);
  } else {
    const Tensor scores = attention_scores(given.query, given.key, given.spec);
    const Normalising steps = normalising(given, scores, lse);
    text =
        scope_steps(given.spec, scores) + steps.steps + step("Weights W", weights, steps.formula);
  }
  return text + step("Context C = W V", context, "c_i = sum_j w_ij v_j");
}

}  // namespace attend
