#include <algorithm>
#include <numeric>

#include "attend/files/safetensors.h"
#include "attend/train/recent_weights.h"
#include "tests/train/trainer_case.h"

namespace attend {
namespace resume_test {

TEST_F(TrainerTest, ResumesBitwiseWhereverItStopped) {
  run("whole");
  for (const int64_t stop_after : {1, 7, 8, 13, 23}) {
    const std::string name = "stopped" + std::to_string(stop_after);
    EXPECT_TRUE(run(name, false, stop_after).interrupted);
    EXPECT_EQ(checkpoint(name).step, stop_after);
    EXPECT_FALSE(run(name, true).interrupted);
    expect_same("whole", name);
  }
}

TEST_F(TrainerTest, ResumesBitwiseWithEveryChoiceThatHasAState) {
  config.epochs = 4;
  config.batch_tokens = 40;
  config.accumulate = 2;
  config.schedule = Schedule::plateau;
  config.plateau_patience = 1;
  config.weight_decay = 0.1;
  config.validate_steps = 5;
  config.keep_checkpoints = 2;
  config.patience = 0;
  // Never improves: the rate decays repeatedly.
  metric = valid_loss = [] { return 1.0; };
  run("whole");
  ASSERT_LT(checkpoint("whole").rate_factor, 0.6);
  for (const int64_t stop_after : {3, 5, 11}) {
    const std::string name = "stopped" + std::to_string(stop_after);
    EXPECT_TRUE(run(name, false, stop_after).interrupted);
    run(name, true);
    expect_same("whole", name);
    EXPECT_EQ(kept_steps(root / name), kept_steps(root / "whole"));
  }
}

// Each pair occurs once in the epoch in which the batch size changes, even several times.
TEST_F(TrainerTest, ResumesWithBatchesOfAnotherSize) {
  for (size_t i = 0; i < pairs.size(); ++i) pairs[i].source[0] = static_cast<int64_t>(i);
  source_tokens = static_cast<int64_t>(pairs.size());
  config.epochs = 1;
  run("a", false, 3);  // batches of 8 pairs
  config.batch = 5;
  run("a", true, 5);
  config.batch_tokens = 40;
  run("a", true, 6);
  config.batch_tokens = 0;
  config.batch = 60;
  EXPECT_EQ(run("a", true).steps, 7);
  std::vector<size_t> sizes;
  std::vector<int64_t> seen;
  for (const auto& batch : handed_out) {
    sizes.push_back(batch.size());
    for (const EncodedPair& pair : batch) seen.push_back(pair.source[0]);
  }
  ASSERT_EQ(sizes.size(), 7U);
  EXPECT_THAT(std::vector(sizes.begin(), sizes.begin() + 3), testing::Each(testing::AnyOf(8, 4)));
  EXPECT_THAT(std::vector(sizes.begin() + 3, sizes.begin() + 5),
              testing::Each(testing::AnyOf(5, 1)));
  std::sort(seen.begin(), seen.end());
  std::vector<int64_t> all(pairs.size());
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(seen, all);
}

// Training also stops while batches have the new size.
TEST_F(TrainerTest, ResumesBitwiseBehindAnotherSize) {
  const auto change = [&](const std::string& name) {
    config.batch = 8;
    run(name, false, 3);
    config.batch = 5;
  };
  change("whole");
  run("whole", true);
  change("stopped");
  for (const int64_t stop_after : {4, 9, 15})
    EXPECT_TRUE(run("stopped", true, stop_after).interrupted);
  run("stopped", true);
  expect_same("whole", "stopped");
}

TEST_F(TrainerTest, RefusesAnotherOrderByName) {
  run("a", false, 3);
  config.seed = 2;
  EXPECT_THAT([&] { run("a", true); },
              testing::ThrowsMessage<Error>(testing::AllOf(testing::HasSubstr("train.seed = 2"),
                                                           testing::HasSubstr("begun with 1"))));
  config.seed = 1;
  config.shuffle_buffer = 16;
  EXPECT_THAT([&] { run("a", true); },
              testing::ThrowsMessage<Error>(testing::HasSubstr("train.shuffle_buffer = 16")));
}

// Older checkpoints lack batch sizes, seed, metric and the fingerprint of validation data.
TEST_F(TrainerTest, ResumesFromAnOlderCheckpoint) {
  run("whole");
  run("old", false, 13);
  const std::string path = root / "old" / "checkpoint.safetensors";
  TensorFile file = read_safetensors(path);
  EXPECT_EQ(file.metadata.at("handed_out"), "8 0 5");
  for (const char* name :
       {"handed_out", "seed", "shuffle_buffer", "metric", "best_loss", "validation_fingerprint"})
    file.metadata.erase(name);
  file.metadata["batches"] = "5";
  write_safetensors(path, file);
  config.batch = 40;
  EXPECT_THAT([&] { run("old", true); },
              testing::ThrowsMessage<Error>(testing::AllOf(
                  testing::HasSubstr("5 batches of epoch 2"), testing::HasSubstr("train.batch"))));
  config.batch = 8;
  run("old", true);
  expect_same("whole", "old");
}

TEST_F(TrainerTest, SeeksTheBestAnewByAnotherMetricOrOnOtherExamples) {
  config.epochs = 2;
  metric = [] { return 1.0; };
  validation_fingerprint = 77;
  run("a");
  config.epochs = 3;
  metric = [] { return 7.0; };
  run("a", true);
  EXPECT_TRUE(said.empty());
  EXPECT_EQ(checkpoint("a").best_step, 2 * 8);
  config.epochs = 4;
  metric_name = "other";
  EXPECT_EQ(run("a", true).best_metric, 7.0);
  EXPECT_EQ(checkpoint("a").best_step, 4 * 8);
  ASSERT_EQ(said.size(), 1U);
  EXPECT_THAT(said[0],
              testing::HasSubstr("train.metric is other, and was metric: the search for the best"));
  config.epochs = 5;
  metric = [] { return 9.0; };
  validation_fingerprint = 78;
  EXPECT_EQ(run("a", true).best_metric, 9.0);
  EXPECT_EQ(checkpoint("a").best_step, 5 * 8);
  EXPECT_EQ(checkpoint("a").validation_fingerprint, 78U);
  ASSERT_EQ(said.size(), 2U);
  EXPECT_THAT(said[1],
              testing::HasSubstr("was validated on other examples: the search for the best"));
}

// Batches only by tokens, which is possible from C++.
TEST_F(TrainerTest, ResumesWithoutANumberOfPairs) {
  config.batch = 0;
  config.batch_tokens = 40;
  run("whole");
  run("stopped", false, 3);
  run("stopped", true);
  expect_same("whole", "stopped");
}

// A kill loses everything after the last checkpoint; metrics and weights may be newer.
TEST_F(TrainerTest, ResumesFromACheckpointThatMetricsHaveOvertaken) {
  run("whole");
  run("killed", false, 7);
  const std::string path = root / "killed" / "checkpoint.safetensors";
  const std::string older = read_file(path);
  run("killed", true, 17);
  write_file(path, older);
  write_file(root / "killed" / "metrics.jsonl",
             read_file(root / "killed" / "metrics.jsonl") + "{\"step\": 24, \"tr");
  run("killed", true);
  expect_same("whole", "killed");
}

TEST_F(TrainerTest, RefusesOtherDataAndAnotherModel) {
  run("a", false, 3);
  pairs[0].target.push_back(5);
  EXPECT_THAT([&] { run("a", true); },
              testing::ThrowsMessage<Error>(testing::HasSubstr("other data")));
  pairs[0].target.pop_back();
  network.hidden = 10;
  EXPECT_THAT([&] { run("a", true); },
              testing::ThrowsMessage<Error>(testing::HasSubstr("parameters")));
}

// A kill may happen between a checkpoint and its best weights.
TEST_F(TrainerTest, MakesUpForBestWeightsThatWereNotWritten) {
  config.epochs = 1;
  run("a");
  const std::string path = root / "a" / "weights.safetensors", weights = read_file(path);
  fs::remove(path);
  run("a", true);
  EXPECT_EQ(read_file(path), weights);
}

}  // namespace resume_test
}  // namespace attend
