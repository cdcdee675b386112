#include "attend/metrics/metric.h"

#include <algorithm>
#include <nlohmann/json.hpp>

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
                           const MetricOptions& options, const LengthRange& lengths) {
  if (!metric.of_answers()) fail("[metrics] {} is not told from answers", metric.name);
  MetricCounts sum;
  for (size_t i = 0; i < answers.size(); ++i)
    if (lengths.holds(answers[i].source_length))
      at_answer(i, [&] { add_counts(sum, metric.count(answers[i], options)); });
  return sum;
}

double measure_answers(const Metric& metric, const std::vector<ScoredAnswer>& answers,
                       const MetricOptions& options, const LengthRange& lengths) {
  return metric.figure(count_answers(metric, answers, options, lengths), options);
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
