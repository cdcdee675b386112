#pragma once

#include <ATen/ATen.h>

#include <string>
#include <string_view>
#include <vector>

#include "attend/data/frame_config.h"
#include "attend/data/idx.h"
#include "attend/data/image.h"
#include "attend/data/pairs.h"

namespace attend {

// An image by its name: "file.png", or "images.idx:17" for image 17, counted from 0, of an IDX
// file, packed by gzip or xz or not. Such a file stays in memory until another one is named.
class ImageReader {
 public:
  Image read(const std::string& name);  // Errors name the file

 private:
  std::string path_;
  IdxArray images_;
};

// Whether a source is written as the name of an image or of a sound.
bool names_image(std::string_view source);
bool names_sound(std::string_view source);

// An image's square patches, row by row: [S, patch^2] in 0 .. 1. Around it, where the patches go
// past it, are zeros, as many on either side. Error, naming it, on an image of another size.
at::Tensor image_frames(const Image& image, const FrameConfig& config, const std::string& name);

// A sound's frames, [S, stack bands]: log_mel, normalised_bands, stacked. Error, naming the file,
// where it has another sample rate.
at::Tensor sound_frames(const std::string& path, const FrameConfig& config);

// Reads sources that are images or sounds.
class FrameReader {
 public:
  FrameReader(bool images, const FrameConfig& config) : images_(images), config_(config) {}

  at::Tensor read(const std::string& name);  // [S, F] float

 private:
  bool images_;
  FrameConfig config_;
  ImageReader reader_;
};

// What frames show: the image that the patches are of, or a sound's spectrogram, time to the right,
// its bands upwards, from the least energy, black, to the largest.
Image frames_picture(const at::Tensor& frames, bool images, const FrameConfig& config);

// What the frames are called: "row 1, column 2", counted from 1, or "0.03 s".
std::vector<std::string> frame_names(bool images, const FrameConfig& config, int64_t count);

// The size of the first example's image for a configuration that has none yet.
void take_image_size(const std::vector<Example>& examples, FrameConfig& config);

// Files that a table names are in its folder, unless they begin with a slash.
std::string placed_source(const std::string& source, const std::string& table);
void place_sources(std::vector<Example>& examples, const std::string& table);

}  // namespace attend
