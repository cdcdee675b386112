#include "attend/text/vocabulary.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace attend;
  return fuzz::accept_errors([&] {
    const Vocabulary vocabulary = Vocabulary::parse(fuzz::text(data, size), "input");
    for (int64_t id = Vocabulary::unknown; id < vocabulary.size(); ++id) {
      fuzz::expect(vocabulary.id(vocabulary.token(id)) == id);
    }
  });
}
