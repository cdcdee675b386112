#include "attend/data/pairs.h"
#include "attend/text/tokeniser.h"
#include "tests/fuzz/fuzz.h"

// A file of texts, and its tokens.
int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace attend;
  return fuzz::accept_errors([&] {
    const std::string text = to_nfc(parse_text(fuzz::text(data, size), "input"));
    const std::string tokens = tokenise(text);
    fuzz::expect(undo_tokenise(tokens) == fmt::format("{}", fmt::join(split_words(text), " ")));
    fuzz::expect(tokenise(undo_tokenise(tokens)) == tokens);
    undo_tokenise(text);
  });
}
