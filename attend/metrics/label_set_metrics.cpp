#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>

#include "attend/base/error.h"
#include "attend/metrics/metric_rows-inl.h"

namespace attend {
namespace {

using nlohmann::json;

// The tokens of an answer are labels in any order. Counts have the form "right LABEL".
constexpr std::string_view right_key = "right ", answered_key = "answered ", wanted_key = "wanted ";

using Labels = std::set<std::string>;

double f1_of(double right, double answered, double wanted) {
  return answered + wanted == 0 ? 0 : 2 * right / (answered + wanted);
}

Labels common(const Labels& a, const Labels& b) {
  Labels both;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::inserter(both, both.end()));
  return both;
}

Labels set_of(const std::vector<std::string>& labels) { return {labels.begin(), labels.end()}; }

// Reference with the highest F1; the first if tied.
Labels best_set(const Labels& answer, const ScoredAnswer& scored) {
  if (scored.reference_tokens.empty()) fail("an answer has no reference; give at least one");
  Labels best;
  double highest = -1;
  for (const auto& reference : scored.reference_tokens) {
    const Labels wanted = set_of(reference);
    const double f1 = answer == wanted ? 1
                                       : f1_of(static_cast<double>(common(answer, wanted).size()),
                                               static_cast<double>(answer.size()),
                                               static_cast<double>(wanted.size()));
    if (f1 <= highest) continue;
    highest = f1;
    best = wanted;
  }
  return best;
}

MetricCounts count_labels(const ScoredAnswer& scored, const MetricOptions&) {
  const Labels answered = set_of(scored.tokens), wanted = best_set(answered, scored);
  MetricCounts counts;
  const auto add = [&](std::string_view key, const Labels& labels) {
    for (const std::string& label : labels) counts[std::string(key) + label] = 1;
  };
  add(right_key, common(answered, wanted));
  add(answered_key, answered);
  add(wanted_key, wanted);
  return counts;
}

MetricCounts count_equal(const ScoredAnswer& scored, const MetricOptions&) {
  const Labels answered = set_of(scored.tokens);
  return {{"right", answered == best_set(answered, scored) ? 1 : 0}, {"answers", 1}};
}

struct SetCounts {
  double right = 0, answered = 0, wanted = 0;

  double f1() const { return f1_of(right, answered, wanted); }
  json scores() const {
    const auto share = [&](double all) { return all == 0 ? 0 : right / all; };
    return {{"precision", share(answered)}, {"recall", share(wanted)}, {"f1", f1()}};
  }
};

// By label, for every right or answered label.
std::map<std::string, SetCounts> by_label(const MetricCounts& counts) {
  std::map<std::string, SetCounts> all;
  for (const auto& [key, count] : counts)
    for (const auto& [begin, member] :
         {std::pair(right_key, &SetCounts::right), std::pair(answered_key, &SetCounts::answered),
          std::pair(wanted_key, &SetCounts::wanted)})
      if (key.starts_with(begin)) all[key.substr(begin.size())].*member += count;
  return all;
}

double micro_f1(const MetricCounts& counts, const MetricOptions&) {
  SetCounts sum;
  for (const auto& [label, one] : by_label(counts)) {
    sum.right += one.right;
    sum.answered += one.answered;
    sum.wanted += one.wanted;
  }
  return sum.f1();
}

double macro_f1(const MetricCounts& counts, const MetricOptions&) {
  const auto all = by_label(counts);
  double sum = 0;
  for (const auto& [label, one] : all) sum += one.f1();
  return all.empty() ? 0 : sum / static_cast<double>(all.size());
}

json macro_details(const MetricCounts& counts, const MetricOptions& options) {
  json result = {{"f1", macro_f1(counts, options)}, {"labels", json::object()}};
  for (const auto& [label, one] : by_label(counts)) result["labels"][label] = one.scores();
  return result;
}

std::string macro_text(const json& details) {
  std::string lines =
      fmt::format("{:<20} {:6.2f} %\n", "macro f1", 100 * details["f1"].get<double>());
  for (const auto& [label, scores] : details["labels"].items())
    lines += fmt::format("label {}: F1 {:.2f} %, precision {:.2f} %, recall {:.2f} %\n", label,
                         100 * scores["f1"].get<double>(), 100 * scores["precision"].get<double>(),
                         100 * scores["recall"].get<double>());
  return lines;
}

Metric row(const char* name, const char* title) {
  return {.name = name,
          .key = name,
          .title = title,
          .needs = MetricNeeds::tokens,
          .higher_is_better = true,
          .is_share = true,
          .measured = MeasuredFor::label_sets,
          .by_length = ByLength::each_length};
}

}  // namespace

std::deque<Metric> internal::label_set_rows() {
  Metric micro = row("micro_f1", "micro F1"), macro = row("macro_f1", "macro F1");
  Metric exact = row("exact_match", "exact match");
  micro.count = macro.count = count_labels;
  micro.figure = micro_f1;
  macro.figure = macro_f1;
  macro.details = macro_details;
  macro.details_text = macro_text;
  exact.count = count_equal;
  exact.figure = [](const MetricCounts& counts, const MetricOptions&) {
    return number_of(counts, "right") / std::max(1.0, number_of(counts, "answers"));
  };
  return {micro, macro, exact};
}

}  // namespace attend
