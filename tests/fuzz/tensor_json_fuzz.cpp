#include <nlohmann/json.hpp>

#include "attend/files/tensor_json.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace attend;
  return fuzz::accept_errors([&] {
    const std::string text = tensor_json(parse_tensor_json(fuzz::text(data, size), "input")).dump();
    fuzz::expect(tensor_json(parse_tensor_json(text, "input")).dump() == text);
  });
}
