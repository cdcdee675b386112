#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace attend {

// A picture, row by row, one byte for each pixel and channel; 0 is black.
struct Image {
  int64_t height = 0;
  int64_t width = 0;
  std::string pixels;
  bool coloured = false;  // whether its file has a colour space
  int64_t channels = 1;   // grey; 3: red, green and blue
};

// How a picture is read.
enum class Colours { grey, rgb };

// Reads a PNG image of any colour type, and converts it to grey or to red, green and blue, as
// `colours` says. Transparent pixels are blended with black. Errors name the file: no PNG, one that
// is damaged or cut off, over 16 million pixels.
Image read_png(const std::string& path, Colours colours = Colours::grey);

// The same for the bytes of a file; messages call it `name`.
Image parse_png(std::string_view bytes, const std::string& name, Colours colours = Colours::grey);

// A grey picture in three equal colours; one in colours stays as it is.
Image in_rgb(const Image& image);

// The bytes of such a file.
std::string png_bytes(const Image& image);

}  // namespace attend
