#include "attend/tokenizers/tokenizer.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attend/tokenizers/splitter-inl.h"
#include "tests/support/files.h"

namespace attend {
namespace tokenizer_test {

using test::error_of;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// [UNK] 0, [CLS] 1, [SEP] 2, un 3, ##aff 4, ##able 5, run 6, ##ning 7, , 8, cafe 9, ##s 10
const std::string bert_model =
    R"("model": {"type": "WordPiece", "unk_token": "[UNK]", "vocab": {"[UNK]": 0, "[CLS]": 1, "[SEP]": 2,)"
    R"("un": 3, "##aff": 4, "##able": 5, "run": 6, "##ning": 7, ",": 8, "cafe": 9, "##s": 10}})";
const std::string bert_around =
    R"("normalizer": {"type": "BertNormalizer"}, "pre_tokenizer": {"type": "BertPreTokenizer"},)"
    R"("decoder": {"type": "WordPiece"}, "added_tokens": [)"
    R"({"id": 1, "content": "[CLS]", "special": true}, {"id": 2, "content": "[SEP]", "special": true}],)"
    R"("post_processor": {"type": "BertProcessing", "cls": ["[CLS]", 1], "sep": ["[SEP]", 2]})";

Tokenizer bert(const std::string& more = "") {
  return Tokenizer::parse("{" + bert_model + "," + bert_around + more + "}", "bert");
}

TEST(WordPiece, TakesTheLongestTokens) {
  const Tokenizer tokenizer = bert();
  EXPECT_THAT(tokenizer.encode("unaffable").ids, ElementsAre(1, 3, 4, 5, 2));
  EXPECT_THAT(tokenizer.encode("RUNNING, caf\u00E9s").ids, ElementsAre(1, 6, 7, 8, 9, 10, 2));
  // One unknown part makes the whole word unknown.
  EXPECT_THAT(tokenizer.encode("unhappy run").ids, ElementsAre(1, 0, 6, 2));
  EXPECT_THAT(tokenizer.encode("").ids, ElementsAre(1, 2));
  EXPECT_THAT(tokenizer.encode("", {.special_tokens = false}).ids, IsEmpty());
}

TEST(WordPiece, KnowsNoWordOfOver100Characters) {
  std::string word = "run";
  while (word.size() < 99) word += 's';
  EXPECT_EQ(bert().encode(word + "s").ids.size(), 2u + 1 + 97);
  EXPECT_THAT(bert().encode(word + "ss").ids, ElementsAre(1, 0, 2));
}

TEST(Tokenizer, TellsTwoTextsApart) {
  const Encoding encoding = bert().encode("run", "un cafe");
  EXPECT_THAT(encoding.ids, ElementsAre(1, 6, 2, 3, 9, 2));
  EXPECT_THAT(encoding.types, ElementsAre(0, 0, 0, 1, 1, 1));
}

TEST(Tokenizer, CutsTheLongerTextFirst) {
  const Tokenizer tokenizer = bert();
  EXPECT_THAT(tokenizer.encode("run un cafe", {.maximum = 4}).ids, ElementsAre(1, 6, 3, 2));
  EXPECT_THAT(tokenizer.encode("run", "un cafe run", {.maximum = 6}).ids,
              ElementsAre(1, 6, 2, 3, 9, 2));
  EXPECT_THAT(tokenizer.encode("run un cafe", "un cafe run", {.maximum = 6}).ids,
              ElementsAre(1, 6, 2, 3, 9, 2));
  EXPECT_THAT(error_of([&] { tokenizer.encode("run", {.maximum = 1}); }), HasSubstr("at least 2"));
}

TEST(Tokenizer, CutsAsItsFileSays) {
  const std::string cut = R"(, "truncation": {"direction": "Left", "max_length": 4})";
  EXPECT_THAT(bert(cut).encode("run un cafe").ids, ElementsAre(1, 3, 9, 2));
  EXPECT_THAT(bert(cut).encode("run un cafe", {.maximum = 5}).ids, ElementsAre(1, 6, 3, 9, 2));
}

TEST(Tokenizer, DecodesWithoutSpecialTokens) {
  const Tokenizer tokenizer = bert();
  const std::vector<int32_t> ids = {1, 3, 4, 5, 8, 6, 2, 99};
  EXPECT_EQ(tokenizer.decode(ids), "unaffable, run");
  EXPECT_EQ(tokenizer.decode(ids, true), "[CLS] unaffable, run [SEP]");
  EXPECT_EQ(tokenizer.token(4), "##aff");
  EXPECT_EQ(tokenizer.id("run"), 6);
  EXPECT_EQ(tokenizer.id("walk"), std::nullopt);
  EXPECT_EQ(tokenizer.size(), 11);
  EXPECT_THAT(error_of([&] { tokenizer.token(11); }), HasSubstr("ids are 0 to 10"));
}

TEST(Tokenizer, TakesMalformedBytesForReplacementCharacters) {
  EXPECT_EQ(bert().encode("run\xFF un").ids, bert().encode("run\uFFFD un").ids);
}

// Pieces by GPT-2's expression, as in the paper's code.
TEST(ByteLevel, SplitsByTheExpression) {
  const auto pieces = [](std::string_view text) {
    std::vector<std::string> found;
    internal::byte_level_splitter(false, true)->split(text, 1, [&](std::string_view piece, size_t) {
      found.emplace_back(piece);
    });
    return found;
  };
  EXPECT_THAT(pieces("don't stop"), ElementsAre("don", "'t", "\u0120stop"));
  EXPECT_THAT(pieces("we'LL"), ElementsAre("we", "'", "LL"));
  EXPECT_THAT(pieces("a  b"), ElementsAre("a", "\u0120", "\u0120b"));
  EXPECT_THAT(pieces("a \n b  "), ElementsAre("a", "\u0120\u010A", "\u0120b", "\u0120\u0120"));
  EXPECT_THAT(pieces("a\nb"), ElementsAre("a", "\u010A", "b"));
  EXPECT_THAT(pieces("x12!?"), ElementsAre("x", "12", "!?"));
  EXPECT_THAT(pieces(" '' "), ElementsAre("\u0120''", "\u0120"));
  EXPECT_THAT(pieces(""), IsEmpty());
}

TEST(ByteLevel, SpellsEachByteAndReadsItBack) {
  for (int byte = 0; byte < 256; ++byte) {
    const std::string& spelling = internal::byte_spelling(static_cast<unsigned char>(byte));
    ASSERT_EQ(spelling.size(), spelling[0] > 0 ? 1u : 2u);
    const char32_t point =
        spelling.size() == 1
            ? static_cast<char32_t>(spelling[0])
            : static_cast<char32_t>((spelling[0] & 0x1F) << 6 | (spelling[1] & 0x3F));
    ASSERT_EQ(internal::byte_spelled_by(point), byte);
  }
  EXPECT_EQ(internal::byte_spelled_by(0x144), -1);
}

Tokenizer pairs(const std::string& merges, const std::string& more = "") {
  return Tokenizer::parse(
      R"({"model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "c": 2, "ab": 3, "bc": 4, "abc": 5, "aa": 6},)" +
          fmt::format(R"("merges": {}{}}}}})", merges, more),
      "pairs");
}

TEST(BytePairs, JoinTheEarliestMergeFirst) {
  EXPECT_THAT(pairs(R"(["b c", "a b"])").encode("abc").ids, ElementsAre(0, 4));
  EXPECT_THAT(pairs(R"([["a", "b"], ["b", "c"]])").encode("abc").ids, ElementsAre(3, 2));
  EXPECT_THAT(pairs(R"(["b c", "a bc"])").encode("abcabc").ids, ElementsAre(5, 5));
  // The leftmost of several.
  EXPECT_THAT(pairs(R"(["a a"])").encode("aaa").ids, ElementsAre(6, 0));
}

TEST(BytePairs, LeaveOutWhatIsNoToken) {
  EXPECT_THAT(pairs("[]").encode("axb").ids, ElementsAre(0, 1));
  EXPECT_THAT(pairs("[]", R"(, "unk_token": "c")").encode("axyb").ids, ElementsAre(0, 2, 2, 1));
  EXPECT_THAT(pairs("[]", R"(, "unk_token": "c", "fuse_unk": true)").encode("axyb").ids,
              ElementsAre(0, 2, 1));
  EXPECT_THAT(pairs("[]", R"(, "ignore_merges": true)").encode("abc").ids, ElementsAre(5));
}

// Scores of a, b and ab are -1, -1 and -3; the unknown token has -3 - 10.
TEST(Unigram, TakesTheTokensOfGreatestScore) {
  const auto tokenizer = [](const std::string& score) {
    return Tokenizer::parse(R"({"model": {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0],)"
                            R"(["a", -1], ["b", -1], ["ab", )" +
                                score + "]]}}",
                            "unigram");
  };
  EXPECT_THAT(tokenizer("-3").encode("ab").ids, ElementsAre(1, 2));
  EXPECT_THAT(tokenizer("-1.5").encode("ab").ids, ElementsAre(3));
  EXPECT_THAT(tokenizer("-3").encode("axyb").ids, ElementsAre(1, 0, 2));
}

TEST(AddedTokens, AreFoundBeforeTheTextIsSplit) {
  const auto tokenizer = [](const std::string& options) {
    return Tokenizer::parse(
        "{" + bert_model +
            R"(, "normalizer": {"type": "BertNormalizer"},)"
            R"("pre_tokenizer": {"type": "BertPreTokenizer"}, "added_tokens": [{"id": 11, "content": "Run!")" +
            options + "}]}",
        "added");
  };
  const std::string raw = R"(, "normalized": false)";
  EXPECT_THAT(tokenizer(raw).encode("un Run!s run!").ids, ElementsAre(3, 11, 0, 6, 0));
  EXPECT_THAT(tokenizer("").encode("un Run!s run!").ids, ElementsAre(3, 11, 0, 11));
  EXPECT_THAT(tokenizer(raw + R"(, "single_word": true)").encode("Run!s Run!").ids,
              ElementsAre(6, 0, 0, 11));
  EXPECT_EQ(tokenizer(raw).size(), 12);
}

// Parts of the text for each token, in order; "-" for an empty part.
std::vector<std::string> parts_of(const Tokenizer& tokenizer, const std::string& text) {
  std::vector<std::string> parts;
  for (const TokenSpan& place : tokenizer.places(text))
    parts.push_back(place.begin < place.end ? text.substr(place.begin, place.end - place.begin)
                                            : "-");
  EXPECT_EQ(parts.size(), tokenizer.encode(text).ids.size());
  return parts;
}

TEST(TokenPlaces, AreThoseOfTheTextAsItWasGiven) {
  const Tokenizer tokenizer = bert();
  EXPECT_THAT(parts_of(tokenizer, " RUNNING,caf\u00E9s"),
              ElementsAre("-", "RUN", "NING", ",", "caf\u00E9", "s", "-"));
  // An unknown token has the remaining text before the next token.
  EXPECT_THAT(parts_of(tokenizer, "xyz  run zz qq"),
              ElementsAre("-", "xyz", "run", "zz", "qq", "-"));
  EXPECT_THAT(parts_of(tokenizer, "[SEP] run"), ElementsAre("-", "[SEP]", "run", "-"));
  EXPECT_THAT(parts_of(tokenizer, ""), ElementsAre("-", "-"));
  EXPECT_THAT(parts_of(tokenizer, "\u200Brun"), ElementsAre("-", "run", "-"));
  const std::vector<TokenSpan> places = tokenizer.places("run");
  EXPECT_TRUE(places.front().is_added);
  EXPECT_FALSE(places[1].is_added);
}

// c 0, a 1, t 2, the space's 3, "\u0120c" 4 and the three bytes of U+6771 5 to 7.
Tokenizer byte_level() {
  return Tokenizer::parse(
      R"({"model": {"type": "BPE", "merges": [["\u0120", "c"]], "vocab": {"c": 0, "a": 1, "t": 2,
          "\u0120": 3, "\u0120c": 4, "\u00e6": 5, "\u013f": 6, "\u00b1": 7}},
          "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false},
          "decoder": {"type": "ByteLevel"}, "added_tokens": []})",
      "bytes");
}

TEST(TokenPlaces, AreWholeCharactersOfBytes) {
  EXPECT_THAT(parts_of(byte_level(), "ca \u6771 c"),
              ElementsAre("c", "a", " ", "\u6771", "\u6771", "\u6771", "c"));
}

TEST(TokenTexts, AreTheCharactersOfBytes) {
  const Tokenizer tokenizer = byte_level();
  EXPECT_THAT(tokenizer.texts(tokenizer.encode("a ct \u6771").ids),
              ElementsAre("a", " c", "t", " ", "\u6771", "\u6771", "\u6771"));
  // Two of the three bytes are not a character.
  EXPECT_THAT(tokenizer.texts(std::vector<int32_t>{5, 6}), ElementsAre("\uFFFD", "\uFFFD"));
  EXPECT_THAT(bert().texts(std::vector<int32_t>{6, 7}), ElementsAre("run", "##ning"));
}

TEST(AddedTokens, MayBeSplitLikeOtherText) {
  EXPECT_THAT(bert().encode("[SEP]").ids, ElementsAre(1, 2, 2));
  EXPECT_THAT(bert(R"(, "split_special_tokens": true)").encode("[SEP]").ids,
              ElementsAre(1, 0, 0, 0, 2));
}

TEST(Decoder, IsAskedForWhenItIsNeeded) {
  std::string around = bert_around;
  around.replace(around.find("WordPiece"), 9, "Whatever!");
  const Tokenizer tokenizer = Tokenizer::parse("{" + bert_model + "," + around + "}", "bert");
  EXPECT_THAT(tokenizer.encode("run").ids, ElementsAre(1, 6, 2));
  EXPECT_THAT(error_of([&] { tokenizer.decode(std::vector<int32_t>{6}); }),
              HasSubstr("bert: decoder.type is 'Whatever!', which is not read"));
}

TEST(Tokenizer, SaysWhatItPutsAroundTexts) {
  EXPECT_EQ(bert().opening_tokens(), 1);
  EXPECT_EQ(bert().closing_tokens(), 1);
  EXPECT_EQ(byte_level().opening_tokens(), 0);
  EXPECT_FALSE(bert().cuts_left());
  EXPECT_TRUE(bert(R"(, "truncation": {"max_length": 5, "direction": "Left"})").cuts_left());
}

// As in tokenizers 0.23.3: the mark is put before the first character of the original text.
TEST(Metaspace, PutsNoMarkWhereTheFirstCharacterIsDropped) {
  const auto ids = [](const char* normaliser, const char* text, const std::string& before = "") {
    return Tokenizer::parse(std::string(R"({"model": {"type": "BPE", "merges": [], "unk_token": "?",
                   "vocab": {"?": 0, "a": 1, "\u2581": 2}}, "normalizer": )") +
                                normaliser + R"(, "pre_tokenizer": )" + before +
                                R"({"type": "Metaspace", "prepend_scheme": "first"})" +
                                (before.empty() ? "}" : "]}}"),
                            "marks")
        .encode(text)
        .ids;
  };
  EXPECT_THAT(ids(R"({"type": "Strip"})", "a"), ElementsAre(2, 1));
  EXPECT_THAT(ids(R"({"type": "Strip"})", " a"), ElementsAre(1));
  EXPECT_THAT(ids(R"({"type": "BertNormalizer"})", "\u200Ba"), ElementsAre(1));
  EXPECT_THAT(ids(R"({"type": "Replace", "pattern": {"String": "-"}, "content": ""})", "-a"),
              ElementsAre(1));
  EXPECT_THAT(ids(R"({"type": "Prepend", "prepend": "\u2581"})", "a"), ElementsAre(2, 1));
  EXPECT_THAT(ids(R"({"type": "Prepend", "prepend": "\u2581"})", " a"), ElementsAre(2, 2, 1));
  // White space that was prepended is not part of the text.
  EXPECT_THAT(ids(R"({"type": "Prepend", "prepend": " "})", "a",
                  R"({"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, )"),
              ElementsAre(2, 1));
}

// The expression of DeBERTa-v2 in transformers 5: runs, and single breaks and TABs.
TEST(Normaliser, ReplacesRunsOfWhiteSpace) {
  const Tokenizer tokenizer = Tokenizer::parse(
      R"({"model": {"type": "BPE", "merges": [], "unk_token": "?", "vocab": {"?": 0, "a": 1, " ": 2,
          "\u00a0": 3}}, "normalizer": {"type": "Replace", "content": " ",
          "pattern": {"Regex": "\\s{2,}|[\\n\\r\\t]"}}})",
      "white space");
  EXPECT_THAT(tokenizer.encode("a \t\u00a0a\na\u00a0a a\r\n").ids,
              ElementsAre(1, 2, 1, 2, 1, 3, 1, 2, 1, 2));
}

}  // namespace tokenizer_test
}  // namespace attend
