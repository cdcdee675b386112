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
double bleu_of(const std::vector<std::string>& answers, const std::vector<Example>& examples,
               const TextConfig& text) {
  const BleuOptions options{.tokenise = text.tokenise ? "13a" : "none",
                            .lowercase = text.lowercase};
  BleuCounts counts;
  for (size_t i = 0; i < answers.size(); ++i)
    counts += count_bleu(answers[i], examples[i].targets, options);
  return bleu(counts, options).score;
}

}  // namespace

double ValidationMetric::of(const Evaluation& answers, const std::vector<Example>& examples,
                            const TextConfig& text) const {
  if (name == "token_error") return answers.errors.token_error_rate();
  if (name == "accuracy") return 1 - answers.errors.sequence_error_rate();
  if (name == "bleu") return bleu_of(answers.answers, examples, text);
  fail("[validation] {} is not told from answers", name);
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
