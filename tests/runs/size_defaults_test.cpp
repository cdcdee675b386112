#include "attend/runs/size_defaults.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attend/models/seq2seq_config.h"

namespace attend {
namespace size_defaults_test {

RunConfig left() {
  RunConfig config;
  leave_to_size(config);
  return config;
}

TEST(SizeDefaults, FewPairsTakeSmallBatchesAndEnoughSteps) {
  int64_t before = 0;
  for (const int64_t pairs : {45, 1000, 8000, 20000, 60000, 120000, 10000000}) {
    RunConfig config = left();
    EXPECT_THAT(settle_by_size(config, pairs), testing::HasSubstr("train.batch = "));
    const int64_t steps =
        (pairs + config.train.batch - 1) / config.train.batch * config.train.epochs;
    EXPECT_GE(config.train.batch, before) << pairs;
    EXPECT_TRUE(steps >= 7500 || config.train.epochs == 100) << pairs;
    EXPECT_GE(config.train.epochs, 20);
    before = config.train.batch;
  }
  RunConfig medium = left(), much = left();
  settle_by_size(medium, 8000);
  settle_by_size(much, 120000);
  EXPECT_EQ(medium.train.batch, 32);
  EXPECT_EQ(medium.train.epochs, 30);
  EXPECT_GT(medium.model.of<Seq2SeqConfig>().dropout, much.model.of<Seq2SeqConfig>().dropout);
  EXPECT_EQ(much.train.batch, 128);
  EXPECT_EQ(much.train.epochs, 20);
}

// Patience begins after the warm-up, which is at most a tenth of the steps.
TEST(SizeDefaults, TheWarmUpIsBoundedByTheAmountOfData) {
  const auto warmup = [](int64_t pairs, int64_t windows = 0) {
    RunConfig config = left();
    settle_by_size(config, pairs, windows);
    return config.train.warmup_steps;
  };
  EXPECT_EQ(warmup(20), 20) << "100 epochs of 2 steps";
  EXPECT_EQ(warmup(80), 50);
  EXPECT_EQ(warmup(8000), 200);
  EXPECT_EQ(warmup(0), 200) << "nothing is known";
  EXPECT_EQ(warmup(0, 300), 10) << "a short text: 20 epochs of 3 steps";
  EXPECT_EQ(warmup(0, 10000), 158) << "20 epochs of 79 steps";
  RunConfig few = left();
  few.train.steps = 500;
  EXPECT_THAT(settle_by_size(few, 8000), testing::HasSubstr("train.warmup_steps = 50"));
  RunConfig resumed = left();
  settle_as(resumed, few);
  EXPECT_EQ(resumed.train.warmup_steps, 50);
}

// If epochs have only a few steps, five of them are too few to stop.
TEST(SizeDefaults, PatienceIsThatOf250Steps) {
  for (const auto& [pairs, patience] : {std::pair(10, 100), std::pair(80, 50), std::pair(100, 36),
                                        std::pair(8000, 5), std::pair(0, 5)}) {
    RunConfig config = left();
    settle_by_size(config, pairs);
    EXPECT_EQ(config.train.patience, patience) << pairs;
  }
}

TEST(SizeDefaults, WhatIsSaidStays) {
  RunConfig config = left();
  config.train.batch = 7;
  config.train.epochs = 3;
  config.train.warmup_steps = 77;
  config.train.patience = 0;
  config.model.of<Seq2SeqConfig>().dropout = 0.25;
  EXPECT_EQ(settle_by_size(config, 1000), "");
  EXPECT_EQ(config.train.batch, 7);
  EXPECT_EQ(config.train.epochs, 3);
  EXPECT_EQ(config.train.warmup_steps, 77);
  EXPECT_EQ(config.train.patience, 0);
  EXPECT_EQ(config.model.of<Seq2SeqConfig>().dropout, 0.25);
}

TEST(SizeDefaults, WithoutANumberOfPairsTheyAreThoseOfMuchData) {
  RunConfig config = left();
  settle_by_size(config, 0);
  EXPECT_EQ(config.train.batch, 128);
  EXPECT_EQ(config.train.epochs, 20);
  EXPECT_EQ(config.model.of<Seq2SeqConfig>().dropout, 0.1);
}

TEST(SizeDefaults, BatchesOfTokensKeepTheirSize) {
  RunConfig config = left();
  config.train.batch_tokens = 4096;
  EXPECT_THAT(settle_by_size(config, 1000), testing::Not(testing::HasSubstr("train.batch =")));
  EXPECT_EQ(config.train.batch_tokens, 4096);
  EXPECT_EQ(config.train.epochs, 20);
}

TEST(SizeDefaults, AResumedTrainingKeepsThoseItBeganWith) {
  RunConfig begun = left(), resumed = left();
  settle_by_size(begun, 8000);
  settle_as(resumed, begun);
  EXPECT_EQ(resumed.train.batch, 32);
  EXPECT_EQ(resumed.train.epochs, 30);
  EXPECT_EQ(resumed.model.of<Seq2SeqConfig>().dropout, 0.3);
}

}  // namespace size_defaults_test
}  // namespace attend
