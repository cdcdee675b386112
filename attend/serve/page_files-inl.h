#pragma once

#include <string_view>

namespace attend {

// The files of the folder page, which the build makes strings of, with those of the explanation
// page that draw (attend/pictures/page).
std::string_view serve_page_style();
std::string_view serve_page_body();
std::string_view serve_page_script();

}  // namespace attend
