#include <gtest/gtest.h>

#include "attend/train/train_limits-inl.h"

namespace attend {
namespace train_limits_test {

TEST(TrainLimits, TheFirstOfThemEndsTheTraining) {
  TrainConfig config;
  config.epochs = 2;
  config.steps = 5;
  config.minutes = 1;
  config.patience = 3;
  Checkpoint state;
  const internal::TrainLimits limits(config, state);
  EXPECT_FALSE(limits.finished());
  state.seconds = 60;
  EXPECT_TRUE(limits.finished());
  EXPECT_EQ(limits.ending(), std::pair(std::string("train.minutes"), 1.0));
  state.step = 5;
  EXPECT_EQ(limits.ending(), std::pair(std::string("train.steps"), 5.0));
  state.epoch = 2;
  EXPECT_EQ(limits.ending(), std::pair(std::string("train.epochs"), 2.0));
  state.stale_validations = 3;
  EXPECT_EQ(limits.ending(), std::pair(std::string("train.patience"), 3.0));
}

TEST(TrainLimits, ProgressIsThatOfTheNearestLimit) {
  TrainConfig config;
  config.epochs = 4;
  config.steps = 0;
  Checkpoint state;
  state.epoch = 1;
  const internal::TrainLimits limits(config, state);
  EXPECT_EQ(limits.progress_made(10, 0.5), 1.5 / 4);
  config.steps = 20;
  EXPECT_EQ(limits.progress_made(10, 0.5), 0.5);
  config.minutes = 2;
  state.seconds = 90;
  EXPECT_EQ(limits.progress_made(10, 0.5), 0.75);
  state.seconds = 200;
  EXPECT_EQ(limits.progress_made(10, 0.5), 1);
}

TEST(TrainLimits, ValidateAfterEpochsOrStepsAndAtTheEnd) {
  TrainConfig config;
  config.epochs = 2;
  Checkpoint state;
  state.step = 3;
  state.handed_out = {{{8, 0}, 3}};
  const internal::TrainLimits limits(config, state);
  EXPECT_FALSE(limits.at_validation());
  config.validate_steps = 3;
  EXPECT_TRUE(limits.at_validation());
  config.validate_steps = 2;
  EXPECT_FALSE(limits.at_validation());
  config.steps = 3;
  EXPECT_TRUE(limits.at_validation());
  config.steps = config.validate_steps = 0;
  state.handed_out.clear();
  EXPECT_TRUE(limits.at_validation());
}

}  // namespace train_limits_test
}  // namespace attend
