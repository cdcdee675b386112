#pragma once

#include <string>
#include <string_view>

#include "attend/data/image.h"

namespace attend::internal {

// Error on an image of more pixels than are read.
void check_pixels(const Image& image, const std::string& name);

bool is_jpeg(std::string_view bytes);

// As parse_image.
Image parse_jpeg(std::string_view bytes, const std::string& name, Colours colours);

}  // namespace attend::internal
