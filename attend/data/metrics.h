#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace attend {

// Fewest insertions, deletions and substitutions that turn one sequence into the other.
int64_t edit_distance(const std::vector<std::string>& a, const std::vector<std::string>& b);

// Errors of answers against their references, summed.
struct ErrorCounts {
  int64_t examples = 0;
  int64_t wrong = 0;              // answers that equal none of their references
  int64_t edits = 0;              // to the nearest reference
  int64_t reference_symbols = 0;  // of those nearest references

  void add(const std::vector<std::string>& answer,
           const std::vector<std::vector<std::string>>& references);
  ErrorCounts& operator+=(const ErrorCounts& other);

  double token_error_rate() const;     // edits a reference symbol (PER for phonemes)
  double sequence_error_rate() const;  // share of wrong answers (WER for words)
};

}  // namespace attend
