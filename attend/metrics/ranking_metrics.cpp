#include <algorithm>
#include <cmath>

#include "attend/base/error.h"
#include "attend/base/parse_number.h"
#include "attend/metrics/metric_rows-inl.h"

namespace attend {
namespace {

constexpr const char* not_ranked = "not ranked";

MetricCounts count_rank(const ScoredAnswer& answer, const MetricOptions&) {
  if (!answer.rank) return {{not_ranked, 1}};
  return {{fmt::format("{} {}", answer.rank->above, answer.rank->tied), 1}};
}

// Mean of `gain` over all answers; answers without a rank gain 0.
template <class Gain>
double mean_gain(const MetricCounts& counts, Gain gain) {
  double sum = 0, answers = 0;
  for (const auto& [name, count] : counts) {
    answers += count;
    if (name == not_ranked) continue;
    const std::string_view text = name;
    const size_t blank = text.find(' ');
    const Rank rank{parse_number<int64_t>(text.substr(0, blank)).value(),
                    parse_number<int64_t>(text.substr(blank + 1)).value()};
    sum += count * gain(rank);
  }
  return sum / std::max(1.0, answers);
}

// Share of the orders of the tied items in which the right one is among the first k.
double hit(const Rank& rank, int64_t k) {
  const int64_t within = std::clamp<int64_t>(k - rank.above, 0, rank.tied + 1);
  return static_cast<double>(within) / static_cast<double>(rank.tied + 1);
}

// 1 / log2(place + 1) if the place is among the first k (Jarvelin & Kekalainen 2002); mean over the
// orders of the tied items (McSherry & Najork 2008).
double discounted_gain(const Rank& rank, int64_t k) {
  double sum = 0;
  const int64_t last = std::min(k, rank.above + rank.tied + 1);
  for (int64_t place = rank.above + 1; place <= last; ++place)
    sum += 1 / std::log2(static_cast<double>(place) + 1);
  return sum / static_cast<double>(rank.tied + 1);
}

// Mean of 1 / place over the orders of the tied items.
double reciprocal(const Rank& rank) {
  double sum = 0;
  for (int64_t place = rank.above + 1; place <= rank.above + rank.tied + 1; ++place)
    sum += 1 / static_cast<double>(place);
  return sum / static_cast<double>(rank.tied + 1);
}

struct RankingFamily {
  std::string_view name, title;
  double (*gain)(const Rank& rank, int64_t k);
};

constexpr RankingFamily families[] = {{"hit", "right among the first", hit},
                                      {"ndcg", "NDCG of the first", discounted_gain}};

constexpr int64_t usual_number = 10;

}  // namespace

std::vector<std::string> internal::ranking_names() {
  std::vector<std::string> names;
  for (const RankingFamily& family : families) names.emplace_back(family.name);
  return names;
}

std::optional<Metric> internal::ranking_row(std::string_view name, int64_t number) {
  for (const RankingFamily& family : families) {
    if (family.name != name) continue;
    const std::string full_name = fmt::format("{}@{}", name, number);
    return Metric{
        .name = full_name,
        .key = full_name,
        .title = fmt::format("{} {}", family.title, number),
        .needs = MetricNeeds::rank,
        .higher_is_better = true,
        .decimals = 4,
        .measured = MeasuredFor::rankings,
        .count = count_rank,
        .figure = [gain = family.gain, number](const MetricCounts& counts, const MetricOptions&) {
          return mean_gain(counts, [&](const Rank& rank) { return gain(rank, number); });
        }};
  }
  return std::nullopt;
}

std::deque<Metric> internal::ranking_rows() {
  std::deque<Metric> rows;
  for (const RankingFamily& family : families)
    rows.push_back(*ranking_row(family.name, usual_number));
  rows.push_back({.name = "mrr",
                  .key = "mrr",
                  .title = "mean reciprocal rank",
                  .needs = MetricNeeds::rank,
                  .higher_is_better = true,
                  .decimals = 4,
                  .measured = MeasuredFor::rankings,
                  .count = count_rank,
                  .figure = [](const MetricCounts& counts, const MetricOptions&) {
                    return mean_gain(counts, reciprocal);
                  }});
  return rows;
}

}  // namespace attend
