#include "attend/data/image.h"

#include <png.h>

#include <memory>

#include "attend/base/error.h"
#include "attend/base/files.h"

namespace attend {
namespace {

constexpr int64_t maximum_pixels = int64_t{1} << 24;
constexpr int64_t maximum_image_file = int64_t{256} << 20;

}  // namespace

Image parse_png(std::string_view bytes, const std::string& name, Colours colours) {
  png_image png = {};
  png.version = PNG_IMAGE_VERSION;
  const std::unique_ptr<png_image, decltype(&png_image_free)> owner(&png, &png_image_free);
  if (png_image_begin_read_from_memory(&png, bytes.data(), bytes.size()) == 0)
    fail("{}: cannot be read as PNG: {}", name, png.message);
  Image image{png.height, png.width, {}, (png.format & PNG_FORMAT_FLAG_COLOR) != 0};
  if (image.height * image.width > maximum_pixels)
    fail("{}: has {} x {} pixels; at most {} are read, so scale it down", name, image.width,
         image.height, maximum_pixels);
  png.format = colours == Colours::rgb ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY;
  image.channels = PNG_IMAGE_PIXEL_CHANNELS(png.format);
  image.pixels.resize(static_cast<size_t>(image.height * image.width * image.channels));
  const png_color black = {0, 0, 0};
  if (png_image_finish_read(&png, &black, image.pixels.data(), 0, nullptr) == 0)
    fail("{}: cannot be read as PNG: {}", name, png.message);
  return image;
}

Image in_rgb(const Image& image) {
  if (image.channels == 3) return image;
  Image result{image.height, image.width, {}, image.coloured, 3};
  result.pixels.reserve(3 * image.pixels.size());
  for (const char pixel : image.pixels) result.pixels.append(3, pixel);
  return result;
}

std::string png_bytes(const Image& image) {
  png_image png = {};
  png.version = PNG_IMAGE_VERSION;
  png.height = static_cast<png_uint_32>(image.height);
  png.width = static_cast<png_uint_32>(image.width);
  png.format = image.channels == 3 ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY;
  const auto write = [&](void* bytes, png_alloc_size_t& size) {
    if (png_image_write_to_memory(&png, bytes, &size, 0, image.pixels.data(), 0, nullptr) == 0)
      fail("[png_bytes] {} x {} pixels: {}", image.width, image.height, png.message);
  };
  png_alloc_size_t size = 0;
  write(nullptr, size);
  std::string bytes(size, 0);
  write(bytes.data(), size);
  bytes.resize(size);
  return bytes;
}

Image read_png(const std::string& path, Colours colours) {
  return parse_png(read_file(path, maximum_image_file), path, colours);
}

}  // namespace attend
