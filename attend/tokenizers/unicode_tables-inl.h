#pragma once

#include <cstdint>
#include <span>

namespace attend::internal {

// Run lengths from U+0000: first `gap` code points outside a class, then `count` in the class.
struct PointStep {
  uint32_t gap, count;
};

// The lower case of every `step`-th code point from `first` to `last` is the point + `difference`.
struct LowerRange {
  char32_t first, last;
  uint32_t step;
  int32_t difference;
};

// Code points that BERT's normaliser removes, converts to a space, puts spaces around, and removes
// as accents.
extern const std::span<const PointStep> bert_removed_steps, bert_space_steps, bert_cjk_steps,
    bert_mark_steps;
// Tokens by themselves in BERT's splitting; separators of words in every splitting.
extern const std::span<const PointStep> bert_punctuation_steps, white_space_steps;
// \p{L}, \p{N} and \s of GPT-2's expression; \w, for neighbours of single-word tokens.
extern const std::span<const PointStep> letter_steps, number_steps, regex_space_steps,
    word_character_steps;
// Code points that StripAccents removes, code points that change or move in normal form D, and code
// points that only utf8proc would change or move.
extern const std::span<const PointStep> combining_steps, nfd_changes_steps, untouched_steps;
// U+0130 is missing: its lower case is two code points, i and U+0307.
extern const std::span<const LowerRange> lower_ranges;

}  // namespace attend::internal
