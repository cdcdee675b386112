#include "attend/metrics/label_counts.h"

#include <algorithm>

#include "attend/base/error.h"

namespace attend {
namespace {

double share(int64_t part, int64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

void LabelCounts::add(const std::string& answer, const std::vector<std::string>& right) {
  if (right.empty()) fail("[labels] answer {} has no right label; give one", in_quotes(answer));
  const bool found = std::find(right.begin(), right.end(), answer) != right.end();
  ++answers[found ? answer : right[0]][answer];
}

double LabelCounts::accuracy() const {
  int64_t right = 0, all = 0;
  for (const auto& [label, given] : answers) {
    for (const auto& [answer, examples] : given) {
      all += examples;
      if (answer == label) right += examples;
    }
  }
  for (const auto& [label, examples] : unanswered) all += examples;
  return share(right, all);
}

std::map<std::string, LabelCounts::Score> LabelCounts::scores() const {
  struct Counts {
    int64_t right = 0, answered = 0, examples = 0;
  };
  std::map<std::string, Counts> counts;
  for (const auto& [label, given] : answers) {
    for (const auto& [answer, examples] : given) {
      counts[label].examples += examples;
      counts[answer].answered += examples;
      if (answer == label) counts[label].right += examples;
    }
  }
  for (const auto& [label, examples] : unanswered) counts[label].examples += examples;
  std::map<std::string, Score> scores;
  for (const auto& [label, count] : counts)
    // 2 P R / (P + R) with P = right / answered and R = right / examples.
    scores[label] = {share(count.right, count.answered), share(count.right, count.examples),
                     share(2 * count.right, count.answered + count.examples)};
  return scores;
}

LabelCounts::Score LabelCounts::macro() const {
  Score mean;
  const auto all = scores();
  const double weight = all.empty() ? 0 : 1 / static_cast<double>(all.size());
  for (const auto& [label, score] : all) {
    mean.precision += weight * score.precision;
    mean.recall += weight * score.recall;
    mean.f1 += weight * score.f1;
  }
  return mean;
}

std::string shown_label(const std::string& label) { return label.empty() ? "(none)" : label; }

}  // namespace attend
