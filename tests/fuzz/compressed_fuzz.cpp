#include "attend/files/compressed.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace attend;
  constexpr int64_t maximum = 1 << 20;
  const std::string_view bytes = fuzz::text(data, size);
  fuzz::accept_errors([&] {
    fuzz::expect(static_cast<int64_t>(ByteReader(bytes, "input", maximum).read_all().size()) <=
                 maximum);
  });
  return fuzz::accept_errors([&] {
    visit_tar(
        ByteReader(bytes, "input", maximum),
        [](const std::string&, const std::string& file) { fuzz::expect(file.size() <= 1000); },
        1000);
  });
}
