#pragma once

#include <string>
#include <string_view>

namespace attend {

// Characters to escape: in a line, in a line of fields separated by TABs, and in texts that may
// contain backslashes. In texts backslashes are escaped too, which keeps the result unambiguous.
constexpr std::string_view line_breaks = "\n\r";
constexpr std::string_view field_breaks = "\n\r\t";
constexpr std::string_view text_breaks = "\n\r\t\\";

// The text with the characters of `escaped` written as \n, \r, \t or \\.
std::string in_one_line(std::string_view text, std::string_view escaped);

}  // namespace attend
