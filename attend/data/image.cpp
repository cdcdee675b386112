#include "attend/data/image.h"

#include <png.h>

#include <memory>

#include "attend/base/error.h"
#include "attend/base/files.h"
#include "attend/base/suffix.h"
#include "attend/data/jpeg-inl.h"

namespace attend {
namespace {

constexpr int64_t maximum_image_file = int64_t{256} << 20;

Image parse_png(std::string_view bytes, const std::string& name, Colours colours) {
  png_image png = {};
  png.version = PNG_IMAGE_VERSION;
  const std::unique_ptr<png_image, decltype(&png_image_free)> owner(&png, &png_image_free);
  if (png_image_begin_read_from_memory(&png, bytes.data(), bytes.size()) == 0)
    fail("{}: cannot be read as PNG: {}", name, png.message);
  Image image{png.height, png.width, {}, (png.format & PNG_FORMAT_FLAG_COLOR) != 0};
  internal::check_pixels(image, name);
  png.format = colours == Colours::rgb ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY;
  image.channels = PNG_IMAGE_PIXEL_CHANNELS(png.format);
  image.pixels.resize(static_cast<size_t>(image.height * image.width * image.channels));
  const png_color black = {0, 0, 0};
  if (png_image_finish_read(&png, &black, image.pixels.data(), 0, nullptr) == 0)
    fail("{}: cannot be read as PNG: {}", name, png.message);
  return image;
}

}  // namespace

void internal::check_pixels(const Image& image, const std::string& name) {
  constexpr int64_t maximum_pixels = int64_t{1} << 24;
  if (image.height * image.width > maximum_pixels)
    fail("{}: has {} x {} pixels; at most {} are read, so scale it down", name, image.width,
         image.height, maximum_pixels);
}

Image parse_image(std::string_view bytes, const std::string& name, Colours colours) {
  if (internal::is_jpeg(bytes)) return internal::parse_jpeg(bytes, name, colours);
  if (!bytes.starts_with("\x89PNG"))
    fail("{}: is neither a PNG nor a JPEG image; convert it to one of them", name);
  return parse_png(bytes, name, colours);
}

Image read_image(const std::string& path, Colours colours) {
  return parse_image(read_file(path, maximum_image_file), path, colours);
}

bool has_image_suffix(std::string_view path) {
  return has_suffix(path, ".png") || has_suffix(path, ".jpg") || has_suffix(path, ".jpeg");
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

}  // namespace attend
