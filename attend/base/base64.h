#pragma once

#include <string>
#include <string_view>

namespace attend {

// Bytes as text and back (RFC 4648, section 4), with = at the end.
std::string base64_text(std::string_view bytes);
// The bytes of such a text. Error on a text that is no base64.
std::string base64_bytes(std::string_view text);

}  // namespace attend
