#include "attend/nn/attention_choices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attend/base/error.h"

namespace attend {
namespace {

using testing::HasSubstr;

std::string refusal(const AttentionChoices& choices) {
  try {
    check_choices(choices);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(AttentionChoices, ReadsBiases) {
  const auto biases = parse_biases("alibi + buckets:32+grid:3x5 + relative_keys:4+sink");
  ASSERT_EQ(biases.size(), 5U);
  EXPECT_EQ(biases[0].name, "alibi");
  EXPECT_EQ(biases[1].size, 32);
  EXPECT_EQ(biases[2].size, 3);
  EXPECT_EQ(biases[2].columns, 5);
  EXPECT_EQ(biases[3].size, 4);
  EXPECT_EQ(biases[4].name, "sink");
  EXPECT_TRUE(parse_biases("").empty());
  EXPECT_TRUE(parse_biases("  ").empty());
}

TEST(AttentionChoices, ReadsAPredictedCentre) {
  EXPECT_EQ(around_reach("around:7"), 7);
  EXPECT_EQ(around_reach(" around:1"), 1);
  EXPECT_FALSE(around_reach("window:7").has_value());
  for (const char* bad : {"around", "around:", "around:0", "around:-3", "around:x", "around:2.5",
                          "around:3 & causal", "causal & around:3", "arounds:3"})
    EXPECT_THROW(around_reach(bad), Error) << bad;
}

TEST(AttentionChoices, RefusesBadBiases) {
  for (const char* bad :
       {"alibi:3", "buckets", "buckets:3", "buckets:x", "buckets:32x2", "relative_keys:0", "grid:4",
        "grid:4x", "grid:x4", "grid:0x4", "+", "alibi +", "alibi alibi", "buckets:-8",
        "buckets:99999999999999999999", "grid:100000x2"})
    EXPECT_THROW(parse_biases(bad), Error) << bad;
  EXPECT_THAT(refusal({.bias = "aliby"}), HasSubstr("did you mean alibi?"));
  EXPECT_THAT(refusal({.bias = "grid:4"}), HasSubstr("write grid:HxW"));
  EXPECT_THAT(refusal({.bias = "alibi+alibi"}), HasSubstr("alibi twice"));
}

TEST(AttentionChoices, RefusesWhatDoesNotGoTogether) {
  EXPECT_EQ(refusal({}), "");
  EXPECT_EQ(refusal({.scope = "around:3", .bias = "gaussian + sink"}), "");
  EXPECT_EQ(refusal({.bias = "offset", .normaliser = "monotonic"}), "");
  EXPECT_THAT(refusal({.bias = "gaussian"}), HasSubstr("take scope around:D"));
  EXPECT_THAT(refusal({.scope = "around:3"}), HasSubstr("only bias gaussian trains; add it"));
  EXPECT_THAT(refusal({.bias = "offset"}), HasSubstr("softmax cancels"));
  EXPECT_THAT(refusal({.bias = "offset", .normaliser = "hard"}), HasSubstr("hard cancels"));
  EXPECT_THAT(refusal({.bias = "sink", .normaliser = "sparsemax"}), HasSubstr("take softmax"));
  EXPECT_EQ(refusal({.score = "elu_features", .normaliser = "linear"}), "");
  EXPECT_THAT(refusal({.score = "dot", .normaliser = "linear"}), HasSubstr("take elu_features"));
  EXPECT_THAT(refusal({.score = "elu_features", .bias = "alibi", .normaliser = "linear"}),
              HasSubstr("without a bias"));
  EXPECT_THAT(refusal({.score = "adative"}), HasSubstr("did you mean additive?"));
  EXPECT_THAT(refusal({.scope = "causl"}), HasSubstr("no scope is called"));
  EXPECT_THAT(refusal({.normaliser = "sparse-max"}), HasSubstr("did you mean sparsemax?"));
}

}  // namespace
}  // namespace attend
