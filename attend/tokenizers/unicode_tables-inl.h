#pragma once

#include <cstdint>
#include <span>

namespace attend::internal {

// So many code points that are not in a class, then so many that are; from U+0000 on.
struct PointStep {
  uint32_t gap, count;
};

// Every `step`-th of the code points has its lower case `difference` behind it.
struct LowerRange {
  char32_t first, last;
  uint32_t step;
  int32_t difference;
};

// What BERT's normaliser drops, takes for a space, sets apart with spaces, and drops as accents.
extern const std::span<const PointStep> bert_removed_steps, bert_space_steps, bert_cjk_steps,
    bert_mark_steps;
// What is a token by itself in BERT's splitting, and what stands between words in any.
extern const std::span<const PointStep> bert_punctuation_steps, white_space_steps;
// \p{L}, \p{N} and \s of GPT-2's expression, and \w beside a token that is a single word.
extern const std::span<const PointStep> letter_steps, number_steps, regex_space_steps,
    word_character_steps;
// What StripAccents drops, what changes or moves in normal form D, and what utf8proc alone would
// change or move.
extern const std::span<const PointStep> combining_steps, nfd_changes_steps, untouched_steps;
// U+0130 is missing: its lower case is two code points, i and U+0307.
extern const std::span<const LowerRange> lower_ranges;

}  // namespace attend::internal
