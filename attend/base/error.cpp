#include "attend/base/error.h"

#include <algorithm>

namespace attend {
namespace {

constexpr size_t maximum_shown = 60;

// Returns the length in bytes of the well-formed UTF-8 character at the start of `text`; 0 if
// malformed.
size_t character_length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  const size_t length = lead < 0x80 ? 1 : lead < 0xC2 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  if (lead > 0xF4 || length == 0 || length > text.size()) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  // The second byte reveals overlong forms, surrogates and points beyond U+10FFFF.
  if (lead == 0xE0 && byte(1) < 0xA0) return 0;
  if (lead == 0xED && byte(1) > 0x9F) return 0;
  if (lead == 0xF0 && byte(1) < 0x90) return 0;
  if (lead == 0xF4 && byte(1) > 0x8F) return 0;
  return length;
}

}  // namespace

std::string in_quotes(std::string_view text) {
  std::string result = "'";
  size_t position = 0;
  while (position < text.size() && position < maximum_shown) {
    const size_t length = character_length(text.substr(position));
    const auto byte = static_cast<unsigned char>(text[position]);
    // C2 80 to C2 9F are control characters too, and terminals obey them.
    const bool control =
        byte < 0x20 || byte == 0x7F ||
        (length == 2 && byte == 0xC2 && static_cast<unsigned char>(text[position + 1]) < 0xA0);
    if (length == 0 || control) {
      for (size_t i = 0; i < std::max<size_t>(length, 1); ++i) {
        result += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[position + i]));
      }
    } else {
      result += text.substr(position, length);
    }
    position += std::max<size_t>(length, 1);
  }
  return result + (position < text.size() ? "...'" : "'");
}

}  // namespace attend
