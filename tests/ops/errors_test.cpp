// Tests of every error message of the operator.
#include <gtest/gtest.h>

#include <limits>

#include "attend/ops/attention.h"
#include "tests/ops/misuse.h"

namespace attend {
namespace errors_test {

using at::Tensor;

Tensor ones(at::IntArrayRef shape) { return at::ones(shape); }

TEST(ScoreErrors, NameWhatIsWrong) {
  expect_errors({
      {[] { Score("scaled_dit"); }, "no score is called 'scaled_dit'; did you mean scaled_dot?"},
      {[] { Score("zzzzzzzzzzzzzzzz"); }, "there are dot, scaled_dot, disentangled_dot"},
      {[] {
         Score("dot", {{"W", ones({2, 2})}});
       },
       "[score dot] has no parameters, got W"},
      {[] {
         Score("general", {{"W", ones({2, 2})}, {"V", ones({2})}});
       },
       "[score general] has no parameter V; it has W"},
      {[] { Score("general"); },
       "parameter W is missing; it is the bilinear form of shape [query_depth, key_depth]"},
      {[] {
         Score("additive", {{"v", Tensor()}});
       },
       "parameter v is missing"},
      {[] {
         Score("general", {{"W", ones({2})}});
       },
       "parameter W has 1 axes; it must have shape [query_depth, key_depth], or that after an "
       "axis"},
      {[] {
         Score("additive", {{"v", ones({3})}, {"b", ones({1})}});
       },
       "parameter b has attention_depth 1, parameter v 3; they must match"},
      {[] {
         Score("additive", {{"v", ones({3})}, {"W_q", ones({4, 2})}});
       },
       "parameter W_q has attention_depth 4, parameter v 3; they must match"},
      {[] {
         Score("additive", {{"v", ones({2, 3})}, {"b", ones({4, 3})}});
       },
       "parameter b has heads 4, parameter v 2; they must match"},
  });
}

TEST(ScoreErrors, OfMapsNameDepthsHeadsAndDtypes) {
  const Score general("general", {{"W", ones({2, 3})}});
  const Score additive("additive", {{"v", ones({1})}});
  const Score heads("general", {{"W", ones({4, 2, 3})}});
  expect_errors({
      {[&] {
         general.map_query(ones({5, 3}));
       },
       "queries have depth 3, parameter W of score general expects 2; they must match"},
      {[&] {
         general.map_key(ones({5, 2}));
       },
       "keys have depth 2, parameter W of score general expects 3; they must match"},
      {[&] { general.map_query(ones({2})); }, "queries have 1 axes; they must have 2 or more"},
      {[&] {
         general.map_query(ones({5, 2}).to(at::kDouble));
       },
       "queries have dtype Double, parameter W of score general Float; they must match"},
      {[&] {
         general.map_query(ones({5, 2}).to(at::kMeta));
       },
       "queries are on meta"},
      {[&] {
         additive.map_query(ones({5, 2}));
       },
       "queries have depth 2, parameter v of score additive expects 1; they must match"},
      {[&] {
         heads.map_query(ones({4, 5, 2}));
       },
       "queries have shape [4, 5, 2], the parameters of score general 4 heads"},
      {[&] {
         heads.map_query(ones({1, 2, 5, 2}));
       },
       "4 heads; the axis before the last two"},
  });
}

TEST(ScoreErrors, OfPairsNameDepths) {
  const Score additive("additive", {{"v", ones({3})}});
  const Score heads("additive", {{"v", ones({2, 3})}});
  expect_errors({
      {[] {
         pairwise_scores("dot", ones({5, 2}), ones({4, 3}));
       },
       "queries have depth 2, keys depth 3, and score dot compares them; they must match"},
      {[] {
         pairwise_scores("location", ones({5, 2}), ones({4, 3}));
       },
       "the location score has 2 positions, the keys 4; give W more rows"},
      {[&] {
         pairwise_scores(additive, ones({5, 2}), ones({4, 2}));
       },
       "parameter v of score additive has depth 3, the mapped queries 2"},
      {[&] {
         pairwise_scores(heads, ones({5, 3}), ones({4, 3}));
       },
       "parameter v of score additive has 2 heads, the mapped queries shape [5, 3]"},
  });
}

TEST(ScopeErrors, NameWhatIsWrong) {
  const auto lengths = [](std::vector<int64_t> values) { return at::tensor(values, at::kLong); };
  const auto check = [](const Scope& scope) { scope_mask(scope, 2, 3, 4, 5, at::kCPU); };
  const Tensor mask = at::ones({4, 5}, at::kBool);
  expect_errors({
      {[] { window(-1, 2); }, "must reach 0 or more keys to each side, got -1 and 2"},
      {[] { key_lengths(ones({2})); },
       "key lengths must be int64 of shape [batch], got Float of shape [2]"},
      {[] {
         dense_mask(ones({4, 5}));
       },
       "the mask must be of dtype bool, got Float of shape [4, 5]"},
      {[&] {
         key_lengths(at::ones({2, 1}, at::kLong));
       },
       "got Long of shape [2, 1]"},
      {[&] { dense_mask(Tensor()); }, "must be of dtype bool, got an undefined tensor"},
      {[&] {
         check(key_lengths(lengths({1, 2, 3})));
       },
       "key lengths are for a batch of 3, the queries have one of 2"},
      {[&] {
         check(key_lengths(lengths({1, 6})));
       },
       "must be between 0 and the number of keys 5, got 1 to 6"},
      {[&] {
         check(key_lengths(lengths({-1, 2})));
       },
       "got -1 to 2"},
      {[&] {
         check(dense_mask(at::ones({5, 4}, at::kBool)));
       },
       "a mask of shape [5, 4] does not broadcast to [batch, heads, queries, keys] = [2, 3, 4, 5]"},
      {[&] {
         check(dense_mask(at::ones({1, 2, 3, 4, 5}, at::kBool)));
       },
       "does not broadcast"},
      {[&] {
         key_lengths(lengths({1})) & key_lengths(lengths({1, 2}));
       },
       "key lengths of 1 and of 2 batch elements do not intersect"},
      {[&] { dense_mask(mask) & dense_mask(mask.narrow(0, 0, 3)); },
       "masks of shapes [4, 5] and [3, 5] do not broadcast to each other"},
  });
}

TEST(ScopeErrors, OfTextQuoteIt) {
  expect_errors({
      {[] { parse_scope("casual"); },
       "no scope is called 'casual'; there are all, causal or causal:OFFSET, window:R or "
       "window:L,R"},
      {[] { parse_scope(""); }, "no scope is called ''"},
      {[] { parse_scope("window"); }, "no scope is called 'window'"},
      {[] { parse_scope("window:"); }, "'' is not a number of keys; write window:R or window:L,R"},
      {[] { parse_scope("window:3,"); }, "'' is not a number of keys"},
      {[] { parse_scope("window:3x"); }, "'3x' is not a number of keys"},
      {[] { parse_scope("window:1,2,3"); }, "'2,3' is not a number of keys"},
      {[] { parse_scope("window:99999999999999999999"); }, "is not a number of keys"},
      {[] { parse_scope("window:-1"); }, "must reach 0 or more keys to each side"},
      {[] { parse_scope("window:\n3"); }, "'\\x0a3' is not a number of keys"},
      // 2^9 clauses; with more parts no memory would hold them.
      {[] {
         parse_scope("global:1&global:1&global:1&global:1&global:1&global:1&global:1&global:1&all");
       },
       "has over 8 parts; write fewer"},
  });
}

TEST(Scopes, ParseWhatTheTableSays) {
  const auto mask = [](const Scope& scope) {
    const Tensor known = scope_mask(scope, 1, 1, 7, 9, at::kCPU);
    return known.defined() ? known.expand({7, 9}) : at::ones({7, 9}, at::kBool);
  };
  const std::pair<const char*, Scope> scopes[] = {
      {"all", all_keys()},
      {"causal", causal()},
      {"causal:2", causal(2)},
      {"causal:-1", causal(-1)},
      {"window:3", window(3, 3)},
      {"window:2,0", window(2, 0)},
      {"dilated:4,2", window(Window{.left = 4, .right = 4, .dilation = 2})},
      {"prefix:3", prefix(3)},
      {"global:2", global_tokens(2)},
      {"causal & window:2", causal() & window(2)},
      {"causal&window:1|prefix:2", (causal() & window(1)) | prefix(2)},
      {"prefix:2 | causal & global:1", prefix(2) | (causal() & global_tokens(1))},
      {"causal | all", all_keys()},
  };
  for (const auto& [text, scope] : scopes)
    EXPECT_TRUE(at::equal(mask(parse_scope(text)), mask(scope))) << text;
}

TEST(Scopes, TakeReachesOfAnySize) {
  constexpr int64_t largest = std::numeric_limits<int64_t>::max();
  constexpr int64_t smallest = std::numeric_limits<int64_t>::min();
  const auto count = [](const Scope& scope) {
    return scope_mask(scope, 1, 1, 3, 4, at::kCPU).sum().item<int64_t>();
  };
  EXPECT_EQ(count(window(largest)), 12);
  EXPECT_EQ(count(causal(largest)), 12);
  EXPECT_EQ(count(causal(smallest)), 0);
  EXPECT_EQ(count(window(Window{.offset = largest})), 12);
  EXPECT_EQ(count(window(Window{.left = 0, .offset = largest})), 0);
  EXPECT_EQ(count(window(Window{.dilation = largest})), 3);
}

TEST(AttentionErrors, NameShapesDtypesAndDevices) {
  const Tensor x = ones({2, 3});
  const Tensor batched = ones({2, 4, 3});
  const Tensor heads = ones({2, 4, 5, 3});
  expect_errors({
      {[&] { attention(Tensor(), x, x); }, "query is undefined"},
      {[&] { attention(x, Tensor(), x); }, "key is undefined"},
      {[&] { attention(x, x, Tensor()); }, "value is undefined"},
      {[&] { attention(x.to(at::kLong), x, x); },
       "query has dtype Long; it must be floating point"},
      {[&] { attention(x, x.to(at::kDouble), x); },
       "key has dtype Double, query Float; they must match"},
      {[&] { attention(x, x, x.to(at::kMeta)); },
       "value is on meta, query on cpu; they must match"},
      {[&] { attention(x[0], x[0], x[0]); }, "all must have 2, 3 or 4 axes, the same number"},
      {[&] { attention(x, batched, batched); }, "key has shape [2, 4, 3], query [2, 3]; all must"},
      {[&] {
         attention(ones({1, 1, 1, 1, 1}), x, x);
       },
       "all must have 2, 3 or 4 axes"},
      {[&] {
         attention(ones({2, 0}), ones({2, 0}), x);
       },
       "query has shape [2, 0]; its depth, the last axis, must be 1 or more"},
      {[&] {
         attention(batched, ones({3, 4, 3}), batched);
       },
       "key has batch 3, query 2; they must match"},
      {[&] {
         attention(heads, ones({2, 3, 5, 3}), heads);
       },
       "key has 3 heads, query 4; the first must divide the second, neither be 0"},
      {[&] {
         attention(heads, ones({2, 0, 5, 3}), heads);
       },
       "neither be 0"},
      {[&] {
         attention(heads, heads, ones({2, 4, 6, 3}));
       },
       "value has shape [2, 4, 6, 3], key [2, 4, 5, 3]; all axes but the last must match"},
  });
}

TEST(AttentionErrors, NameTheScoreAndTheLogNormaliser) {
  const Tensor x = ones({2, 3});
  const Tensor heads = ones({2, 4, 5, 3});
  const Tensor bf16 = x.to(at::kBFloat16);
  const Score of_heads("general", {{"W", ones({2, 3, 3})}});
  const Score doubles("general", {{"W", ones({3, 3}).to(at::kDouble)}});
  expect_errors({
      {[&] {
         attention(x, ones({2, 4}), x, {.score = "dot"});
       },
       "queries have depth 3, keys depth 4, and score dot compares them"},
      {[&] { attention(x, x, x, {.score = of_heads}); }, "the parameters of score general 2 heads"},
      {[&] { attention(heads, heads, heads, {.score = of_heads}); }, "2 heads"},
      {[&] { attention(x, x, x, {.score = doubles}); },
       "parameter W of score general has dtype Double, query Float; they must match"},
      {[&] { attention(bf16, bf16, bf16, {.score = doubles}); },
       "parameter W of score general has dtype Double, query BFloat16; they must match"},
      {[&] {
         attention_scores(x, ones({2, 4}));
       },
       "queries have depth 3, keys depth 4"},
      {[&] { attention_weights(x, x, ones({3})); },
       "lse has shape [3], query [2, 3]; they must match but for the last axis"},
      {[&] { attention_weights(x, x, Tensor()); }, "lse has shape undefined"},
  });
}

}  // namespace errors_test
}  // namespace attend
