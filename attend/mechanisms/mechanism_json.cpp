#include <nlohmann/json.hpp>

#include "attend/mechanisms/mechanism_pages.h"
#include "attend/ops/attention.h"
#include "attend/ops/recurrence.h"

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
  }
  return "";
}

json describe(const ScoreRow& row) {
  json parameters = json::array();
  for (const ParameterRow& parameter : row.parameters) {
    json shape = json::array();
    for (const Axis axis : parameter.shape) shape.push_back(axis_name(axis));
    parameters.push_back({{"name", parameter.name},
                          {"shape", shape},
                          {"required", parameter.required},
                          {"meaning", parameter.meaning}});
  }
  return {{"name", row.name},
          {"formula", row.formula},
          {"source", row.source},
          {"family", row.family ? family_name(*row.family) : "location"},
          {"looks_back", row.map_past != nullptr},
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

json describe(const RecurrenceRow& row) {
  return {{"name", row.name},         {"title", row.title},
          {"formula", row.formula},   {"source", row.source},
          {"year", row.year},         {"parent", row.parent},
          {"used_by", row.used_by},   {"decay", decay_name(row.decay)},
          {"delta", row.delta},       {"bonus", row.bonus},
          {"strength", row.strength}, {"unit_keys", row.unit_keys}};
}

}  // namespace

json mechanism_json(const Mechanism& row) {
  json parameters = json::array();
  for (const ChoiceParameter& one : parameters_of(row))
    parameters.push_back({{"name", one.name},
                          {"shape", one.shape},
                          {"required", one.required},
                          {"meaning", one.meaning}});
  return {{"name", row.name},
          {"title", row.title},
          {"source", row.source},
          {"year", row.year},
          {"changes", change_name(row.change)},
          {"parent", row.parent},
          {"used_by", row.used_by},
          {"formula", row.formula},
          {"queries", row.queries},
          {"memory", row.memory},
          {"choices",
           {{"score", row.choices.score},
            {"scope", row.choices.scope},
            {"bias", row.choices.bias},
            {"normaliser", row.choices.normaliser}}},
          {"decoder_query", row.decoder_query},
          {"parameters", parameters},
          {"time", row.time},
          {"space", row.space},
          {"carries", row.carries},
          {"cache", row.cache},
          {"paths", row.paths},
          {"module", row.module},
          {"refusal", row.refusal},
          {"command", compute_command_of(row)}};
}

json mechanisms_json(int since) {
  json mechanisms = json::array(), scores = json::array(), scopes = json::array(),
       biases = json::array(), normalisers = json::array(), recurrences = json::array();
  for (const Mechanism& row : mechanism_table())
    if (row.year >= since) mechanisms.push_back(mechanism_json(row));
  for (const ScoreRow& row : score_table()) scores.push_back(describe(row));
  for (const ScopeRow& row : scope_table())
    scopes.push_back({{"name", row.name}, {"syntax", row.syntax}, {"meaning", row.meaning}});
  for (const BiasRow& row : bias_table()) biases.push_back(describe(row));
  for (const NormaliserRow& row : normaliser_table())
    normalisers.push_back({{"name", row.name},
                           {"syntax", row.syntax},
                           {"formula", row.formula},
                           {"source", row.source},
                           {"looks_back", row.sequential}});
  for (const RecurrenceRow& row : recurrence_table())
    if (row.year >= since) recurrences.push_back(describe(row));
  return {{"mechanisms", mechanisms}, {"scores", scores},           {"scopes", scopes},
          {"biases", biases},         {"normalisers", normalisers}, {"recurrences", recurrences}};
}

}  // namespace attend
