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

Image parse_png(std::string_view bytes, const std::string& name) {
  png_image png = {};
  png.version = PNG_IMAGE_VERSION;
  const std::unique_ptr<png_image, decltype(&png_image_free)> owner(&png, &png_image_free);
  if (png_image_begin_read_from_memory(&png, bytes.data(), bytes.size()) == 0)
    fail("{}: cannot be read as PNG: {}", name, png.message);
  Image image{png.height, png.width, {}, (png.format & PNG_FORMAT_FLAG_COLOR) != 0};
  if (image.height * image.width > maximum_pixels)
    fail("{}: has {} x {} pixels; at most {} are read, so scale it down", name, image.width,
         image.height, maximum_pixels);
  png.format = PNG_FORMAT_GRAY;
  image.pixels.resize(static_cast<size_t>(image.height * image.width));
  const png_color black = {0, 0, 0};
  if (png_image_finish_read(&png, &black, image.pixels.data(), 0, nullptr) == 0)
    fail("{}: cannot be read as PNG: {}", name, png.message);
  return image;
}

std::string png_bytes(const Image& image) {
  png_image png = {};
  png.version = PNG_IMAGE_VERSION;
  png.height = static_cast<png_uint_32>(image.height);
  png.width = static_cast<png_uint_32>(image.width);
  png.format = PNG_FORMAT_GRAY;
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

Image read_png(const std::string& path) {
  return parse_png(read_file(path, maximum_image_file), path);
}

}  // namespace attend
