#include "attend/tokenizers/vocabulary_files.h"
#include "tests/fuzz/fuzz.h"

// A vocab.txt, and merges of the tokens a, b and ab.
int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace attend;
  const std::string_view text = fuzz::text(data, size);
  fuzz::accept_errors([&] {
    const WordPieceFiles files{.vocabulary = "input", .special = {"a", "a", "a"}};
    const Tokenizer tokenizer = parse_tokenizer(text, files);
    for (const int32_t id : tokenizer.encode("ab abba").ids)
      fuzz::expect(id >= 0 && id < tokenizer.size());
  });
  return fuzz::accept_errors([&] {
    const ByteLevelFiles files{.vocabulary = "input", .merges = "input", .special = {}};
    const std::string vocabulary = R"({"a": 0, "b": 1, "ab": 2})";
    const Tokenizer tokenizer = parse_tokenizer(vocabulary, text, files);
    fuzz::expect(tokenizer.decode(tokenizer.encode("abba").ids) == "abba");
  });
}
