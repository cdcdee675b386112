#include "attend/files/audio.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace attend;
  return fuzz::accept_errors([&] {
    const Sound sound = parse_sound(fuzz::text(data, size), "input");
    fuzz::expect(sound.samples.size(0) > 0);
    fuzz::expect(at::isfinite(sound.samples).all().item<bool>());
  });
}
