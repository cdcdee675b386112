#pragma once

#include <cstdint>

#include "attend/data/frame_config.h"
#include "attend/files/image.h"

namespace attend {

// Returns the image resized to a height and width of at least 1; `way` must not be none. The bytes
// equal Pillow's. Pillow sums integers and rounds to bytes between the two directions.
Image resized(const Image& image, int64_t height, int64_t width, Resizing way);

// Returns the middle of an image, which must not be smaller. If a margin is odd, one more row or
// column is cut at the bottom or right.
Image middle(const Image& image, int64_t height, int64_t width);

}  // namespace attend
