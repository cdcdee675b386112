#include "attend/files/npz.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace attend;
  return fuzz::accept_errors([&] {
    const std::string bytes = format_npz(parse_npz(fuzz::text(data, size), "input"));
    fuzz::expect(format_npz(parse_npz(bytes, "input")) == bytes);
  });
}
