#pragma once

#include <string>
#include <string_view>

namespace attend {

// Encodes bytes as base64 text (RFC 4648, section 4), padded with =.
std::string base64_text(std::string_view bytes);
// Decodes a base64 text. Error if the text is not valid base64.
std::string base64_bytes(std::string_view text);

}  // namespace attend
