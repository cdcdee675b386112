#pragma once

#include <string>
#include <string_view>

namespace attend {

// Text for a cell of a Markdown table, in which its signs mean nothing.
std::string markdown_cell(std::string_view text);

// Code for a cell of a Markdown table; "-" where there is none.
std::string markdown_code(std::string_view text);

}  // namespace attend
