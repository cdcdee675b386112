#include "attend/data/metrics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

#include "attend/base/error.h"

namespace attend {
namespace {

double share(int64_t part, int64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

int64_t edit_distance(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  // One row of the table of Wagner & Fischer 1974: distances from the read part of a.
  std::vector<int64_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 0; i < a.size(); ++i) {
    int64_t diagonal = row[0]++;
    for (size_t j = 0; j < b.size(); ++j) {
      const int64_t substituted = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({substituted, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

void ErrorCounts::add(const std::vector<std::string>& answer,
                      const std::vector<std::vector<std::string>>& references) {
  int64_t fewest = std::numeric_limits<int64_t>::max();
  int64_t length = 0;
  for (const auto& reference : references) {
    const int64_t edit = edit_distance(answer, reference);
    if (edit >= fewest) continue;
    fewest = edit;
    length = static_cast<int64_t>(reference.size());
  }
  ++examples;
  wrong += fewest != 0;
  edits += fewest;
  reference_tokens += length;
}

ErrorCounts& ErrorCounts::operator+=(const ErrorCounts& other) {
  examples += other.examples;
  wrong += other.wrong;
  edits += other.edits;
  reference_tokens += other.reference_tokens;
  return *this;
}

double ErrorCounts::token_error_rate() const {
  return share(edits, std::max<int64_t>(reference_tokens, 1));
}

double ErrorCounts::sequence_error_rate() const { return share(wrong, examples); }

void LabelCounts::add(const std::string& answer, const std::vector<std::string>& right) {
  if (right.empty()) fail("[labels] answer {} has no right label beside it", in_quotes(answer));
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

double Likelihood::loss() const { return tokens == 0 ? 0 : nats / static_cast<double>(tokens); }

double Likelihood::perplexity() const { return std::exp(loss()); }

Likelihood Likelihood::known() const {
  return {.nats = nats - unknown_nats, .tokens = tokens - unknown, .bytes = bytes - unknown_bytes};
}

double Likelihood::bits_per_byte() const {
  const Likelihood read = known();
  return read.bytes <= 0 ? 0 : read.nats / std::numbers::ln2 / static_cast<double>(read.bytes);
}

}  // namespace attend
