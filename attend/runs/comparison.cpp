#include "attend/runs/comparison.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "attend/pictures/chart.h"
#include "attend/runs/validation_metric.h"

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

// The answers to sources that long, and the examples that they are to.
std::pair<Evaluation, std::vector<Example>> answers_within(const Evaluation& evaluation,
                                                           const std::vector<Example>& examples,
                                                           const LengthRange& range) {
  std::pair<Evaluation, std::vector<Example>> part;
  for (size_t i = 0; i < examples.size(); ++i) {
    if (!range.holds(evaluation.lengths[i])) continue;
    part.first.answers.push_back(evaluation.answers[i]);
    part.second.push_back(examples[i]);
  }
  return part;
}

std::vector<double> over_runs(const ComparedRow& row, const ComparedFigure& figure,
                              const LengthRange& range) {
  std::vector<double> figures;
  figures.reserve(row.runs.size());
  for (const Evaluation& run : row.runs) figures.push_back(figure.of(row, run, range));
  return figures;
}

constexpr LengthRange any_length = {0, std::numeric_limits<int64_t>::max()};

std::string shown(const ComparedFigure& figure, const Spread& spread, bool several) {
  const double scale = figure.is_share ? 100 : 1;
  const std::string mean = fmt::format("{:.1f}", scale * spread.mean);
  return several ? fmt::format("{} ± {:.1f}", mean, scale * spread.deviation) : mean;
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

std::vector<ComparedFigure> compared_figures(const std::string& metric,
                                             const std::vector<Example>& examples) {
  if (metric == "bleu") {
    const ValidationMetric bleu = *find_validation_metric(metric);
    return {{"BLEU", "bleu", false,
             [bleu, &examples](const ComparedRow& row, const Evaluation& run,
                               const LengthRange& range) {
               const auto [answers, own] = answers_within(run, examples, range);
               return bleu.figure(bleu.counts(answers, own, row.text), row.text);
             }}};
  }
  return {{"token error", "token_error_rates", true,
           [](const ComparedRow&, const Evaluation& run, const LengthRange& range) {
             return errors_within(run, range).token_error_rate();
           }},
          {"answers wrong", "sequence_error_rates", true,
           [](const ComparedRow&, const Evaluation& run, const LengthRange& range) {
             return errors_within(run, range).sequence_error_rate();
           }}};
}

std::string comparison_table(const std::vector<ComparedRow>& rows,
                             const std::vector<ComparedFigure>& figures) {
  if (rows.empty() || rows[0].runs.empty()) return "";
  const bool several = rows[0].runs.size() > 1;
  const std::vector<LengthRange> ranges = length_ranges(rows[0].runs[0]);
  std::vector<std::string> head = {"mechanism"};
  for (const ComparedFigure& figure : figures)
    head.push_back(figure.name + (figure.is_share ? ", %" : ""));
  for (size_t i = 0; i < ranges.size(); ++i)
    head.push_back((i == 0 ? "of sources " : "") +
                   range_name(ranges[i], i > 0 && i + 1 == ranges.size()) +
                   (i == 0 ? " long" : ""));
  head.emplace_back("minutes");
  std::string table = fmt::format("| {} |\n|", fmt::join(head, " | "));
  for (size_t i = 0; i < head.size(); ++i) table += "---|";
  table += '\n';
  for (const ComparedRow& row : rows) {
    std::vector<std::string> cells = {row.name};
    for (const ComparedFigure& figure : figures)
      cells.push_back(shown(figure, spread_of(over_runs(row, figure, any_length)), several));
    for (const LengthRange& range : ranges)
      cells.push_back(
          shown(figures.back(), spread_of(over_runs(row, figures.back(), range)), false));
    cells.push_back(fmt::format("{:.1f}", row.minutes));
    table += fmt::format("| {} |\n", fmt::join(cells, " | "));
  }
  return table;
}

std::string comparison_chart(const std::vector<ComparedRow>& rows,
                             const std::vector<ComparedFigure>& figures) {
  const ComparedFigure& figure = figures.front();
  Chart chart;
  chart.title = (figure.is_share ? "Errors" : figure.name) + " against the length of the source";
  chart.x_label = "source tokens";
  chart.y_label = figure.name;
  chart.y_as_percent = figure.is_share;
  chart.height = 520;
  for (const ComparedRow& row : rows) {
    if (row.runs.empty()) continue;
    ChartSeries& series = chart.series.emplace_back();
    series.name = row.name;
    for (const LengthRange& range : length_ranges(rows[0].runs[0])) {
      const auto measured = over_runs(row, figure, range);
      const auto [low, high] = std::minmax_element(measured.begin(), measured.end());
      series.points.push_back(
          {middle_of(row.runs[0], range), spread_of(measured).mean, *low, *high});
    }
  }
  return line_chart_svg(chart);
}

nlohmann::json comparison_json(const std::vector<ComparedRow>& rows,
                               const std::vector<ComparedFigure>& figures) {
  nlohmann::json all = nlohmann::json::array();
  for (const ComparedRow& row : rows) {
    nlohmann::json lengths = nlohmann::json::array();
    for (const LengthRange& range :
         row.runs.empty() ? std::vector<LengthRange>() : length_ranges(rows[0].runs[0])) {
      nlohmann::json& part = lengths.emplace_back();
      part = {{"first", range.first},
              {"last", range.last},
              {"examples", errors_within(row.runs[0], range).examples}};
      for (const ComparedFigure& figure : figures) part[figure.key] = over_runs(row, figure, range);
    }
    nlohmann::json& own = all.emplace_back();
    own = {{"mechanism", row.name}, {"minutes", row.minutes}, {"by_length", lengths}};
    for (const ComparedFigure& figure : figures)
      own[figure.key] = over_runs(row, figure, any_length);
  }
  return {{"mechanisms", all}};
}

}  // namespace attend
