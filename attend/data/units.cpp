#include "attend/data/units.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "attend/base/error.h"

namespace attend {
namespace {

constexpr std::string_view white_space = " \t\n\v\f\r";

// utf8proc sorts a run of combining marks by insertion.
constexpr int maximum_marks = 1000;

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

// The character at the front of `text`, which is not empty; its bytes, or 0 when it is malformed.
size_t next_character(std::string_view text, utf8proc_int32_t* character) {
  const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  // Four bytes are enough, and the length of a whole text might not fit its type.
  const auto size = static_cast<utf8proc_ssize_t>(std::min<size_t>(text.size(), 4));
  const utf8proc_ssize_t length = utf8proc_iterate(bytes, size, character);
  return length > 0 ? static_cast<size_t>(length) : 0;
}

bool is_mark(utf8proc_int32_t character) {
  const utf8proc_property_t* property = utf8proc_get_property(character);
  // U+0F73 is a mark of class 0 that decomposes into two that are sorted: the class is not enough.
  return property->combining_class != 0 || property->category == UTF8PROC_CATEGORY_MN ||
         property->category == UTF8PROC_CATEGORY_MC || property->category == UTF8PROC_CATEGORY_ME;
}

void check_characters(std::string_view text) {
  int marks = 0;
  for (size_t position = 0; position < text.size();) {
    utf8proc_int32_t character = 0;
    const size_t length = next_character(text.substr(position), &character);
    if (length == 0) {
      fail("invalid UTF-8 at byte {} (0x{:02x}); save the text as UTF-8", position + 1,
           static_cast<unsigned char>(text[position]));
    }
    marks = is_mark(character) ? marks + 1 : 0;
    if (marks > maximum_marks) {
      fail("over {} combining marks in a row at byte {}; this is no text", maximum_marks,
           position + 1);
    }
    position += length;
  }
}

}  // namespace

Units parse_units(std::string_view name) {
  if (name == "char") return Units::character;
  if (name == "space") return Units::space;
  if (name == "line") return Units::line;
  fail("units are char, space or line, not {}", shown(name));
}

std::string to_nfc(std::string_view text) {
  if (is_ascii(text)) return std::string(text);
  check_characters(text);
  utf8proc_uint8_t* mapped = nullptr;
  const utf8proc_ssize_t size =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                   static_cast<utf8proc_ssize_t>(text.size()), &mapped,
                   static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(mapped, &std::free);
  if (size < 0) fail("text cannot be normalised: {}", utf8proc_errmsg(size));
  return std::string(reinterpret_cast<const char*>(mapped), static_cast<size_t>(size));
}

std::vector<std::string> split_units(std::string_view text, Units units) {
  const std::string normal = to_nfc(text);
  const std::string_view view = normal;
  std::vector<std::string> symbols;
  if (units == Units::character) {
    for (size_t position = 0; position < view.size();) {
      utf8proc_int32_t character = 0;
      const size_t length = next_character(view.substr(position), &character);
      symbols.emplace_back(view.substr(position, length));
      position += length;
    }
    return symbols;
  }
  size_t first = view.find_first_not_of(white_space);
  if (units == Units::line && first != std::string_view::npos)
    return {std::string(view.substr(first, view.find_last_not_of(white_space) + 1 - first))};
  while (first != std::string_view::npos) {
    const size_t end = std::min(view.find_first_of(white_space, first), view.size());
    symbols.emplace_back(view.substr(first, end - first));
    first = view.find_first_not_of(white_space, end);
  }
  return symbols;
}

std::string join_units(const std::vector<std::string>& symbols, Units units) {
  return fmt::format("{}", fmt::join(symbols, units == Units::space ? " " : ""));
}

}  // namespace attend
