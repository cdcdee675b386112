#include "attend/files/image.h"

#include <png.h>

#include <csetjmp>
#include <new>
#include <utility>
#include <vector>

#include "attend/base/error.h"
#include "attend/base/files.h"
#include "attend/base/suffix.h"
#include "attend/files/jpeg-inl.h"
#include "attend/files/upright-inl.h"

namespace attend {
namespace {

constexpr int64_t maximum_image_file = int64_t{256} << 20;

// libpng leaves a failing function by longjmp. Hence the functions that call it after setjmp have
// no local objects with destructors.
class PngReader {
 public:
  explicit PngReader(std::string_view bytes)
      : rest_(bytes),
        png_(png_create_read_struct(PNG_LIBPNG_VER_STRING, this, take_error, ignore_warning)),
        info_(png_ == nullptr ? nullptr : png_create_info_struct(png_)) {
    if (info_ == nullptr) {
      png_destroy_read_struct(&png_, nullptr, nullptr);
      throw std::bad_alloc();
    }
    png_set_read_fn(png_, this, take_bytes);
    // Only chunks of pixels and of Exif are read.
    png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
    png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_AS_DEFAULT,
                                reinterpret_cast<png_const_bytep>("eXIf"), 1);
  }
  ~PngReader() { png_destroy_read_struct(&png_, &info_, nullptr); }
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;

  // Reads the chunks before the pixels; false on failure.
  bool read_header() {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    png_read_info(png_, info_);
    coloured_ = (png_get_color_type(png_, info_) & PNG_COLOR_MASK_COLOR) != 0;
    png_set_expand(png_);
    png_set_strip_16(png_);
    png_set_gray_to_rgb(png_);
    png_set_add_alpha(png_, 0xff, PNG_FILLER_AFTER);
    png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);
    return true;
  }

  // Reads the pixels, four bytes each: red, green, blue and alpha.
  bool read_pixels(png_bytepp rows) {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    png_read_image(png_, rows);
    return true;
  }

  // Reads the chunks after the pixels, which may be missing.
  bool read_end() {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    png_read_end(png_, info_);
    return true;
  }

  int64_t height() const { return png_get_image_height(png_, info_); }
  int64_t width() const { return png_get_image_width(png_, info_); }
  bool coloured() const { return coloured_; }
  const std::string& problem() const { return problem_; }

  std::string_view exif() const {
    png_uint_32 size = 0;
    png_bytep bytes = nullptr;
    if (png_get_eXIf_1(png_, info_, &size, &bytes) == 0) return {};
    return {reinterpret_cast<const char*>(bytes), size};
  }

 private:
  [[noreturn]] static void take_error(png_structp png, png_const_charp message) {
    static_cast<PngReader*>(png_get_error_ptr(png))->problem_ = message;
    png_longjmp(png, 1);
  }
  static void ignore_warning(png_structp, png_const_charp) {}
  static void take_bytes(png_structp png, png_bytep bytes, size_t size) {
    std::string_view& rest = static_cast<PngReader*>(png_get_io_ptr(png))->rest_;
    if (size > rest.size()) png_error(png, "the file is cut off");
    rest.copy(reinterpret_cast<char*>(bytes), size);
    rest.remove_prefix(size);
  }

  std::string_view rest_;
  std::string problem_;
  png_structp png_;
  png_infop info_;
  bool coloured_ = false;
};

// ITU-R BT.601, in units of 1/65536.
char grey_of(unsigned red, unsigned green, unsigned blue) {
  return static_cast<char>((19595 * red + 38470 * green + 7471 * blue + 32768) >> 16);
}

// Converts pixels of red, green, blue and alpha.
void take_pixels(const std::string& from, Image& image) {
  image.pixels.reserve(static_cast<size_t>(image.height * image.width * image.channels));
  for (size_t i = 0; i < from.size(); i += 4) {
    const auto byte = [&](size_t channel) { return static_cast<unsigned char>(from[i + channel]); };
    if (image.channels == 3)
      image.pixels.append(from, i, 3);
    else
      image.pixels += grey_of(byte(0), byte(1), byte(2));
    image.transparent |= byte(3) < 255;
  }
}

Image parse_png(std::string_view bytes, const std::string& name, Colours colours, int64_t limit) {
  PngReader reader(bytes);
  const auto check = [&](bool good) {
    if (!good) fail("{}: cannot be read as PNG: {}", name, reader.problem());
  };
  check(reader.read_header());
  Image image{
      reader.height(), reader.width(), {}, reader.coloured(), colours == Colours::rgb ? 3 : 1};
  internal::check_pixels(image, name, limit);
  const size_t row_bytes = 4 * static_cast<size_t>(image.width);
  std::string pixels(row_bytes * static_cast<size_t>(image.height), 0);
  std::vector<png_bytep> rows;
  for (size_t begin = 0; begin < pixels.size(); begin += row_bytes)
    rows.push_back(reinterpret_cast<png_bytep>(pixels.data() + begin));
  check(reader.read_pixels(rows.data()));
  take_pixels(pixels, image);
  reader.read_end();
  return internal::upright(std::move(image), internal::exif_orientation(reader.exif()));
}

}  // namespace

void internal::check_pixels(const Image& image, const std::string& name, int64_t limit) {
  if (image.height * image.width > limit)
    fail("{}: has {} x {} pixels; at most {} are read{}", name, image.width, image.height, limit,
         limit < maximum_pixels_to_resize ? ", so scale it down or set data.resize"
                                          : ", so scale it down");
}

Image parse_image(std::string_view bytes, const std::string& name, Colours colours, int64_t limit) {
  if (internal::is_jpeg(bytes)) return internal::parse_jpeg(bytes, name, colours, limit);
  if (!bytes.starts_with("\x89PNG"))
    fail("{}: is neither a PNG nor a JPEG image; convert it to one of them", name);
  return parse_png(bytes, name, colours, limit);
}

Image read_image(const std::string& path, Colours colours, int64_t limit) {
  return parse_image(read_file(path, maximum_image_file), path, colours, limit);
}

bool has_image_suffix(std::string_view path) {
  return has_suffix(path, ".png") || has_suffix(path, ".jpg") || has_suffix(path, ".jpeg");
}

Image in_rgb(const Image& image) {
  if (image.channels == 3) return image;
  Image result{image.height, image.width, {}, image.coloured, 3, image.transparent};
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
