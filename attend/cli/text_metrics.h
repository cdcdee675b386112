#pragma once

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "attend/data/bleu.h"

namespace attend {

// Answers and, for each, every text that counts as right.
struct ScoredTexts {
  std::vector<std::string> answers;
  std::vector<std::vector<std::string>> references;
};

// --tokenise, --smooth, --smooth-value and --lowercase.
void add_text_metric_options(CLI::App& command, BleuOptions& options);

// BLEU of those texts, by their indices.
double bleu_of(const ScoredTexts& texts, const std::vector<size_t>& which,
               const BleuOptions& options);

// A metric of texts: bleu, chrf or chrf++ as an object with score (0 to 100) and signature, or f1
// as an object with macro-averaged precision, recall and f1, micro_f1, and labels. chrF's case is
// that of `options`. Error, naming the line, on an answer or reference that is not UTF-8.
nlohmann::json text_metric(const std::string& name, const ScoredTexts& texts,
                           const BleuOptions& options);

// The key of a metric in JSON: of token_error, say, token_error_rate.
std::string metric_key(const std::string& name);

// A metric for a person, a fraction or one of the above: BLEU and chrF in sacreBLEU's form, of
// labels a line each.
std::string metric_lines(const std::string& name, const nlohmann::json& metric);

}  // namespace attend
