#include "attend/cli/text_metrics.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "attend/base/error.h"
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
  for (const size_t i : which) {
    try {
      counts += count(texts.answers[i], texts.references[i]);
    } catch (const Error& error) {
      fail("answer {} or a reference of it: {}", i + 1, error.what());
    }
  }
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
  for (size_t i = 0; i < texts.answers.size(); ++i)
    counts.add(texts.answers[i], texts.references[i]);
  json result = score_json(counts.macro());
  result["micro_f1"] = counts.accuracy();
  for (const auto& [label, score] : counts.scores()) result["labels"][label] = score_json(score);
  return result;
}

std::string bleu_line(const json& metric) {
  const auto precisions = metric["precisions"].get<std::vector<double>>();
  const auto hypothesis = metric["hypothesis_length"].get<int64_t>();
  const auto reference = metric["reference_length"].get<int64_t>();
  const double ratio =
      reference == 0 ? 0 : static_cast<double>(hypothesis) / static_cast<double>(reference);
  return fmt::format("{:.1f} (BP = {:.3f} ratio = {:.3f} hyp_len = {} ref_len = {})",
                     fmt::join(precisions, "/"), metric["brevity_penalty"].get<double>(), ratio,
                     hypothesis, reference);
}

std::string label_line(const std::string& name, const json& score) {
  return fmt::format("{}: F1 {:.2f} %, precision {:.2f} %, recall {:.2f} %\n", name,
                     100 * score["f1"].get<double>(), 100 * score["precision"].get<double>(),
                     100 * score["recall"].get<double>());
}

}  // namespace

void add_text_metric_options(CLI::App& command, BleuOptions& options) {
  command
      .add_option("--tokenise", options.tokenise,
                  "BLEU's tokens: 13a, char, or none for texts that are tokenised")
      ->check(CLI::IsMember({"13a", "char", "none"}))
      ->capture_default_str();
  command.add_option("--smooth", options.smooth, "of BLEU's orders without a match")
      ->check(CLI::IsMember({"exp", "floor", "add-k", "none"}))
      ->capture_default_str();
  command.add_option("--smooth-value", options.smooth_value, "of floor (0.1) and add-k (1)");
  command.add_flag("--lowercase", options.lowercase, "BLEU and chrF of lower-cased texts");
}

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

std::string metric_key(const std::string& name) {
  return name.ends_with("_error") ? name + "_rate" : name;
}

std::string metric_lines(const std::string& name, const json& metric) {
  if (metric.is_number()) {
    std::string words = metric_key(name);
    std::replace(words.begin(), words.end(), '_', ' ');
    return fmt::format("{:<20} {:6.2f} %\n", words, 100 * metric.get<double>());
  }
  if (name == "f1") {
    std::string lines = label_line("mean of the labels", metric);
    const json labels = metric.value("labels", json::object());
    for (const auto& [label, score] : labels.items())
      lines += label_line(fmt::format("label {}", label), score);
    return lines;
  }
  return fmt::format("{}|{} = {:.2f}{}\n", metric["name"].get<std::string>(),
                     metric["signature"].get<std::string>(), metric["score"].get<double>(),
                     name == "bleu" ? " " + bleu_line(metric) : "");
}

}  // namespace attend
