#include "attend/explain/explanation_json.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "attend/files/json_line.h"

namespace attend {
namespace {

using nlohmann::ordered_json;

// Avoids the extra digits of a float that is widened to double.
double shortest(float value) {
  return std::isfinite(value) ? std::stod(fmt::format("{}", value)) : double{value};
}

// Each number is the shortest that reads back to the same value.
ordered_json grid_json(const WeightGrid& grid) {
  auto rows = ordered_json::array();
  for (int64_t row = 0; row < grid.rows; ++row) {
    auto values = ordered_json::array();
    for (int64_t column = 0; column < grid.columns; ++column) {
      const double value = grid.at(row, column);
      values.push_back(grid.single ? shortest(static_cast<float>(value)) : value);
    }
    rows.push_back(std::move(values));
  }
  return rows;
}

ordered_json measured_json(const EvidenceFigure& figure) {
  ordered_json result{{"name", figure.name},
                      {"value", figure.value},
                      {"bar", figure.bar},
                      {"passed", figure.passed}};
  if (figure.missing.empty()) return result;
  result["value"] = result["passed"] = nullptr;
  result["missing"] = figure.missing;
  return result;
}

ordered_json map_json(const Alignment& alignment, const std::vector<EvidenceFigure>& evidence) {
  check_grid(alignment, alignment.weights);
  ordered_json document{{"title", alignment.title},
                        {"source", alignment.source},
                        {"target", alignment.target},
                        {"weights", grid_json(alignment.weights)}};
  if (alignment.scores) {
    check_grid(alignment, *alignment.scores);
    document["scores"] = grid_json(*alignment.scores);
  }
  for (const EvidenceFigure& figure : evidence)
    document["evidence"].push_back(measured_json(figure));
  return document;
}

}  // namespace

std::string alignment_json(const Alignment& alignment, const std::vector<EvidenceFigure>& evidence,
                           const HeadPatterns& patterns) {
  ordered_json document = map_json(alignment, evidence);
  for (size_t i = 0; i < patterns.shares.size(); ++i)
    document["patterns"][head_pattern_table()[i].name] = patterns.shares[i];
  return json_line(document);
}

std::string sum_json(const Alignment& alignment, const ShownSum& sum) {
  ordered_json document = map_json(alignment, sum.card);
  document["measure"] = sum.measure;
  for (const auto& [name, value] : sum.figures) document[name] = value;
  return json_line(document);
}

std::string faithfulness_json(const Faithfulness& measured) {
  ordered_json document = {{"examples", measured.examples}};
  for (const FaithfulnessFigure& figure : measured.figures) {
    auto& entry = document["methods"][figure.method->name][figure.figure->name];
    entry = {
        {"examples", figure.examples}, {"mean", figure.mean},           {"low", figure.low},
        {"high", figure.high},         {"compared_with", figure.other}, {"bar", figure.figure->bar},
        {"passed", figure.passed}};
    if (figure.examples == 0) entry["passed"] = nullptr;
    if (figure.figure->compares) {
      entry["difference_low"] = figure.difference_low;
      entry["difference_high"] = figure.difference_high;
    }
    if (!figure.missing.empty()) entry["missing"] = figure.missing;
  }
  document["left_out"] = ordered_json::array();
  for (const LeftOut& one : measured.left_out)
    document["left_out"].push_back(
        {{"method", one.what}, {"examples", one.examples}, {"why", one.why}});
  return json_line(document);
}

}  // namespace attend
