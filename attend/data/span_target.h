#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace attend {

// Part of a text, in bytes.
struct TextSpan {
  size_t begin = 0, end = 0;
};

// Returns the answer of a target of the kind span: the target without a TAB and what follows it.
std::string_view span_text(std::string_view target);

// Finds the answer in a passage: its first occurrence or, if a number follows the target's TAB, the
// one at this character, counted from 0. Returns nothing for a blank answer. Error if the passage
// has another text there, and on an invalid number.
std::optional<TextSpan> find_span(std::string_view target, std::string_view passage);

}  // namespace attend
