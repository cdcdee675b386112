#pragma once

#include <utf8proc.h>

#include <algorithm>
#include <string_view>

namespace attend::internal {

constexpr std::string_view blank_characters = " \t\n\v\f\r";

// Reads the first character of a non-empty text. Returns its size in bytes, or 0 if it is
// malformed.
inline size_t next_character(std::string_view text, utf8proc_int32_t* character) {
  const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  // A character has at most four bytes, and the length of a whole text might not fit the type.
  const auto size = static_cast<utf8proc_ssize_t>(std::min<size_t>(text.size(), 4));
  const utf8proc_ssize_t length = utf8proc_iterate(bytes, size, character);
  return length > 0 ? static_cast<size_t>(length) : 0;
}

// Error if the text is not UTF-8 or has over 1000 combining marks in a row.
void check_characters(std::string_view text);

}  // namespace attend::internal
