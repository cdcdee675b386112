#pragma once

#include <string_view>

namespace attend {

// Files of the folder page, which the build converts to strings.
std::string_view pictures_page_style();
std::string_view pictures_page_body();
std::string_view pictures_page_script();

}  // namespace attend
