#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "attend/base/error.h"
#include "attend/base/files.h"
#include "attend/models/seq2seq.h"
#include "attend/train/checkpoint.h"
#include "attend/train/trainer.h"
#include "tests/support/files.h"

namespace attend {

namespace fs = std::filesystem;
using at::Tensor;

// Records the batches that were handed out.
class Recorder : public BatchSource {
 public:
  Recorder(BatchSource& source, std::vector<std::vector<EncodedPair>>& batches)
      : source_(source), batches_(batches) {}
  void regroup(const BatchSize& size) override { source_.regroup(size); }
  void begin(int64_t epoch) override {
    source_.begin(epoch);
    batches_.clear();
  }
  std::vector<EncodedPair> next() override { return batches_.emplace_back(source_.next()); }
  double done() const override { return source_.done(); }
  uint64_t fingerprint() const override { return source_.fingerprint(); }

 private:
  BatchSource& source_;
  std::vector<std::vector<EncodedPair>>& batches_;
};

// Learns to copy short sequences: small, but uses the whole trainer.
class TrainerTest : public testing::Test {
 protected:
  void SetUp() override {
    for (int64_t i = 0; i < 60; ++i) {
      std::vector<int64_t> ids;
      for (int64_t j = 0; j <= i % 4; ++j) ids.push_back(4 + (7 * i + 3 * j) % 6);
      pairs.push_back({ids, ids});
    }
    config.precision = Precision::float32;  // gradients are compared
    config.epochs = 3;
    config.batch = 8;
    config.replicas = 2;
    config.warmup_steps = 4;
    config.checkpoint_seconds = 1e6;
    network.embedding = network.hidden = network.attention_depth = 8;
    network.dropout = 0.2;
    network.maximum_source_length = 8;
  }

  std::shared_ptr<Seq2Seq> make(bool first) const {
    torch::manual_seed(first ? 41 : 99);  // others must be overwritten
    auto made = std::make_shared<Seq2Seq>(network, source_tokens, 10);
    made->place(devices);
    return made;
  }

  // Trains in root/name; stops after `stop_after` steps unless 0.
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
    Recorder recorder(source, handed_out);
    task.source = &recorder;
    task.objective = [&](int64_t replica, const Batch& batch, const Pass& pass) {
      const Tensor loss = replicas[static_cast<size_t>(replica)]->objective(batch, pass, 0.1);
      if (penalty != 0) pass.penalties->push_back(at::full({}, penalty));
      const auto steps_seen = static_cast<int64_t>(reports.size());
      return poison && poison(steps_seen) ? loss * std::nan("") : loss;
    };
    task.validate = [&] {
      torch::NoGradGuard no_gradient;
      const Batch batch = make_batch(pairs, {0, 1, 2, 3});
      const auto loss = averaged->objective(batch, {}, 0).item<double>();
      return Validation{valid_loss ? valid_loss() : loss, metric ? metric() : loss};
    };
    task.report = [&](const TrainProgress& progress) {
      reports.push_back(progress);
      if (progress.validation) validated[progress.step] = weights_of(*averaged);
      if (progress.step == stop_after) stop = true;
    };
    task.metric = metric_name;
    task.validation_fingerprint = validation_fingerprint;
    task.say = [&](const std::string& line) { said.push_back(line); };
    task.higher_is_better = higher_is_better;
    if (clock) task.now = clock;
    task.stop = &stop;
    task.folder = folder;
    return train_network(config, task, resume);
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

  static std::map<std::string, Tensor> weights_of(const torch::nn::Module& module) {
    std::map<std::string, Tensor> weights;
    for (const auto& item : module.named_parameters())
      weights.emplace(item.key(), item.value().detach().clone());
    return weights;
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

  const test::TemporaryFolder temporary;
  const fs::path root = temporary.path();
  TrainConfig config;
  Seq2SeqConfig network;
  int64_t source_tokens = 10;
  Devices devices;
  std::vector<EncodedPair> pairs;
  std::vector<std::vector<EncodedPair>> handed_out;  // in the last epoch, including skipped batches
  std::vector<TrainProgress> reports;
  std::map<int64_t, std::map<std::string, Tensor>> validated;  // weights by the validated step
  std::function<double()> metric, valid_loss;
  uint64_t validation_fingerprint = 0;
  std::vector<std::string> said;
  std::function<double()> clock;
  std::string metric_name = "metric";
  std::function<bool(int64_t)> poison;  // whether the loss is NaN, by the number of reported steps
  bool higher_is_better = false;
  double penalty = 0;  // added by the network per target token
};

}  // namespace attend
