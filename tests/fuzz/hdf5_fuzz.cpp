#include "attend/files/hdf5.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace attend;
  return fuzz::accept_errors([&] {
    const Hdf5File file = Hdf5File::parse(std::string(fuzz::text(data, size)), "input");
    for (const std::string& name : file.names())
      fuzz::accept_errors([&] { fuzz::expect(file.tensor(name).nbytes() <= size); });
  });
}
