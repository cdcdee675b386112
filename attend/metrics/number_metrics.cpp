#include <algorithm>
#include <cmath>

#include "attend/base/error.h"
#include "attend/base/parse_number.h"
#include "attend/base/trimmed.h"
#include "attend/metrics/metric_rows-inl.h"

namespace attend {
namespace {

// Answers of one number where one number is right.
struct NumberPair {
  double answer = 0, right = 0;
  double count = 0;
};

double finite_number(std::string_view text) {
  const auto number = parse_number<double>(trimmed(text));
  if (!number || !std::isfinite(*number))
    fail("{} is no number; a finite one such as -1.5e3 is wanted", in_quotes(text));
  return *number;
}

const std::string& only_reference(const ScoredAnswer& answer) {
  if (answer.references.size() != 1)
    fail("{} references; a number is measured against one", answer.references.size());
  return answer.references[0];
}

// The shortest text of a double is read as the same double, so that counts lose nothing and sums
// over them do not depend on the order of the answers.
MetricCounts count_numbers(const ScoredAnswer& answer, const MetricOptions&) {
  const double right = finite_number(only_reference(answer));
  return {{fmt::format("{} {}", finite_number(answer.text), right), 1}};
}

MetricCounts count_scores(const ScoredAnswer& answer, const MetricOptions& options) {
  const std::string_view label = trimmed(only_reference(answer));
  if (label != "0" && label != "1")
    fail("{} says no class; 1 or 0 is wanted, whether the answer should score high",
         in_quotes(label));
  return count_numbers(answer, options);
}

// By rising number that was answered.
std::vector<NumberPair> pairs_of(const MetricCounts& counts) {
  std::vector<NumberPair> pairs;
  pairs.reserve(counts.size());
  for (const auto& [texts, count] : counts) {
    const size_t blank = texts.find(' ');
    const std::string_view all = texts;
    pairs.push_back(
        {finite_number(all.substr(0, blank)), finite_number(all.substr(blank + 1)), count});
  }
  std::stable_sort(pairs.begin(), pairs.end(),
                   [](const auto& a, const auto& b) { return a.answer < b.answer; });
  return pairs;
}

template <class Term>
double mean_of(const std::vector<NumberPair>& pairs, Term term) {
  double sum = 0, count = 0;
  for (const NumberPair& pair : pairs) {
    sum += pair.count * term(pair);
    count += pair.count;
  }
  return sum / std::max(1.0, count);
}

double squared_error(const NumberPair& pair) {
  return (pair.answer - pair.right) * (pair.answer - pair.right);
}

double mean_squared_error(const MetricCounts& counts, const MetricOptions&) {
  return mean_of(pairs_of(counts), squared_error);
}

double mean_absolute_error(const MetricCounts& counts, const MetricOptions&) {
  return mean_of(pairs_of(counts),
                 [](const NumberPair& pair) { return std::abs(pair.answer - pair.right); });
}

// 1 - sum (y - f)^2 / sum (y - mean y)^2. Where all y are the same, 1 where every answer is right,
// else 0.
double determination(const MetricCounts& counts, const MetricOptions&) {
  const std::vector<NumberPair> pairs = pairs_of(counts);
  if (pairs.empty() || (pairs.size() == 1 && pairs[0].count < 2))
    fail("[metrics] r2 of fewer than two answers; it compares with the mean of several");
  const double mean = mean_of(pairs, [](const NumberPair& pair) { return pair.right; });
  const double variance = mean_of(
      pairs, [mean](const NumberPair& pair) { return (pair.right - mean) * (pair.right - mean); });
  const double error = mean_of(pairs, squared_error);
  if (variance == 0) return error == 0 ? 1 : 0;
  return 1 - error / variance;
}

// How many answers have a score, by their class.
struct Classes {
  double positive = 0, negative = 0;

  void add(const NumberPair& pair) { (pair.right == 1 ? positive : negative) += pair.count; }
};

// The classes of each score, by rising score.
std::vector<Classes> classes_of(const MetricCounts& counts) {
  std::vector<Classes> all;
  double last = 0;
  for (const NumberPair& pair : pairs_of(counts)) {
    if (all.empty() || pair.answer != last) all.emplace_back();
    all.back().add(pair);
    last = pair.answer;
  }
  return all;
}

Classes sum_of(const std::vector<Classes>& scores, const char* metric) {
  Classes all;
  for (const Classes& each : scores) {
    all.positive += each.positive;
    all.negative += each.negative;
  }
  if (all.positive == 0 || all.negative == 0)
    fail("[metrics] {} needs answers of both classes; there are {} of class 1 and {} of class 0",
         metric, all.positive, all.negative);
  return all;
}

// The share of pairs of a positive and a negative answer in which the positive one scores higher;
// a tie is half (Hanley & McNeil 1982).
double area_under_curve(const MetricCounts& counts, const MetricOptions&) {
  const std::vector<Classes> scores = classes_of(counts);
  const Classes all = sum_of(scores, "roc_auc");
  double above = 0, negatives_below = 0;
  for (const Classes& each : scores) {
    above += each.positive * (negatives_below + each.negative / 2);
    negatives_below += each.negative;
  }
  return above / (all.positive * all.negative);
}

// sum_n (R_n - R_(n-1)) P_n over the thresholds n by falling score, with recall R and precision P
// of what scores at least so high.
double average_precision(const MetricCounts& counts, const MetricOptions&) {
  std::vector<Classes> scores = classes_of(counts);
  const Classes all = sum_of(scores, "average_precision");
  std::reverse(scores.begin(), scores.end());
  double sum = 0, positives = 0, answers = 0;
  for (const Classes& each : scores) {
    positives += each.positive;
    answers += each.positive + each.negative;
    sum += each.positive * positives / answers;
  }
  return sum / all.positive;
}

}  // namespace

std::deque<Metric> internal::number_rows() {
  const auto row = [](const char* name, const char* title, bool higher_is_better, auto count,
                      auto figure) {
    const bool scores = count == count_scores;
    return Metric{.name = name,
                  .key = name,
                  .title = title,
                  .needs = scores ? MetricNeeds::scores : MetricNeeds::numbers,
                  .higher_is_better = higher_is_better,
                  .decimals = 4,
                  .measured = scores ? MeasuredFor::none : MeasuredFor::numbers,
                  .has_interval = true,
                  .count = count,
                  .figure = figure};
  };
  return {row("mse", "mean squared error", false, count_numbers, mean_squared_error),
          row("rmse", "root mean squared error", false, count_numbers,
              [](const MetricCounts& counts, const MetricOptions& options) {
                return std::sqrt(mean_squared_error(counts, options));
              }),
          row("mae", "mean absolute error", false, count_numbers, mean_absolute_error),
          row("r2", "R2", true, count_numbers, determination),
          row("roc_auc", "area under the ROC curve", true, count_scores, area_under_curve),
          row("average_precision", "average precision", true, count_scores, average_precision)};
}

}  // namespace attend
