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

// Reads a PNG or JPEG image, whichever its first bytes say, and converts it to grey or to red,
// green and blue, as `colours` says. Transparent pixels are blended with black; a photograph is
// turned upright, as its Exif orientation says. Errors name the file: neither of them, one that is
// damaged or cut off, a JPEG image in CMYK, over 16 million pixels.
Image read_image(const std::string& path, Colours colours = Colours::grey);

// The same for the bytes of a file; messages call it `name`.
Image parse_image(std::string_view bytes, const std::string& name, Colours colours = Colours::grey);

// Returns whether a file's name says that it holds such an image.
bool has_image_suffix(std::string_view path);

// A grey picture in three equal colours; one in colours stays as it is.
Image in_rgb(const Image& image);

// The bytes of a PNG file.
std::string png_bytes(const Image& image);

}  // namespace attend
