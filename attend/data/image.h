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
  bool coloured = false;     // whether its file has a colour space
  int64_t channels = 1;      // grey; 3: red, green and blue
  bool transparent = false;  // whether the alpha of a pixel of its file is below the largest
};

// How a picture is read.
enum class Colours { grey, rgb };

// Limits of the pixels of an image, which memory must hold: of one that is read as it is, and of
// one that will be resized.
constexpr int64_t maximum_pixels = int64_t{1} << 24;
constexpr int64_t maximum_pixels_to_resize = int64_t{1} << 26;

// Reads a PNG or JPEG image, whichever its first bytes say, and converts it to grey or to red,
// green and blue, as `colours` says. The grey of a colour is 0.299 red + 0.587 green + 0.114 blue
// of its bytes. 16-bit samples keep their high byte; alpha is dropped, so that a transparent pixel
// has the colour that is stored for it; gamma and colour profiles (gAMA, cHRM, sRGB, iCCP) are
// ignored. An image is turned upright, as its Exif orientation says. Errors name the file: neither
// PNG nor JPEG, damaged or cut off, a JPEG image in CMYK, over `limit` pixels.
Image read_image(const std::string& path, Colours colours = Colours::grey,
                 int64_t limit = maximum_pixels);

// The same for the bytes of a file; messages call it `name`.
Image parse_image(std::string_view bytes, const std::string& name, Colours colours = Colours::grey,
                  int64_t limit = maximum_pixels);

// Returns whether a file's name says that it holds such an image.
bool has_image_suffix(std::string_view path);

// A grey picture in three equal colours; one in colours stays as it is.
Image in_rgb(const Image& image);

// The bytes of a PNG file.
std::string png_bytes(const Image& image);

}  // namespace attend
