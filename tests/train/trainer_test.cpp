#include "attend/train/trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "attend/base/error.h"
#include "attend/base/files.h"
#include "attend/data/safetensors.h"
#include "attend/models/seq2seq.h"
#include "attend/models/weights.h"
#include "attend/train/checkpoint.h"
#include "attend/train/kept_weights.h"
#include "tests/support/software_device.h"

namespace attend {
namespace {

namespace fs = std::filesystem;
using at::Tensor;

// Learns to copy short sequences: small, but all of the trainer is at work.
class TrainerTest : public testing::Test {
 protected:
  void SetUp() override {
    root = fs::temp_directory_path() / ("attend-trainer-" + std::to_string(::getpid()));
    fs::remove_all(root);
    for (int64_t i = 0; i < 60; ++i) {
      std::vector<int64_t> ids;
      for (int64_t j = 0; j <= i % 4; ++j) ids.push_back(4 + (7 * i + 3 * j) % 6);
      pairs.push_back({ids, ids});
    }
    config.precision = "float32";  // gradients are compared
    config.epochs = 3;
    config.batch = 8;
    config.replicas = 2;
    config.warmup_steps = 4;
    config.checkpoint_seconds = 1e6;
    network.embedding = network.hidden = network.attention_depth = 8;
    network.dropout = 0.2;
    network.maximum_source_length = 8;
  }
  void TearDown() override { fs::remove_all(root); }

  std::shared_ptr<Seq2Seq> make(bool first) const {
    torch::manual_seed(first ? 41 : 99);  // other replicas start elsewhere and must be overruled
    auto made = std::make_shared<Seq2Seq>(network, 10, 10);
    made->place(devices);
    return made;
  }

  // Trains in root/name; stops after `stop_after` steps when that is not 0.
  TrainOutcome run(const std::string& name, bool resume = false, int64_t stop_after = 0) {
    const std::string folder = root / name;
    fs::create_directories(folder);
    std::vector<std::shared_ptr<Seq2Seq>> replicas;
    for (int64_t r = 0; r < config.replicas; ++r) replicas.push_back(make(r == 0));
    const auto averaged = make(false);
    std::atomic<bool> stop = false;
    TrainTask task;
    task.replicas.assign(replicas.begin(), replicas.end());
    task.averaged = averaged;
    PairBatches source(pairs, config);
    task.source = &source;
    task.objective = [&](int64_t replica, const Batch& batch, const Noise& noise) {
      const Tensor loss = replicas[static_cast<size_t>(replica)]->objective(batch, noise, 0.1);
      const auto steps_seen = static_cast<int64_t>(reports.size());
      return poison && poison(steps_seen) ? loss * std::nan("") : loss;
    };
    task.validate = [&] {
      torch::NoGradGuard no_gradient;
      const Batch batch = make_batch(pairs, {0, 1, 2, 3});
      const auto loss = averaged->objective(batch, {}, 0).item<double>();
      return Validation{loss, metric ? metric() : loss};
    };
    task.report = [&](const TrainProgress& progress) {
      reports.push_back(progress);
      if (progress.step == stop_after) stop = true;
    };
    task.higher_is_better = higher_is_better;
    task.stop = &stop;
    task.folder = folder;
    return train(config, task, resume);
  }

  std::vector<nlohmann::json> metrics(const std::string& name) const {
    std::istringstream lines(read_file(root / name / "metrics.jsonl"));
    std::vector<nlohmann::json> records;
    for (std::string line; std::getline(lines, line);) {
      records.push_back(nlohmann::json::parse(line));
      for (const char* timing : {"seconds", "pairs_per_second"}) records.back().erase(timing);
    }
    return records;
  }

  Checkpoint checkpoint(const std::string& name) const {
    return read_checkpoint(root / name / "checkpoint.safetensors");
  }

  void expect_same(const std::string& a, const std::string& b) const {
    EXPECT_EQ(read_file(root / a / "weights.safetensors"),
              read_file(root / b / "weights.safetensors"));
    EXPECT_EQ(metrics(a), metrics(b));
    const Checkpoint one = checkpoint(a), other = checkpoint(b);
    EXPECT_TRUE(at::equal(one.weights, other.weights));
    EXPECT_TRUE(at::equal(one.average, other.average));
    EXPECT_TRUE(at::equal(one.first_moment, other.first_moment));
    EXPECT_TRUE(at::equal(one.second_moment, other.second_moment));
    EXPECT_EQ(one.step, other.step);
    EXPECT_EQ(one.best_step, other.best_step);
  }

  fs::path root;
  TrainConfig config;
  Seq2SeqConfig network;
  Devices devices;
  std::vector<EncodedPair> pairs;
  std::vector<TrainProgress> reports;
  std::function<double()> metric;
  std::function<bool(int64_t)> poison;  // of the steps that this program has taken
  bool higher_is_better = false;
};

TEST_F(TrainerTest, LossFallsAndEveryEpochIsRecorded) {
  config.epochs = 8;
  config.learning_rate = 1e-2;
  const TrainOutcome outcome = run("a");
  EXPECT_FALSE(outcome.interrupted);
  EXPECT_EQ(outcome.steps, 8 * 8);  // ceil(60 / 8) steps an epoch
  const auto records = metrics("a");
  ASSERT_EQ(records.size(), 8U);
  EXPECT_LT(records.back()["train_loss"].get<double>(),
            0.8 * records.front()["train_loss"].get<double>());
  EXPECT_EQ(reports.size(), 64U);
}

TEST_F(TrainerTest, IsReproducible) {
  run("a");
  run("b");
  expect_same("a", "b");
}

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
  config.schedule = "plateau";
  config.plateau_patience = 1;
  config.weight_decay = 0.1;
  config.validate_steps = 5;
  config.keep_checkpoints = 2;
  config.patience = 0;
  metric = [] { return 1.0; };  // never better than the first: the rate falls and falls
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

// A kill loses what came after the last checkpoint; metrics and weights may be ahead of it.
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

TEST_F(TrainerTest, ReplicasShareOutTheSameGradient) {
  network.dropout = 0;
  config.epochs = 1;
  config.replicas = 1;
  run("one", false, 1);
  config.replicas = 3;
  run("three", false, 1);
  // One step of Adam from the same weights: sums in another order, so equal to rounding.
  EXPECT_TRUE(
      at::allclose(checkpoint("one").first_moment, checkpoint("three").first_moment, 1e-4, 1e-7));
}

// All pairs in one batch, or in two whose gradients are summed: equal to rounding.
TEST_F(TrainerTest, AccumulationSumsTheGradientsOfItsBatches) {
  network.dropout = 0;
  config.epochs = 1;
  config.batch = 60;
  EXPECT_EQ(run("one").steps, 1);
  config.batch = 30;
  config.accumulate = 2;
  EXPECT_EQ(run("two").steps, 1);
  EXPECT_TRUE(
      at::allclose(checkpoint("one").first_moment, checkpoint("two").first_moment, 1e-4, 1e-7));
}

TEST_F(TrainerTest, StopsAfterTheStepsGivenAndValidatesBetween) {
  config.epochs = 100;
  config.steps = 17;
  config.validate_steps = 5;
  EXPECT_EQ(run("a").steps, 17);
  std::vector<int64_t> steps;
  for (const auto& record : metrics("a")) steps.push_back(record["step"]);
  EXPECT_EQ(steps, (std::vector<int64_t>{5, 10, 15, 17}));
  EXPECT_EQ(reports[0].steps, 17);
  // The linear schedule ends where training does.
  EXPECT_NEAR(reports[16].rate, config.final_rate * config.learning_rate, 1e-12);
}

TEST_F(TrainerTest, StopsWhenValidationStopsImproving) {
  config.epochs = 50;
  config.patience = 2;
  metric = [n = 0]() mutable { return ++n <= 3 ? 10.0 - n : 20.0; };
  const TrainOutcome outcome = run("a");
  EXPECT_EQ(metrics("a").size(), 5U);
  EXPECT_EQ(outcome.best_metric, 7);
  EXPECT_EQ(checkpoint("a").best_step, 3 * 8);
  EXPECT_EQ(reports.back().remaining, 0);
}

TEST_F(TrainerTest, KeepsTheBestWeightsNotTheLast) {
  config.epochs = 4;
  metric = [n = 0]() mutable { return ++n == 2 ? 1.0 : 2.0; };
  run("a");
  config.epochs = 2;
  metric = nullptr;
  // The same two epochs cannot be had with another schedule, so compare what was recorded.
  EXPECT_EQ(checkpoint("a").best_step, 2 * 8);
  const auto records = metrics("a");
  EXPECT_TRUE(records[1]["best"].get<bool>());
  EXPECT_FALSE(records[3]["best"].get<bool>());
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

TEST_F(TrainerTest, KeepsTheHighestWhereHigherIsBetter) {
  higher_is_better = true;
  config.epochs = 4;
  metric = [n = 0]() mutable { return ++n == 2 ? 30.0 : 20.0; };
  EXPECT_EQ(run("a").best_metric, 30);
  EXPECT_EQ(checkpoint("a").best_step, 2 * 8);
}

TEST_F(TrainerTest, KeepsTheWeightsOfTheLastValidations) {
  config.epochs = 4;
  config.keep_checkpoints = 2;
  run("a");
  EXPECT_EQ(kept_steps(root / "a"), (std::vector<int64_t>{24, 32}));
  const std::string folder = root / "a", path = folder + "/mean.safetensors";
  average_weights(folder, {24, 32}, path);
  const TensorFile one = read_safetensors(folder + "/weights-24.safetensors");
  const TensorFile other = read_safetensors(folder + "/weights-32.safetensors");
  for (const auto& [name, mean] : read_safetensors(path).tensors)
    EXPECT_TRUE(at::equal(mean, (one.tensors.at(name) + other.tensors.at(name)) / 2)) << name;
  // What is written there last is what was validated last.
  EXPECT_EQ(read_file(folder + "/weights-32.safetensors"),
            read_file(folder + "/weights.safetensors"));
  EXPECT_THAT([&] { average_weights(folder, {}, path); },
              testing::ThrowsMessage<Error>(testing::HasSubstr("keep_checkpoints")));
}

TEST_F(TrainerTest, SkipsAStepThatIsNotFiniteAndNamesIt) {
  poison = [](int64_t step) { return step == 4; };
  const TrainOutcome outcome = run("a");
  EXPECT_EQ(outcome.steps, 24);
  EXPECT_EQ(outcome.skipped, 1);
  EXPECT_THAT(reports[4].trouble, testing::HasSubstr("step 5 is skipped: the gradient of "));
  EXPECT_EQ(reports[5].trouble, "");
  EXPECT_TRUE(checkpoint("a").weights.isfinite().all().item<bool>());
}

TEST_F(TrainerTest, ReturnsToTheLastCheckpointAtHalfTheRate) {
  config.checkpoint_seconds = 0;
  config.schedule = "constant";
  config.warmup_steps = 0;
  poison = [](int64_t step) { return step >= 13 && step < 23; };
  const TrainOutcome outcome = run("a");
  EXPECT_EQ(outcome.steps, 24);
  EXPECT_EQ(outcome.skipped, 0);  // the skipped steps were taken again
  EXPECT_EQ(outcome.rollbacks, 1);
  // Every step was saved: 13 good ones, of which none was lost.
  EXPECT_THAT(reports[22].trouble, testing::HasSubstr("returns to step 13"));
  EXPECT_EQ(reports[23].step, 14);
  EXPECT_DOUBLE_EQ(reports[12].rate, config.learning_rate);
  EXPECT_DOUBLE_EQ(reports[23].rate, config.learning_rate / 2);
}

TEST_F(TrainerTest, GivesUpAfterTheRollbacksAndKeepsTheLastGoodCheckpoint) {
  config.epochs = 20;
  config.rollbacks = 2;
  config.checkpoint_seconds = 0;
  poison = [](int64_t step) { return step >= 11; };
  EXPECT_THAT([&] { run("a"); },
              testing::ThrowsMessage<Error>(testing::AllOf(
                  testing::HasSubstr("train.learning_rate"), testing::HasSubstr("2 returns"),
                  testing::HasSubstr("checkpoint.safetensors"))));
  EXPECT_EQ(reports.size(), 11U + 3 * 10 - 1);
  EXPECT_EQ(checkpoint("a").step, 11);
  EXPECT_TRUE(checkpoint("a").weights.isfinite().all().item<bool>());
}

// Without dropout, whose draws are others there. Sums are of float32 in another order.
TEST_F(TrainerTest, TrainsAndResumesOnAnotherDevice) {
  network.dropout = 0;
  run("cpu");
  const at::Device other = reference::software_device(1);
  devices = {other, other, other};
  run("other", false, 5);
  run("other", true);
  const Checkpoint expected = checkpoint("cpu"), found = checkpoint("other");
  EXPECT_EQ(found.step, expected.step);
  EXPECT_TRUE(at::allclose(found.weights, expected.weights, 1e-3, 1e-4));
  EXPECT_TRUE(at::allclose(found.average, expected.average, 1e-3, 1e-4));
}

TEST_F(TrainerTest, StopsAfterTheMinutesGivenWithItsScheduleDecayed) {
  config.epochs = 100000;
  config.minutes = 5e-3;  // 300 ms
  const TrainOutcome outcome = run("a");
  EXPECT_FALSE(outcome.interrupted);
  EXPECT_LT(outcome.steps, 100000);
  EXPECT_LT(reports.back().rate, config.learning_rate / 2);
  EXPECT_EQ(reports.back().remaining, 0);
  EXPECT_TRUE(fs::exists(root / "a" / "weights.safetensors"));
}

TEST_F(TrainerTest, HasNothingLeftWhereAValidationTakesTheLastOfTheMinutes) {
  config.epochs = 100000;
  config.minutes = 5e-3;
  metric = [] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    return 1.0;
  };
  run("a");
  EXPECT_TRUE(reports.back().validation);
  EXPECT_EQ(reports.back().remaining, 0);
}

TEST(LearningRate, RisesThenFalls) {
  TrainConfig config;
  config.learning_rate = 1;
  config.final_rate = 0.1;
  config.warmup_steps = 10;
  EXPECT_DOUBLE_EQ(learning_rate_at(config, 0, 110), 0.1);
  EXPECT_DOUBLE_EQ(learning_rate_at(config, 9, 110), 1.0);
  EXPECT_DOUBLE_EQ(learning_rate_at(config, 59, 110), 0.55);
  EXPECT_DOUBLE_EQ(learning_rate_at(config, 109, 110), 0.1);
}

// Values by hand: sqrt(10 / 40), and half a cosine at a quarter of its way.
TEST(LearningRate, FallsAsTheScheduleSays) {
  TrainConfig config;
  config.learning_rate = 2;
  config.final_rate = 0.1;
  config.warmup_steps = 10;
  for (const char* schedule : {"linear", "inverse_sqrt", "cosine", "constant", "plateau"}) {
    config.schedule = schedule;
    EXPECT_DOUBLE_EQ(learning_rate_at(config, 4, 110), 1.0) << schedule;
    EXPECT_DOUBLE_EQ(learning_rate_at(config, 9, 110), 2.0) << schedule;
  }
  EXPECT_DOUBLE_EQ(learning_rate_at(config, 99, 110), 2.0);
  config.schedule = "inverse_sqrt";
  EXPECT_DOUBLE_EQ(learning_rate_at(config, 39, 110), 1.0);
  config.schedule = "cosine";
  EXPECT_NEAR(learning_rate_at(config, 34, 110), 2 * (0.1 + 0.9 * (1 + std::sqrt(0.5)) / 2), 1e-12);
  EXPECT_NEAR(learning_rate_at(config, 109, 110), 0.2, 1e-12);
  config.schedule = "stairs";
  EXPECT_THAT([&] { learning_rate_at(config, 50, 110); },
              testing::ThrowsMessage<Error>(testing::HasSubstr("stairs")));
}

TEST(Checkpoint, ComesBackToTheBit) {
  Checkpoint stored;
  stored.weights = at::rand({5});
  stored.average = at::rand({5});
  stored.first_moment = at::rand({5});
  stored.second_moment = at::rand({5});
  stored.step = 12345678901;
  stored.loss_sum = 0.1 + 0.2;
  stored.data_fingerprint = ~uint64_t{0};
  const std::string path =
      fs::temp_directory_path() / ("attend-checkpoint-" + std::to_string(::getpid()));
  write_checkpoint(path, stored);
  const Checkpoint read = read_checkpoint(path);
  fs::remove(path);
  EXPECT_TRUE(at::equal(read.weights, stored.weights));
  EXPECT_EQ(read.step, stored.step);
  EXPECT_EQ(read.loss_sum, stored.loss_sum);
  EXPECT_EQ(read.best_metric, std::numeric_limits<double>::infinity());
  EXPECT_EQ(read.data_fingerprint, stored.data_fingerprint);
}

}  // namespace
}  // namespace attend
