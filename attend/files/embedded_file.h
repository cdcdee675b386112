#pragma once

#include <string>
#include <string_view>

namespace attend {

// Returns whether a source contains a file instead of its name: "data:image/png;base64,iVBORw0..."
// (RFC 2397). A source with such a beginning is never a file name.
bool holds_file(std::string_view source);
// Returns the bytes of the file. Error if they are not in base64.
std::string held_file(std::string_view source);
// Returns the source for messages; cuts it after the beginning if it contains a file.
std::string shown_source(std::string_view source);

}  // namespace attend
