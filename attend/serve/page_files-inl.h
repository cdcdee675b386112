#pragma once

#include <string_view>

namespace attend {

// Files of the folder page, embedded by the build, with the drawing code of the explanation page
// (attend/pictures/page).
std::string_view serve_page_style();
std::string_view serve_page_body();
std::string_view serve_page_script();

}  // namespace attend
