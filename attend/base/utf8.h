#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace attend {

// Returns the number of characters (code points) of a UTF-8 text.
inline size_t character_count(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char byte) {
    return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80;  // first byte of a character
  }));
}

}  // namespace attend
