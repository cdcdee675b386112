#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "attend/files/image.h"

namespace attend::internal {

// Error if the image has more than `limit` pixels.
void check_pixels(const Image& image, const std::string& name, int64_t limit);

bool is_jpeg(std::string_view bytes);

// As parse_image.
Image parse_jpeg(std::string_view bytes, const std::string& name, Colours colours, int64_t limit);

}  // namespace attend::internal
