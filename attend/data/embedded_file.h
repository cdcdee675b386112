#pragma once

#include <string>
#include <string_view>

namespace attend {

// A source may hold a file in place of naming it: "data:image/png;base64,iVBORw0..." (RFC 2397).
// What begins so is never taken for the name of a file.
bool holds_file(std::string_view source);
// The file's bytes. Error where they are not in base64.
std::string held_file(std::string_view source);
// The source for messages: only the beginning where it holds a file.
std::string shown_source(std::string_view source);

}  // namespace attend
