#include "attend/text/conll.h"
#include "attend/text/units.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace attend;
  const auto read = [&](const char* token_column, const char* label_column) {
    fuzz::accept_errors([&] {
      ConllReader reader(ByteReader(fuzz::text(data, size), "input"), token_column, label_column,
                         1 << 16);
      for (std::string tokens, labels; reader.next(tokens, labels);) {
        fuzz::expect(!tokens.empty());
        fuzz::expect(split_words(tokens).size() == split_words(labels).size());
        fuzz::expect(reader.line() > 0 && reader.line() <= reader.lines_read());
      }
    });
  };
  read("", "");
  read("2", "1");
  return 0;
}
