#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "attend/base/error.h"
#include "attend/base/parse_number.h"
#include "attend/base/trimmed.h"
#include "attend/metrics/metric_rows-inl.h"

namespace attend {
namespace {

constexpr double unbounded = std::numeric_limits<double>::infinity();

// An answered number and the right one.
struct NumberPair {
  double answer = 0, right = 0;
  double count = 0;
};

double finite_number(std::string_view text) {
  const auto number = parse_number<double>(trimmed(text));
  if (!number || !std::isfinite(*number))
    fail("{} is not a finite number; write one such as -1.5e3", in_quotes(text));
  return *number;
}

const std::string& only_reference(const ScoredAnswer& answer) {
  if (answer.references.size() != 1)
    fail("{} references; give one per number", answer.references.size());
  return answer.references[0];
}

// The shortest text of a double parses to the same double. Counts are therefore exact, and sums do
// not depend on the order of the answers.
MetricCounts count_numbers(const ScoredAnswer& answer, const MetricOptions&) {
  const double right = finite_number(only_reference(answer));
  return {{fmt::format("{} {}", finite_number(answer.text), right), 1}};
}

MetricCounts count_scores(const ScoredAnswer& answer, const MetricOptions& options) {
  const std::string_view label = trimmed(only_reference(answer));
  if (label != "0" && label != "1")
    fail("{} is not a class; write 1 if the answer should score high, else 0", in_quotes(label));
  return count_numbers(answer, options);
}

// Parses the two numbers in the name of a count.
NumberPair pair_named(std::string_view name) {
  const size_t blank = name.find(' ');
  return {finite_number(name.substr(0, blank)), finite_number(name.substr(blank + 1))};
}

// Sorted by the answered number.
using NumberPairs = std::vector<NumberPair>;

void sort(NumberPairs& pairs) {
  std::stable_sort(pairs.begin(), pairs.end(), [](const auto& a, const auto& b) {
    return std::pair(a.answer, a.right) < std::pair(b.answer, b.right);
  });
}

NumberPairs pairs_of(const MetricCounts& counts) {
  NumberPairs pairs;
  pairs.reserve(counts.size());
  for (const auto& [name, count] : counts) {
    pairs.push_back(pair_named(name));
    pairs.back().count = count;
  }
  sort(pairs);
  return pairs;
}

// Pairs that are parsed once and then combined with counts.
class SortedPairs {
 public:
  // `count` holds the index of the name until with() replaces it with the count.
  explicit SortedPairs(const std::vector<std::string>& names) {
    for (size_t i = 0; i < names.size(); ++i) {
      pairs_.push_back(pair_named(names[i]));
      pairs_.back().count = static_cast<double>(i);
    }
    sort(pairs_);
  }

  NumberPairs with(const std::vector<double>& counts) const {
    NumberPairs pairs = pairs_;
    for (NumberPair& pair : pairs) pair.count = counts[static_cast<size_t>(pair.count)];
    return pairs;
  }

 private:
  NumberPairs pairs_;
};

template <class Term>
double mean_of(const NumberPairs& pairs, Term term) {
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

double mean_squared_error(const NumberPairs& pairs) { return mean_of(pairs, squared_error); }

double root_mean_squared_error(const NumberPairs& pairs) {
  return std::sqrt(mean_squared_error(pairs));
}

double mean_absolute_error(const NumberPairs& pairs) {
  return mean_of(pairs, [](const NumberPair& pair) { return std::abs(pair.answer - pair.right); });
}

// 1 - sum (y - f)^2 / sum (y - mean y)^2. If all y are equal, 1 if every answer is right, else 0.
double determination(const NumberPairs& pairs) {
  double answers = 0, least = unbounded, largest = -unbounded;
  for (const NumberPair& pair : pairs) {
    answers += pair.count;
    if (pair.count == 0) continue;
    least = std::min(least, pair.right);
    largest = std::max(largest, pair.right);
  }
  if (answers < 2) fail("[metrics] r2 needs two answers or more");
  const double mean = mean_of(pairs, [](const NumberPair& pair) { return pair.right; });
  const double variance = mean_of(
      pairs, [mean](const NumberPair& pair) { return (pair.right - mean) * (pair.right - mean); });
  const double error = mean_of(pairs, squared_error);
  // The mean of equal numbers is rounded, so their variance may differ from 0.
  if (least == largest || variance == 0) return error == 0 ? 1 : 0;
  return 1 - error / variance;
}

// Number of answers per class.
struct ClassCounts {
  double positive = 0, negative = 0;

  void add(const NumberPair& pair) { (pair.right == 1 ? positive : negative) += pair.count; }
};

// Classes per score, by rising score.
std::vector<ClassCounts> classes_of(const NumberPairs& pairs) {
  std::vector<ClassCounts> all;
  double last = 0;
  for (const NumberPair& pair : pairs) {
    if (all.empty() || pair.answer != last) all.emplace_back();
    all.back().add(pair);
    last = pair.answer;
  }
  return all;
}

ClassCounts sum_of(const std::vector<ClassCounts>& scores) {
  ClassCounts all;
  for (const ClassCounts& each : scores) {
    all.positive += each.positive;
    all.negative += each.negative;
  }
  return all;
}

// Share of (positive, negative) pairs of answers in which the positive one scores higher; a tie
// counts half (Hanley & McNeil 1982).
double area_under_curve(const NumberPairs& pairs) {
  const std::vector<ClassCounts> scores = classes_of(pairs);
  const ClassCounts all = sum_of(scores);
  if (all.positive == 0 || all.negative == 0)
    fail(
        "[metrics] roc_auc needs answers of both classes; there are {} of class 1 and {} of class "
        "0",
        all.positive, all.negative);
  double above = 0, negatives_below = 0;
  for (const ClassCounts& each : scores) {
    above += each.positive * (negatives_below + each.negative / 2);
    negatives_below += each.negative;
  }
  return above / (all.positive * all.negative);
}

// sum_n (R_n - R_(n-1)) P_n over thresholds n by falling score; R and P: recall and precision of
// the answers with at least that score.
double average_precision(const NumberPairs& pairs) {
  std::vector<ClassCounts> scores = classes_of(pairs);
  const ClassCounts all = sum_of(scores);
  if (all.positive == 0)
    fail("[metrics] average_precision needs answers of class 1; there are {} of class 0 only",
         all.negative);
  std::reverse(scores.begin(), scores.end());
  double sum = 0, positives = 0, answers = 0;
  for (const ClassCounts& each : scores) {
    positives += each.positive;
    answers += each.positive + each.negative;
    if (each.positive > 0) sum += each.positive * positives / answers;
  }
  return sum / all.positive;
}

}  // namespace

std::deque<Metric> internal::number_rows() {
  const auto row = [](const char* name, const char* title, bool higher_is_better, auto count,
                      double (*measure)(const NumberPairs&)) {
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
                  .figure = [measure](const MetricCounts& counts,
                                      const MetricOptions&) { return measure(pairs_of(counts)); },
                  .figure_by_name =
                      [measure](const std::vector<std::string>& names) {
                        return [measure,
                                sorted = SortedPairs(names)](const std::vector<double>& counts) {
                          return measure(sorted.with(counts));
                        };
                      }};
  };
  return {row("mse", "mean squared error", false, count_numbers, mean_squared_error),
          row("rmse", "root mean squared error", false, count_numbers, root_mean_squared_error),
          row("mae", "mean absolute error", false, count_numbers, mean_absolute_error),
          row("r2", "R2", true, count_numbers, determination),
          row("roc_auc", "area under the ROC curve", true, count_scores, area_under_curve),
          row("average_precision", "average precision", true, count_scores, average_precision)};
}

}  // namespace attend
