#include "attend/metrics/bleu.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "attend/base/error.h"
#include "attend/metrics/ngrams-inl.h"

namespace attend {
namespace {

using internal::NgramCounts;

struct Sentence {
  std::array<NgramCounts, BleuCounts::orders> ngrams;
  int64_t length = 0;
};

Sentence read_sentence(std::string_view text, const BleuOptions& options) {
  const auto tokens = options.lowercase ? bleu_tokens(internal::lower_case(text), options.tokenise)
                                        : bleu_tokens(text, options.tokenise);
  Sentence sentence;
  for (size_t n = 0; n < BleuCounts::orders; ++n)
    sentence.ngrams[n] = internal::count_ngrams(tokens, n + 1, " ");
  sentence.length = static_cast<int64_t>(tokens.size());
  return sentence;
}

double smooth_value(const BleuOptions& options) {
  return options.smooth_value.value_or(options.smooth == "floor" ? 0.1 : 1.0);
}

}  // namespace

void BleuOptions::check() const {
  const auto known = [](const std::string& name, const std::vector<std::string>& names) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  if (const auto names = bleu_tokenisers(); !known(tokenise, names))
    fail("[bleu] tokenise is one of {}, not {}", fmt::join(names, ", "), in_quotes(tokenise));
  if (!known(smooth, {"exp", "floor", "add-k", "none"}))
    fail("[bleu] smooth is exp, floor, add-k or none, not {}", in_quotes(smooth));
  if (smooth_value && !(*smooth_value > 0 && std::isfinite(*smooth_value)))
    fail("[bleu] smooth_value must be above 0, got {}", *smooth_value);
}

BleuCounts& BleuCounts::operator+=(const BleuCounts& other) {
  for (size_t n = 0; n < orders; ++n) {
    matches[n] += other.matches[n];
    ngrams[n] += other.ngrams[n];
  }
  hypothesis_length += other.hypothesis_length;
  reference_length += other.reference_length;
  return *this;
}

BleuCounts count_bleu(std::string_view hypothesis, const std::vector<std::string>& references,
                      const BleuOptions& options) {
  options.check();
  if (references.empty()) fail("[bleu] a hypothesis needs at least one reference");
  const Sentence answer = read_sentence(hypothesis, options);
  // An n-gram counts as often as the reference has it that has it most.
  Sentence merged = read_sentence(references[0], options);
  BleuCounts counts;
  counts.hypothesis_length = answer.length;
  counts.reference_length = merged.length;
  for (size_t r = 1; r < references.size(); ++r) {
    const Sentence reference = read_sentence(references[r], options);
    for (size_t n = 0; n < BleuCounts::orders; ++n) {
      for (const auto& [ngram, count] : reference.ngrams[n]) {
        int64_t& most = merged.ngrams[n][ngram];
        most = std::max(most, count);
      }
    }
    const int64_t away = std::abs(answer.length - reference.length);
    const int64_t nearest = std::abs(answer.length - counts.reference_length);
    if (away < nearest || (away == nearest && reference.length < counts.reference_length))
      counts.reference_length = reference.length;
  }
  for (size_t n = 0; n < BleuCounts::orders; ++n) {
    counts.matches[n] = internal::count_matches(answer.ngrams[n], merged.ngrams[n]);
    counts.ngrams[n] = std::max<int64_t>(0, answer.length - static_cast<int64_t>(n));
  }
  return counts;
}

BleuScore bleu(const BleuCounts& counts, const BleuOptions& options) {
  options.check();
  BleuScore result;
  const auto hypothesis = static_cast<double>(counts.hypothesis_length);
  const auto reference = static_cast<double>(counts.reference_length);
  result.brevity_penalty = 1;
  if (hypothesis < reference)
    result.brevity_penalty = hypothesis > 0 ? std::exp(1 - reference / hypothesis) : 0;
  if (std::all_of(counts.matches.begin(), counts.matches.end(), [](int64_t m) { return m == 0; }))
    return result;
  size_t effective = BleuCounts::orders;
  double halvings = 1;
  for (size_t n = 0; n < BleuCounts::orders; ++n) {
    auto matches = static_cast<double>(counts.matches[n]);
    auto ngrams = static_cast<double>(counts.ngrams[n]);
    if (options.smooth == "add-k" && n > 0) {
      matches += smooth_value(options);
      ngrams += smooth_value(options);
    }
    if (ngrams == 0) break;
    if (options.effective_order) effective = n + 1;
    if (matches > 0)
      result.precisions[n] = 100 * matches / ngrams;
    else if (options.smooth == "exp")
      result.precisions[n] = 100 / ((halvings *= 2) * ngrams);
    else if (options.smooth == "floor")
      result.precisions[n] = 100 * smooth_value(options) / ngrams;
  }
  double logarithms = 0;
  for (size_t n = 0; n < effective; ++n) logarithms += std::log(result.precisions[n]);
  result.score = result.brevity_penalty * std::exp(logarithms / static_cast<double>(effective));
  return result;
}

std::string bleu_signature(const BleuOptions& options, int64_t references) {
  std::string smooth = options.smooth;
  if (smooth == "floor" || smooth == "add-k")
    smooth += fmt::format("[{:.2f}]", smooth_value(options));
  return fmt::format("{}|case:{}|eff:{}|tok:{}|smooth:{}|version:attend",
                     internal::references_signature(references), options.lowercase ? "lc" : "mixed",
                     options.effective_order ? "yes" : "no", options.tokenise, smooth);
}

}  // namespace attend
