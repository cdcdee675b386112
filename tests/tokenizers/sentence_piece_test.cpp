#include "attend/tokenizers/sentence_piece.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <random>
#include <thread>

#include "attend/tokenizers/charsmap-inl.h"
#include "tests/support/files.h"
#include "tests/tokenizers/model_writer.h"

namespace attend {
namespace sentence_piece_test {

using internal::Charsmap;
using test::error_of;
using test::ModelWriter;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

constexpr uint64_t unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6;
constexpr uint64_t trainer = 2, normalizer = 3;

ModelWriter model_of_kind(uint64_t kind, bool by_bytes = false) {
  ModelWriter writer;
  writer.piece("<unk>", 0, unknown).piece("<s>", 0, control);
  writer.bytes(trainer, ModelWriter().integer(3, kind).integer(35, by_bytes ? 1 : 0).text());
  return writer;
}

SentencePiece parse(const ModelWriter& writer) {
  return SentencePiece::parse(writer.text(), "input");
}

// low 2, er 3, a space 4, l 5, o 6, w 7
ModelWriter unigram() {
  return model_of_kind(1)
      .piece("\u2581low", -1)
      .piece("er", -2)
      .piece("\u2581", -3)
      .piece("l", -4)
      .piece("o", -4)
      .piece("w", -4);
}

TEST(SentencePiece, TakesThePiecesOfGreatestScore) {
  const SentencePiece model = parse(unigram());
  EXPECT_THAT(model.encode("low lower"), ElementsAre(2, 2, 3));
  EXPECT_THAT(model.encode("  low   low "), ElementsAre(2, 2));
  EXPECT_THAT(model.encode("wol"), ElementsAre(4, 7, 6, 5));
  EXPECT_THAT(model.encode("lowxyzer"), ElementsAre(2, 0, 3));
  EXPECT_THAT(model.encode(""), IsEmpty());
  EXPECT_THAT(model.encode("   "), IsEmpty());
}

TEST(SentencePiece, DecodesToTheText) {
  const SentencePiece model = parse(unigram());
  EXPECT_EQ(model.decode(std::vector<int32_t>{1, 2, 2, 3}), "low lower");
  EXPECT_EQ(model.decode(std::vector<int32_t>{2, 0, 3}), "low \u2047 er");
  EXPECT_EQ(model.id("er"), 3);
  EXPECT_EQ(model.size(), 8);
  EXPECT_THAT(error_of([&] { model.decode(std::vector<int32_t>{8}); }),
              HasSubstr("ids are 0 to 7"));
}

TEST(SentencePiece, SplitsIntoPiecesAndUnknownText) {
  const SentencePiece model = parse(unigram());
  EXPECT_THAT(model.split("lowxyzer low"), ElementsAre("\u2581low", "xyz", "er", "\u2581low"));
  EXPECT_THAT(model.split("lowxyz"), ElementsAre("\u2581low", "xyz"));
  // Later known pieces may be part of the unknown text.
  EXPECT_THAT(model.split("errer"), ElementsAre("\u2581", "er", "r", "er"));
  EXPECT_THAT(model.split(""), IsEmpty());
  const std::vector<std::string> pieces = {"\u2581low", "xyz", "<unk>", "<s>", "er", "\u2581", "w"};
  EXPECT_EQ(model.join(pieces), "lowxyz \u2047 er w");
  EXPECT_EQ(model.join(std::vector<std::string>{"er", "\u2581w"}), "er\u2581w");
}

TEST(SentencePiece, SplitsAndJoinsBytes) {
  ModelWriter writer = model_of_kind(1, true);
  writer.piece("\u2581", -1).piece("<0xC3>", 0, byte).piece("<0xA9>", 0, byte).piece("e", -1);
  const SentencePiece model = parse(writer);
  const std::vector<std::string> pieces = model.split("\u00E9e");
  EXPECT_THAT(pieces, ElementsAre("\u2581", "<0xC3>", "<0xA9>", "e"));
  EXPECT_EQ(model.join(pieces), "\u00E9e");
}

TEST(SentencePiece, SpellsUnknownCharactersByBytes) {
  ModelWriter writer = model_of_kind(1, true);
  writer.piece("\u2581", -1).piece("<0xC3>", 0, byte).piece("<0xA9>", 0, byte);
  const SentencePiece model = parse(writer);
  EXPECT_THAT(model.encode("\u00E9"), ElementsAre(2, 3, 4));
  EXPECT_EQ(model.decode(std::vector<int32_t>{2, 3, 4}), "\u00E9");
  EXPECT_EQ(model.decode(std::vector<int32_t>{3, 3}), "\uFFFD\uFFFD");
  EXPECT_THAT(model.encode("x"), ElementsAre(2, 0));
}

TEST(SentencePiece, KeepsUserDefinedPiecesWhole) {
  for (const uint64_t kind : {1, 2}) {
    ModelWriter writer = model_of_kind(kind);
    writer.piece("\u2581", -1)
        .piece("ab", 0, user_defined)
        .piece("bc", -1)
        .piece("abc", -1)
        .piece("c", -0.5);
    EXPECT_THAT(parse(writer).encode("abc"), ElementsAre(2, 3, 6)) << kind;
  }
}

TEST(SentencePiece, JoinsPairsByScoreAndTakesUnusedOnesApart) {
  const auto model = [](uint64_t kind_of_ab) {
    ModelWriter writer = model_of_kind(2);
    for (const char* letter : {"\u2581", "a", "b", "c"}) writer.piece(letter, -9);
    return parse(writer.piece("ab", -2, kind_of_ab).piece("bc", -3).piece("abc", -4));
  };
  EXPECT_THAT(model(1).encode("abc bc"), ElementsAre(2, 8, 2, 7));
  EXPECT_THAT(model(1).encode("ab"), ElementsAre(2, 6));
  EXPECT_THAT(model(unused).encode("ab"), ElementsAre(2, 3, 4));
}

// The rules "a" -> "x" and "ab" -> "y", by hand: units of label, leaf and offset.
std::string rules_of_two() {
  const auto unit = [](uint32_t label, bool leaf, uint32_t offset) {
    return label | (leaf ? 1u << 8 : 0) | offset << 10;
  };
  std::vector<uint32_t> units(512);
  const uint32_t root = 0, a = root ^ 128 ^ 'a';
  units[root] = unit(0, false, 128);
  const uint32_t behind_a = a ^ 256;
  units[a] = unit('a', true, 256);
  units[behind_a] = 0x80000000u | 0;
  const uint32_t b = behind_a ^ 'b';
  units[b] = unit('b', true, 4);
  units[b ^ 4] = 0x80000000u | 2;
  std::string blob;
  const auto add = [&](uint32_t number) {
    for (int shift = 0; shift < 32; shift += 8) blob += static_cast<char>(number >> shift & 0xFF);
  };
  add(static_cast<uint32_t>(4 * units.size()));
  for (const uint32_t number : units) add(number);
  return blob + std::string("x\0y\0", 4);
}

TEST(Charsmap, FindsTheShortestAndTheLongest) {
  const Charsmap rules(rules_of_two(), "input");
  EXPECT_EQ(rules.longest("abc").size, 2u);
  EXPECT_EQ(rules.longest("abc").replacement, "y");
  EXPECT_EQ(rules.shortest("abc").size, 1u);
  EXPECT_EQ(rules.shortest("abc").replacement, "x");
  EXPECT_EQ(rules.longest("b").size, 0u);
  EXPECT_EQ(Charsmap().longest("a").size, 0u);
}

TEST(Charsmap, IsReadInsideOfItsBounds) {
  const std::string blob = rules_of_two();
  EXPECT_THAT(error_of([&] { Charsmap(blob.substr(0, 3), "input"); }), HasSubstr("cut off"));
  EXPECT_THAT(error_of([&] { Charsmap(blob.substr(0, 2000), "input"); }),
              HasSubstr("has 2048 bytes"));
  EXPECT_THAT(error_of([&] { Charsmap(blob + '\xFF', "input"); }), HasSubstr("is not UTF-8"));
  EXPECT_THAT(error_of([&] { Charsmap(blob.substr(0, blob.size() - 2), "input"); }),
              HasSubstr("points to 2, which is not the start of a replacement"));
  // Offsets that point outside find nothing, and values are refused.
  for (size_t i = 4; i < blob.size(); ++i) {
    std::string wrong = blob;
    wrong[i] = '\xFF';
    const std::string message = error_of([&] {
      const Charsmap rules(wrong, "input");
      for (const std::string text : {"abc", "\xFF\xFF", "a"})
        ASSERT_LE(rules.longest(text).size, text.size());
    });
    ASSERT_TRUE(message.empty() || message.starts_with("input: ")) << i;
  }
}

TEST(Charsmap, KeepsWhatNoRuleOfAsciiChanges) {
  const Charsmap rules(rules_of_two(), "input");
  EXPECT_FALSE(rules.keeps('a'));
  EXPECT_TRUE(rules.keeps('b'));
  EXPECT_TRUE(Charsmap().keeps('a'));
}

// Words of two letters; their pieces have almost equal scores in float32 sums.
ModelWriter close_scores(std::mt19937& draw) {
  ModelWriter writer = model_of_kind(1);
  const auto score = [&] { return -4 - static_cast<float>(draw() % 5) * 1e-6f; };
  writer.piece("\u2581", -9);
  for (const std::string a : {"a", "b", "c"}) {
    writer.piece(a, score()).piece("\u2581" + a, score());
    for (const std::string b : {"a", "b", "c"}) {
      writer.piece(a + b, 2 * score());
      writer.piece("\u2581" + a + b, 2 * score());
    }
  }
  return writer;
}

TEST(SentencePiece, RoundsSumsOverTheWholeText) {
  std::mt19937 draw(1);
  size_t otherwise_alone = 0;
  for (int round = 0; round < 20; ++round) {
    ModelWriter writer = close_scores(draw);
    const SentencePiece model = parse(writer);
    // A piece across words that is never the best, so that texts are encoded as a whole.
    const SentencePiece whole = parse(writer.piece("a\u2581b", -1000));
    for (int text = 0; text < 50; ++text) {
      std::string words, front;
      std::vector<int32_t> alone;
      for (size_t i = 0; i < 1 + draw() % 60; ++i) {
        std::string word;
        for (size_t letter = 0; letter < 1 + draw() % 5; ++letter)
          word += static_cast<char>('a' + draw() % 3);
        words += (words.empty() ? "" : " ") + word;
        const std::vector<int32_t> ids = whole.encode(word);
        alone.insert(alone.end(), ids.begin(), ids.end());
      }
      const std::vector<int32_t> ids = whole.encode(words);
      ASSERT_EQ(model.encode(words), ids) << words;
      otherwise_alone += ids == alone ? 0 : 1;
    }
  }
  EXPECT_GT(otherwise_alone, 100u);
}

TEST(SentencePiece, NormalisesByItsRules) {
  ModelWriter writer = model_of_kind(1);
  writer.piece("\u2581", -1).piece("x", -1).piece("y", -1);
  writer.bytes(normalizer, ModelWriter().bytes(2, rules_of_two()).integer(3, 0).text());
  EXPECT_THAT(parse(writer).encode("a ab"), ElementsAre(3, 2, 4));
}

TEST(SentencePiece, IsSharedByThreads) {
  std::mt19937 draw(2);
  const ModelWriter writer = close_scores(draw);
  std::vector<std::string> texts(400);
  for (std::string& text : texts)
    for (int i = 0; i < 40; ++i) text += "abc "[draw() % 4];
  std::vector<std::vector<int32_t>> wanted;
  for (const SentencePiece alone = parse(writer); const std::string& text : texts)
    wanted.push_back(alone.encode(text));
  const SentencePiece shared = parse(writer);
  std::array<size_t, 4> wrong = {};
  std::vector<std::thread> threads;
  for (size_t& own : wrong)
    threads.emplace_back([&] {
      for (size_t i = 0; i < texts.size(); ++i) own += shared.encode(texts[i]) == wanted[i] ? 0 : 1;
    });
  for (std::thread& each : threads) each.join();
  EXPECT_THAT(wrong, testing::Each(0u));
}

TEST(HostileSentencePiece, IsRefusedInOneLine) {
  const auto refusal = [](const std::string& bytes) {
    return error_of([&] { SentencePiece::parse(bytes, "input"); });
  };
  EXPECT_THAT(refusal(""), HasSubstr("has 0 unknown pieces, not one"));
  const std::string good = unigram().text();
  for (size_t size = 1; size < good.size(); ++size) {
    const std::string message = refusal(good.substr(0, size));
    ASSERT_TRUE(message.empty() || message.starts_with("input: ")) << size;
  }
  EXPECT_THAT(refusal("\x0A\xFF\x01"),
              AllOf(StartsWith("input: "), HasSubstr("ends within a field")));
  EXPECT_THAT(refusal(std::string(11, '\xFF')), HasSubstr("over 64 bits"));
  EXPECT_THAT(refusal("\x0B"), HasSubstr("a field of kind 3"));
  EXPECT_THAT(refusal("\x08\x01"), HasSubstr("field 1 is of kind 0, not 2"));
  EXPECT_THAT(refusal(unigram().piece("er", -1).text()), HasSubstr("'er' is token 3 and token 8"));
  EXPECT_THAT(refusal(unigram().piece("x", -1, 9).text()), HasSubstr("kind 9"));
  EXPECT_THAT(refusal(unigram().piece("x", -1, byte).text()), HasSubstr("is not a byte such as"));
  EXPECT_THAT(refusal(unigram().piece("x", std::numeric_limits<float>::quiet_NaN()).text()),
              HasSubstr("a score that is not a number"));
  EXPECT_THAT(refusal(model_of_kind(3).text()), HasSubstr("a model of kind 3"));
  EXPECT_THAT(refusal(unigram().bytes(trainer, ModelWriter().integer(24, 1).text()).text()),
              HasSubstr("treat_whitespace_as_suffix is not read"));
}

}  // namespace sentence_piece_test
}  // namespace attend
