#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace attend {

// What one symbol of a sequence is: a character (a Unicode code point after NFC) or a run of text
// between spaces.
enum class Units { character, space };

// "char" or "space"; Error otherwise.
Units parse_units(std::string_view name);

// The symbols of a text. Error on invalid UTF-8, naming the byte. Empty text gives no symbols.
std::vector<std::string> split_units(std::string_view text, Units units);

// The inverse of split_units: joined by nothing or by one space.
std::string join_units(const std::vector<std::string>& symbols, Units units);

}  // namespace attend
