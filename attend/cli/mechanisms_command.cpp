#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "attend/cli/commands.h"
#include "attend/ops/attention.h"

namespace attend {
namespace {

using nlohmann::json;

const char* family_name(Family family) {
  switch (family) {
    case Family::dot:
      return "dot";
    case Family::additive:
      return "additive";
    case Family::squared_distance:
      return "squared_distance";
    case Family::absolute_distance:
      return "absolute_distance";
    case Family::location:
      return "location";
  }
  return "";
}

std::vector<std::string_view> axis_names(const ParameterRow& parameter) {
  std::vector<std::string_view> names;
  for (const Axis axis : parameter.shape) names.push_back(axis_name(axis));
  return names;
}

json describe(const ScoreRow& row) {
  json parameters = json::array();
  for (const ParameterRow& parameter : row.parameters)
    parameters.push_back({{"name", parameter.name},
                          {"shape", axis_names(parameter)},
                          {"required", parameter.required},
                          {"meaning", parameter.meaning}});
  return {{"name", row.name},
          {"formula", row.formula},
          {"source", row.source},
          {"family", family_name(row.family)},
          {"parameters", parameters}};
}

json describe(const BiasRow& row) {
  json parameters = json::array();
  for (const BiasParameter& parameter : row.parameters)
    parameters.push_back(
        {{"name", parameter.name}, {"shape", parameter.shape}, {"meaning", parameter.meaning}});
  return {{"name", row.name},
          {"formula", row.formula},
          {"source", row.source},
          {"parameters", parameters}};
}

json describe_all() {
  json scores = json::array(), scopes = json::array(), biases = json::array(),
       normalisers = json::array();
  for (const ScoreRow& row : score_table()) scores.push_back(describe(row));
  for (const ScopeRow& row : scope_table())
    scopes.push_back({{"name", row.name}, {"syntax", row.syntax}, {"meaning", row.meaning}});
  for (const BiasRow& row : bias_table()) biases.push_back(describe(row));
  for (const NormaliserRow& row : normaliser_table())
    normalisers.push_back({{"name", row.name}, {"formula", row.formula}, {"source", row.source}});
  return {{"scores", scores}, {"scopes", scopes}, {"biases", biases}, {"normalisers", normalisers}};
}

void print_scores() {
  fmt::print("Scores: how well query q fits key k; D is their depth\n\n");
  for (const ScoreRow& row : score_table()) {
    fmt::print("  {:12} {:30} {}\n", row.name, row.formula, row.source);
    for (const ParameterRow& parameter : row.parameters)
      fmt::print("  {:12}   {} [{}]{}: {}\n", "", parameter.name,
                 fmt::join(axis_names(parameter), ", "), parameter.required ? "" : ", optional",
                 parameter.meaning);
  }
  fmt::print("\n  Any parameter may have a leading axis of heads.\n");
}

void print_all() {
  fmt::print("w_ij = normaliser_j(score(q_i, k_j) + bias_ij) over the keys j in scope(i)\n");
  fmt::print("c_i  = sum_j w_ij v_j\n\n");
  print_scores();
  fmt::print("\nScopes: the keys j that query i may attend to; they intersect and unite\n\n");
  for (const ScopeRow& row : scope_table())
    fmt::print("  {:12} {:30} {}\n", row.name, row.parse ? row.syntax : "a tensor", row.meaning);
  fmt::print("\nBiases: what is added to the scores; several add up\n\n");
  for (const BiasRow& row : bias_table()) {
    fmt::print("  {:12} {:30} {}\n", row.name, row.formula, row.source);
    for (const BiasParameter& parameter : row.parameters)
      fmt::print("  {:12}   {} {}: {}\n", "", parameter.name, parameter.shape, parameter.meaning);
  }
  fmt::print("\nNormalisers: scores s_ij to weights w_ij\n\n");
  for (const NormaliserRow& row : normaliser_table())
    fmt::print("  {:12} {:30} {}\n", row.name, row.formula, row.source);
}

}  // namespace

void add_mechanisms_command(CLI::App& app) {
  auto as_json = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand(
      "mechanisms", "The scores, scopes, biases and normalisers that attention is made of");
  command->add_flag("--json", *as_json,
                    "print one JSON object: scores (name, formula, source, family, parameters), "
                    "scopes (name, syntax, meaning), biases (name, formula, "
                    "source, parameters), normalisers (name, formula, source)");
  command->footer("Examples:\n  attend mechanisms\n  attend mechanisms --json");
  command->callback([as_json] {
    if (*as_json)
      fmt::print("{}\n", describe_all().dump());
    else
      print_all();
  });
}

}  // namespace attend
