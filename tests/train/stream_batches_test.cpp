#include "attend/train/stream_batches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <numeric>

#include "attend/base/error.h"
#include "attend/base/files.h"
#include "tests/support/files.h"

namespace attend {
namespace stream_batches_test {

namespace fs = std::filesystem;

class StreamBatchesTest : public testing::Test {
 protected:
  StreamBatchesTest() {
    config.shuffle_buffer = 16;
    config.batch = 5;
    write(59);
  }

  // Line i is a source of i % 7 + 1 tokens and the target i.
  void write(int64_t lines) const {
    std::string text;
    for (int64_t i = 0; i < lines; ++i)
      text += std::string(static_cast<size_t>(i % 7) + 1, 'a') + "\t" + std::to_string(i) + "\n";
    write_file(path, text);
  }

  StreamBatches make() const {
    return {{path},
            [this](const Example& example) -> std::vector<EncodedPair> {
              const int64_t number = std::stoll(example.targets[0]);
              if (left_out && left_out(number)) return {};
              return {{std::vector<int64_t>(example.source.size(), 4), {number}}};
            },
            config};
  }

  // Targets of each remaining batch of the epoch.
  static std::vector<std::vector<int64_t>> rest(BatchSource& source) {
    std::vector<std::vector<int64_t>> batches;
    while (source.done() < 1) {
      batches.emplace_back();
      for (const EncodedPair& pair : source.next()) batches.back().push_back(pair.target[0]);
    }
    EXPECT_EQ(source.done(), 1);
    return batches;
  }

  static std::vector<int64_t> sorted(const std::vector<std::vector<int64_t>>& batches) {
    std::vector<int64_t> all;
    for (const auto& batch : batches) all.insert(all.end(), batch.begin(), batch.end());
    std::sort(all.begin(), all.end());
    return all;
  }

  const test::TemporaryFolder temporary;
  const fs::path path = temporary / "pairs.tsv";
  TrainConfig config;
  std::function<bool(int64_t)> left_out;
};

TEST_F(StreamBatchesTest, HandsOutEachPairOnceAnEpochInAnotherOrder) {
  StreamBatches source = make();
  std::vector<int64_t> expected(59);
  std::iota(expected.begin(), expected.end(), 0);
  source.begin(0);
  const auto first = rest(source);
  source.begin(1);
  const auto second = rest(source);
  EXPECT_EQ(sorted(first), expected);
  EXPECT_EQ(sorted(second), expected);
  EXPECT_NE(first, second);
  for (const auto& batch : first) EXPECT_LE(batch.size(), 5U);
}

TEST_F(StreamBatchesTest, APlaceIsTheEpochAndTheBatchesHandedOut) {
  StreamBatches one = make(), other = make();
  one.begin(2);
  const auto all = rest(one);
  other.begin(2);
  double before = other.done();
  EXPECT_EQ(before, 0);
  for (int i = 0; i < 7; ++i) {
    other.next();
    EXPECT_GT(other.done(), before);
    before = other.done();
  }
  EXPECT_EQ(rest(other), std::vector(all.begin() + 7, all.end()));
  EXPECT_EQ(one.fingerprint(), other.fingerprint());
}

TEST_F(StreamBatchesTest, HandsOutTheRestInBatchesOfAnotherSize) {
  StreamBatches source = make(), again = make();
  std::vector<std::vector<std::vector<int64_t>>> ways;
  for (StreamBatches* each : {&source, &again}) {
    each->regroup({5, 0});
    each->begin(1);
    auto& all = ways.emplace_back();
    const auto take = [&](int64_t count) {
      for (int64_t i = 0; i < count; ++i) {
        all.emplace_back();
        for (const EncodedPair& pair : each->next()) all.back().push_back(pair.target[0]);
      }
    };
    take(2);
    each->regroup({3, 0});
    EXPECT_LT(each->done(), 1);
    take(3);
    each->regroup({1, 20});
    take(2);
    const double before = each->done();
    each->regroup({8, 0});
    EXPECT_EQ(each->done(), before);
    const auto last = rest(*each);
    all.insert(all.end(), last.begin(), last.end());
  }
  EXPECT_EQ(ways[0], ways[1]);
  std::vector<int64_t> expected(59);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(sorted(ways[0]), expected);
  EXPECT_THAT(ways[0].back().size(), testing::Le(8U));
  EXPECT_THAT(ways[0][0].size(), testing::Le(5U));
  EXPECT_THAT(ways[0][2].size(), testing::Le(3U));
}

TEST_F(StreamBatchesTest, EndsWhereTheLastExamplesAreLeftOut) {
  left_out = [](int64_t number) { return number % 59 != 3; };
  StreamBatches source = make();
  source.begin(0);
  EXPECT_EQ(sorted(rest(source)), (std::vector<int64_t>{3}));
}

TEST_F(StreamBatchesTest, TellsOtherDataAndAFileThatShrinks) {
  StreamBatches source = make();
  const uint64_t fingerprint = source.fingerprint();
  write(58);
  EXPECT_NE(make().fingerprint(), fingerprint);
  source.begin(1);
  EXPECT_THAT([&] { rest(source); }, testing::ThrowsMessage<Error>(testing::HasSubstr("shorter")));
  left_out = [](int64_t) { return true; };
  EXPECT_THAT([&] { make(); },
              testing::ThrowsMessage<Error>(testing::HasSubstr("no training pairs")));
}

}  // namespace stream_batches_test
}  // namespace attend
