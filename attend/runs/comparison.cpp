#include "attend/runs/comparison.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "attend/metrics/length_ranges.h"
#include "attend/pictures/chart.h"

namespace attend {
namespace {

// Mean and sample standard deviation, which is 0 for a single number.
struct Spread {
  double mean = 0;
  double deviation = 0;
};

Spread spread_of(const std::vector<double>& numbers) {
  const auto count = static_cast<double>(numbers.size());
  if (numbers.empty()) return {};
  const double mean = std::reduce(numbers.begin(), numbers.end()) / count;
  double squares = 0;
  for (const double number : numbers) squares += (number - mean) * (number - mean);
  return {mean, count > 1 ? std::sqrt(squares / (count - 1)) : 0};
}

std::vector<const Metric*> compared(const Metric& metric) {
  if (metric.companion.empty()) return {&metric};
  return {&metric, &metric_named(metric.companion)};
}

std::vector<double> over_runs(const ComparedRow& row, const Metric& metric,
                              const LengthRange& range = {}) {
  std::vector<double> figures;
  figures.reserve(row.runs.size());
  for (const Evaluation& run : row.runs)
    figures.push_back(measure_answers(metric, run.answers, row.options, range));
  return figures;
}

const std::string& key_of_runs(const Metric& metric) {
  return metric.runs_key.empty() ? metric.key : metric.runs_key;
}

std::string shown(const Metric& metric, const Spread& spread, bool several) {
  const double scale = metric.is_share ? 100 : 1;
  const std::string mean = fmt::format("{:.1f}", scale * spread.mean);
  return several ? fmt::format("{} ± {:.1f}", mean, scale * spread.deviation) : mean;
}

std::string range_name(const LengthRange& range, bool is_last) {
  if (is_last) return fmt::format("{} and more", range.first);
  return range.first == range.last ? fmt::format("{}", range.first)
                                   : fmt::format("{}-{}", range.first, range.last);
}

std::vector<LengthRange> ranges_of(const std::vector<ComparedRow>& rows) {
  return rows[0].runs.empty() ? std::vector<LengthRange>()
                              : length_ranges(rows[0].runs[0].source_lengths());
}

std::vector<double> lengths_within(const Evaluation& evaluation, const LengthRange& range) {
  std::vector<double> lengths;
  for (const int64_t length : evaluation.source_lengths())
    if (range.holds(length)) lengths.push_back(static_cast<double>(length));
  return lengths;
}

}  // namespace

std::string comparison_table(const std::vector<ComparedRow>& rows, const Metric& metric) {
  if (rows.empty() || rows[0].runs.empty()) return "";
  const std::vector<const Metric*> metrics = compared(metric);
  const bool several = rows[0].runs.size() > 1;
  const std::vector<LengthRange> ranges = ranges_of(rows);
  std::vector<std::string> head = {"mechanism"};
  for (const Metric* each : metrics) head.push_back(each->title + (each->is_share ? ", %" : ""));
  for (size_t i = 0; i < ranges.size(); ++i)
    head.push_back((i == 0 ? "sources " : "") +
                   range_name(ranges[i], i > 0 && i + 1 == ranges.size()) +
                   (i == 0 ? " long" : ""));
  head.emplace_back("minutes");
  std::string table = fmt::format("| {} |\n|", fmt::join(head, " | "));
  for (size_t i = 0; i < head.size(); ++i) table += "---|";
  table += '\n';
  for (const ComparedRow& row : rows) {
    std::vector<std::string> cells = {row.name};
    for (const Metric* each : metrics)
      cells.push_back(shown(*each, spread_of(over_runs(row, *each)), several));
    const Metric& last = *metrics.back();
    for (const LengthRange& range : ranges)
      cells.push_back(shown(last, spread_of(over_runs(row, last, range)), false));
    cells.push_back(fmt::format("{:.1f}", row.minutes));
    table += fmt::format("| {} |\n", fmt::join(cells, " | "));
  }
  return table;
}

std::string comparison_chart(const std::vector<ComparedRow>& rows, const Metric& metric) {
  Chart chart;
  chart.title =
      (metric.higher_is_better ? metric.title : "Errors") + " against the length of the source";
  chart.x_label = "source tokens";
  chart.y_label = metric.title;
  chart.y_as_percent = metric.is_share;
  chart.height = 520;
  for (const ComparedRow& row : rows) {
    if (row.runs.empty()) continue;
    ChartSeries& series = chart.series.emplace_back();
    series.name = row.name;
    for (const LengthRange& range : ranges_of(rows)) {
      const auto measured = over_runs(row, metric, range);
      const auto [low, high] = std::minmax_element(measured.begin(), measured.end());
      series.points.push_back({spread_of(lengths_within(row.runs[0], range)).mean,
                               spread_of(measured).mean, *low, *high});
    }
  }
  return line_chart_svg(chart);
}

nlohmann::json comparison_json(const std::vector<ComparedRow>& rows, const Metric& metric) {
  const std::vector<const Metric*> metrics = compared(metric);
  nlohmann::json all = nlohmann::json::array();
  for (const ComparedRow& row : rows) {
    nlohmann::json lengths = nlohmann::json::array();
    if (!row.runs.empty())
      for (const LengthRange& range : ranges_of(rows)) {
        nlohmann::json& part = lengths.emplace_back();
        part = {{"first", range.first},
                {"last", range.last},
                {"examples", lengths_within(row.runs[0], range).size()}};
        for (const Metric* each : metrics) part[key_of_runs(*each)] = over_runs(row, *each, range);
      }
    nlohmann::json& own = all.emplace_back();
    own = {{"mechanism", row.name}, {"minutes", row.minutes}, {"by_length", lengths}};
    for (const Metric* each : metrics) own[key_of_runs(*each)] = over_runs(row, *each);
  }
  return {{"mechanisms", all}};
}

}  // namespace attend
