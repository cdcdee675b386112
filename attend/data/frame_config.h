#pragma once

#include <cstdint>

#include "attend/base/settings.h"

namespace attend {

// How images, sounds, sets and molecules become frames.
struct FrameConfig {
  int64_t patch = 4;         // pixels per side
  int64_t image_height = 0;  // of all images; 0: as the first of training
  int64_t image_width = 0;
  int64_t sample_rate = 8000;
  int64_t mel_bands = 40;
  int64_t stack = 3;      // windows of 10 ms per frame
  int64_t set_depth = 0;  // numbers of an element of a set; 0: as the first of training
  double set_scale = 1;   // what they are divided by

  Settings settings();  // keys data.*

  // Patches down and across; the last ones may go past the image.
  int64_t rows() const { return (image_height + patch - 1) / patch; }
  int64_t columns() const { return (image_width + patch - 1) / patch; }
};

}  // namespace attend
