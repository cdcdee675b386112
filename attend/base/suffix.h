#pragma once

#include <string_view>

namespace attend {

// Returns whether a file name ends with a lower-case suffix such as ".png", ignoring case.
bool has_suffix(std::string_view name, std::string_view suffix);

// Returns the name without a final .gz or .xz.
std::string_view without_packing(std::string_view name);

}  // namespace attend
