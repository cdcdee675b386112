#include "attend/data/text_codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "tests/support/files.h"

namespace attend {
namespace text_codec_test {

using test::error_of;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const char* const codes_text = "#version: 0.2\nl o\nlo w\ne r</w>\n";

TextCodec with_codes(TextCodec codec) {
  codec.units = Units::space;
  codec.codes = BytePairEncoding::parse(codes_text, "codes");
  return codec;
}

TEST(Normalise, ToLowerAndToFormKC) {
  EXPECT_EQ(to_lower("ÀÉ ΣΑΣ Ⅷ ẞ a1"), "àé σασ ⅷ ß a1");
  EXPECT_EQ(to_lower("İ"), "i") << "a letter for a letter";
  EXPECT_EQ(to_lower("E\u0301"), "é");
  EXPECT_EQ(normalised("ﬁn ² Ａ ℃", NormalForm::nfkc), "fin 2 A °C");
  EXPECT_THAT(error_of([] { to_lower("a\xff"); }), HasSubstr("invalid UTF-8 at byte 2"));
  for (const NormalForm form : {NormalForm::none, NormalForm::nfd, NormalForm::nfkc})
    EXPECT_THAT(error_of([&] { normalised("é\xff", form); }), HasSubstr("invalid UTF-8 at byte 3"));
}

TEST(Normalise, ToFormDOrNotAtAll) {
  EXPECT_EQ(normalised("caf\u00e9 \ud55c", NormalForm::nfd), "cafe\u0301 \u1112\u1161\u11ab");
  EXPECT_EQ(normalised("\u00e9e\u0301", NormalForm::none), "\u00e9e\u0301");
  EXPECT_EQ(to_lower("\u00c9E\u0301", NormalForm::nfd), "e\u0301e\u0301");
  EXPECT_EQ(to_lower("\u00c9E\u0301", NormalForm::none), "\u00e9e\u0301");
}

// A model of this normal form learns and answers in it, for texts in any form.
TEST(TextCodec, KeepsToItsNormalForm) {
  const std::string composed = "caf\u00e9", apart = "cafe\u0301";
  for (const Units units : {Units::character, Units::space, Units::line, Units::byte}) {
    for (const std::string& text : {composed, apart}) {
      const auto through = [&](NormalForm form) {
        const TextCodec codec{.units = units, .form = form};
        return codec.join(codec.split(text));
      };
      EXPECT_EQ(through(NormalForm::nfc), composed);
      EXPECT_EQ(through(NormalForm::nfd), apart);
      EXPECT_EQ(through(NormalForm::none), text);
    }
  }
  TextConfig text;
  text.normalise = NormalForm::nfd;
  EXPECT_THAT(make_codecs(text).source.split("\u00e9"), ElementsAre("e", "\u0301"));
}

TEST(TextCodec, SplitsIntoPieces) {
  const TextCodec codec = with_codes({.lowercase = true, .tokenise = true});
  const auto tokens = codec.split("LOWER, low");
  EXPECT_THAT(tokens, ElementsAre("low@@", "er", "￭@@", ",", "lo@@", "w"));
}

TEST(TextCodec, SplitsIntoBytes) {
  const TextCodec codec{.units = Units::byte};
  EXPECT_THAT(codec.split("a é\n"), ElementsAre("a", "<0x20>", "<0xC3>", "<0xA9>", "<0x0A>"));
  EXPECT_EQ(codec.join({"a", "<0x20>", "<0xC3>", "<0xA9>", "<0x0A>"}), "a é\n");
  EXPECT_EQ(codec.join({"<", "0", "x", "4", "1", ">"}), "<0x41>");
  EXPECT_EQ(codec.join({"<0xC3>", "<0xC3>", "a", "<0xC3>"}), "\uFFFDa\uFFFD");
  EXPECT_EQ(codec.alphabet().size(), 256u);
  EXPECT_THAT(TextCodec{}.alphabet(), IsEmpty());
}

TEST(TextCodec, ReadsTheLanguageAsOneToken) {
  TextCodec codec = with_codes({.lowercase = true, .tokenise = true});
  codec.language_token = true;
  EXPECT_THAT(codec.split("<2DE> LOWER, low"),
              ElementsAre("<2DE>", "low@@", "er", "￭@@", ",", "lo@@", "w"));
  EXPECT_THAT(codec.split("  <2fr>\t low"), ElementsAre("<2fr>", "lo@@", "w"));
  EXPECT_THAT(codec.split("<2fr>"), ElementsAre("<2fr>"));
  EXPECT_THAT(codec.split(" "), IsEmpty());
  const TextCodec characters{.units = Units::character, .language_token = true};
  EXPECT_THAT(characters.split("<2e\u0301> ab"), ElementsAre("<2é>", "a", "b"));
  for (const char* bad : {"low <2de>", "2de low", "<2de low", "<> low", "<2de>low"})
    EXPECT_THAT(error_of([&] { codec.split(bad); }),
                HasSubstr("needs a token such as <2de> and a space before each source"))
        << bad;
  EXPECT_THAT(error_of([&] { codec.split("<\xff> low"); }), HasSubstr("invalid UTF-8"));
}

TEST(TextCodec, FillsShortSources) {
  TextConfig text;
  text.fill_length = 4;
  const TextCodecs codecs = make_codecs(text);
  EXPECT_THAT(codecs.source.split("ab"), ElementsAre("a", "b", "<fill>", "<fill>"));
  EXPECT_THAT(codecs.source.split_source("abcde").names, ElementsAre("a", "b", "c", "d", "e"));
  EXPECT_EQ(codecs.source.split_source("ab").second, 4);
  EXPECT_THAT(codecs.source.split(""), IsEmpty());
  EXPECT_THAT(codecs.target.split("a b"), ElementsAre("a", "b"));
  text.pairs = PairTexts::optional;
  EXPECT_THAT(error_of([&] { make_codecs(text); }),
              HasSubstr("data.fill_length is 4, which is for sources of one text"));
}

TEST(TextCodec, LanguagesAreOfSourcesThatAreTexts) {
  TextConfig text;
  text.language_token = true;
  EXPECT_THAT(make_codecs(text).source.split("<2de> a"), ElementsAre("<2de>", "a"));
  text.target_units = "char";
  EXPECT_THAT(make_codecs(text).target.split("<2"), ElementsAre("<", "2"));
  text.source_units = "image";
  EXPECT_THAT(error_of([&] { make_codecs(text); }), HasSubstr("its sources are names"));
}

TEST(TextCodec, JoinsWhatItSplit) {
  EXPECT_TRUE(rc::check("the text comes back", [] {
    const auto part = rc::gen::element<std::string>("low", "er", "L", ".", "'", " ", "é", "\u0301",
                                                    "한", "😀", "￭", "￬", "<", "0x41");
    std::string text;
    for (const std::string& each : *rc::gen::container<std::vector<std::string>>(part))
      text += each;
    text = to_nfc(text);
    const std::string words = fmt::format("{}", fmt::join(split_words(text), " "));
    for (const bool tokenise : {false, true}) {
      for (const Units units : {Units::character, Units::space, Units::byte}) {
        const TextCodec codec{.units = units, .tokenise = tokenise};
        const bool keeps_spaces = !tokenise && units != Units::space;
        RC_ASSERT(codec.join(codec.split(text)) == (keeps_spaces ? text : words));
      }
      const TextCodec codec = with_codes({.tokenise = tokenise});
      RC_ASSERT(codec.join(codec.split(text)) == words);
    }
  }));
}

TEST(TextCodec, FollowsTheConfiguration) {
  const test::TemporaryFolder folder;
  const std::string path = folder.write("my.codes", codes_text);
  TextConfig text;
  text.source_units = text.target_units = "bpe";
  text.bpe = path;
  text.lowercase = true;
  TextCodecs codecs = make_codecs(text);
  EXPECT_THAT(codecs.source.split("Lower"), ElementsAre("low@@", "er"));
  EXPECT_THAT(codecs.target.split("Lower"), ElementsAre("low@@", "er"));
  text.target_units = "line";
  text.tokenise = true;
  codecs = make_codecs(text);
  EXPECT_THAT(codecs.target.split(" Very good! "), ElementsAre("Very good!")) << "a label";
  EXPECT_THAT(codecs.source.split("LOW!"), ElementsAre("lo@@", "w", "￭@@", "!"));
  text.normalise = NormalForm::nfkc;
  text.source_units = "char";
  text.bpe = "";
  EXPECT_THAT(make_codecs(text).source.split("ﬁ"), ElementsAre("f", "i"));
}

TEST(TextCodec, TakesLineBreaksForTokens) {
  const std::string text = "ab c\n\nd.\n";
  const TextCodec characters{}, words{.units = Units::space}, bytes{.units = Units::byte};
  EXPECT_THAT(characters.split_lines(text),
              ElementsAre("a", "b", " ", "c", "\n", "\n", "d", ".", "\n"));
  EXPECT_THAT(words.split_lines(text), ElementsAre("ab", "c", "\n", "\n", "d.", "\n"));
  EXPECT_THAT(bytes.split_lines("a\nb"), ElementsAre("a", "<0x0A>", "b"));
  EXPECT_THAT(words.split_lines(""), ElementsAre());
  TextCodec pieces{.units = Units::space, .tokenise = true};
  pieces.codes = BytePairEncoding::parse(codes_text, "codes");
  for (const TextCodec& codec : {characters, words, bytes, pieces})
    for (const std::string& each : {text, std::string("low\nd"), std::string("\n"), std::string()})
      EXPECT_EQ(codec.join(codec.split_lines(each)), each);
}

TEST(TextCodec, KeepsItsCodesInTheModelFolder) {
  const test::TemporaryFolder folder;
  TextConfig text;
  text.source_units = text.target_units = "bpe";
  text.bpe = folder.write("a", codes_text);
  save_codes(make_codecs(text), text, folder.path());
  TextConfig stored = with_codes_in(folder.path(), text);
  EXPECT_EQ(stored.bpe, folder / "bpe.codes");
  EXPECT_THAT(make_codecs(stored).target.split("low"), ElementsAre("lo@@", "w"));
  text.target_bpe = folder.write("b", "#version: 0.2\no w</w>\n");
  save_codes(make_codecs(text), text, folder.path());
  stored = with_codes_in(folder.path(), text);
  EXPECT_THAT(make_codecs(stored).source.split("low"), ElementsAre("lo@@", "w"));
  EXPECT_THAT(make_codecs(stored).target.split("low"), ElementsAre("l@@", "ow"));
}

TEST(TextCodec, RefusesCodesThatDoNotFit) {
  const auto message = [](const TextConfig& text) { return error_of([&] { make_codecs(text); }); };
  EXPECT_THAT(message({.source_units = "bpe"}), HasSubstr("data.source_units = bpe: which codes?"));
  EXPECT_THAT(message({.bpe = "codes"}), HasSubstr("neither data.source_units nor"));
  EXPECT_THAT(message({.target_bpe = "codes"}), HasSubstr("data.target_bpe = 'codes': but data."));
  EXPECT_THAT(message({.source_units = "bpe", .bpe = "/none"}), HasSubstr("/none: no such file"));
  EXPECT_THAT(message({.source_units = "tokenizer", .tokenizer = "/none"}),
              HasSubstr("data.tokenizer = '/none': /none: no such file, neither here nor next to"));
}

}  // namespace text_codec_test
}  // namespace attend
