#include "attend/nn/choice_parameters.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "attend/base/error.h"
#include "attend/base/settings.h"
#include "attend/ops/attention.h"

namespace attend {
namespace {

std::vector<std::string> bias_names() {
  std::vector<std::string> names;
  names.reserve(bias_table().size() + 2);
  for (const BiasRow& row : bias_table()) names.emplace_back(row.name);
  names.insert(names.end(), {"offset", "sink"});
  return names;
}

BiasPart bias_part(std::string text) {
  text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
  BiasPart part{std::string(base_name(text)), {}};
  if (part.name.size() < text.size()) part.argument = text.substr(part.name.size() + 1);
  const std::vector<std::string> names = bias_names();
  if (std::find(names.begin(), names.end(), part.name) != names.end()) return part;
  const std::string suggestion = nearest(part.name, names);
  if (!suggestion.empty())
    fail("no bias is called {}; did you mean {}?", quoted(part.name), suggestion);
  fail("no bias is called {}; there are {}", quoted(part.name), fmt::join(names, ", "));
}

// Axes of the bias's tensors behind those of batch and heads.
int64_t axes_of(std::string_view bias) {
  if (bias == "dense" || bias == "relative_keys" || bias == "grid") return 2;
  return bias == "buckets" || bias == "gaussian" ? 1 : 0;
}

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

void add_bias(const BiasPart& part, bool predicted, std::vector<ChoiceParameter>& parameters) {
  if (part.name == "offset")
    parameters.push_back({"offset", "", "one number added to every score", 0, true});
  if (part.name == "sink")
    parameters.push_back({"sink", "", "the score of a key without a value", 0, true});
  for (const BiasRow& row : bias_table()) {
    if (row.name != part.name) continue;
    for (const BiasParameter& one : row.parameters) {
      ChoiceParameter parameter{fmt::format("{}_{}", row.name, one.name), std::string(one.shape),
                                std::string(one.meaning), axes_of(row.name),
                                !(predicted && row.name == "gaussian")};
      // The table writes its shapes in brackets.
      if (parameter.shape.starts_with('[')) {
        parameter.shape.erase(0, 1);
        parameter.shape.erase(parameter.shape.find(']'), 1);
      }
      if (row.name == "alibi") {
        parameter.required = false;
        parameter.meaning += "; absent: those of Press et al. 2022 for so many heads";
      }
      if (!parameter.required && one.name == "widths") parameter.meaning += "; absent: D / 2";
      if (!parameter.required && one.name == "centres")
        parameter.meaning += "; absent: S sigmoid(v_p . tanh(W_p q))";
      parameters.push_back(std::move(parameter));
    }
  }
}

}  // namespace

std::vector<BiasPart> bias_parts(std::string_view text) {
  std::vector<BiasPart> parts;
  while (text.find_first_not_of(' ') != std::string_view::npos) {
    const size_t plus = std::min(text.find('+'), text.size());
    BiasPart part = bias_part(std::string(text.substr(0, plus)));
    for (const BiasPart& other : parts)
      if (other.name == part.name)
        fail("bias {} is named twice; add up its tensors and name it once", part.name);
    parts.push_back(std::move(part));
    text.remove_prefix(std::min(plus + 1, text.size()));
  }
  return parts;
}

std::vector<ChoiceParameter> parameters_of(const AttentionChoices& choices) {
  std::vector<ChoiceParameter> parameters;
  add_score(score_row(choices.score), parameters);
  const bool predicted = around_reach(choices.scope).has_value();
  for (const BiasPart& part : bias_parts(choices.bias)) add_bias(part, predicted, parameters);
  if (predicted) {
    parameters.push_back(
        {"centre_W_p", "attention_depth, query_depth", "W_p of the predicted centre", 2, false});
    parameters.push_back(
        {"centre_v_p", "attention_depth", "v_p of the predicted centre", 1, false});
  }
  return parameters;
}

}  // namespace attend
