#pragma once

#include <string>
#include <string_view>

namespace attend {

// Bytes as text and back (RFC 4648, section 4), with = at the end.
std::string base64_text(std::string_view bytes);
// Error on what is not such a text.
std::string base64_bytes(std::string_view text);

}  // namespace attend
