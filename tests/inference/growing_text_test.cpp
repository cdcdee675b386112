#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "attend/inference/growing_text-inl.h"
#include "attend/tokenizers/tokenizer.h"
#include "tests/support/seed.h"

namespace attend::growing_text_test {

void expect_growing(const TextCodec& codec, const std::vector<std::string>& tokens) {
  GrowingText text(codec);
  std::vector<std::string> all;
  for (const std::string& token : tokens) {
    all.push_back(token);
    ASSERT_EQ(text.add(token), codec.join(all)) << all.size();
  }
}

TextCodec codec_of(const std::string& tokenizer) {
  TextCodec codec{.units = Units::line, .form = NormalForm::none};
  codec.tokenizer = TextTokenizer::parse(tokenizer, "tokenizer.json");
  return codec;
}

std::vector<std::string> drawn(const std::vector<std::string>& tokens, size_t count,
                               uint64_t seed) {
  std::vector<std::string> all;
  for (size_t i = 0; i < count; ++i) {
    seed = seed * 6364136223846793005U + 1442695040888963407U;
    all.push_back(tokens[(seed >> 33) % tokens.size()]);
  }
  return all;
}

TEST(GrowingText, IsThatOfAllTokens) {
  const std::vector<std::string> words = {"the", "cat", "\n", "s@@", "at@@", "on"};
  for (const Units units : {Units::character, Units::space, Units::line})
    expect_growing({.units = units}, drawn(words, 200, 1));
  expect_growing({.units = Units::space, .tokenise = true}, drawn(words, 200, 2));
  const std::vector<std::string> bytes = split_units("\xc3\xa9\xf0\x9f\x98\x80 e", Units::byte);
  expect_growing({.units = Units::byte}, drawn(bytes, 300, 3));
}

TEST(GrowingText, OfPiecesIsThatOfAllTokens) {
  const char* word_pieces = R"({"model": {"type": "WordPiece", "unk_token": "u",
      "continuing_subword_prefix": "##", "max_input_chars_per_word": 9,
      "vocab": {"u": 0, "the": 1, "##s": 2, "cat": 3, "##ing": 4, ".": 5, "'": 6}},
      "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": true}})";
  expect_growing(codec_of(word_pieces), drawn({"the", "##s", "cat", "##ing", ".", "'"}, 300, 4));
  const char* marks = R"({"model": {"type": "Unigram", "unk_id": 0,
      "vocab": [["u", 0], ["\u2581the", -1], ["s", -2], ["\u2581", -3]]},
      "decoder": {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always"}})";
  expect_growing(codec_of(marks), drawn({"\u2581the", "s", "\u2581"}, 300, 5));
  const char* bytes = R"({"model": {"type": "BPE", "merges": [],
      "vocab": {"\u00f0": 0, "\u0141": 1, "\u013a": 2, "\u0122": 3, "\u0120a": 4, "\u00c3": 5, "\u00a9": 6}},
      "decoder": {"type": "ByteLevel"}})";
  expect_growing(
      codec_of(bytes),
      drawn({"\u00f0", "\u0141", "\u013a", "\u0122", "\u0120a", "\u00c3", "\u00a9"}, 300, 6));
}

}  // namespace attend::growing_text_test
