#include "attend/files/safetensors.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace attend;
  return fuzz::accept_errors([&] {
    const TensorFile file = parse_safetensors(fuzz::text(data, size), "input");
    const std::string bytes = format_safetensors(file);
    fuzz::expect(format_safetensors(parse_safetensors(bytes, "again")) == bytes);
  });
}
