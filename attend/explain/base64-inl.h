#pragma once

#include <string>
#include <string_view>

namespace attend {

// RFC 4648, section 4, with padding and without line ends.
std::string base64(std::string_view bytes);

}  // namespace attend
