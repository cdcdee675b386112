#include "attend/data/number_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attend/data/source_kind.h"
#include "attend/data/tables.h"
#include "tests/support/files.h"

namespace attend {
namespace number_set_test {

using test::error_of;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(NumberSet, AscendsWhateverTheOrder) {
  const NumberSet set = parse_number_set(" 42 3 -1.5e1  17 ");
  EXPECT_EQ(set.depth, 1);
  EXPECT_THAT(set.numbers, ElementsAre(-15, 3, 17, 42));
  EXPECT_THAT(set.elements, ElementsAre("-1.5e1", "3", "17", "42"));
  EXPECT_THAT(parse_number_set("5 5 2").numbers, ElementsAre(2, 5, 5)) << "as often as it is there";
}

TEST(NumberSet, OrdersVectorsByTheirFirstNumbers) {
  const NumberSet set = parse_number_set("3,1 0.1,9 3,-2 -0,1");
  EXPECT_EQ(set.depth, 2);
  EXPECT_THAT(set.elements, ElementsAre("-0,1", "0.1,9", "3,-2", "3,1"));
  EXPECT_THAT(set.numbers, ElementsAre(0, 1, 0.1, 9, 3, -2, 3, 1));
  EXPECT_FALSE(std::signbit(set.numbers[0]));
}

TEST(NumberSet, RefusesWhatIsNone) {
  const auto refusal = [](const char* text) { return error_of([&] { parse_number_set(text); }); };
  EXPECT_THAT(refusal(""), HasSubstr("a set is empty"));
  EXPECT_THAT(refusal("  "), HasSubstr("a set is empty"));
  EXPECT_THAT(refusal("3 17\t17"), HasSubstr("a set has a TAB"));
  for (const char* number : {"x", "inf", "nan", "1e999", "0x1", "1;2", "+1"})
    EXPECT_THAT(refusal(number), HasSubstr("is not a finite number")) << number;
  for (const char* element : {",", "1,", ",1", "1,,2"})
    EXPECT_THAT(refusal(element), HasSubstr("'' is not a finite number")) << element;
  EXPECT_THAT(refusal("1 2,3"), HasSubstr("element '2,3' of a set has 2 numbers, and '1' before it "
                                          "1; give all the same number: blanks separate "
                                          "elements, commas the numbers of an element"));
}

TEST(NumberSetFrames, AreTheScaledNumbers) {
  const SourceKind& kind = *source_kind("set");
  FrameConfig config{.set_scale = 10};
  kind.measure("4,5 1,2", config);
  EXPECT_EQ(config.set_depth, 2);
  EXPECT_EQ(kind.shape(config).depth(), 2);
  const at::Tensor frames = kind.reader(config)->read("4,5 1,2");
  EXPECT_TRUE(at::equal(frames, at::tensor({0.1, 0.2, 0.4, 0.5}, at::kFloat).view({2, 2})));
  EXPECT_TRUE(at::equal(frames, kind.reader(config)->read("1,2 4,5")));
  EXPECT_THAT(kind.frame_names("4,5 1,2", config, 1), ElementsAre("1,2"));
  EXPECT_THAT(error_of([&] { kind.reader(config)->read("7"); }),
              HasSubstr("element '7' of a set has 1 numbers; this model reads 2 (data.set_depth): "
                        "blanks separate elements"));
  EXPECT_THAT(error_of([&] { kind.reader(config)->read("1,2 1e300,3"); }),
              HasSubstr("'1e300,3' of a set is too large for float32"));
}

TEST(NumberSetFrames, AreCheckedAtTheirLines) {
  const test::TemporaryFolder folder;
  TextConfig text;
  text.source_units = "set";
  text.target = TargetKind::number;
  const auto refusal = [&](const std::string& lines) {
    const std::string path = folder.write("sets.tsv", lines);
    return error_of([&] { read_examples({path}, text, nullptr, nullptr); });
  };
  EXPECT_EQ(refusal("1 2\t2\n3\t3\n"), "");
  EXPECT_THAT(refusal("1 2\t2\n3 x\t3\n"), HasSubstr("sets.tsv:2: "));
  EXPECT_THAT(refusal("1 2\t2\n3,4\t3\n"), HasSubstr("sets.tsv:2: element '3,4'"));
  EXPECT_THAT(refusal("1 2\t2\n \t3\n"), HasSubstr("sets.tsv:2"));
}

}  // namespace number_set_test
}  // namespace attend
