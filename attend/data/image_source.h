#pragma once

#include <ATen/ATen.h>

#include <string>

#include "attend/data/frame_config.h"
#include "attend/files/idx.h"
#include "attend/files/image.h"

namespace attend {

// Reads an image by name: "file.png", or "images.idx:17" for image 17, counted from 0, of an IDX
// file, packed by gzip or xz or not. The IDX file stays in memory until another one is named.
// Instead of a name, the source may contain the file (files/embedded_file.h). `limit` as in
// read_image.
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

// Returns an image's square patches, row by row: [S, channels patch^2] from 0 to 1, channel by
// channel. If the patches extend beyond the image, zeros pad it equally on both sides. An image of
// another size is resized and cropped to its middle if the configuration allows; otherwise Error,
// naming the image. Error also on another number of channels.
at::Tensor image_frames(const Image& image, const FrameConfig& config, const std::string& name);

}  // namespace attend
