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

// Finds the answer in a passage: where it occurs first, or after as many characters as the number
// after the target's TAB says. Empty if the answer is blank, so the passage has none. Error if the
// answer is not there, or the number is none.
std::optional<TextSpan> find_span(std::string_view target, std::string_view passage);

}  // namespace attend
