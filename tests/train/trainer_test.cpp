#include "attend/train/trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "attend/base/error.h"
#include "attend/base/files.h"
#include "attend/models/seq2seq.h"
#include "attend/models/weights.h"
#include "attend/train/checkpoint.h"

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
    config.epochs = 3;
    config.batch = 8;
    config.replicas = 2;
    config.warmup_steps = 4;
    config.checkpoint_seconds = 0;
    network.embedding = network.hidden = network.attention_depth = 8;
    network.dropout = 0.2;
    network.maximum_source_length = 8;
  }
  void TearDown() override { fs::remove_all(root); }

  std::shared_ptr<Seq2Seq> make(bool first) const {
    torch::manual_seed(first ? 41 : 99);  // other replicas start elsewhere and must be overruled
    return std::make_shared<Seq2Seq>(network, 10, 10);
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
    task.pairs = &pairs;
    task.objective = [&](int64_t replica, const Batch& batch, const Noise& noise) {
      const Tensor logits = replicas[static_cast<size_t>(replica)]->logits(batch, noise);
      return poison ? logits.sum() * std::nan("") : sequence_loss(logits, batch.target, 0.1);
    };
    task.validate = [&] {
      torch::NoGradGuard no_gradient;
      const Batch batch = make_batch(pairs, {0, 1, 2, 3});
      const auto loss = sequence_loss(averaged->logits(batch, {}), batch.target, 0).item<double>();
      return Validation{loss, metric ? metric() : loss};
    };
    task.report = [&](const TrainProgress& progress) {
      reports.push_back(progress);
      if (progress.step == stop_after) stop = true;
    };
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
  std::vector<EncodedPair> pairs;
  std::vector<TrainProgress> reports;
  std::function<double()> metric;
  bool poison = false;
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

TEST_F(TrainerTest, StopsWhenValidationStopsImproving) {
  config.epochs = 50;
  config.patience = 2;
  metric = [n = 0]() mutable { return ++n <= 3 ? 10.0 - n : 20.0; };
  const TrainOutcome outcome = run("a");
  EXPECT_EQ(metrics("a").size(), 5U);
  EXPECT_EQ(outcome.best_metric, 7);
  EXPECT_EQ(checkpoint("a").best_step, 3 * 8);
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

TEST_F(TrainerTest, GivesUpOnGradientsThatAreNotFinite) {
  poison = true;
  EXPECT_THAT([&] { run("a"); },
              testing::ThrowsMessage<Error>(testing::HasSubstr("train.learning_rate")));
}

TEST_F(TrainerTest, StopsAfterTheMinutesGiven) {
  config.epochs = 100000;
  config.minutes = 1e-3;  // 60 ms
  const TrainOutcome outcome = run("a");
  EXPECT_FALSE(outcome.interrupted);
  EXPECT_LT(outcome.steps, 100000);
  EXPECT_TRUE(fs::exists(root / "a" / "weights.safetensors"));
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
