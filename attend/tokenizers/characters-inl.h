#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace attend::internal {

// Classes of code points, as bits.
enum CharacterClass : uint16_t {
  bert_removed = 1 << 0,
  bert_space = 1 << 1,
  bert_cjk = 1 << 2,
  bert_mark = 1 << 3,
  bert_punctuation = 1 << 4,
  white_space = 1 << 5,
  letter = 1 << 6,
  number = 1 << 7,
  regex_space = 1 << 8,
  word_character = 1 << 9,
  combining = 1 << 10,
  nfd_changes = 1 << 11,
  untouched = 1 << 12,
  has_lower = 1 << 13,
};

// Classes of every code point, in blocks of 256; equal blocks are stored once.
class CharacterClasses {
 public:
  CharacterClasses();
  uint16_t classes(char32_t point) const {
    return blocks_[size_t{index_[point >> 8]} << 8 | (point & 0xFF)];
  }

 private:
  std::array<uint16_t, 0x1100> index_ = {};
  std::vector<uint16_t> blocks_;
};

const CharacterClasses& character_classes();

inline bool is(char32_t point, uint16_t wanted) {
  static const CharacterClasses& table = character_classes();
  return (table.classes(point) & wanted) != 0;
}

inline bool is_ascii(char character) { return static_cast<unsigned char>(character) < 0x80; }

// Returns the size in bytes of the character that begins with this byte, in well-formed UTF-8.
inline size_t character_size(char lead) {
  const auto byte = static_cast<unsigned char>(lead);
  return byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

// Returns the code point at `position` of well-formed UTF-8 and advances `position`.
inline char32_t next_point(std::string_view text, size_t& position) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[position + i]); };
  const size_t size = character_size(text[position]);
  char32_t point = 0;
  if (size == 1) point = byte(0);
  if (size == 2) point = (byte(0) & 0x1Fu) << 6 | (byte(1) & 0x3Fu);
  if (size == 3) point = (byte(0) & 0x0Fu) << 12 | (byte(1) & 0x3Fu) << 6 | (byte(2) & 0x3Fu);
  if (size == 4)
    point = (byte(0) & 0x07u) << 18 | (byte(1) & 0x3Fu) << 12 | (byte(2) & 0x3Fu) << 6 |
            (byte(3) & 0x3Fu);
  position += size;
  return point;
}

inline char32_t first_point(std::string_view text) {
  size_t position = 0;
  return next_point(text, position);
}

// Returns the last code point of non-empty, well-formed UTF-8.
inline char32_t last_point(std::string_view text) {
  size_t position = text.size() - 1;
  while ((static_cast<unsigned char>(text[position]) & 0xC0) == 0x80) --position;
  return next_point(text, position);
}

void append_point(std::string& text, char32_t point);

// Appends the lower case of the code point.
void append_lower(std::string& text, char32_t point);

// Returns the text with each maximal ill-formed sequence replaced by U+FFFD (as Unicode recommends
// and Python and Rust do). `changed` holds the result if it differs from `text`.
std::string_view well_formed(std::string_view text, std::string& changed);

bool is_well_formed(std::string_view text);

// Returns the bytes of the first character of a non-empty text; empty if they are malformed.
std::string_view front_character(std::string_view text);

}  // namespace attend::internal
