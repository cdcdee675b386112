#pragma once

#include <string>
#include <string_view>

namespace attend {

// Escapes text for a cell of a Markdown table.
std::string markdown_cell(std::string_view text);

// Formats code for a cell of a Markdown table; "-" if it is empty.
std::string markdown_code(std::string_view text);

}  // namespace attend
