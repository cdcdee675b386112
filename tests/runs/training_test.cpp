// A training from C++: what its watcher is told, how it is stopped and goes on, and what it leaves.
#include "attend/runs/training.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>

#include "attend/base/error.h"
#include "attend/base/files.h"
#include "attend/data/tables.h"
#include "attend/inference/evaluation.h"
#include "tests/support/files.h"

namespace attend {
namespace training_test {

namespace fs = std::filesystem;
using testing::Contains;
using testing::HasSubstr;
using testing::ThrowsMessage;

class TrainingTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pairs;
    for (const char a : std::string("bdfgklmnp"))
      for (const char b : std::string("aeiou"))
        pairs += fmt::format("{0}{1}{0}\t{0} {1} {0}\n", a, b);
    options.data = options.valid = folder.write("pairs.tsv", pairs);
    options.out = folder / "model";
    options.assignments = {"model.embedding=8",     "model.hidden=16", "model.attention_depth=8",
                           "train.replicas=1",      "train.steps=12",  "train.batch=10",
                           "train.validate_steps=4"};
    watch.say = [this](const std::string& line) { said.push_back(line); };
    watch.progress = [this](const TrainProgress& progress, const ValidationMetric& metric) {
      EXPECT_EQ(metric.name, "token_error");
      last_step = progress.step;
      if (progress.step >= stop_at) stop = true;
    };
    watch.stop = &stop;
  }

  test::TemporaryFolder folder;
  TrainOptions options;
  TrainWatch watch;
  std::vector<std::string> said;
  std::atomic<bool> stop = false;
  int64_t last_step = 0, stop_at = 1000;
};

TEST_F(TrainingTest, TellsWhatItDoesAndLeavesAModelThatAnswers) {
  const Trained trained = train_model(options, watch);
  EXPECT_FALSE(trained.outcome.interrupted);
  EXPECT_EQ(trained.outcome.steps, 12);
  EXPECT_EQ(last_step, 12);
  EXPECT_THAT(said, Contains(HasSubstr("45 training and 45 validation examples")));
  const Model model(options.out);
  const auto examples = read_examples({options.data}, model.text());
  const double error = evaluate(model, examples, {}).errors.token_error_rate();
  EXPECT_NEAR(error, trained.outcome.best_metric, 1e-9);
}

TEST_F(TrainingTest, StopsWhenItIsToldToAndGoesOnToTheSameWeights) {
  const TrainOptions whole = options;
  options.out = folder / "stopped";
  stop_at = 5;
  EXPECT_TRUE(train_model(options, watch).outcome.interrupted);
  EXPECT_LT(last_step, 12);
  stop = false;
  stop_at = 1000;
  options.resume = true;
  EXPECT_EQ(train_model(options, watch).outcome.steps, 12);
  train_model(whole);
  EXPECT_EQ(read_file(options.out + "/weights.safetensors"),
            read_file(whole.out + "/weights.safetensors"));
}

TEST_F(TrainingTest, SettlesBySizeWhatNobodySaysAndResumesWithIt) {
  std::erase(options.assignments, "train.batch=10");
  train_model(options, watch);
  EXPECT_THAT(said,
              Contains(HasSubstr("train.batch = 16, train.epochs = 100, model.dropout = 0.3")));
  EXPECT_THAT(read_file(options.out + "/training.toml"), HasSubstr("batch = 16"));
  said.clear();
  options.resume = true;
  options.assignments.emplace_back("train.steps=14");
  options.assignments.emplace_back("model.dropout=-1");
  EXPECT_EQ(train_model(options, watch).outcome.steps, 14);
  EXPECT_THAT(said, testing::Not(Contains(HasSubstr("chosen by the size"))));
}

TEST_F(TrainingTest, BeginsNothingWhereTheDataIsWrong) {
  watch.begin = [] { ADD_FAILURE() << "nothing was to be written"; };
  options.data = folder / "absent.tsv";
  EXPECT_THAT([&] { train_model(options, watch); },
              ThrowsMessage<Error>(HasSubstr("no such file or folder")));
  EXPECT_FALSE(fs::exists(options.out));
}

}  // namespace training_test
}  // namespace attend
