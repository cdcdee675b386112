#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "attend/base/error.h"
#include "attend/data/bleu.h"

namespace attend {

// Answers and, for each, every text that counts as right.
struct ScoredTexts {
  std::vector<std::string> answers;
  std::vector<std::vector<std::string>> references;
};

// Calls `work` on answer i, counted from 0, and puts its number in front of the message when it
// fails.
template <class Work>
auto at_answer(size_t i, const Work& work) {
  try {
    return work();
  } catch (const Error& error) {
    fail("answer {} or a reference of it: {}", i + 1, error.what());
  }
}

// BLEU of those texts, by their indices.
double bleu_of(const ScoredTexts& texts, const std::vector<size_t>& which,
               const BleuOptions& options);

// A metric of texts: bleu, chrf or chrf++ as an object with score (0 to 100) and signature, or f1
// as an object with macro-averaged precision, recall and f1, micro_f1, and labels. `options` also
// says whether chrF ignores case. Throws Error, which names the line, where an answer or a
// reference is not UTF-8.
nlohmann::json text_metric(const std::string& name, const ScoredTexts& texts,
                           const BleuOptions& options);

}  // namespace attend
