#include "attend/data/image.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace attend;
  return fuzz::accept_errors([&] {
    const Image image = parse_png(fuzz::text(data, size), "input");
    fuzz::expect(static_cast<int64_t>(image.pixels.size()) == image.height * image.width);
    // Larger ones would be slow, and no different.
    if (image.pixels.size() > 4096) return;
    fuzz::expect(parse_png(png_bytes(image), "input").pixels == image.pixels);
  });
}
