#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include "attend/metrics/metric.h"

// Rows of the metric table, by what they need.
namespace attend::internal {

std::deque<Metric> text_rows();
std::deque<Metric> span_rows();
std::deque<Metric> label_set_rows();
std::deque<Metric> squad_rows();
std::deque<Metric> number_rows();
std::deque<Metric> ranking_rows();

// Names that ranking_row() accepts.
std::vector<std::string> ranking_names();

// Row of `name`@`number`; empty if the name is unknown.
std::optional<Metric> ranking_row(std::string_view name, int64_t number);

// Tokens of the reference that agrees with the answer at the most positions; the first if tied.
// Error without a reference.
const std::vector<std::string>& best_reference(const ScoredAnswer& answer);

inline double number_of(const MetricCounts& counts, const std::string& name) {
  const auto found = counts.find(name);
  return found == counts.end() ? 0 : found->second;
}

}  // namespace attend::internal
