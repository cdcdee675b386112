#include "attend/data/image_resize.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace attend;
  return fuzz::accept_errors([&] {
    const Image image = parse_image(fuzz::text(data, size), "input");
    fuzz::expect(static_cast<int64_t>(image.pixels.size()) == image.height * image.width);
    // Larger images would be slow without testing more.
    if (image.pixels.size() > 4096) return;
    const Image colours = parse_image(fuzz::text(data, size), "input", Colours::rgb);
    fuzz::expect(colours.pixels.size() == 3 * image.pixels.size());
    const Image half = resized(colours, (image.height + 1) / 2, 2 * image.width, Resizing::bicubic);
    fuzz::expect(half.pixels.size() == static_cast<size_t>(half.height * half.width * 3));
    fuzz::expect(parse_image(png_bytes(image), "input").pixels == image.pixels);
  });
}
