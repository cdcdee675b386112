#include "attend/explain/explanation_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <random>

#include "tests/support/files.h"

namespace attend {
namespace explanation_json_test {

using testing::HasSubstr;

Alignment small_alignment() {
  return {{"t", "i", "o"}, {"SH", "AH0"}, {2, 3, {0.7f, 0.2f, 0.1f, 0.05f, 0.35f, 0.6f}}, "tion"};
}

TEST(AlignmentJson, RefusesWeightsThatDoNotBelong) {
  Alignment alignment = small_alignment();
  alignment.scores = WeightGrid{2, 3, {0.5}};
  EXPECT_THAT(test::error_of([&] { alignment_json(alignment); }),
              HasSubstr("1 weights have shape [2, 3]"));
  alignment.weights = {3, 2, std::vector<double>(6)};
  EXPECT_THAT(test::error_of([&] { alignment_json(alignment); }),
              HasSubstr("shape [3, 2]; 2 target and 3 source tokens need [2, 3]"));
}

TEST(AlignmentJson, TakesMoreTokensThanAPicture) {
  constexpr size_t count = kMaximumPictureTokens + 1;
  const Alignment alignment{std::vector<std::string>(count, "x"),
                            {"y"},
                            {1, static_cast<int64_t>(count), std::vector<double>(count)}};
  EXPECT_EQ(nlohmann::json::parse(alignment_json(alignment))["source"].size(), count);
}

TEST(AlignmentJson, ReadsBackToTheBit) {
  Alignment alignment = small_alignment();
  alignment.source[1] = "\"\\<\n天";
  std::mt19937 engine(1);
  for (const bool single : {true, false}) {
    alignment.weights.single = single;
    for (double& weight : alignment.weights.values) {
      weight = static_cast<double>(engine()) / 0x1.8p32;
      if (single) weight = static_cast<float>(weight);
    }
    const auto json = nlohmann::json::parse(alignment_json(alignment));
    EXPECT_EQ(json["source"].get<std::vector<std::string>>(), alignment.source);
    EXPECT_EQ(json["target"].get<std::vector<std::string>>(), alignment.target);
    EXPECT_EQ(json["title"], alignment.title);
    for (int64_t row = 0; row < 2; ++row) {
      for (int64_t column = 0; column < 3; ++column) {
        const double read = json["weights"][row][column];
        EXPECT_EQ(single ? static_cast<float>(read) : read, alignment.weights.at(row, column));
      }
    }
  }
}

TEST(AlignmentJson, WritesFloatsWithoutInventedDigits) {
  EXPECT_THAT(alignment_json(small_alignment()), HasSubstr("[[0.7,0.2,0.1],[0.05,0.35,0.6]]"));
}

TEST(AlignmentJson, HoldsAnyBytesAndNoNumbers) {
  Alignment alignment = small_alignment();
  alignment.source[0] = "\xFF";
  alignment.weights.values[1] = std::numeric_limits<double>::quiet_NaN();
  const auto json = nlohmann::json::parse(alignment_json(alignment));
  EXPECT_EQ(json["source"][0], "\uFFFD");
  EXPECT_TRUE(json["weights"][0][1].is_null());
}

}  // namespace explanation_json_test
}  // namespace attend
