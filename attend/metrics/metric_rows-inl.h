#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include "attend/metrics/metric.h"

// The rows of the table of metrics, by what they need.
namespace attend::internal {

std::deque<Metric> text_rows();
std::deque<Metric> span_rows();
std::deque<Metric> number_rows();
std::deque<Metric> ranking_rows();

// The names that ranking_row() takes.
std::vector<std::string> ranking_names();

// The row of `name`@`number`; none where there is no such name.
std::optional<Metric> ranking_row(std::string_view name, int64_t number);

// The tokens of the reference that has the most tokens of the answer at their places, the first of
// several. Error if there is none.
const std::vector<std::string>& best_reference(const ScoredAnswer& answer);

inline double number_of(const MetricCounts& counts, const std::string& name) {
  const auto found = counts.find(name);
  return found == counts.end() ? 0 : found->second;
}

}  // namespace attend::internal
