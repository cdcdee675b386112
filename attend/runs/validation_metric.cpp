#include "attend/runs/validation_metric.h"

#include <algorithm>
#include <array>

#include "attend/base/error.h"
#include "attend/data/bleu.h"

namespace attend {
namespace {

const std::array<ValidationMetric, 4>& metrics() {
  static const std::array<ValidationMetric, 4> all = {{
      {"token_error", "token error", false, true, true},
      {"loss", "loss", false, false, false},
      {"accuracy", "accuracy", true, true, true},
      {"bleu", "BLEU", true, false, true},
  }};
  return all;
}

// Texts that come tokenised have their tokens between white space.
BleuOptions bleu_options(const TextConfig& text) {
  return {.tokenise = text.tokenise ? "13a" : "none", .lowercase = text.lowercase};
}

// In the order of the members, with both lengths last.
std::vector<double> to_numbers(const BleuCounts& counts) {
  std::vector<double> numbers(counts.matches.begin(), counts.matches.end());
  numbers.insert(numbers.end(), counts.ngrams.begin(), counts.ngrams.end());
  numbers.push_back(static_cast<double>(counts.hypothesis_length));
  numbers.push_back(static_cast<double>(counts.reference_length));
  return numbers;
}

BleuCounts from_numbers(const std::vector<double>& numbers) {
  BleuCounts counts;
  size_t next = 0;
  const auto take = [&](int64_t& count) { count = static_cast<int64_t>(numbers[next++]); };
  for (int64_t& count : counts.matches) take(count);
  for (int64_t& count : counts.ngrams) take(count);
  take(counts.hypothesis_length);
  take(counts.reference_length);
  return counts;
}

}  // namespace

std::vector<double> ValidationMetric::counts(const Evaluation& answers,
                                             const std::vector<Example>& examples,
                                             const TextConfig& text) const {
  const ErrorCounts& errors = answers.errors;
  const auto numbers = [](int64_t a, int64_t b) {
    return std::vector<double>{static_cast<double>(a), static_cast<double>(b)};
  };
  if (name == "token_error") return numbers(errors.edits, errors.reference_tokens);
  if (name == "accuracy") return numbers(errors.wrong, errors.examples);
  if (name != "bleu") fail("[validation] {} is not told from answers", name);
  BleuCounts counts;
  for (size_t i = 0; i < answers.answers.size(); ++i)
    counts += count_bleu(answers.answers[i], examples[i].targets, bleu_options(text));
  return to_numbers(counts);
}

double ValidationMetric::figure(const std::vector<double>& counts, const TextConfig& text) const {
  if (name == "bleu") return bleu(from_numbers(counts), bleu_options(text)).score;
  const double share = counts[0] / std::max(1.0, counts[1]);
  return name == "accuracy" ? 1 - share : share;
}

std::string ValidationMetric::shown(double figure) const {
  if (name == "loss") return fmt::format("{:.4f}", figure);
  return is_share ? fmt::format("{:.2f} %", 100 * figure) : fmt::format("{:.2f}", figure);
}

std::string ValidationMetric::key() const {
  return "valid_" + name + (name == "token_error" ? "_rate" : "");
}

const ValidationMetric* find_validation_metric(const std::string& name) {
  const auto found = std::find_if(metrics().begin(), metrics().end(),
                                  [&](const ValidationMetric& each) { return each.name == name; });
  return found == metrics().end() ? nullptr : &*found;
}

}  // namespace attend
