#include "attend/train/window_batches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "attend/base/error.h"

namespace attend {
namespace window_batches_test {

std::vector<int64_t> counted(int64_t tokens) {
  std::vector<int64_t> text(static_cast<size_t>(tokens));
  std::iota(text.begin(), text.end(), int64_t{0});
  return text;
}

// Tokens of each remaining batch of the epoch.
std::vector<std::vector<int64_t>> rest(BatchSource& source, size_t maximum) {
  std::vector<std::vector<int64_t>> batches;
  while (source.done() < 1) {
    batches.emplace_back();
    const auto batch = source.next();
    EXPECT_LE(batch.size(), maximum);
    for (const EncodedPair& pair : batch) {
      EXPECT_TRUE(pair.source.empty() && pair.no_eos);
      batches.back().insert(batches.back().end(), pair.target.begin(), pair.target.end());
    }
  }
  EXPECT_EQ(source.done(), 1);
  return batches;
}

TEST(WindowBatches, HandOutATextOnceAnEpochInAnotherOrder) {
  TrainConfig config;
  for (const int64_t tokens : {0, 39}) {
    config.batch = 3;
    config.batch_tokens = tokens;
    WindowBatches source(counted(111), 10, config);
    std::vector<std::vector<std::vector<int64_t>>> epochs;
    for (int64_t epoch = 0; epoch < 2; ++epoch) {
      source.begin(epoch);
      epochs.push_back(rest(source, 3));
      std::vector<int64_t> all;
      for (const auto& batch : epochs.back()) all.insert(all.end(), batch.begin(), batch.end());
      std::sort(all.begin(), all.end());
      EXPECT_EQ(all, counted(111));
    }
    EXPECT_NE(epochs[0], epochs[1]);
    source.begin(1);
    source.next();
    source.next();
    EXPECT_EQ(rest(source, 3), std::vector(epochs[1].begin() + 2, epochs[1].end()));
  }
}

TEST(WindowBatches, GoOnWithBatchesOfAnotherSize) {
  TrainConfig config;
  config.batch = 3;
  WindowBatches source(counted(111), 10, config);
  source.begin(1);
  std::vector<int64_t> all;
  for (const EncodedPair& pair : source.next())
    all.insert(all.end(), pair.target.begin(), pair.target.end());
  source.regroup({3, 20});
  for (const auto& batch : rest(source, 2)) all.insert(all.end(), batch.begin(), batch.end());
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all, counted(111));
}

TEST(WindowBatches, TellOtherTexts) {
  const TrainConfig config;
  auto other = counted(20);
  std::swap(other[3], other[4]);
  EXPECT_EQ(WindowBatches(counted(20), 5, config).fingerprint(),
            WindowBatches(counted(20), 5, config).fingerprint());
  EXPECT_NE(WindowBatches(counted(20), 5, config).fingerprint(),
            WindowBatches(other, 5, config).fingerprint());
  EXPECT_THAT([&] { WindowBatches({}, 5, config); },
              testing::ThrowsMessage<Error>(testing::HasSubstr("is empty")));
}

}  // namespace window_batches_test
}  // namespace attend
