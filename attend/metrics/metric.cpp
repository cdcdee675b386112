#include "attend/metrics/metric.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>
#include <utility>

#include "attend/base/error.h"

namespace attend {

std::string Metric::shown(double figure) const {
  return is_share ? fmt::format("{:.{}f} %", 100 * figure, decimals)
                  : fmt::format("{:.{}f}", figure, decimals);
}

nlohmann::json Metric::report(const MetricCounts& counts, const MetricOptions& options) const {
  if (!of_answers()) fail("[metrics] {} cannot be computed from answers", name);
  return details ? details(counts, options) : nlohmann::json(figure(counts, options));
}

std::string Metric::report_text(const nlohmann::json& report, std::string_view part) const {
  if (details_text) return details_text(report);
  std::string words = key;
  std::replace(words.begin(), words.end(), '_', ' ');
  const std::string unit = mean.empty() ? "" : fmt::format(" {} {}", mean, part);
  return fmt::format("{:<20} {:>{}}{}\n", words, shown(report.get<double>()), is_share ? 8 : 6,
                     unit);
}

MetricCounts count_answers(const Metric& metric, const std::vector<ScoredAnswer>& answers,
                           const MetricOptions& options, const LengthRange& lengths,
                           const std::function<bool()>& is_stopped) {
  if (!metric.of_answers()) fail("[metrics] {} cannot be computed from answers", metric.name);
  MetricCounts sum;
  for (size_t i = 0; i < answers.size(); ++i) {
    if (is_stopped && is_stopped()) fail("[metrics] the work was cancelled");
    if (lengths.holds(answers[i].source_length))
      at_answer(i, [&] { add_counts(sum, metric.count(answers[i], options)); });
  }
  return sum;
}

double measure_answers(const Metric& metric, const std::vector<ScoredAnswer>& answers,
                       const MetricOptions& options, const LengthRange& lengths) {
  return metric.figure(count_answers(metric, answers, options, lengths), options);
}

namespace {

// Counts per answer, with indices into `names`.
struct NumberedCounts {
  std::vector<std::string> names;
  std::vector<std::vector<std::pair<size_t, double>>> answers;
};

NumberedCounts numbered(const Metric& metric, const std::vector<ScoredAnswer>& answers,
                        const MetricOptions& options) {
  std::map<std::string, size_t> numbers;
  NumberedCounts all;
  all.answers.resize(answers.size());
  for (size_t i = 0; i < answers.size(); ++i)
    at_answer(i, [&] {
      for (const auto& [name, count] : metric.count(answers[i], options)) {
        const auto [place, is_new] = numbers.try_emplace(name, numbers.size());
        if (is_new) all.names.push_back(name);
        all.answers[i].emplace_back(place->second, count);
      }
    });
  return all;
}

CountedFigure counted_figure(const Metric& metric, const std::vector<std::string>& names,
                             const MetricOptions& options) {
  if (metric.figure_by_name) return metric.figure_by_name(names);
  return [&](const std::vector<double>& counts) {
    MetricCounts named;
    for (size_t i = 0; i < names.size(); ++i)
      if (counts[i] != 0) named.emplace(names[i], counts[i]);
    return metric.figure(named, options);
  };
}

}  // namespace

std::optional<FigureInterval> interval_of(const Metric& metric,
                                          const std::vector<ScoredAnswer>& answers,
                                          const MetricOptions& options) {
  constexpr size_t draws = 5'000'000, fewest = 200, maximum = 1000, least = 100;
  if (answers.empty()) return std::nullopt;
  const NumberedCounts all = numbered(metric, answers, options);
  const CountedFigure figure = counted_figure(metric, all.names, options);
  std::mt19937_64 random(1);
  std::vector<double> figures;
  for (size_t set = std::clamp(draws / answers.size(), fewest, maximum); set > 0; --set) {
    std::vector<double> sum(all.names.size());
    for (size_t i = 0; i < answers.size(); ++i)
      for (const auto& [name, count] : all.answers[random() % answers.size()]) sum[name] += count;
    try {
      figures.push_back(figure(sum));
    } catch (const Error&) {
      // The sample lacks a figure, e.g. because all its answers are of one class.
    }
  }
  if (figures.size() < least) return std::nullopt;
  std::sort(figures.begin(), figures.end());
  const size_t tail = figures.size() / 40;
  return FigureInterval{figures[tail], figures[figures.size() - 1 - tail]};
}

std::optional<Rank> rank_among(const std::vector<std::string>& ranked,
                               const std::vector<std::string>& right) {
  const auto found = std::find_first_of(ranked.begin(), ranked.end(), right.begin(), right.end());
  if (found == ranked.end()) return std::nullopt;
  return Rank{.above = found - ranked.begin()};
}

void add_counts(MetricCounts& sum, const MetricCounts& part) {
  for (const auto& [name, number] : part) sum[name] += number;
}

void at_answer(size_t i, const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    fail("answer {} or a reference of it: {}", i + 1, error.what());
  }
}

}  // namespace attend
