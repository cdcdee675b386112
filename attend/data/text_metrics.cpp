#include "attend/data/text_metrics.h"

#include <fmt/format.h>

#include <numeric>

#include "attend/base/error.h"
#include "attend/data/characters-inl.h"
#include "attend/data/chrf.h"
#include "attend/data/metrics.h"

namespace attend {
namespace {

using nlohmann::json;

// How many references each answer has; 0 where it varies.
int64_t reference_count(const ScoredTexts& texts) {
  const size_t first = texts.references.empty() ? 1 : texts.references[0].size();
  for (const auto& references : texts.references)
    if (references.size() != first) return 0;
  return static_cast<int64_t>(first);
}

// The sum of what `count` finds in each text.
template <class Counts, class Count>
Counts sum_of(const ScoredTexts& texts, const std::vector<size_t>& which, const Count& count) {
  Counts counts;
  for (const size_t i : which)
    counts += at_answer(i, [&] { return count(texts.answers[i], texts.references[i]); });
  return counts;
}

std::vector<size_t> all_of(const ScoredTexts& texts) {
  std::vector<size_t> all(texts.answers.size());
  std::iota(all.begin(), all.end(), 0);
  return all;
}

BleuCounts count_bleu_of(const ScoredTexts& texts, const std::vector<size_t>& which,
                         const BleuOptions& options) {
  return sum_of<BleuCounts>(texts, which, [&](const auto& answer, const auto& references) {
    return count_bleu(answer, references, options);
  });
}

json bleu_json(const ScoredTexts& texts, const BleuOptions& options) {
  const BleuCounts counts = count_bleu_of(texts, all_of(texts), options);
  const BleuScore score = bleu(counts, options);
  return {{"name", "BLEU"},
          {"score", score.score},
          {"signature", bleu_signature(options, reference_count(texts))},
          {"precisions", score.precisions},
          {"brevity_penalty", score.brevity_penalty},
          {"hypothesis_length", counts.hypothesis_length},
          {"reference_length", counts.reference_length}};
}

json chrf_json(const ScoredTexts& texts, const ChrfOptions& options) {
  const auto counts =
      sum_of<ChrfCounts>(texts, all_of(texts), [&](const auto& answer, const auto& references) {
        return count_chrf(answer, references, options);
      });
  return {{"name", chrf_name(options)},
          {"score", chrf(counts, options)},
          {"signature", chrf_signature(options, reference_count(texts))}};
}

json score_json(const LabelCounts::Score& score) {
  return {{"precision", score.precision}, {"recall", score.recall}, {"f1", score.f1}};
}

json labels_json(const ScoredTexts& texts) {
  LabelCounts counts;
  for (size_t i = 0; i < texts.answers.size(); ++i) {
    at_answer(i, [&] {
      internal::check_characters(texts.answers[i]);
      for (const std::string& label : texts.references[i]) internal::check_characters(label);
    });
    counts.add(texts.answers[i], texts.references[i]);
  }
  json result = score_json(counts.macro());
  result["micro_f1"] = counts.accuracy();
  for (const auto& [label, score] : counts.scores()) result["labels"][label] = score_json(score);
  return result;
}

}  // namespace

double bleu_of(const ScoredTexts& texts, const std::vector<size_t>& which,
               const BleuOptions& options) {
  return bleu(count_bleu_of(texts, which, options), options).score;
}

json text_metric(const std::string& name, const ScoredTexts& texts, const BleuOptions& options) {
  if (name == "bleu") return bleu_json(texts, options);
  if (name == "f1") return labels_json(texts);
  if (name != "chrf" && name != "chrf++") fail("no metric of texts is called {}", in_quotes(name));
  return chrf_json(texts, {.word_order = name == "chrf" ? 0 : 2, .lowercase = options.lowercase});
}

}  // namespace attend
