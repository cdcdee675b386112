#include "attend/text/json_lines.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace attend;
  return fuzz::accept_errors([&] {
    JsonLinesReader reader(ByteReader(fuzz::text(data, size), "input"), "a", "b", 1 << 16);
    for (std::string source, target; reader.next(source, target);) {
      fuzz::expect(source.find_first_of("\r\n\t") == std::string::npos);
      fuzz::expect(reader.where().starts_with("input:"));
    }
  });
}
