#include "attend/metrics/bleu.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "attend/base/error.h"
#include "attend/base/find_row.h"
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

// Replacement for the matches of an order without matches.
struct Smoothing {
  std::string name;
  std::optional<double> value = {};  // default of BleuOptions::smooth_value; empty: unused
  bool halves = false;               // halve the value at each order without a match
  bool adds = false;                 // add the value to matches and n-grams of orders from 2
};

const std::vector<Smoothing>& smoothing_table() {
  static const std::vector<Smoothing> table = {{.name = "exp", .halves = true},
                                               {.name = "floor", .value = 0.1},
                                               {.name = "add-k", .value = 1, .adds = true},
                                               {.name = "none"}};
  return table;
}

const Smoothing& smoothing_of(const BleuOptions& options) {
  return find_row(smoothing_table(), "BLEU smoothing", options.smooth);
}

}  // namespace

void BleuOptions::check() const {
  bleu_tokens("", tokenise);
  smoothing_of(*this);
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
  // Each n-gram counts with its maximum count over the references.
  Sentence merged = read_sentence(references[0], options);
  BleuCounts counts;
  counts.hypothesis_length = answer.length;
  counts.reference_length = merged.length;
  for (size_t r = 1; r < references.size(); ++r) {
    const Sentence reference = read_sentence(references[r], options);
    for (size_t n = 0; n < BleuCounts::orders; ++n) {
      for (const auto& [ngram, count] : reference.ngrams[n]) {
        int64_t& maximum = merged.ngrams[n][ngram];
        maximum = std::max(maximum, count);
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
  const Smoothing& smoothing = smoothing_of(options);
  const double value = options.smooth_value.value_or(smoothing.value.value_or(0));
  for (size_t n = 0; n < BleuCounts::orders; ++n) {
    auto matches = static_cast<double>(counts.matches[n]);
    auto ngrams = static_cast<double>(counts.ngrams[n]);
    if (smoothing.adds && n > 0) {
      matches += value;
      ngrams += value;
    }
    if (ngrams == 0) break;
    if (options.effective_order) effective = n + 1;
    if (matches > 0)
      result.precisions[n] = 100 * matches / ngrams;
    else if (smoothing.halves)
      result.precisions[n] = 100 / ((halvings *= 2) * ngrams);
    else if (smoothing.value && !smoothing.adds)
      result.precisions[n] = 100 * value / ngrams;
  }
  double logarithms = 0;
  for (size_t n = 0; n < effective; ++n) logarithms += std::log(result.precisions[n]);
  result.score = result.brevity_penalty * std::exp(logarithms / static_cast<double>(effective));
  return result;
}

std::vector<std::string> bleu_smoothings() {
  std::vector<std::string> names;
  for (const Smoothing& row : smoothing_table()) names.push_back(row.name);
  return names;
}

std::string bleu_signature(const BleuOptions& options, int64_t references) {
  std::string smooth = options.smooth;
  if (const auto& value = smoothing_of(options).value)
    smooth += fmt::format("[{:.2f}]", options.smooth_value.value_or(*value));
  return fmt::format("{}|case:{}|eff:{}|tok:{}|smooth:{}|version:attend",
                     internal::references_signature(references), options.lowercase ? "lc" : "mixed",
                     options.effective_order ? "yes" : "no", options.tokenise, smooth);
}

}  // namespace attend
