#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "attend/data/pairs.h"
#include "attend/data/text_codec.h"

namespace attend {

// Texts as indices of their tokens. Each distinct token is stored once, in order of appearance.
class TokenisedTexts {
 public:
  void add(const std::vector<std::string>& tokens);

  int64_t size() const { return static_cast<int64_t>(ends_.size()); }
  // Returns the tokens of a text, as indices into tokens().
  std::span<const int32_t> operator[](int64_t text) const;
  const std::vector<std::string>& tokens() const { return tokens_; }
  WordCounts counts() const;  // number of occurrences of each token

 private:
  std::unordered_map<std::string, int32_t> numbers_;
  std::vector<std::string> tokens_;
  std::vector<int32_t> all_;  // indices of all texts
  std::vector<size_t> ends_;  // end of each text in all_
};

// Examples and the tokens of their texts; each text is split once.
struct TokenisedExamples {
  std::vector<Example> examples;
  TokenisedTexts sources;        // one per example; empty if sources are files
  std::vector<int64_t> seconds;  // SourceTokens::second of each source
  TokenisedTexts targets;        // targets of the first example, then of the second, ...
  int64_t left_out = 0;          // number of targets that were too long
};

constexpr int64_t no_limit = std::numeric_limits<int64_t>::max();

// Leaves out targets of over `longest_target` tokens, and examples without other targets. Error if
// a codec rejects a text.
TokenisedExamples tokenise_examples(std::vector<Example> examples, const TextCodecs& codecs,
                                    int64_t longest_target = no_limit);

// Error if nothing can be learned from the targets: there are none, or together they contain a
// single distinct token. `name` is the file's name, for the message.
void check_targets(const TokenisedTexts& targets, const std::string& name);

// Error if training with `text` can learn nothing from targets with these tokens, or these numbers.
void check_learnable(const WordCounts& targets, const TextConfig& text, const std::string& name);

}  // namespace attend
