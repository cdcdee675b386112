#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "attend/base/trimmed.h"

namespace attend {

// Returns the parts of a text between separators, each trimmed(); one empty part for an empty text.
inline std::vector<std::string> trimmed_parts(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(separator, begin), text.size());
    parts.emplace_back(trimmed(text.substr(begin, end - begin)));
    begin = end + 1;
  }
  return parts;
}

}  // namespace attend
