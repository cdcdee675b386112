#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "attend/inference/evaluation.h"
#include "attend/metrics/metric.h"

namespace attend {

// Models that differ only in their seeds.
struct ComparedRow {
  std::string name;
  MetricOptions options = {};
  std::vector<Evaluation> runs = {};  // one per seed
  double minutes = 0;                 // mean training time of the runs
};

// The functions below compare rows by a metric of answers and by its companion, if it has one.

// A Markdown table, one line per row: all metrics over all tests, and the last metric by source
// length.
std::string comparison_table(const std::vector<ComparedRow>& rows, const Metric& metric);

// A chart of the metric by source length, one line per row. The band is the range over the seeds.
std::string comparison_chart(const std::vector<ComparedRow>& rows, const Metric& metric);

nlohmann::json comparison_json(const std::vector<ComparedRow>& rows, const Metric& metric);

}  // namespace attend
