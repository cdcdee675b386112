#include <libexif/exif-data.h>
#include <turbojpeg.h>

#include <memory>
#include <utility>

#include "attend/base/error.h"
#include "attend/data/jpeg-inl.h"

namespace attend {
namespace {

const unsigned char* bytes_of(std::string_view bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

// 1 to 8, as Exif numbers them; 1, upright, where the file does not say.
int orientation(std::string_view bytes) {
  const std::unique_ptr<ExifData, decltype(&exif_data_unref)> exif(
      exif_data_new_from_data(bytes_of(bytes), static_cast<unsigned int>(bytes.size())),
      &exif_data_unref);
  if (!exif) return 1;
  const ExifEntry* entry = exif_content_get_entry(exif->ifd[EXIF_IFD_0], EXIF_TAG_ORIENTATION);
  if (entry == nullptr || entry->format != EXIF_FORMAT_SHORT || entry->components < 1) return 1;
  const int value = exif_get_short(entry->data, exif_data_get_byte_order(exif.get()));
  return value >= 1 && value <= 8 ? value : 1;
}

Image upright(const Image& lying, int orientation) {
  if (orientation == 1) return lying;
  const bool transposed = orientation >= 5;
  const bool from_below =
      orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  const bool from_right =
      orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  Image image = lying;
  if (transposed) std::swap(image.height, image.width);
  image.pixels.clear();
  for (int64_t y = 0; y < image.height; ++y) {
    for (int64_t x = 0; x < image.width; ++x) {
      int64_t row = transposed ? x : y, column = transposed ? y : x;
      if (from_below) row = lying.height - 1 - row;
      if (from_right) column = lying.width - 1 - column;
      const int64_t first = (row * lying.width + column) * lying.channels;
      image.pixels.append(lying.pixels, static_cast<size_t>(first),
                          static_cast<size_t>(lying.channels));
    }
  }
  return image;
}

}  // namespace

bool internal::is_jpeg(std::string_view bytes) { return bytes.starts_with("\xff\xd8\xff"); }

Image internal::parse_jpeg(std::string_view bytes, const std::string& name, Colours colours) {
  const std::unique_ptr<void, decltype(&tjDestroy)> jpeg(tjInitDecompress(), &tjDestroy);
  // Damage is a warning, too, and leaves grey pixels.
  const auto check = [&](int result) {
    if (result != 0) fail("{}: cannot be read as JPEG: {}", name, tjGetErrorStr2(jpeg.get()));
  };
  int width = 0, height = 0, sampling = 0, colour_space = 0;
  check(tjDecompressHeader3(jpeg.get(), bytes_of(bytes), bytes.size(), &width, &height, &sampling,
                            &colour_space));
  if (colour_space == TJCS_CMYK || colour_space == TJCS_YCCK)
    fail("{}: is a JPEG image in CMYK, the colours of printers; convert it to RGB", name);
  Image image{height, width, {}, colour_space != TJCS_GRAY, colours == Colours::rgb ? 3 : 1};
  check_pixels(image, name);
  image.pixels.resize(static_cast<size_t>(image.height * image.width * image.channels));
  check(tjDecompress2(jpeg.get(), bytes_of(bytes), bytes.size(),
                      reinterpret_cast<unsigned char*>(image.pixels.data()), width, 0, height,
                      colours == Colours::rgb ? TJPF_RGB : TJPF_GRAY, TJFLAG_LIMITSCANS));
  return upright(image, orientation(bytes));
}

}  // namespace attend
