#include "attend/data/number_target.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "attend/data/tables.h"
#include "tests/support/files.h"

namespace attend {
namespace number_target_test {

using test::error_of;
using testing::HasSubstr;

TEST(NumberTargets, AreFinite) {
  EXPECT_EQ(target_number(" -1.5e3\t"), -1500);
  for (const char* text : {"", "two", "1,5", "1 2", "inf", "-inf", "nan", "1e999"})
    EXPECT_THAT(error_of([&] { target_number(text); }), HasSubstr("is not a finite number"))
        << text;
}

TEST(NumberTargets, AreStandardised) {
  const NumberScale scale = scale_of({{"1", 2}, {"4", 1}, {"4.0", 1}});
  EXPECT_DOUBLE_EQ(scale.mean, 2.5);
  EXPECT_DOUBLE_EQ(scale.deviation, 1.5);
  EXPECT_DOUBLE_EQ(scale.standardised(4), 1);
  EXPECT_DOUBLE_EQ(scale.number(scale.standardised(-7.25)), -7.25);
  EXPECT_THAT(error_of([] {
                scale_of({{"3", 5}, {"3.0", 1}});
              }),
              HasSubstr("every training target is the number 3, so the deviation is 0"));
  // The mean of three times 0.1 is another double.
  EXPECT_THAT(error_of([] { scale_of({{"0.1", 3}}); }), HasSubstr("is the number 0.1"));
  EXPECT_THAT(error_of([] { scale_of({{"1e308", 1}, {"-1e308", 1}}); }), HasSubstr("too large"));
}

TEST(NumberTargets, AreWrittenWithTheDigitsOfFloats) {
  EXPECT_EQ(number_text(-3.21738219, 1), "-3.217382");
  EXPECT_EQ(number_text(2, 0.5), "2");
  EXPECT_EQ(number_text(1e300, 1e300), "1e+300");
  EXPECT_EQ(number_text(0, 1), "0");
  EXPECT_EQ(number_text(0.000123456789, 1000), "0.0001234568");
}

// Numbers that differ by millionths of a deviation have different texts, for any mean.
TEST(NumberTargets, HaveTheDigitsOfTheirDeviation) {
  EXPECT_EQ(number_text(1700000060.12345678, 234), "1700000060.1235");
  EXPECT_EQ(number_text(1e9 + 1.0 / 3, 1), "1000000000.333333");
  for (const double mean : {0.0, 1e3, 1e6, 1e9, -1.7e9, 2e12})
    for (const double deviation : {0.01, 1.0, 234.0}) {
      const double number = mean + deviation / 3;
      const double written = target_number(number_text(number, deviation));
      EXPECT_NEAR(written, number, 1e-6 * deviation + 4e-16 * std::abs(number)) << mean;
    }
}

TEST(NumberTargets, AFileWithOtherTargetsIsRefusedAtTheLine) {
  const test::TemporaryFolder folder;
  TextConfig text;
  text.target = TargetKind::number;
  const std::string path = folder.write("n.tsv", "a\t1\nb\tlow\n");
  EXPECT_THAT(error_of([&] { read_examples({path}, text); }),
              HasSubstr(path + ":2: target 'low' is not a finite number"));
  const std::string sources = folder.write("s", "a\nb\n"), targets = folder.write("t", "1\ninf\n");
  EXPECT_THAT(error_of([&] {
                read_examples({sources, targets}, text);
              }),
              HasSubstr(sources + ":2: target 'inf'"));
}

}  // namespace number_target_test
}  // namespace attend
