#include <optional>

#include "attend/tokenizers/tokenizer.h"
#include "tests/fuzz/fuzz.h"

// A tokenizer.json; a valid one encodes a text and decodes its ids.
int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace attend;
  std::optional<Tokenizer> tokenizer;
  fuzz::accept_errors([&] { tokenizer = Tokenizer::parse(fuzz::text(data, size), "input"); });
  if (!tokenizer) return 0;
  // A normaliser may make a text too long.
  return fuzz::accept_errors(
      [&] {
        for (const std::string text : {"", "Low lower, <s> 'll\n", "e\u0301\u4E2D\xFF [CLS]"}) {
          const Encoding encoding = tokenizer->encode(text, text, {.maximum = 1 << 20});
          fuzz::expect(encoding.ids.size() == encoding.types.size());
          for (const int32_t id : encoding.ids) fuzz::expect(id >= 0 && id < tokenizer->size());
          tokenizer->decode(encoding.ids, true);
        }
      },
      "");
}
