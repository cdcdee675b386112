#pragma once

#include <string>
#include <string_view>

namespace attend {

// What would break a line of output, and what a line of several fields between TABs as well. Where
// texts hold backslashes of their own, these are escaped too, so that nothing reads two ways.
constexpr std::string_view line_breaks = "\n\r";
constexpr std::string_view field_breaks = "\n\r\t";
constexpr std::string_view text_breaks = "\n\r\t\\";

// The text with each of those characters as \n, \r, \t or \\.
std::string in_one_line(std::string_view text, std::string_view escaped);

}  // namespace attend
