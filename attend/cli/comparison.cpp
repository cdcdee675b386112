#include "attend/cli/comparison.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "attend/explain/chart.h"

namespace attend {
namespace {

// Steps of the length between the rare short and the rare long sources.
constexpr int64_t inner_ranges = 4;

ErrorCounts errors_within(const Evaluation& evaluation, const LengthRange& range) {
  ErrorCounts sum;
  for (const auto& [length, errors] : evaluation.by_length)
    if (range.holds(length)) sum += errors;
  return sum;
}

std::vector<double> over_runs(const ComparedRow& row,
                              const std::function<double(const Evaluation&)>& figure) {
  std::vector<double> figures;
  figures.reserve(row.runs.size());
  for (const Evaluation& run : row.runs) figures.push_back(figure(run));
  return figures;
}

double token_errors(const Evaluation& run) { return run.errors.token_error_rate(); }
double sequence_errors(const Evaluation& run) { return run.errors.sequence_error_rate(); }

std::string percentage(const Spread& spread, bool several) {
  const std::string mean = fmt::format("{:.1f}", 100 * spread.mean);
  return several ? fmt::format("{} ± {:.1f}", mean, 100 * spread.deviation) : mean;
}

std::string range_name(const LengthRange& range, bool is_last) {
  if (is_last) return fmt::format("{} and more", range.first);
  return range.first == range.last ? fmt::format("{}", range.first)
                                   : fmt::format("{}-{}", range.first, range.last);
}

// The mean length of the sources in the range.
double middle_of(const Evaluation& evaluation, const LengthRange& range) {
  double lengths = 0, examples = 0;
  for (const auto& [length, errors] : evaluation.by_length) {
    if (!range.holds(length)) continue;
    lengths += static_cast<double>(length * errors.examples);
    examples += static_cast<double>(errors.examples);
  }
  return lengths / std::max(examples, 1.0);
}

// The length that `share` of the sources do not exceed.
int64_t quantile(const Evaluation& evaluation, double share) {
  double seen = 0;
  for (const auto& [length, errors] : evaluation.by_length) {
    seen += static_cast<double>(errors.examples);
    if (seen >= share * static_cast<double>(evaluation.errors.examples)) return length;
  }
  return 0;
}

}  // namespace

Spread spread_of(const std::vector<double>& numbers) {
  const auto count = static_cast<double>(numbers.size());
  if (numbers.empty()) return {};
  const double mean = std::reduce(numbers.begin(), numbers.end()) / count;
  double squares = 0;
  for (const double number : numbers) squares += (number - mean) * (number - mean);
  return {mean, count > 1 ? std::sqrt(squares / (count - 1)) : 0};
}

std::vector<LengthRange> length_ranges(const Evaluation& evaluation) {
  if (evaluation.by_length.empty()) return {};
  const int64_t shortest = evaluation.by_length.begin()->first;
  const int64_t longest = evaluation.by_length.rbegin()->first;
  const int64_t low = quantile(evaluation, 0.05), high = quantile(evaluation, 0.95);
  const int64_t width = std::max<int64_t>(1, (high - low + inner_ranges - 1) / inner_ranges);
  std::vector<LengthRange> ranges = {{shortest, low}};
  while (ranges.back().last < high)
    ranges.push_back({ranges.back().last + 1, ranges.back().last + width});
  ranges.back().last = longest;
  return ranges;
}

std::string comparison_table(const std::vector<ComparedRow>& rows) {
  if (rows.empty() || rows[0].runs.empty()) return "";
  const bool several = rows[0].runs.size() > 1;
  const std::vector<LengthRange> ranges = length_ranges(rows[0].runs[0]);
  std::vector<std::string> head = {"mechanism", "token error, %", "answers wrong, %"};
  for (size_t i = 0; i < ranges.size(); ++i)
    head.push_back((i == 0 ? "of sources " : "") +
                   range_name(ranges[i], i > 0 && i + 1 == ranges.size()) +
                   (i == 0 ? " long" : ""));
  head.emplace_back("minutes");
  std::string table = fmt::format("| {} |\n|", fmt::join(head, " | "));
  for (size_t i = 0; i < head.size(); ++i) table += "---|";
  table += '\n';
  for (const ComparedRow& row : rows) {
    std::vector<std::string> cells = {
        row.name, percentage(spread_of(over_runs(row, token_errors)), several),
        percentage(spread_of(over_runs(row, sequence_errors)), several)};
    for (const LengthRange& range : ranges)
      cells.push_back(
          percentage(spread_of(over_runs(row,
                                         [&](const Evaluation& run) {
                                           return errors_within(run, range).sequence_error_rate();
                                         })),
                     false));
    cells.push_back(fmt::format("{:.1f}", row.minutes));
    table += fmt::format("| {} |\n", fmt::join(cells, " | "));
  }
  return table;
}

std::string comparison_chart(const std::vector<ComparedRow>& rows) {
  Chart chart;
  chart.title = "Errors against the length of the source";
  chart.x_label = "source symbols";
  chart.y_label = "token error";
  chart.y_as_percent = true;
  chart.height = 520;
  for (const ComparedRow& row : rows) {
    if (row.runs.empty()) continue;
    ChartSeries& series = chart.series.emplace_back();
    series.name = row.name;
    for (const LengthRange& range : length_ranges(rows[0].runs[0])) {
      const auto errors = over_runs(
          row, [&](const Evaluation& run) { return errors_within(run, range).token_error_rate(); });
      const auto [low, high] = std::minmax_element(errors.begin(), errors.end());
      series.points.push_back({middle_of(row.runs[0], range), spread_of(errors).mean, *low, *high});
    }
  }
  return line_chart_svg(chart);
}

nlohmann::json comparison_json(const std::vector<ComparedRow>& rows) {
  nlohmann::json all = nlohmann::json::array();
  for (const ComparedRow& row : rows) {
    nlohmann::json lengths = nlohmann::json::array();
    for (const LengthRange& range :
         row.runs.empty() ? std::vector<LengthRange>() : length_ranges(rows[0].runs[0])) {
      const auto pooled = [&](const Evaluation& run) { return errors_within(run, range); };
      lengths.push_back(
          {{"first", range.first},
           {"last", range.last},
           {"examples", pooled(row.runs[0]).examples},
           {"token_error_rates",
            over_runs(row, [&](const Evaluation& run) { return pooled(run).token_error_rate(); })},
           {"sequence_error_rates", over_runs(row, [&](const Evaluation& run) {
              return pooled(run).sequence_error_rate();
            })}});
    }
    all.push_back({{"mechanism", row.name},
                   {"token_error_rates", over_runs(row, token_errors)},
                   {"sequence_error_rates", over_runs(row, sequence_errors)},
                   {"minutes", row.minutes},
                   {"by_length", lengths}});
  }
  return {{"mechanisms", all}};
}

}  // namespace attend
