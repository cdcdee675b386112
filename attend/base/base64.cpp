#include "attend/base/base64.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "attend/base/error.h"

namespace attend {
namespace {

constexpr std::string_view letters =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

uint32_t sextet(char letter) {
  const size_t place = letters.find(letter);
  if (place == std::string_view::npos) fail("base64 has only A-Z, a-z, 0-9, + and /");
  return static_cast<uint32_t>(place);
}

}  // namespace

std::string base64_text(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t count = std::min<size_t>(3, bytes.size() - i);
    uint32_t group = 0;
    for (size_t b = 0; b < 3; ++b)
      group = group << 8 | (b < count ? static_cast<unsigned char>(bytes[i + b]) : 0U);
    for (size_t s = 0; s < 4; ++s) text += s <= count ? letters[group >> (18 - 6 * s) & 63] : '=';
  }
  return text;
}

std::string base64_bytes(std::string_view text) {
  if (text.size() % 4 != 0) fail("base64 has a multiple of 4 letters, = at the end included");
  size_t padding = 0;
  while (padding < 2 && text.ends_with('=')) {
    text.remove_suffix(1);
    ++padding;
  }
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3 + 2);
  uint32_t group = 0;
  size_t bits = 0;
  for (const char letter : text) {
    group = group << 6 | sextet(letter);
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    bytes += static_cast<char>(group >> bits & 255);
  }
  // Each byte string has one valid encoding.
  if ((group & ((1U << bits) - 1)) != 0) fail("base64 ends with bits beyond the last byte");
  return bytes;
}

}  // namespace attend
