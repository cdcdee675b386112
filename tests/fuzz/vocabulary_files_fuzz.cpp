#include "attend/tokenizers/tokenizer.h"
#include "attend/tokenizers/vocabulary_files.h"
#include "tests/fuzz/fuzz.h"

namespace attend::fuzz {
namespace {

// Reads a generated tokenizer.
Tokenizer read(const Json& made) {
  const Tokenizer tokenizer = Tokenizer::parse(made.dump(), "input");
  for (const int32_t id : tokenizer.encode("ab abba").ids) expect(id >= 0 && id < tokenizer.size());
  return tokenizer;
}

}  // namespace
}  // namespace attend::fuzz

// A vocab.txt of two kinds, merges of the tokens a, b and ab, and SentencePiece pieces.
int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace attend;
  const std::string_view text = fuzz::text(data, size);
  fuzz::accept_errors([&] {
    fuzz::read(tokenizer_json(
        text, WordPieceFiles{.vocabulary = "input", .tokens = {.special = {"a", "a", "a"}}}));
  });
  fuzz::accept_errors([&] {
    fuzz::read(tokenizer_json(
        text, TokenListFiles{.vocabulary = "input", .tokens = {.special = {"a", "a", "a"}}}));
  });
  fuzz::accept_errors([&] {
    fuzz::read(tokenizer_json(
        text, PieceFiles{.model = "input",
                         .first = {"u"},
                         .replaced = 1,
                         .tokens = {.special = {.unknown = "u", .begin = "u", .end = "u"}}}));
  });
  return fuzz::accept_errors([&] {
    const ByteLevelFiles files{.vocabulary = "input", .merges = "input", .tokens = {}};
    const Tokenizer tokenizer =
        fuzz::read(tokenizer_json(R"({"a": 0, "b": 1, "ab": 2})", text, files));
    fuzz::expect(tokenizer.decode(tokenizer.encode("abba").ids) == "abba");
  });
}
