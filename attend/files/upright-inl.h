#pragma once

#include <string_view>

#include "attend/files/image.h"

namespace attend::internal {

// Returns the Exif orientation, 1 to 8, of a JPEG file or of bare Exif data; 1, upright, if it is
// missing.
int exif_orientation(std::string_view bytes);

// Turns an image upright that was stored in that orientation.
Image upright(Image lying, int orientation);

}  // namespace attend::internal
