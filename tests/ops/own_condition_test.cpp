// Tests of a condition that is defined only in this file, on every path and in all functions of
// scopes. Also of blocks that are chosen by the data.
#include <gtest/gtest.h>

#include "attend/base/error.h"
#include "tests/ops/differences.h"
#include "tests/ops/misuse.h"
#include "tests/ops/reference.h"

namespace attend::reference {
namespace own_condition_test {

using at::Tensor;

// In head h query i sees key j unless `period` divides i + j + h + phase.
class Stripes : public Condition {
 public:
  Stripes(int64_t period, int64_t phase) : period_(period), phase_(phase) {
    if (period < 2) fail("[stripes] the period is {}; 2 is the least", period);
  }

  Tensor mask(const Extent& extent, const at::Device& device) const override {
    const auto places = at::TensorOptions().dtype(at::kLong).device(device);
    const Tensor sum = at::arange(extent.heads, places).view({-1, 1, 1}) +
                       at::arange(extent.queries, places).view({extent.queries, 1}) +
                       at::arange(extent.keys, places) + phase_;
    return at::remainder(sum, period_) != 0;
  }
  ConditionPointer shifted(int64_t offset, int64_t) const override { return later(offset); }
  ConditionPointer shifted_keys(int64_t first, int64_t) const override { return later(first); }
  ConditionPointer placed(const QueryOffset& place) const override { return later(place.common); }

 private:
  ConditionPointer later(int64_t by) const {
    return std::make_shared<Stripes>(period_, phase_ + by);
  }

  int64_t period_, phase_;
};

Scope stripes(int64_t period, int64_t phase = 0) {
  return {{{std::make_shared<Stripes>(period, phase)}}};
}

// j = i + distance, which kernels support as a window.
class Diagonal : public Condition {
 public:
  explicit Diagonal(int64_t distance) : distance_(distance) {}

  Tensor mask(const Extent& extent, const at::Device& device) const override {
    const Tensor pairs = at::ones({extent.queries, extent.keys}, at::kBool).to(device);
    return pairs.tril(distance_).logical_and(pairs.triu(distance_));
  }
  ConditionPointer shifted(int64_t offset, int64_t) const override {
    return std::make_shared<Diagonal>(distance_ + offset);
  }
  ConditionPointer shifted_keys(int64_t first, int64_t) const override {
    return std::make_shared<Diagonal>(distance_ - first);
  }
  kernels::Condition to_kernel(const Extent&, std::vector<Tensor>&) const override {
    ++mapped;
    return Window{.left = 0, .right = 0, .offset = distance_};
  }

  mutable int mapped = 0;

 private:
  int64_t distance_;
};

constexpr Path paths[] = {Path::fused, Path::composed};

struct OwnCondition : testing::Test {
  Tensors inputs =
      leaves({at::randn({2, 4, 9, 5}, at::kDouble), at::randn({2, 2, 11, 5}, at::kDouble),
              at::randn({2, 2, 11, 3}, at::kDouble)});

  Tensor mask_of(const Scope& scope, int64_t queries = 9, int64_t keys = 11) const {
    return scope_mask(scope, 2, 4, queries, keys, at::kCPU).expand({2, 4, queries, keys});
  }

  // Checks that results and gradients are bit-identical to the mask's.
  void expect_mask(const Scope& scope, const Tensor& mask, Path path) {
    const auto run = [&](const Scope& own) {
      const auto [context, lse] =
          attention(inputs[0], inputs[1], inputs[2], {.scope = own, .path = path});
      Tensors all = gradients(context.square().sum(), inputs, false);
      all.insert(all.end(), {context, lse});
      return all;
    };
    const Tensors found = run(scope), wanted = run(dense_mask(mask));
    for (size_t i = 0; i < found.size(); ++i) EXPECT_TRUE(found[i].equal(wanted[i])) << i;
  }
};

TEST_F(OwnCondition, IsComputedOnEveryPath) {
  const Tensor own = mask_of(stripes(3)), lower = at::ones({9, 11}, at::kBool).tril();
  EXPECT_EQ(own[0][1][2][3].item<bool>(), false);
  EXPECT_EQ(own[0][2][2][3].item<bool>(), true);
  for (const Path path : paths) {
    expect_mask(stripes(3), own, path);
    expect_mask(stripes(3) & causal(), own.logical_and(lower), path);
    expect_mask(stripes(3) | causal(), own.logical_or(lower), path);
  }
}

TEST_F(OwnCondition, MovesWithItsSequences) {
  const Scope scope = stripes(4, 1) & causal(2);
  const Tensor whole = mask_of(scope);
  EXPECT_TRUE(mask_of(shifted(scope, 3, 4), 4).equal(whole.narrow(2, 3, 4)));
  EXPECT_TRUE(mask_of(shifted_keys(scope, 5, 6), 9, 6).equal(whole.narrow(3, 5, 6)));
  AttentionSpec last = {.scope = scope, .align = Align::last};
  const Tensor placed_scores = attention_scores(inputs[0], inputs[1], last);
  last = {.scope = shifted(scope, 2)};
  EXPECT_TRUE(placed_scores.equal(attention_scores(inputs[0], inputs[1], last)));
}

TEST_F(OwnCondition, IsNoPartOfRunningSums) {
  const auto run = [&](const Scope& scope) {
    return attention(inputs[0], inputs[1], inputs[2],
                     {.score = "elu_features", .scope = scope, .normaliser = "linear"})
        .context;
  };
  EXPECT_TRUE(run(stripes(3) & causal()).equal(run(dense_mask(mask_of(stripes(3) & causal())))));
}

TEST_F(OwnCondition, IsReadAsTheKernelsKnowIt) {
  const auto diagonal = std::make_shared<Diagonal>(1);
  const Scope scope = {{{diagonal}}};
  expect_mask(scope, mask_of(scope), Path::composed);
  EXPECT_EQ(diagonal->mapped, 0);
  expect_mask(scope, mask_of(scope), Path::fused);
  EXPECT_EQ(diagonal->mapped, 2) << "forward and backward";
}

// A block of 4 queries sees a block of 4 keys if the product of their means is positive. All see
// the first block.
Tensor agreeing_blocks(const Tensor& query, const Tensor& key) {
  const auto means = [](const Tensor& x) {
    std::vector<Tensor> blocks;
    for (const Tensor& block : x.split(4, 2)) blocks.push_back(block.mean(2));
    return at::stack(blocks, 2);
  };
  const Tensor keys = means(key).repeat_interleave(query.size(1) / key.size(1), 1);
  Tensor layout = at::matmul(means(query), keys.transpose(-2, -1)) > 0;
  layout.select(3, 0).fill_(true);
  return layout;
}

TEST_F(OwnCondition, BlocksAreChosenFromTheData) {
  int calls = 0;
  const Scope scope = chosen_blocks(
      [&](const Tensor& query, const Tensor& key) {
        ++calls;
        EXPECT_FALSE(query.requires_grad() || key.requires_grad());
        return agreeing_blocks(query, key);
      },
      4);
  const Tensor layout = agreeing_blocks(inputs[0], inputs[1]);
  EXPECT_EQ(layout.sizes(), (at::IntArrayRef{2, 4, 3, 3}));
  EXPECT_FALSE(layout.all().item<bool>());
  const Tensor mask = mask_of(block_sparse(layout, 4));
  for (const Path path : paths) expect_mask(scope, mask, path);
  EXPECT_EQ(calls, 2) << "once for each forward pass and its backward";
  const AttentionSpec spec = {.scope = scope & causal()};
  const auto lse = attention(inputs[0], inputs[1], inputs[2], spec).lse;
  const Tensor weights = attention_weights(inputs[0], inputs[1], lse, spec);
  EXPECT_TRUE(weights.masked_select(mask.logical_not()).eq(0).all().item<bool>());
  EXPECT_TRUE(at::allclose(weights.sum(-1), at::ones({2, 4, 9}, at::kDouble)));
}

TEST_F(OwnCondition, BlocksOfQueriesWithoutHeadsAreChosenToo) {
  const Tensor query = inputs[0].select(1, 0), key = inputs[1].select(1, 0);
  const Tensor layout = agreeing_blocks(query.unsqueeze(1), key.unsqueeze(1));
  const auto run = [&](const Scope& scope) {
    return attention(query, key, key, {.scope = scope}).context;
  };
  EXPECT_TRUE(
      run(chosen_blocks(agreeing_blocks, 4)).equal(run(block_sparse(layout.squeeze(1), 4))));
}

TEST_F(OwnCondition, BlocksAreCutOnceTheyAreChosen) {
  const Scope scope = chosen_blocks(agreeing_blocks, 4);
  const Scope fixed = chosen(scope, inputs[0], inputs[1]);
  const Tensor whole = mask_of(fixed);
  EXPECT_TRUE(mask_of(shifted(fixed, 3, 4), 4).equal(whole.narrow(2, 3, 4)));
  EXPECT_TRUE(mask_of(shifted_keys(fixed, 3, 6), 9, 6).equal(whole.narrow(3, 3, 6)));
  const auto wrong = [](const Tensor&, const Tensor&) { return at::ones({3, 2, 3}, at::kBool); };
  expect_errors({
      {[&] { shifted(scope, 1, 1); }, "take the scope of attend::chosen"},
      {[&] { mask_of(scope); }, "blocks chosen by queries and keys"},
      {[&] { chosen_blocks(agreeing_blocks, 0); }, "the blocks of a layout must be 1 or more long"},
      {[&] { attention(inputs[0], inputs[1], inputs[2], {.scope = chosen_blocks(wrong, 4)}); },
       "a block layout of shape [3, 2, 3] does not fit 9 queries and 11 keys in blocks of 4; it "
       "must have shape [3, 3] after axes of 2 batch entries and 4 heads, or of 1"},
      {[] { stripes(1); }, "the period is 1; 2 is the least"},
  });
}

}  // namespace own_condition_test
}  // namespace attend::reference
