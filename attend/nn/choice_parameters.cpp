#include "attend/nn/choice_parameters.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "attend/base/error.h"
#include "attend/ops/scopes.h"

namespace attend {
namespace {

using at::Tensor;

void add_score(const ScoreRow& row, std::vector<ChoiceParameter>& parameters) {
  for (const ParameterRow& one : row.parameters) {
    std::vector<std::string_view> axes;
    axes.reserve(one.shape.size());
    for (const Axis axis : one.shape) axes.push_back(axis_name(axis));
    parameters.push_back({std::string(one.name), fmt::format("{}", fmt::join(axes, ", ")),
                          std::string(one.meaning), static_cast<int64_t>(axes.size()),
                          one.required});
  }
}

void add_bias(const BiasRow& row, bool predicts_centre, std::vector<ChoiceParameter>& parameters) {
  for (const BiasParameter& one : row.parameters) {
    ChoiceParameter parameter{parameter_name(row, one), std::string(one.shape),
                              std::string(one.meaning), one.axes, true};
    // The bias table writes shapes in brackets.
    if (parameter.shape.starts_with('[')) {
      parameter.shape.erase(0, 1);
      parameter.shape.erase(parameter.shape.find(']'), 1);
    }
    // A predicted centre replaces the required tensors of the gaussian, which are optional only
    // then.
    if (!one.absent.empty() && (row.kind != BiasKind::gaussian || predicts_centre)) {
      parameter.required = false;
      parameter.meaning += fmt::format("; absent: {}", one.absent);
    }
    parameters.push_back(std::move(parameter));
  }
}

// 128 is T5's default of relative_attention_max_distance, for any number of buckets.
Bias bucket_bias(const Tensor& table, const BiasQueries& queries) {
  constexpr int64_t usual = 128;
  const int64_t count = table.dim() == 0 ? 1 : table.size(-1);
  // Number of buckets with one distance each; the largest distance must be greater.
  const int64_t exact = count / (queries.look_ahead ? 4 : 2);
  int64_t distance = queries.largest_distance;
  if (distance == 0) distance = exact < usual ? usual : count;
  // A query with no later keys in scope needs no buckets for later distances.
  return buckets(
      {.table = table, .bidirectional = queries.look_ahead, .maximum_distance = distance});
}

// `offset` is one number, or one per head, which then gets axes for queries and keys.
Bias offset_bias(const Tensor& offset, int64_t query_axes) {
  const bool by_head = offset.dim() == 1 && query_axes == 4;
  return dense_bias(by_head ? offset.view({1, -1, 1, 1}) : offset);
}

}  // namespace

std::vector<ChoiceParameter> parameters_of(const AttentionChoices& choices) {
  std::vector<ChoiceParameter> parameters;
  add_score(score_row(choices.score), parameters);
  const bool predicted = around_reach(choices.scope).has_value();
  for (const BiasChoice& bias : parse_biases(choices.bias))
    add_bias(*bias.row, predicted, parameters);
  if (predicted) {
    parameters.push_back(
        {"centre_W_p", "attention_depth, query_depth", "W_p of the predicted centre", 2, false});
    parameters.push_back(
        {"centre_v_p", "attention_depth", "v_p of the predicted centre", 1, false});
  }
  const Normaliser normaliser(choices.normaliser);
  if (!has_free_parameter(normaliser)) return parameters;
  parameters.push_back({parameter_name(normaliser.row()), "",
                        fmt::format("{}; absent: {}", normaliser.row().parameter->meaning,
                                    parameter_if_absent(normaliser))});
  return parameters;
}

std::string parameter_name(const NormaliserRow& row) {
  return fmt::format("{}_{}", row.name, row.parameter.value().name);
}

int64_t largest_distance(const BiasChoice& choice) {
  const size_t axes = choice.row->numbers.count;
  return choice.numbers.size() > axes ? choice.numbers[axes] : 0;
}

int64_t first_number(const BiasChoice& choice) {
  return choice.numbers.empty() ? 0 : choice.numbers.front();
}

bool needs_scale(const AttentionChoices& choices) {
  const std::vector<BiasChoice> biases = parse_biases(choices.bias);
  return score_row(choices.score).scale != nullptr &&
         std::any_of(biases.begin(), biases.end(),
                     [](const BiasChoice& bias) { return bias.row->reads_keys; });
}

Bias bias_of(const BiasRow& row, const Parameters& tensors, const BiasQueries& queries) {
  const auto tensor = [&](size_t i) { return tensors.find(row.parameters[i].name)->second; };
  switch (row.kind) {
    case BiasKind::dense:
      return dense_bias(tensor(0));
    case BiasKind::alibi:
      return alibi(tensor(0));
    case BiasKind::kerple_log:
      return kerple_log(tensor(0), tensor(1));
    case BiasKind::kerple_power:
      return kerple_power(tensor(0), tensor(1));
    case BiasKind::sandwich:
      return queries.number == 0 ? sandwich(tensor(0)) : sandwich(tensor(0), queries.number);
    case BiasKind::forget:
      return forget(tensor(0));
    case BiasKind::cope:
      return cope(tensor(0));
    case BiasKind::fire:
      return fire({.W_1 = tensor(0),
                   .b_1 = tensor(1),
                   .W_2 = tensor(2),
                   .b_2 = tensor(3),
                   .c = tensor(4),
                   .threshold = tensor(5)});
    case BiasKind::buckets:
      return bucket_bias(tensor(0), queries);
    case BiasKind::relative_keys:
      return relative_keys(tensor(0));
    case BiasKind::content_to_position:
      return content_to_position(
          {.table = tensor(0), .maximum_distance = queries.largest_distance});
    case BiasKind::position_to_content:
      return position_to_content(
          {.table = tensor(0), .maximum_distance = queries.largest_distance});
    case BiasKind::gaussian:
      return gaussian(tensor(0), tensor(1));
    case BiasKind::grid:
      return grid(tensor(0));
    case BiasKind::offset:
      return offset_bias(tensor(0), queries.axes);
    case BiasKind::sink:
      break;
  }
  return {};
}

}  // namespace attend
