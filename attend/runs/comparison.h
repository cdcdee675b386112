#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "attend/inference/evaluation.h"
#include "attend/metrics/metric.h"

namespace attend {

// The models of one row: alike but for their seeds.
struct ComparedRow {
  std::string name;
  MetricOptions options = {};
  std::vector<Evaluation> runs = {};  // one per seed
  double minutes = 0;                 // of training, the mean of the runs
};

// The functions below compare rows by a metric of answers and by its companion, where it has one.

// A Markdown table: one line per row, with the figures of all tests and the last of them by the
// length of the source.
std::string comparison_table(const std::vector<ComparedRow>& rows, const Metric& metric);

// The metric against the length of the source, one line per row; the band is the range over the
// seeds.
std::string comparison_chart(const std::vector<ComparedRow>& rows, const Metric& metric);

nlohmann::json comparison_json(const std::vector<ComparedRow>& rows, const Metric& metric);

}  // namespace attend
