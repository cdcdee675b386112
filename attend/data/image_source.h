#pragma once

#include <ATen/ATen.h>

#include <string>

#include "attend/data/frame_config.h"
#include "attend/data/idx.h"
#include "attend/data/image.h"

namespace attend {

// An image by its name: "file.png", or "images.idx:17" for image 17, counted from 0, of an IDX
// file, packed by gzip or xz or not. Such a file stays in memory until another one is named. In
// place of a name the PNG itself (data/embedded_file.h).
class ImageReader {
 public:
  Image read(const std::string& name);  // Errors name the file

 private:
  std::string path_;
  IdxArray images_;
};

// An image's square patches, row by row: [S, patch^2] in 0 .. 1. Around it, where the patches go
// past it, are zeros, as many on either side. Error, naming it, on an image of another size.
at::Tensor image_frames(const Image& image, const FrameConfig& config, const std::string& name);

}  // namespace attend
