#include "attend/text/units.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "tests/support/files.h"

namespace attend {
namespace units_test {

using test::error_of;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(Units, AreNamed) {
  EXPECT_EQ(value_of<Units>("char", "unit"), Units::character);
  EXPECT_EQ(value_of<Units>("space", "unit"), Units::space);
  EXPECT_EQ(value_of<Units>("line", "unit"), Units::line);
  EXPECT_EQ(value_of<Units>("byte", "unit"), Units::byte);
  EXPECT_EQ(value_of<Units>("smiles", "unit"), Units::smiles);
}

TEST(SplitUnits, Characters) {
  EXPECT_THAT(split_units("ab c", Units::character), ElementsAre("a", "b", " ", "c"));
  EXPECT_THAT(split_units("né", Units::character), ElementsAre("n", "é"));
  EXPECT_THAT(split_units("\U0001F600x", Units::character), ElementsAre("\U0001F600", "x"));
  EXPECT_THAT(split_units("", Units::character), IsEmpty());
  EXPECT_THAT(split_units(std::string_view("a\0b", 3), Units::character),
              ElementsAre("a", std::string(1, '\0'), "b"));
}

TEST(SplitUnits, RunsBetweenWhiteSpace) {
  EXPECT_THAT(split_units("K AE T", Units::space), ElementsAre("K", "AE", "T"));
  EXPECT_THAT(split_units("  K\t\tAE \r\n", Units::space), ElementsAre("K", "AE"));
  EXPECT_THAT(split_units(" \t ", Units::space), IsEmpty());
  // A no-break space is part of a word: joining by a space would lose it.
  EXPECT_THAT(split_units("a\u00a0b", Units::space), ElementsAre("a\u00a0b"));
}

TEST(SplitUnits, AWholeLine) {
  EXPECT_THAT(split_units(" very\tgood e\u0301 \r\n", Units::line),
              ElementsAre("very\tgood \u00e9"));
  EXPECT_THAT(split_units("x", Units::line), ElementsAre("x"));
  EXPECT_THAT(split_units(" \t ", Units::line), IsEmpty());
  EXPECT_THAT(split_units("", Units::line), IsEmpty());
}

TEST(SplitUnits, NormalisesToNfc) {
  EXPECT_THAT(split_units("e\u0301", Units::character), ElementsAre("\u00e9"));
  EXPECT_THAT(split_units("cafe\u0301 x", Units::space), ElementsAre("caf\u00e9", "x"));
  EXPECT_EQ(to_nfc("\u1112\u1161\u11ab"), "\ud55c") << "Hangul";
  EXPECT_EQ(to_nfc("\u212b"), "\u00c5") << "the Angstrom sign is a letter";
  EXPECT_EQ(to_nfc("q\u0307\u0323"), "q\u0323\u0307") << "marks are put in order";
  EXPECT_EQ(to_nfc("\ufb01"), "\ufb01") << "a ligature is not taken apart";
}

TEST(SplitUnits, AcceptsAllOfUnicode) {
  for (const char* text : {"\uFFFE", "\uFFFF", "\U0010FFFF", "\uE000", "\u0378", "\uFEFF"}) {
    EXPECT_EQ(to_nfc(text), text);
  }
}

TEST(SplitUnits, PlacesInvalidUtf8) {
  const auto message = [](std::string_view text) {
    return error_of([&] { split_units(text, Units::character); });
  };
  EXPECT_EQ(message("ab\xff"), "invalid UTF-8 at byte 3 (0xff); save the text as UTF-8");
  EXPECT_THAT(message("\xc3"), HasSubstr("at byte 1 (0xc3)"));
  EXPECT_THAT(message("\xe2\x82"), HasSubstr("at byte 1"));
  EXPECT_THAT(message("é\x80"), HasSubstr("at byte 3 (0x80)"));
  EXPECT_THAT(message("\xc0\x80"), HasSubstr("at byte 1")) << "overlong";
  EXPECT_THAT(message("\xed\xa0\x80"), HasSubstr("at byte 1")) << "surrogate";
  EXPECT_THAT(message("\xf4\x90\x80\x80"), HasSubstr("at byte 1")) << "past U+10FFFF";
}

TEST(SplitUnits, BoundsRunsOfCombiningMarks) {
  // Marks in the worst order for an insertion sort; U+0F73 decomposes into two of them.
  std::string marks = "a";
  for (int i = 0; i < 500; ++i) marks += "\u0301";
  for (int i = 0; i < 500; ++i) marks += "\u0323";
  EXPECT_EQ(error_of([&] { to_nfc(marks); }), "");
  EXPECT_THAT(error_of([&] { to_nfc(marks + "\u0323"); }),
              HasSubstr("over 1000 combining marks in a row at byte 2002"));
  std::string hidden;
  for (int i = 0; i < 1001; ++i) hidden += "\u0f73";
  EXPECT_THAT(error_of([&] { to_nfc(hidden); }), HasSubstr("combining marks"));
}

TEST(JoinUnits, JoinsByNothingOrASpace) {
  EXPECT_EQ(join_units({"a", "b"}, Units::character), "ab");
  EXPECT_EQ(join_units({"K", "AE"}, Units::space), "K AE");
  EXPECT_EQ(join_units({}, Units::space), "");
  EXPECT_EQ(join_units({"{}", "x"}, Units::space), "{} x");
}

TEST(JoinUnits, IsTheInverseOfSplitUnits) {
  EXPECT_TRUE(rc::check("tokens survive a join and a split", [] {
    const auto letter = rc::gen::element<std::string>("a", "Z", "é", "e\u0301", "\u0323", "한", " ",
                                                      "\t", "\U0001F600", "\u00a0");
    std::string text;
    for (const std::string& part : *rc::gen::container<std::vector<std::string>>(letter)) {
      text += part;
    }
    for (const Units units : {Units::character, Units::space}) {
      const auto tokens = split_units(text, units);
      RC_ASSERT(split_units(join_units(tokens, units), units) == tokens);
    }
    RC_ASSERT(join_units(split_units(text, Units::character), Units::character) == to_nfc(text));
  }));
}

TEST(SplitUnits, AcceptsExactlyWhatIsUtf8) {
  EXPECT_TRUE(rc::check("any bytes are an Error or come back", [] {
    const auto bytes = *rc::gen::arbitrary<std::string>();
    try {
      const auto normal = to_nfc(bytes);
      RC_ASSERT(to_nfc(normal) == normal);
    } catch (const Error&) {
    }
  }));
}

}  // namespace units_test
}  // namespace attend
