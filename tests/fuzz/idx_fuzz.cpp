#include "attend/files/idx.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace attend;
  return fuzz::accept_errors([&] {
    const std::string bytes(fuzz::text(data, size));
    const IdxArray array = parse_idx(bytes, "input");
    fuzz::expect(idx_bytes(array) == bytes);
    fuzz::expect(static_cast<int64_t>(array.entry(array.shape[0] - 1).size()) ==
                 array.entry_size());
  });
}
