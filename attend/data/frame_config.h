#pragma once

#include <cstdint>

#include "attend/base/enum_names.h"
#include "attend/base/settings.h"

namespace attend {

// How an image of another size becomes one of the size that is read: not at all, which is an error,
// or by the mean of what lies around each pixel, weighed by a triangle or by a cubic that goes
// below 0 (Keys 1981, a = -0.5), both as wide as pixels lie apart in the larger of the two images.
enum class Resizing { none, bilinear, bicubic };
inline EnumNames names_of(Resizing) { return {"none", "bilinear", "bicubic"}; }

// How images, sounds, sets and molecules become frames.
struct FrameConfig {
  int64_t patch = 4;         // pixels per side
  int64_t image_height = 0;  // of all images; 0: as the first of training
  int64_t image_width = 0;
  bool colours = false;  // images have red, green and blue; else they are grey
  Resizing resize = Resizing::none;
  int64_t resized_height = 0;  // before what is around the middle is cut off; 0: as image_height
  int64_t resized_width = 0;
  int64_t sample_rate = 8000;
  int64_t mel_bands = 40;
  int64_t stack = 3;      // windows of 10 ms per frame
  int64_t set_depth = 0;  // numbers of an element of a set; 0: as the first of training
  double set_scale = 1;   // what they are divided by

  Settings settings();  // keys data.*

  int64_t channels() const { return colours ? 3 : 1; }
  // Patches down and across; the last ones may go past the image.
  int64_t rows() const { return (image_height + patch - 1) / patch; }
  int64_t columns() const { return (image_width + patch - 1) / patch; }
};

}  // namespace attend
