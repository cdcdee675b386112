#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace attend {

// A picture in grey, one byte per pixel, row by row; 0 is black.
struct Image {
  int64_t height = 0;
  int64_t width = 0;
  std::string pixels;
  bool coloured = false;  // whether a colour space was read as grey
};

// Reads a PNG picture of any kind: colours become grey, and what is transparent is laid on black.
// Errors name the file: no PNG, one that is damaged or cut off, over 16 million pixels.
Image read_png(const std::string& path);

// The same for the bytes of a file; messages call it `name`.
Image parse_png(std::string_view bytes, const std::string& name);

// The bytes of such a file.
std::string png_bytes(const Image& image);

}  // namespace attend
