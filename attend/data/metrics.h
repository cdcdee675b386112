#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace attend {

// Fewest insertions, deletions and substitutions that turn one sequence into the other.
int64_t edit_distance(const std::vector<std::string>& a, const std::vector<std::string>& b);

// Errors of answers against their references, summed.
struct ErrorCounts {
  int64_t examples = 0;
  int64_t wrong = 0;             // answers that equal none of their references
  int64_t edits = 0;             // to the nearest reference
  int64_t reference_tokens = 0;  // of those nearest references

  void add(const std::vector<std::string>& answer,
           const std::vector<std::vector<std::string>>& references);
  ErrorCounts& operator+=(const ErrorCounts& other);

  // Edits a reference token (PER for phonemes); where all references are empty, edits.
  double token_error_rate() const;
  double sequence_error_rate() const;  // share of wrong answers (WER for words)
};

// Answers that are labels, by the label that is right.
struct LabelCounts {
  std::map<std::string, std::map<std::string, int64_t>> answers;  // right label: answer: examples

  // The scores of one label, or their means over several.
  struct Score {
    double precision = 0;  // share of the answers of that label that are right; 0 without any
    double recall = 0;     // share of its examples that got it; 0 without any
    double f1 = 0;         // harmonic mean of both
  };

  // Where several labels are right, the answer among them or else the first counts. Error on none.
  void add(const std::string& answer, const std::vector<std::string>& right);

  double accuracy() const;                      // also the micro-averaged F1: one answer an example
  std::map<std::string, Score> scores() const;  // of every label that was right or answered
  Score macro() const;                          // the mean over scores()
};

// What a model gives to texts.
struct Likelihood {
  double nats = 0;     // negative log-likelihood of all tokens, ends included
  int64_t tokens = 0;  // ends included
  int64_t bytes = 0;   // of the texts in UTF-8, one for the end of each included
  // Those of them that the model does not know. It tells them from others, but not from each other:
  // their probability is of more texts than this one.
  double unknown_nats = 0;
  int64_t unknown = 0;
  int64_t unknown_bytes = 0;

  double loss() const;           // nats a token
  double perplexity() const;     // of a token
  Likelihood known() const;      // without unknown tokens
  double bits_per_byte() const;  // of what is known; only that could be written in so many bits
};

}  // namespace attend
