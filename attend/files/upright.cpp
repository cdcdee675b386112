#include <libexif/exif-data.h>

#include <memory>
#include <string>
#include <utility>

#include "attend/files/upright-inl.h"

namespace attend {

int internal::exif_orientation(std::string_view bytes) {
  using namespace std::string_literals;
  // libexif requires the header of Exif data in a JPEG segment.
  const bool is_bare = bytes.starts_with("II") || bytes.starts_with("MM");
  const std::string wrapped = is_bare ? "Exif\0\0"s.append(bytes) : "";
  if (is_bare) bytes = wrapped;
  const std::unique_ptr<ExifData, decltype(&exif_data_unref)> exif(
      exif_data_new_from_data(reinterpret_cast<const unsigned char*>(bytes.data()),
                              static_cast<unsigned int>(bytes.size())),
      &exif_data_unref);
  if (!exif) return 1;
  const ExifEntry* entry = exif_content_get_entry(exif->ifd[EXIF_IFD_0], EXIF_TAG_ORIENTATION);
  if (entry == nullptr || entry->format != EXIF_FORMAT_SHORT || entry->components < 1) return 1;
  const int value = exif_get_short(entry->data, exif_data_get_byte_order(exif.get()));
  return value >= 1 && value <= 8 ? value : 1;
}

Image internal::upright(Image lying, int orientation) {
  if (orientation == 1) return lying;
  const bool transposed = orientation >= 5;
  const bool from_below =
      orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  const bool from_right =
      orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  Image image{lying.height, lying.width, {}, lying.coloured, lying.channels, lying.transparent};
  if (transposed) std::swap(image.height, image.width);
  image.pixels.reserve(lying.pixels.size());
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

}  // namespace attend
