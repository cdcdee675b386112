#include "attend/files/npy.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace attend;
  return fuzz::accept_errors([&] {
    const std::string bytes = format_npy(parse_npy(fuzz::text(data, size), "input"));
    fuzz::expect(format_npy(parse_npy(bytes, "input")) == bytes);
  });
}
