#pragma once

#include <string_view>

namespace attend {

// The files of the folder page, which the build makes strings of.
std::string_view pictures_page_style();
std::string_view pictures_page_body();
std::string_view pictures_page_script();

}  // namespace attend
