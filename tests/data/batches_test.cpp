#include "attend/data/batches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>

#include "attend/text/vocabulary.h"
#include "tests/support/files.h"

namespace attend {
namespace batches_test {

using test::error_of;
using testing::HasSubstr;

// Lengths from 1 to 30; targets differ a little from their sources.
std::vector<EncodedPair> random_pairs(int64_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<EncodedPair> pairs;
  for (int64_t i = 0; i < count; ++i) {
    const size_t length = 1 + random() % 30;
    pairs.push_back(
        {std::vector<int64_t>(length, 5), std::vector<int64_t>(length + random() % 3, 6)});
  }
  return pairs;
}

std::vector<int64_t> flattened(const std::vector<std::vector<int64_t>>& batches) {
  std::vector<int64_t> all;
  for (const auto& batch : batches) all.insert(all.end(), batch.begin(), batch.end());
  return all;
}

TEST(BatchesByLength, HoldEachIndexOnce) {
  EXPECT_TRUE(rc::check("a partition, and one smaller batch at most", [] {
    const auto count = *rc::gen::inRange<int64_t>(0, 400);
    const auto size = *rc::gen::inRange<int64_t>(1, 40);
    const auto seed = *rc::gen::arbitrary<uint64_t>();
    const auto batches = batches_by_length(random_pairs(count, seed), size, seed, 3);
    auto all = flattened(batches);
    std::sort(all.begin(), all.end());
    std::vector<int64_t> expected(static_cast<size_t>(count));
    std::iota(expected.begin(), expected.end(), 0);
    RC_ASSERT(all == expected);
    int64_t smaller = 0;
    for (const auto& batch : batches) {
      RC_ASSERT(!batch.empty() && static_cast<int64_t>(batch.size()) <= size);
      smaller += static_cast<int64_t>(batch.size()) < size;
    }
    RC_ASSERT(smaller <= 1);
  }));
}

TEST(BatchesByTokens, HoldEachIndexOnceAndFewEnoughTokens) {
  EXPECT_TRUE(rc::check("a partition into padded batches that fit", [] {
    const auto count = *rc::gen::inRange<int64_t>(0, 400);
    const auto tokens = *rc::gen::inRange<int64_t>(1, 600);
    const auto seed = *rc::gen::arbitrary<uint64_t>();
    const auto pairs = random_pairs(count, seed);
    const auto batches = batches_by_tokens(pairs, tokens, seed, 3);
    auto all = flattened(batches);
    std::sort(all.begin(), all.end());
    std::vector<int64_t> expected(static_cast<size_t>(count));
    std::iota(expected.begin(), expected.end(), 0);
    RC_ASSERT(all == expected);
    for (const auto& batch : batches) {
      const Batch padded = make_batch(pairs, batch);
      RC_ASSERT(batch.size() == 1 || padded.source.numel() + padded.target.numel() <= tokens);
    }
  }));
}

// About 1,000 / 32 pairs of 1 to 30 tokens fit: padding and the last pair waste little.
TEST(BatchesByTokens, AreFull) {
  const auto pairs = random_pairs(8000, 2);
  int64_t tokens = 0;
  for (const EncodedPair& pair : pairs)
    tokens += static_cast<int64_t>(pair.source.size() + pair.target.size()) + 1;
  const auto batches = batches_by_tokens(pairs, 1000, 1, 0);
  EXPECT_LT(static_cast<double>(batches.size()) * 1000, 1.15 * static_cast<double>(tokens));
  EXPECT_THAT(error_of([&] { batches_by_tokens(pairs, 0, 1, 0); }), HasSubstr("0 tokens"));
}

TEST(BatchesByLength, DependOnSeedAndEpochAlone) {
  const auto pairs = random_pairs(1000, 1);
  EXPECT_EQ(batches_by_length(pairs, 16, 7, 2), batches_by_length(pairs, 16, 7, 2));
  EXPECT_NE(batches_by_length(pairs, 16, 7, 2), batches_by_length(pairs, 16, 7, 3));
  EXPECT_NE(batches_by_length(pairs, 16, 7, 2), batches_by_length(pairs, 16, 8, 2));
  EXPECT_NE(batches_by_length(pairs, 16, 7, 2),
            batches_by_length(pairs, 16, 7 | uint64_t{1} << 40, 2));
}

// Fixed values: a change here changes every training run.
TEST(BatchesByLength, AreTheSameOnEveryMachine) {
  const std::vector<EncodedPair> equal(8, {{5}, {6}});
  EXPECT_EQ(batches_by_length(equal, 3, 1, 0),
            (std::vector<std::vector<int64_t>>{{1, 4}, {5, 2, 3}, {7, 6, 0}}));
}

// Random batches of 32 lengths from 1 to 30 would have 1 - 15.5/29 = 46 % padding. Sorted in pools
// of 100 batches, the lengths in a batch span about 30/100 of a token: almost no padding.
TEST(BatchesByLength, PadLittle) {
  const auto pairs = random_pairs(32 * 250, 2);
  int64_t cells = 0, tokens = 0;
  for (const auto& batch : batches_by_length(pairs, 32, 1, 0)) {
    size_t longest = 0;
    for (const int64_t i : batch) {
      longest = std::max(longest, pairs[static_cast<size_t>(i)].source.size());
      tokens += static_cast<int64_t>(pairs[static_cast<size_t>(i)].source.size());
    }
    cells += static_cast<int64_t>(longest * batch.size());
  }
  EXPECT_LT(static_cast<double>(cells - tokens), 0.03 * static_cast<double>(cells));
}

TEST(BatchesByLength, DoNotComeInOrderOfLength) {
  const auto pairs = random_pairs(3200, 3);
  std::vector<size_t> lengths;
  for (const auto& batch : batches_by_length(pairs, 32, 1, 0)) {
    lengths.push_back(pairs[static_cast<size_t>(batch[0])].source.size());
  }
  EXPECT_FALSE(std::is_sorted(lengths.begin(), lengths.end()));
}

TEST(BatchesByLength, TakeAnySizeAndNoPairs) {
  EXPECT_TRUE(batches_by_length({}, 4, 1, 0).empty());
  const int64_t huge = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(batches_by_length(random_pairs(10, 1), huge, 1, 0).size(), 1u);
  EXPECT_THAT(error_of([] { batches_by_length({}, 0, 1, 0); }), HasSubstr("batch size 0"));
}

TEST(MakeBatch, PadsOnTheRightAndEndsTheTarget) {
  const std::vector<EncodedPair> pairs{{{5, 6, 7}, {8}}, {{9}, {10, 11}}, {{4}, {}}};
  const Batch batch = make_batch(pairs, {1, 0, 2});
  const auto matrix = [](std::vector<int64_t> values) {
    return at::tensor(values, at::kLong).reshape({3, 3});
  };
  EXPECT_TRUE(batch.source.equal(matrix({9, 0, 0, 5, 6, 7, 4, 0, 0})));
  EXPECT_TRUE(batch.source_lengths.equal(at::tensor({1, 3, 1}, at::kLong)));
  EXPECT_TRUE(batch.target.equal(matrix({10, 11, 2, 8, 2, 0, 2, 0, 0})));
  EXPECT_TRUE(batch.target_lengths.equal(at::tensor({3, 2, 1}, at::kLong)));
}

TEST(MakeBatch, EndsNoTargetThatGoesOn) {
  const std::vector<EncodedPair> pairs{{{}, {8, 9}, {}, true}, {{}, {7}}, {{}, {6}, {}, true}};
  const Batch batch = make_batch(pairs, {0, 1, 2});
  EXPECT_TRUE(batch.target.equal(at::tensor({8, 9, 7, 2, 6, 0}, at::kLong).view({3, 2})));
  EXPECT_TRUE(batch.target_lengths.equal(at::tensor({2, 2, 1}, at::kLong)));
}

TEST(MakeBatch, PadsFramesWithZeros) {
  const at::Tensor sound = at::arange(6, at::kFloat).view({3, 2}), other = at::ones({1, 2});
  const std::vector<EncodedPair> pairs{{{}, {8}, sound}, {{}, {9}, other}};
  const Batch batch = make_batch(pairs, {1, 0});
  EXPECT_TRUE(batch.source.equal(at::stack({at::cat({other, at::zeros({2, 2})}), sound})));
  EXPECT_TRUE(batch.source_lengths.equal(at::tensor({1, 3}, at::kLong)));
}

TEST(MakeBatch, TakesSourcesThatAreNotThere) {
  const Batch batch = make_batch({{{}, {8, 9}}, {{}, {7}}}, {0, 1});
  EXPECT_EQ(batch.source.sizes(), (std::vector<int64_t>{2, 0}));
  EXPECT_EQ(batch.source_lengths.sum().item<int64_t>(), 0);
}

TEST(MakeBatch, NamesWhatIsWrong) {
  const std::vector<EncodedPair> pairs{{{5}, {8}}, {{}, {8}}};
  const std::vector<EncodedPair> mixed{{{}, {8}, at::ones({2, 3})}, {{5}, {8}}};
  EXPECT_THAT(error_of([&] { make_batch(pairs, {}); }), HasSubstr("no indices"));
  EXPECT_THAT(error_of([&] {
                make_batch(pairs, {0, 2});
              }),
              HasSubstr("index 2 is not one of the 2"));
  EXPECT_THAT(error_of([&] { make_batch(pairs, {-1}); }), HasSubstr("index -1"));
  EXPECT_THAT(error_of([&] {
                make_batch(mixed, {0, 1});
              }),
              HasSubstr("pair 1 has frames of depth 0; the batch has 3"));
}

}  // namespace batches_test
}  // namespace attend
