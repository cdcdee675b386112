#pragma once

#include <cstdint>

#include "attend/data/frame_config.h"
#include "attend/data/image.h"

namespace attend {

// The image with another size, 1 or more both ways, by a way other than none: the bytes that Pillow
// gives, which sums in whole numbers and rounds to bytes between the two directions.
Image resized(const Image& image, int64_t height, int64_t width, Resizing way);

// The middle of an image that is no smaller; where margins are odd, the larger one is cut off below
// and to the right.
Image middle(const Image& image, int64_t height, int64_t width);

}  // namespace attend
