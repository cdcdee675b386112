#pragma once

#include <ATen/ATen.h>

#include <string>

#include "attend/data/frame_config.h"
#include "attend/data/idx.h"
#include "attend/data/image.h"

namespace attend {

// An image by its name: "file.png", or "images.idx:17" for image 17, counted from 0, of an IDX
// file, packed by gzip or xz or not. Such a file stays in memory until another one is named. In
// place of a name the PNG itself (data/embedded_file.h). `limit` as read_image has it.
class ImageReader {
 public:
  explicit ImageReader(Colours colours = Colours::grey, int64_t limit = maximum_pixels)
      : colours_(colours), limit_(limit) {}

  Image read(const std::string& name);  // Errors name the file

 private:
  Colours colours_;
  int64_t limit_;
  std::string path_;
  IdxArray images_;
};

// An image's square patches, row by row: [S, channels patch^2] in 0 .. 1, one channel after
// another. Around it, where the patches go past it, are zeros, as many on either side. An image of
// another size is resized, and its middle taken, where the configuration says so. Error, naming it,
// where it does not, and on another number of channels.
at::Tensor image_frames(const Image& image, const FrameConfig& config, const std::string& name);

}  // namespace attend
