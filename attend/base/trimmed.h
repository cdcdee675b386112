#pragma once

#include <string_view>

namespace attend {

// Returns the text without spaces and tabs at both ends.
inline std::string_view trimmed(std::string_view text) {
  constexpr std::string_view white = " \t";
  const size_t first = text.find_first_not_of(white);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(white) - first + 1);
}

}  // namespace attend
