#pragma once

#include <string_view>

#include "attend/data/image.h"

namespace attend::internal {

// Returns the orientation, 1 to 8, that Exif data say, of a JPEG file or by themselves; 1, upright,
// if there are none.
int exif_orientation(std::string_view bytes);

// Turns an image upright that was stored in that orientation.
Image upright(Image lying, int orientation);

}  // namespace attend::internal
