#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "attend/base/edit_distance.h"
#include "attend/base/error.h"
#include "attend/base/find_row.h"
#include "attend/base/parse_number.h"
#include "attend/metrics/metric.h"
#include "attend/metrics/metric_rows-inl.h"

namespace attend {
namespace {

using internal::number_of;

double share(const MetricCounts& counts, const std::string& part, const std::string& all) {
  return number_of(counts, part) / std::max(1.0, number_of(counts, all));
}

// Counts the edits to the nearest reference, and the reference's tokens.
MetricCounts count_edits(const ScoredAnswer& answer, const MetricOptions&) {
  int64_t fewest = std::numeric_limits<int64_t>::max();
  size_t length = 0;
  for (const auto& reference : answer.reference_tokens) {
    const int64_t edits = edit_distance(answer.tokens, reference);
    if (edits >= fewest) continue;
    fewest = edits;
    length = reference.size();
  }
  return {{"edits", static_cast<double>(fewest)}, {"tokens", static_cast<double>(length)}};
}

MetricCounts count_wrong(const ScoredAnswer& answer, const MetricOptions&) {
  const auto& right = answer.reference_tokens;
  const bool found = std::find(right.begin(), right.end(), answer.tokens) != right.end();
  return {{"wrong", found ? 0 : 1}, {"answers", 1}};
}

int64_t right_places(const std::vector<std::string>& answer,
                     const std::vector<std::string>& reference) {
  int64_t right = 0;
  for (size_t i = 0; i < std::min(reference.size(), answer.size()); ++i)
    right += reference[i] == answer[i];
  return right;
}

// Counts the right tokens by position against the best reference, and the reference's tokens.
MetricCounts count_right_places(const ScoredAnswer& answer, const MetricOptions&) {
  const auto& reference = internal::best_reference(answer);
  return {{"right", static_cast<double>(right_places(answer.tokens, reference))},
          {"tokens", static_cast<double>(reference.size())}};
}

double share_of_right_places(const MetricCounts& counts, const MetricOptions&) {
  return share(counts, "right", "tokens");
}

double share_of_wrong(const MetricCounts& counts, const MetricOptions&) {
  return share(counts, "wrong", "answers");
}

std::deque<Metric> token_rows() {
  return {{.name = "token_error",
           .key = "token_error_rate",
           .title = "token error",
           .needs = MetricNeeds::tokens,
           .is_share = true,
           .measured = MeasuredFor::sequences,
           .by_length = ByLength::each_length,
           .companion = "sequence_error",
           .runs_key = "token_error_rates",
           .count = count_edits,
           .figure = [](const MetricCounts& counts,
                        const MetricOptions&) { return share(counts, "edits", "tokens"); }},
          {.name = "sequence_error",
           .key = "sequence_error_rate",
           .title = "answers wrong",
           .needs = MetricNeeds::tokens,
           .is_share = true,
           .measured = MeasuredFor::sequences,
           .by_length = ByLength::each_length,
           .runs_key = "sequence_error_rates",
           .count = count_wrong,
           .figure = share_of_wrong},
          {.name = "token_accuracy",
           .key = "token_accuracy",
           .title = "token accuracy",
           .needs = MetricNeeds::tokens,
           .higher_is_better = true,
           .is_share = true,
           .measured = MeasuredFor::tags,
           .by_length = ByLength::each_length,
           .count = count_right_places,
           .figure = share_of_right_places},
          {.name = "accuracy",
           .key = "accuracy",
           .title = "accuracy",
           .needs = MetricNeeds::tokens,
           .higher_is_better = true,
           .is_share = true,
           .measured = MeasuredFor::labels,
           .by_length = ByLength::each_length,
           .count =
               [](const ScoredAnswer& answer, const MetricOptions& options) {
                 return options.label_per_token ? count_right_places(answer, options)
                                                : count_wrong(answer, options);
               },
           .figure =
               [](const MetricCounts& counts, const MetricOptions& options) {
                 return options.label_per_token ? share_of_right_places(counts, options)
                                                : 1 - share_of_wrong(counts, options);
               }}};
}

std::deque<Metric> likelihood_rows() {
  return {{.name = "loss",
           .key = "loss",
           .title = "loss",
           .needs = MetricNeeds::loss,
           .decimals = 4,
           .mean = "nats per",
           .measured = MeasuredFor::always,
           .of_likelihood = &Likelihood::loss},
          {.name = "perplexity",
           .key = "perplexity",
           .title = "perplexity",
           .needs = MetricNeeds::loss,
           .decimals = 4,
           .measured = MeasuredFor::all,
           .of_likelihood = &Likelihood::perplexity},
          {.name = "bits_per_byte",
           .key = "bits_per_byte",
           .title = "bits per byte",
           .needs = MetricNeeds::bytes,
           .decimals = 4,
           .of_likelihood = &Likelihood::bits_per_byte}};
}

std::deque<Metric>& rows() {
  static std::deque<Metric> all = [] {
    std::deque<Metric> table = internal::text_rows();
    for (auto& more :
         {token_rows(), internal::span_rows(), internal::label_set_rows(), internal::squad_rows(),
          internal::number_rows(), internal::ranking_rows(), likelihood_rows()})
      table.insert(table.end(), more.begin(), more.end());
    return table;
  }();
  return all;
}

// Row of a name with a number, such as "hit@7"; null for other names. Rows are made on demand and
// kept.
const Metric* row_with_number(std::string_view name) {
  const size_t sign = name.find('@');
  if (sign == std::string_view::npos) return nullptr;
  const auto number = parse_number<int64_t>(name.substr(sign + 1));
  if (!number || *number < 1) return nullptr;
  static std::mutex mutex;
  static std::map<std::string, Metric, std::less<>> made;
  const std::lock_guard lock(mutex);
  if (const auto found = made.find(name); found != made.end()) return &found->second;
  std::optional<Metric> row = internal::ranking_row(name.substr(0, sign), *number);
  return row ? &made.emplace(name, std::move(*row)).first->second : nullptr;
}

}  // namespace

const std::vector<std::string>& internal::best_reference(const ScoredAnswer& answer) {
  const auto& references = answer.reference_tokens;
  if (references.empty()) fail("an answer has no reference; give at least one");
  return *std::max_element(references.begin(), references.end(), [&](const auto& a, const auto& b) {
    return right_places(answer.tokens, a) < right_places(answer.tokens, b);
  });
}

const std::deque<Metric>& metric_table() { return rows(); }

const Metric* find_metric(std::string_view name) {
  const auto found = std::find_if(rows().begin(), rows().end(),
                                  [&](const Metric& each) { return each.name == name; });
  return found == rows().end() ? row_with_number(name) : &*found;
}

const Metric& metric_named(std::string_view name) {
  if (const Metric* found = find_metric(name)) return *found;
  fail_unknown("metric", name, metric_names([](const Metric&) { return true; }));
}

std::vector<std::string> metric_names(const std::function<bool(const Metric&)>& takes) {
  std::vector<std::string> names;
  for (const Metric& row : rows())
    if (takes(row)) names.push_back(row.name);
  return names;
}

std::vector<std::string> numbered_metric_names() {
  std::vector<std::string> names = internal::ranking_names();
  for (std::string& name : names) name += "@K";
  return names;
}

void register_metric(Metric metric) {
  if (find_metric(metric.name))
    fail("[metrics] {} exists already; choose another name", in_quotes(metric.name));
  rows().push_back(std::move(metric));
}

}  // namespace attend
