#include <turbojpeg.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "attend/base/error.h"
#include "attend/files/jpeg-inl.h"
#include "attend/files/upright-inl.h"

namespace attend {
namespace {

const unsigned char* bytes_of(std::string_view bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

// Removes bytes between the segments of the header. libjpeg skips them with a warning, although the
// pixels are not damaged.
std::string without_stray_bytes(std::string_view bytes) {
  std::string clean(bytes.substr(0, 2));
  size_t place = 2;
  while (true) {
    const size_t marker = bytes.find('\xff', place);
    if (marker == std::string_view::npos || marker + 4 > bytes.size()) return clean;
    const auto code = static_cast<unsigned char>(bytes[marker + 1]);
    place = marker + 1;
    if (code == 0xff || code == 0) continue;
    const bool has_length = code != 0x01 && (code < 0xd0 || code > 0xd9);
    constexpr unsigned char start_of_scan = 0xda;
    if (code == start_of_scan || !has_length) return clean.append(bytes.substr(marker));
    const size_t length = static_cast<unsigned char>(bytes[marker + 2]) * size_t{256} +
                          static_cast<unsigned char>(bytes[marker + 3]);
    clean += bytes.substr(marker, 2 + length);
    place = std::min(marker + 2 + length, bytes.size());
  }
}

}  // namespace

bool internal::is_jpeg(std::string_view bytes) { return bytes.starts_with("\xff\xd8\xff"); }

Image internal::parse_jpeg(std::string_view file, const std::string& name, Colours colours,
                           int64_t limit) {
  const std::string bytes = without_stray_bytes(file);
  const std::unique_ptr<void, decltype(&tjDestroy)> jpeg(tjInitDecompress(), &tjDestroy);
  // Damage is also a warning and leaves grey pixels.
  const auto check = [&](int result) {
    if (result != 0) fail("{}: cannot be read as JPEG: {}", name, tjGetErrorStr2(jpeg.get()));
  };
  int width = 0, height = 0, sampling = 0, colour_space = 0;
  check(tjDecompressHeader3(jpeg.get(), bytes_of(bytes), bytes.size(), &width, &height, &sampling,
                            &colour_space));
  if (colour_space == TJCS_CMYK || colour_space == TJCS_YCCK)
    fail("{}: is a JPEG image in CMYK, the colours of printers; convert it to RGB", name);
  Image image{height, width, {}, colour_space != TJCS_GRAY, colours == Colours::rgb ? 3 : 1};
  check_pixels(image, name, limit);
  image.pixels.resize(static_cast<size_t>(image.height * image.width * image.channels));
  check(tjDecompress2(jpeg.get(), bytes_of(bytes), bytes.size(),
                      reinterpret_cast<unsigned char*>(image.pixels.data()), width, 0, height,
                      colours == Colours::rgb ? TJPF_RGB : TJPF_GRAY, TJFLAG_LIMITSCANS));
  return upright(std::move(image), exif_orientation(bytes));
}

}  // namespace attend
