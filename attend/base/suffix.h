#pragma once

#include <string_view>

namespace attend {

// Returns whether a file's name ends with a suffix such as ".png", which is in small letters, in
// small or in capital ones.
bool has_suffix(std::string_view name, std::string_view suffix);

// The name without the .gz or .xz at its end.
std::string_view without_packing(std::string_view name);

}  // namespace attend
