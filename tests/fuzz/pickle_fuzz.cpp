#include "attend/files/pickle.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace attend;
  return fuzz::accept_errors([&] { (void)parse_pickle(fuzz::text(data, size), "input"); });
}
