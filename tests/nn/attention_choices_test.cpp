#include "attend/nn/attention_choices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attend/base/error.h"
#include "attend/base/find_row.h"
#include "attend/nn/choice_parameters.h"
#include "attend/ops/attention.h"

namespace attend {
namespace attention_choices_test {

using testing::HasSubstr;

std::string refusal(const AttentionChoices& choices) {
  try {
    check_choices(choices);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(AttentionChoices, RefusesBiasesThatAreNotTrained) {
  for (const char* bad : {"alibi:3", "buckets", "buckets:3", "relative_keys:0", "relative_keys",
                          "grid:4", "grid:0x4", "alibi +", "dense"})
    EXPECT_NE(refusal({.bias = bad}), "") << bad;
  EXPECT_THAT(refusal({.bias = "aliby"}), HasSubstr("did you mean alibi?"));
  EXPECT_THAT(refusal({.bias = "grid:4"}), HasSubstr("write grid:HxW"));
  EXPECT_THAT(refusal({.bias = "buckets:3"}),
              HasSubstr("write buckets:N[,DISTANCE], numbers of 4 to 65536"));
  EXPECT_THAT(refusal({.bias = "alibi+alibi"}), HasSubstr("bias alibi is named twice"));
  EXPECT_THAT(refusal({.bias = "dense"}), HasSubstr("take alibi, kerple_log"));
}

TEST(AttentionChoices, RefusesWhatDoesNotGoTogether) {
  EXPECT_EQ(refusal({}), "");
  EXPECT_EQ(refusal({.scope = "around:3", .bias = "gaussian + sink"}), "");
  EXPECT_EQ(refusal({.bias = "offset", .normaliser = "monotonic"}), "");
  EXPECT_EQ(refusal({.bias = "sink", .normaliser = "temperature:2"}), "");
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

// As in T5, relative_attention_max_distance is 128 for any number of buckets.
TEST(AttentionChoices, BucketsReachAsFarAsT5s) {
  const auto context = [](const Bias& bias) {
    const at::Tensor q = at::zeros({1, 1, 200, 2}, at::kDouble);
    return attention(q, q, at::arange(400, at::kDouble).view({1, 1, 200, 2}), {.bias = bias})
        .context;
  };
  const at::Tensor table = at::arange(256, at::kDouble) / 64;
  for (const int64_t distance : {0, 300}) {
    const Bias made =
        bias_of(find_row(bias_table(), "bias", "buckets"), {{"table", table}}, {4, true, distance});
    const int64_t wanted = distance == 0 ? 128 : distance;
    EXPECT_TRUE(
        context(made).equal(context(buckets({.table = table, .maximum_distance = wanted}))));
  }
  EXPECT_EQ(largest_distance(parse_biases("buckets:256,300")[0]), 300);
  EXPECT_EQ(largest_distance(parse_biases("buckets:256")[0]), 0);
  // Expected value from transformers 5.24: the key 100 before the query, 256 buckets.
  EXPECT_EQ(distance_buckets(at::full({1}, -100), 256, true, 128).item<int64_t>(), 105);
}

}  // namespace attention_choices_test
}  // namespace attend
