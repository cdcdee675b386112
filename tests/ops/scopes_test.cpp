// Tests of queries about a scope, against its mask.
#include "attend/ops/scopes.h"

#include <gtest/gtest.h>

#include "attend/base/error.h"

namespace attend {
namespace scopes_test {

// Returns whether a query sees a later key; the mask is large enough for every reach below.
bool mask_looks_ahead(const Scope& scope) {
  const at::Tensor mask = scope_mask(scope, 1, 1, 24, 24, at::kCPU);
  return !mask.defined() || mask.expand({1, 1, 24, 24}).triu(1).any().item<bool>();
}

TEST(IsCausal, IsWhatTheMaskSays) {
  for (const char* text : {"all", "causal", "causal:-1", "causal:2", "window:3", "window:128,0",
                           "window:0", "window:0,1", "dilated:4,2", "prefix:4", "global:2",
                           "causal & window:4", "window:2,0 & prefix:9", "causal | window:5,0",
                           "causal | prefix:4", "causal & window:5 | causal & global:1",
                           "window:5 | global:1", "all & causal", "causal | all"}) {
    const Scope scope = parse_scope(text);
    EXPECT_EQ(is_causal(scope), !mask_looks_ahead(scope)) << text;
  }
}

TEST(IsCausal, AsksNoTensors) {
  EXPECT_FALSE(is_causal(dense_mask(at::ones({4, 4}, at::kBool).tril())));
  EXPECT_FALSE(is_causal(around(at::zeros({4}), 1)));
  EXPECT_TRUE(is_causal(causal() & key_lengths(at::tensor({3, 4}, at::kLong))));
  EXPECT_TRUE(is_causal(window(Window{.right = 2, .offset = -2})));
  EXPECT_FALSE(is_causal(window(Window{.offset = -2})));
}

TEST(AroundReach, ReadsAPredictedCentre) {
  EXPECT_EQ(around_reach("around:7"), 7);
  EXPECT_EQ(around_reach(" around:1"), 1);
  EXPECT_FALSE(around_reach("window:7").has_value());
  for (const char* bad : {"around", "around:", "around:0", "around:-3", "around:x", "around:2.5",
                          "around:3 & causal", "causal & around:3", "arounds:3"})
    EXPECT_THROW(around_reach(bad), Error) << bad;
}

}  // namespace scopes_test
}  // namespace attend
