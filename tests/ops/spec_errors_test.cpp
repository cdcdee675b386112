// Tests of every error message about a spec.
#include <gtest/gtest.h>

#include <limits>

#include "attend/ops/attention.h"
#include "tests/ops/misuse.h"

namespace attend {
namespace spec_errors_test {

using at::Tensor;

Tensor ones(at::IntArrayRef shape) { return at::ones(shape); }
Tensor longs(const std::vector<int64_t>& values) { return at::tensor(values, at::kLong); }

// Two batch entries, four heads, five queries, six keys of depth three.
void attend_with(const AttentionSpec& spec) {
  attention(ones({2, 4, 5, 3}), ones({2, 2, 6, 3}), ones({2, 2, 6, 1}), spec);
}

TEST(SpecErrors, OfScopesNameWhatIsWrong) {
  const auto with = [](const Scope& scope) { attend_with({.scope = scope}); };
  const Tensor layout = at::ones({3, 3}, at::kBool);
  expect_errors({
      {[&] {
         with(key_lengths(longs({2, 7})));
       },
       "key lengths must be between 0 and the number of keys 6, got 2 to 7"},
      {[&] {
         with(key_lengths(longs({-1, 2})));
       },
       "got -1 to 2"},
      {[&] { with(prefix(7)); }, "a prefix of 7 keys reaches past the end; there are 6 keys"},
      {[&] { prefix(-1); }, "a prefix must have 0 or more keys, got -1"},
      {[&] { global_tokens(-2); }, "global tokens must be 0 or more, got -2"},
      {[&] {
         with(segments(longs({0, 3, 5}), longs({0, 3, 7})));
       },
       "the segments of keys must lie between 0 and the number of keys 6, got 0 to 7"},
      {[&] {
         with(segments(longs({0, 6}), longs({0, 6})));
       },
       "the segments of queries must lie between 0 and the number of queries 5, got 0 to 6"},
      {[&] {
         with(segments(longs({-1, 5})));
       },
       "got -1 to 5"},
      {[&] {
         with(segments(longs({0, 4, 3})));
       },
       "the starts of the segments of queries must ascend, got 0, 4, 3"},
      {[&] {
         segments(longs({0, 2}), longs({0, 2, 4}));
       },
       "the queries have 1 segments, the keys 2; they must match"},
      {[&] { segments(ones({3})); },
       "must be int64 of shape [segments + 1], of 1 or more, got Float"},
      {[&] { segments(longs({})); }, "of 1 or more, got Long of shape [0]"},
      {[&] { with(block_sparse(layout, 3)); },
       "a block layout of shape [3, 3] does not fit 5 queries and 6 keys in blocks of 3; it must "
       "have shape [2, 2]"},
      {[&] { block_sparse(layout, 0); }, "the blocks of a layout must be 1 or more long, got 0"},
      {[&] {
         block_sparse(ones({3, 3}), 2);
       },
       "must be bool of shape [query blocks, key blocks], got Float of shape [3, 3]"},
      {[&] { window(Window{.dilation = 0}); }, "the dilation of a window must be 1 or more, got 0"},
      {[&] { window(Window{.right = -1}); }, "must reach 0 or more keys to each side"},
      {[&] { dense_mask({}); }, "must be of dtype bool, got an undefined tensor"},
      {[] { parse_scope("prefix:x"); }, "'x' is not a number of keys; write prefix:N"},
      {[] { parse_scope("dilated:3"); }, "'' is not a number of keys; write dilated:R,DILATION"},
      {[] { parse_scope("dilated:3,0"); }, "must be 1 or more, got 0"},
      {[] { parse_scope("global:"); }, "'' is not a number of tokens; write global:N"},
      {[] { parse_scope("causal:1.5"); }, "'1.5' is not a number of positions"},
      {[] { parse_scope("causal & "); }, "no scope is called ''"},
      {[] { parse_scope("causal || all"); }, "no scope is called ''"},
  });
}

TEST(SpecErrors, OfBiasesNameShapes) {
  const auto with = [](const Bias& bias) { attend_with({.bias = bias}); };
  const Tensor numbers = ones({4, 5});
  expect_errors({
      {[&] {
         with(dense_bias(ones({6, 5})));
       },
       "the dense bias of shape [6, 5] does not broadcast to [batch, heads, queries, keys] = [2, "
       "4, 5, 6]"},
      {[&] {
         with(dense_bias(ones({1, 2, 4, 5, 6})));
       },
       "does not broadcast"},
      {[&] { with(dense_bias(Tensor())); }, "the dense bias is undefined"},
      {[&] { with(dense_bias(longs({1}))); },
       "the dense bias has dtype Long, query Float; they must match"},
      {[&] { with(dense_bias(ones({1}).to(at::kDouble))); }, "has dtype Double, query Float"},
      {[&] { with(dense_bias(ones({1}).to(at::kMeta))); },
       "the dense bias is on meta, query on cpu"},
      {[&] { with(alibi(ones({2}))); },
       "the slopes of alibi has shape [2]; it must have one number for each of the 4 heads, or "
       "one"},
      {[&] {
         with(buckets({.table = ones({2, 8})}));
       },
       "the table of buckets has shape [2, 8]; it must have shape [buckets] or [heads, buckets] "
       "with 4 heads"},
      {[&] { with(buckets({.table = ones({2})})); },
       "2 buckets to a maximum distance of 128; there must be 4 or more"},
      {[&] { with(buckets({.table = ones({64}), .maximum_distance = 16})); },
       "a maximum distance above 16"},
      {[&] {
         with(relative_keys(ones({4, 3})));
       },
       "the table of relative keys has shape [4, 3]; it must have shape [2 L + 1, 3]"},
      {[&] {
         with(relative_keys(ones({5, 2})));
       },
       "it must have shape [2 L + 1, 3]"},
      {[&] {
         with(relative_keys(ones({2, 5, 3})));
       },
       "an axis of 4 heads"},
      {[&] {
         with(gaussian(ones({2, 4, 6}), ones({})));
       },
       "the centres of the gaussian of shape [2, 4, 6] does not broadcast to [batch, heads, "
       "queries] = [2, 4, 5]"},
      {[&] { with(gaussian(numbers, ones({3}))); }, "the widths of the gaussian of shape [3]"},
      {[&] { with(gaussian(numbers, 0 * numbers)); },
       "the widths of the gaussian must be positive, got 0"},
      {[&] { with(gaussian(numbers, Tensor())); }, "the widths of the gaussian is undefined"},
      {[&] {
         with(grid(ones({3, 3})));
       },
       "the table of the grid has shape [3, 3]; it must have shape [2 height - 1, 2 width - 1]"},
      {[] { alibi_slopes(0); }, "[alibi_slopes] heads is 0; it must be 1 or more"},
  });
}

TEST(SpecErrors, OfNumbersNameThem) {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  expect_errors({
      {[] { attend_with({.sink = ones({3})}); },
       "sink has shape [3]; it must have one number for each of the 4 heads, or one"},
      {[] { attend_with({.normaliser = "sigmoid", .sink = ones({4})}); },
       "the sink takes part in a softmax; the normaliser is sigmoid"},
      {[] { attend_with({.soft_cap = -1}); }, "soft_cap is -1; it must be positive, or 0 for none"},
      {[] { attend_with({.soft_cap = nan}); }, "soft_cap is nan"},
      {[] { attend_with({.dropout = {.probability = 1}}); },
       "dropout has probability 1; it must be at least 0 and below 1"},
      {[] { attend_with({.dropout = {.probability = -0.1}}); }, "dropout has probability -0.1"},
  });
}

TEST(SpecErrors, OfThePathSayWhyItDoesNotFit) {
  const Tensor x = ones({2, 3}), meta = x.to(at::kMeta);
  expect_errors({
      {[&] {
         attention(x, ones({3, 3}), ones({3, 1}), {.score = "location", .path = Path::fused});
       },
       "path is fused, but score location does not compare queries with keys; take automatic or "
       "composed"},
      {[&] { attention(meta, meta, meta, {.path = Path::fused}); },
       "path is fused, but the tensors are on meta; the kernels run on the CPU"},
      {[&] {
         const Tensor leaf = ones({2, 3}).set_requires_grad(true);
         attention_weights(leaf, x, ones({2}), {.path = Path::fused});
       },
       "path is fused, but weights are differentiated on the composed path"},
  });
  EXPECT_EQ(attention_scores(meta, meta).sizes(), at::IntArrayRef({2, 2}));
}

TEST(SpecErrors, OfSelectionsSayWhatThereIs) {
  const Tensor query = ones({2, 4, 5, 3}), key = ones({2, 2, 6, 3}), lse = ones({2, 4, 5});
  const auto select = [&](const Selection& selection) {
    attention_weights(query, key, lse, {}, selection);
  };
  expect_errors({
      {[&] {
         select({.heads = {0, 4}});
       },
       "head 4 of the weights was asked for; there are 4 heads"},
      {[&] { select({.heads = {-1}}); }, "head -1 of the weights"},
      {[&] { select({.first_row = 3, .rows = 3}); },
       "3 rows of the weights from row 3 on were asked for; there are 5 queries"},
      {[&] { select({.first_row = -1}); },
       "row -1 of the weights was asked for; there are 5 queries"},
      {[&] { select({.first_row = 6}); }, "row 6 of the weights was asked for"},
      {[&] { select({.first_row = 1, .rows = -1}); }, "-1 rows of the weights from row 1 on"},
      {[&] { select({.rows = std::numeric_limits<int64_t>::max()}); }, "there are 5 queries"},
      {[&] { attention_weights(query[0], key[0][0], lse[0]); }, "all must have 2, 3 or 4 axes"},
      {[&] { attention_weights(query[0], query[0], lse[0], {}, {.heads = {0}}); },
       "heads of the weights were chosen; queries of 3 axes lack heads"},
      {[&] { attention_top(query, key, lse, 0); }, "the 0 largest weights were asked for"},
      {[&] { attention_entropy(query, key, lse.to(at::kMeta)); }, "lse is on meta, query on cpu"},
      {[&] { attention_entropy(query, key, lse.to(at::kLong)); }, "lse has dtype Long"},
  });
}

}  // namespace spec_errors_test
}  // namespace attend
