#pragma once

#include <string>
#include <string_view>

namespace attend {

// RFC 4648, section 4, with padding and without line ends.

// Valid UTF-8, escaped for the content and the quoted attributes of XML and HTML.
std::string escape_markup(std::string_view text);

}  // namespace attend
