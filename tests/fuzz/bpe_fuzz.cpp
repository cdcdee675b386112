#include "attend/text/bpe.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace attend;
  return fuzz::accept_errors([&] {
    const std::string_view text = fuzz::text(data, size);
    const auto codes = BytePairEncoding::parse(text, "input");
    const std::string format = codes.format();
    fuzz::expect(BytePairEncoding::parse(format, "input").merges() == codes.merges());
    for (const std::string word : {"low", "abcabca", "lower"})
      fuzz::expect(BytePairEncoding::undo(codes.apply(word)) == word);
  });
}
