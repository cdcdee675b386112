#include "attend/metrics/metric.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>

#include "attend/base/error.h"

namespace attend {

std::string Metric::shown(double figure) const {
  return is_share ? fmt::format("{:.{}f} %", 100 * figure, decimals)
                  : fmt::format("{:.{}f}", figure, decimals);
}

nlohmann::json Metric::report(const MetricCounts& counts, const MetricOptions& options) const {
  if (!of_answers()) fail("[metrics] {} is not told from answers", name);
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
  if (!metric.of_answers()) fail("[metrics] {} is not told from answers", metric.name);
  MetricCounts sum;
  for (size_t i = 0; i < answers.size(); ++i) {
    if (is_stopped && is_stopped()) fail("[metrics] the work was stopped; nobody waits for it");
    if (lengths.holds(answers[i].source_length))
      at_answer(i, [&] { add_counts(sum, metric.count(answers[i], options)); });
  }
  return sum;
}

double measure_answers(const Metric& metric, const std::vector<ScoredAnswer>& answers,
                       const MetricOptions& options, const LengthRange& lengths) {
  return metric.figure(count_answers(metric, answers, options, lengths), options);
}

std::optional<FigureInterval> interval_of(const Metric& metric,
                                          const std::vector<ScoredAnswer>& answers,
                                          const MetricOptions& options) {
  // With many answers fewer sets are enough, which bounds the time.
  constexpr size_t draws = 5'000'000, fewest = 200, most = 1000, least = 100;
  if (answers.empty()) return std::nullopt;
  std::vector<MetricCounts> counts;
  counts.reserve(answers.size());
  for (size_t i = 0; i < answers.size(); ++i)
    at_answer(i, [&] { counts.push_back(metric.count(answers[i], options)); });
  std::mt19937_64 random(1);
  std::vector<double> figures;
  for (size_t set = std::clamp(draws / answers.size(), fewest, most); set > 0; --set) {
    MetricCounts sum;
    for (size_t i = 0; i < counts.size(); ++i) add_counts(sum, counts[random() % counts.size()]);
    try {
      figures.push_back(metric.figure(sum, options));
    } catch (const Error&) {
      // All answers of the set are of one class, say.
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
