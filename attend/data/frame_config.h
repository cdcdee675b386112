#pragma once

#include <cstdint>

#include "attend/base/enum_names.h"
#include "attend/base/settings.h"

namespace attend {

// How an image of another size is resized. none: not at all, which is an error. Otherwise each
// pixel is the weighted mean of its surroundings. The weights are a triangle, or a cubic with
// negative parts (Keys 1981, a = -0.5), scaled to the pixel distance of the smaller image.
enum class Resizing { none, bilinear, bicubic };
inline EnumNames names_of(Resizing) { return {"none", "bilinear", "bicubic"}; }

// How images, sounds, sets and molecules are converted to frames.
struct FrameConfig {
  int64_t patch = 4;         // pixels per side
  int64_t image_height = 0;  // common to all images; 0: size of the first training image
  int64_t image_width = 0;
  bool colours = false;  // images have red, green and blue channels; otherwise grey
  Resizing resize = Resizing::none;
  int64_t resized_height = 0;  // size before cropping to the middle; 0: as image_height
  int64_t resized_width = 0;
  int64_t sample_rate = 8000;
  int64_t mel_bands = 40;
  int64_t stack = 3;      // windows of 10 ms per frame
  int64_t set_depth = 0;  // numbers per element of a set; 0: as in the first training example
  double set_scale = 1;   // divisor of the numbers of sets

  Settings settings();  // keys data.*

  int64_t channels() const { return colours ? 3 : 1; }
  // Number of patches down and across; the last ones may extend beyond the image.
  int64_t rows() const { return (image_height + patch - 1) / patch; }
  int64_t columns() const { return (image_width + patch - 1) / patch; }
};

}  // namespace attend
