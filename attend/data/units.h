#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace attend {

// What one symbol of a sequence is: a character (a Unicode code point after NFC), a run of text
// between ASCII white space, or the whole text without the white space around it; in NFC too.
enum class Units { character, space, line };

// "char", "space" or "line"; Error otherwise.
Units parse_units(std::string_view name);

// The text in Unicode's normal form C, in which equal texts have equal bytes. Error on invalid
// UTF-8, naming the byte (counted from 1), and on more than 1000 combining marks in a row, whose
// ordering would take quadratic time.
std::string to_nfc(std::string_view text);

// The symbols of a text. Errors as to_nfc. Empty text gives no symbols, nor does white space as a
// line.
std::vector<std::string> split_units(std::string_view text, Units units);

// The inverse of split_units: joined by nothing or by one space.
std::string join_units(const std::vector<std::string>& symbols, Units units);

}  // namespace attend
