#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace attend {

// An image, row by row, one byte per pixel and channel; 0 is black.
struct Image {
  int64_t height = 0;
  int64_t width = 0;
  std::string pixels;
  bool coloured = false;     // whether its file has a colour space
  int64_t channels = 1;      // 1: grey; 3: red, green and blue
  bool transparent = false;  // whether its file has a pixel with less than full alpha
};

// How an image is read.
enum class Colours { grey, rgb };

// Maximum number of pixels of an image, because of memory: read in its own size, and before
// resizing.
constexpr int64_t maximum_pixels = int64_t{1} << 24;
constexpr int64_t maximum_pixels_to_resize = int64_t{1} << 26;

// Reads a PNG or JPEG image, detected by its first bytes, and converts it to grey or RGB according
// to `colours`. Grey is 0.299 red + 0.587 green + 0.114 blue of the bytes. 16-bit samples keep
// their high byte. Alpha is dropped: a transparent pixel has its stored colour. Gamma and colour
// profiles (gAMA, cHRM, sRGB, iCCP) are ignored. The image is turned upright according to its Exif
// orientation. Errors name the file: neither PNG nor JPEG, damaged or truncated, a JPEG image in
// CMYK, over `limit` pixels.
Image read_image(const std::string& path, Colours colours = Colours::grey,
                 int64_t limit = maximum_pixels);

// Parses the bytes of a file; messages call it `name`.
Image parse_image(std::string_view bytes, const std::string& name, Colours colours = Colours::grey,
                  int64_t limit = maximum_pixels);

// Returns whether a file's name has the ending of a PNG or JPEG image.
bool has_image_suffix(std::string_view path);

// Converts a grey image to three equal channels; returns an RGB image unchanged.
Image in_rgb(const Image& image);

// Returns the bytes of a PNG file.
std::string png_bytes(const Image& image);

}  // namespace attend
