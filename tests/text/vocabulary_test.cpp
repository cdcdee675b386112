#include "attend/text/vocabulary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <set>

#include "tests/support/files.h"

namespace attend {
namespace vocabulary_test {

using test::error_of;
using testing::ElementsAre;
using testing::HasSubstr;

const std::string fixed = "<pad>\n<s>\n</s>\n<unk>\n";

TEST(Vocabulary, StartsWithTheFixedTokens) {
  const Vocabulary vocabulary;
  EXPECT_EQ(vocabulary.size(), 4);
  EXPECT_EQ(vocabulary.token(Vocabulary::padding), "<pad>");
  EXPECT_EQ(vocabulary.token(Vocabulary::bos), "<s>");
  EXPECT_EQ(vocabulary.token(Vocabulary::eos), "</s>");
  EXPECT_EQ(vocabulary.token(Vocabulary::unknown), "<unk>");
}

TEST(Vocabulary, OrdersByFallingCountThenByToken) {
  const auto vocabulary = Vocabulary::build({{"b", "c", "a"}, {"c", "b"}, {"c"}});
  EXPECT_THAT(vocabulary.decode({4, 5, 6}), ElementsAre("c", "b", "a"));
  const auto equal = Vocabulary::build({{"z", "y"}, {"é", "x"}});
  EXPECT_THAT(equal.decode({4, 5, 6, 7}), ElementsAre("x", "y", "z", "é"));
}

TEST(Vocabulary, LeavesRareTokensOut) {
  const auto vocabulary = Vocabulary::build({{"a", "a", "b"}}, 2);
  EXPECT_EQ(vocabulary.size(), 5);
  EXPECT_EQ(vocabulary.id("b"), Vocabulary::unknown);
}

TEST(Vocabulary, EncodesAndDecodes) {
  const auto vocabulary = Vocabulary::build({{"a", "a", "b"}});
  EXPECT_THAT(vocabulary.encode({"b", "a", "?"}), ElementsAre(5, 4, Vocabulary::unknown));
  EXPECT_THAT(vocabulary.decode({5, 3}), ElementsAre("b", "<unk>"));
  EXPECT_EQ(error_of([&] { vocabulary.token(6); }), "[vocabulary] id 6 is not one of the 6 tokens");
  EXPECT_THAT(error_of([&] { vocabulary.decode({-1}); }), HasSubstr("id -1"));
}

// Otherwise a text could contain padding or its own end.
TEST(Vocabulary, GivesATextNoFixedId) {
  const auto vocabulary = Vocabulary::build({{"<pad>", "</s>", "a", "<s>"}});
  EXPECT_EQ(vocabulary.size(), 5);
  EXPECT_THAT(vocabulary.encode({"<pad>", "<s>", "</s>", "<unk>", "a"}),
              ElementsAre(3, 3, 3, 3, 4));
}

TEST(Vocabulary, RefusesTokensThatAFileCannotHold) {
  const auto message = [](const std::string& token) {
    return error_of([&] { Vocabulary::build({{token}}); });
  };
  EXPECT_EQ(message(""), "an empty token");
  EXPECT_THAT(message("a\nb"), HasSubstr("line break"));
  EXPECT_THAT(message("\r"), HasSubstr("line break"));
  EXPECT_THAT(message(std::string(1, '\0')), HasSubstr("NUL"));
  EXPECT_THAT(message("\xff"), HasSubstr("invalid UTF-8"));
}

TEST(Vocabulary, IsExtendedBehindWhatItHas) {
  Vocabulary vocabulary = Vocabulary::build({{"a", "b"}});
  EXPECT_EQ(vocabulary.extend(Vocabulary::build({{"d", "d", "b", "c"}})), 2);
  EXPECT_EQ(vocabulary.encode({"a", "b", "d", "c"}), (std::vector<int64_t>{4, 5, 6, 7}));
  EXPECT_EQ(vocabulary.size(), 8);
}

TEST(VocabularyFile, IsOneTokenALine) {
  const test::TemporaryFolder folder;
  const std::string path = folder / "v.txt";
  Vocabulary::build({{"a", "a", " ", "#"}}).save(path);
  EXPECT_EQ(test::contents(path), fixed + "a\n \n#\n");
  EXPECT_EQ(Vocabulary::load(path).id(" "), 5);
}

TEST(VocabularyFile, ReadsEveryUsualWayToEndALine) {
  for (const std::string text :
       {"<pad>\r\n<s>\r\n</s>\r\n<unk>\r\na\r\nb\r\n",
        "\xEF\xBB\xBF<pad>\n<s>\n</s>\n<unk>\na\nb\n", "<pad>\n<s>\n</s>\n<unk>\na\nb"}) {
    const auto vocabulary = Vocabulary::parse(text, "v");
    EXPECT_EQ(vocabulary.size(), 6) << text;
    EXPECT_EQ(vocabulary.id("b"), 5) << text;
  }
}

TEST(VocabularyFile, NamesTheLine) {
  const auto message = [](const std::string& text) {
    return error_of([&] { Vocabulary::parse(text, "v.txt"); });
  };
  EXPECT_EQ(message(""), "v.txt: is empty; a vocabulary has one token per line");
  EXPECT_EQ(message("<pad>\n<s>\n"),
            "v.txt: has 2 lines; the first 4 are fixed tokens: <pad>, <s>, </s>, <unk>");
  EXPECT_EQ(message("<pad>\na\n"), "v.txt:2: must be the fixed token <s>, not 'a'");
  EXPECT_EQ(message(fixed + "a\nb\na\n"), "v.txt:7: token 'a' is there twice");
  EXPECT_EQ(message(fixed + "<s>\n"), "v.txt:5: token '<s>' is there twice");
  EXPECT_EQ(message(fixed + "a\n\nb\n"), "v.txt:6: an empty token");
  EXPECT_THAT(message(fixed + "a\xff\n"), HasSubstr("v.txt:5: invalid UTF-8 at byte 2"));
  EXPECT_THAT(message(fixed + std::string("\0\n", 2)), HasSubstr("v.txt:5: holds a NUL byte"));
  EXPECT_THAT(error_of([] { Vocabulary::load("/nowhere"); }), HasSubstr("no such file"));
}

TEST(VocabularyFile, BoundsItsLines) {
  std::string text = fixed;
  for (int i = 4; i < 1'000'000; ++i) text += std::to_string(i) + "\n";
  EXPECT_EQ(Vocabulary::parse(text, "v").size(), 1'000'000);
  EXPECT_EQ(error_of([&] { Vocabulary::parse(text + "one more\n", "v"); }),
            "v:1000001: over 1000000 tokens");
}

TEST(VocabularyFile, SurvivesARoundTrip) {
  EXPECT_TRUE(rc::check("load(save(v)) has the ids of v", [] {
    const auto token = rc::gen::nonEmpty(rc::gen::string<std::string>());
    auto tokens = *rc::gen::container<std::vector<std::string>>(token);
    std::erase_if(tokens, [](const std::string& s) {
      return std::any_of(s.begin(), s.end(), [](unsigned char c) {
        return c == 0 || c == '\n' || c == '\r' || c >= 0x80;
      });
    });
    const auto vocabulary = Vocabulary::build({tokens});
    const test::TemporaryFolder folder;
    vocabulary.save(folder / "v");
    const auto same = Vocabulary::load(folder / "v");
    RC_ASSERT(same.size() == vocabulary.size());
    RC_ASSERT(same.encode(tokens) == vocabulary.encode(tokens));
    const std::set<std::string> distinct(tokens.begin(), tokens.end());
    RC_ASSERT(vocabulary.size() == 4 + static_cast<int64_t>(distinct.size()));
    RC_ASSERT(same.decode(same.encode(tokens)) == tokens);
  }));
}

TEST(Vocabulary, WritesALineBreak) {
  const test::TemporaryFolder folder;
  const std::vector<std::string> tokens = {"\n", "\\n", "\\\\n", "\\", "n", "a\\n", "\\m"};
  const Vocabulary vocabulary = Vocabulary::build({tokens});
  vocabulary.save(folder / "v");
  const Vocabulary loaded = Vocabulary::load(folder / "v");
  ASSERT_EQ(loaded.size(), vocabulary.size());
  for (const std::string& token : tokens) EXPECT_EQ(loaded.token(vocabulary.id(token)), token);
  EXPECT_THAT(test::contents(folder / "v"), HasSubstr("\n\\n\n"));
}

}  // namespace vocabulary_test
}  // namespace attend
