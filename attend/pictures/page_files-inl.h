#pragma once

#include <string_view>

namespace attend {

// The files of the folder page, which the build makes strings of.
std::string_view page_style();
std::string_view page_body();
std::string_view page_script();

}  // namespace attend
