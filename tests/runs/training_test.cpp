// Tests of training from C++: calls of its watcher, stopping and resuming, and the files it writes.
#include "attend/runs/training.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <atomic>
#include <cmath>
#include <filesystem>

#include "attend/base/error.h"
#include "attend/base/files.h"
#include "attend/data/tables.h"
#include "attend/files/safetensors.h"
#include "attend/inference/evaluation.h"
#include "tests/support/files.h"

namespace attend {
namespace training_test {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;
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
    watch.progress = [this](const TrainProgress& progress, const Metric& metric) {
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
  const double error =
      measure_answers(metric_named("token_error"), evaluate(model, examples, {}).answers);
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
  EXPECT_THAT(said, Contains(HasSubstr("train.batch = 16, train.epochs = 100, train.warmup_steps = "
                                       "10, train.patience = 63, model.dropout = 0.3")));
  EXPECT_THAT(read_file(options.out + "/training.toml"), HasSubstr("batch = 16"));
  said.clear();
  options.resume = true;
  options.assignments.emplace_back("train.steps=14");
  options.assignments.emplace_back("model.dropout=-1");
  EXPECT_EQ(train_model(options, watch).outcome.steps, 14);
  EXPECT_THAT(said, testing::Not(Contains(HasSubstr("chosen by the size"))));
}

// A file may be sorted by its labels or alternate them.
TEST_F(TrainingTest, ValidatesOnExamplesOfTheWholeFile) {
  options.assignments = {"model.type=classifier", "model.depth=8",
                         "train.replicas=1",      "train.steps=2",
                         "train.metric=roc_auc",  "train.validation_examples=30"};
  watch.progress = nullptr;
  for (const bool in_turns : {false, true}) {
    std::string rows;
    for (int i = 0; i < 60; ++i)
      rows += fmt::format("w{} x\t{}\n", i, (in_turns ? i % 2 == 0 : i < 30) ? "neg" : "pos");
    options.data = options.valid = folder.write("sorted.tsv", rows);
    options.out = folder / (in_turns ? "turns" : "sorted");
    said.clear();
    EXPECT_TRUE(std::isfinite(train_model(options, watch).outcome.best_metric));
    EXPECT_THAT(said, Contains(HasSubstr("validation measures 30 of 60 examples")));
  }
}

TEST_F(TrainingTest, ValidatesOnWindowsOfTheWholeText) {
  options.data = folder.write("a.txt", std::string(2000, 'a') + std::string(2000, 'b'));
  options.valid = options.data;
  options.assignments = {"model.type=lm",    "model.depth=8", "model.context=16",
                         "train.replicas=1", "train.steps=2", "train.validation_examples=50"};
  watch.progress = nullptr;
  train_model(options, watch);
  EXPECT_THAT(said, Contains(HasSubstr("validation measures 50 of 267 windows")));
}

TEST_F(TrainingTest, LabelsOfValidationThatTrainingLacksAreWrong) {
  options.data = folder.write("train.tsv", "a x\tpos\nb x\tneg\nc x\tpos\nd x\tneg\n");
  options.valid = folder.write("valid.tsv", "a x\tpos\nb x\tother\n");
  options.assignments = {"model.type=classifier", "model.depth=8", "train.replicas=1",
                         "train.steps=2"};
  watch.progress = nullptr;
  EXPECT_LE(train_model(options, watch).outcome.best_metric, 0.5);
  EXPECT_THAT(said, Contains(HasSubstr("training lacks 1 label of 1 target")));
  options.valid = folder.write("none.tsv", "a x\tother\n");
  options.out = folder / "none";
  EXPECT_THAT(
      [&] { train_model(options, watch); },
      ThrowsMessage<Error>(HasSubstr("no label of the validation data is one of training")));
}

TEST_F(TrainingTest, TellsWhatTheTargetsMayBe) {
  const auto told = [&](const std::string& name, const std::string& text,
                        const std::vector<std::string>& settings) {
    said.clear();
    watch.remark = watch.say;
    watch.progress = nullptr;
    options.data = folder.write(name, text);
    options.valid.clear();
    options.out = folder / ("model of " + name);
    options.assignments = {"train.replicas=1", "train.steps=1"};
    options.assignments.insert(options.assignments.end(), settings.begin(), settings.end());
    train_model(options, watch);
    return said;
  };
  std::string numbers, sentences;
  for (int i = 0; i < 30; ++i) {
    numbers += fmt::format("a{0}\t{0}.5\na{0}\t7.5\n", i);
    sentences += fmt::format("w{}\tA\nw\tB\n\n", i);
  }
  EXPECT_THAT(
      told("n.tsv", numbers, {"model.type=classifier"}),
      AllOf(Contains(HasSubstr("different numbers; to learn their values, set data.target "
                               "= number")),
            Contains(HasSubstr("validation examples, held out of " + (folder / "n.tsv;")))));
  EXPECT_THAT(told("s.conll", sentences, {"model.hidden=4"}),
              AllOf(Contains(HasSubstr("set model.type = tagger")),
                    Not(Contains(HasSubstr("classifier")))));
  EXPECT_THAT(told("b.txt", "a text\n of two lines\n", {"model.type=lm", "model.context=8"}),
              Contains(HasSubstr("for validation, held out of")));
}

TEST_F(TrainingTest, SwappedColumnsAreACauseOfUnknownLabels) {
  std::string swapped;
  for (int i = 0; i < 30; ++i) swapped += fmt::format("{}\ttext {}\n", i % 2 ? "good" : "bad", i);
  options.data = folder.write("swapped.tsv", swapped);
  options.valid.clear();
  options.assignments = {"model.type=classifier"};
  EXPECT_THAT([&] { train_model(options, watch); },
              ThrowsMessage<Error>(AllOf(HasSubstr("swapped.tsv: no label of the validation data"),
                                         HasSubstr("held out"), HasSubstr("swapped, or give"))));
}

TEST_F(TrainingTest, NumbersAreToldByTheirDeviation) {
  options.data = options.valid = folder.write("n.tsv", "a\t3.5\nb\t3.5\nc\t3.50\n");
  options.assignments = {"model.type=classifier", "data.target=number"};
  EXPECT_THAT([&] { train_model(options, watch); },
              ThrowsMessage<Error>(HasSubstr("is the number 3.5, so the deviation is 0")));
  options.config = folder.write("c.toml", "[data]\ntarget_mean = 0\n");
  options.assignments = {"model.type=set", "data.target=text"};
  EXPECT_THAT([&] { training_config(options); },
              ThrowsMessage<Error>(HasSubstr("data.target_mean: needs numeric targets")));
  options.config = "";
  options.assignments.emplace_back("data.target_deviation=2");
  EXPECT_THAT([&] { training_config(options); },
              ThrowsMessage<Error>(HasSubstr("data.target_deviation: needs numeric targets")));
}

TEST_F(TrainingTest, TheConfigurationOfAResumedTrainingIsThatOfTheFolder) {
  train_model(options, watch);
  TrainOptions other = options;
  other.assignments = {"train.steps=20"};
  EXPECT_THAT(training_config(other), HasSubstr("hidden = 256"));
  other.resume = true;
  EXPECT_THAT(training_config(other), HasSubstr("hidden = 16"));
  EXPECT_THAT(training_config(other), HasSubstr("steps = 20"));
  EXPECT_THAT(training_config(other), HasSubstr("batch = 10"));
  other.assignments = {"model.hidden=32"};
  EXPECT_THAT([&] { training_config(other); }, ThrowsMessage<Error>(HasSubstr("begun with 16")));
  other.out = folder / "absent";
  EXPECT_THAT(training_config(other), HasSubstr("hidden = 32"));
}

TEST_F(TrainingTest, SpacesAroundAKeyChangeNothing) {
  options.assignments = {"model.type =classifier"};
  EXPECT_THAT(training_config(options), HasSubstr("metric = \"accuracy\""));
}

TEST_F(TrainingTest, SpacesAroundANameChangeNothing) {
  options.assignments = {"model.type= lm ", "train.schedule=\tcosine"};
  EXPECT_THAT(training_config(options), HasSubstr("type = \"lm\""));
  EXPECT_THAT(training_config(options), HasSubstr("schedule = \"cosine\""));
}

TEST_F(TrainingTest, RefusesAMisspeltVariable) {
  const auto message = [&] { return test::error_of([&] { training_config(options); }); };
  setenv("ATTEND_TRAIN_EPOCH", "7", 1);
  EXPECT_THAT(message(), HasSubstr("did you mean ATTEND_TRAIN_EPOCHS?"));
  unsetenv("ATTEND_TRAIN_EPOCH");
  // Settings of other types of models are accepted.
  setenv("ATTEND_MODEL_FEED_FORWARD", "64", 1);
  setenv("ATTEND_DATA_SAMPLE_RATE", "8000", 1);
  EXPECT_EQ(message(), "");
  unsetenv("ATTEND_MODEL_FEED_FORWARD");
  unsetenv("ATTEND_DATA_SAMPLE_RATE");
}

TEST_F(TrainingTest, FindsCodesBesideTheFileThatNamesThem) {
  fs::create_directory(folder / "project");
  folder.write("project/codes", "#version: 0.2\n");
  options.config = folder.write("project/c.toml",
                                "[data]\nsource_units = \"bpe\"\ntarget_units = \"bpe\"\n"
                                "bpe = \"codes\"\n");
  options.assignments.emplace_back("train.steps=1");
  train_model(options, watch);
  EXPECT_TRUE(fs::exists(options.out + "/bpe.codes"));
  // Also with a model's configuration.
  TrainOptions again = options;
  again.out = folder / "again";
  again.config = options.out + "/config.toml";
  again.assignments = {"train.steps=1", "train.replicas=1"};
  train_model(again, watch);
  fs::remove(folder / "project/codes");
  options.out = folder / "other";
  EXPECT_THAT([&] { train_model(options, watch); },
              ThrowsMessage<Error>(HasSubstr("data.bpe = 'codes': codes: no such file")));
}

// All answers consist of words unknown to the first model.
TEST_F(TrainingTest, BeginsFromAModelWithOtherTokens) {
  options.data = options.valid = folder.write("ab.tsv", "ab\tA B\nba\tB A\na\tA\nb\tB\n");
  options.assignments = {
      "model.embedding=16",     "model.hidden=32",          "model.attention_depth=16",
      "model.dropout=0",        "train.replicas=1",         "train.batch=4",
      "train.epochs=80",        "train.learning_rate=0.02", "train.warmup_steps=1",
      "train.weight_average=0", "train.patience=0",         "train.validate_steps=80",
      "data.target_units=space"};
  train_model(options, watch);
  TrainOptions more = options;
  more.data = more.valid = folder.write("xy.tsv", "ac\tX Y\nca\tY X\na\tX\nc\tY\n");
  more.init = options.out;
  more.out = folder / "extended";
  said.clear();
  EXPECT_EQ(train_model(more, watch).outcome.best_metric, 0);
  EXPECT_THAT(said, Contains(HasSubstr("1 of 2 source tokens are not in " + options.out +
                                       ", and begin with new weights: 'c'")));
  EXPECT_THAT(said, Contains(HasSubstr("2 of 2 target tokens are not in")));
  EXPECT_THAT(said, Contains(testing::ContainsRegex("([0-9]+) of [0-9]+ weights begin as in")));
  const Model model(more.out);
  EXPECT_EQ(model.answer({"ca"})[0].candidates[0].text, "Y X");
  // Tokens keep their ids, including tokens absent from the data.
  EXPECT_THAT(read_file(more.out + "/target.vocab"),
              testing::StartsWith(read_file(options.out + "/target.vocab")));
  more.init_vocabulary = InitVocabulary::keep;
  more.out = folder / "kept";
  said.clear();
  EXPECT_GT(train_model(more, watch).outcome.best_metric, 0.5);
  EXPECT_THAT(said, Contains(HasSubstr("2 of 2 target tokens are not in " + options.out +
                                       ", and are read as <unk>")));
  EXPECT_EQ(read_file(more.out + "/target.vocab"), read_file(options.out + "/target.vocab"));
}

TEST_F(TrainingTest, TellsWhichLabelsAreOthers) {
  options.data = options.valid = folder.write("ab.tsv", "x\tA\ny\tB\n");
  options.assignments = {"model.type=classifier", "model.depth=4", "train.replicas=1",
                         "train.steps=1"};
  const TrainWatch hearing = {.say = [&](const std::string& line) { said.push_back(line); }};
  train_model(options, hearing);
  TrainOptions more = options;
  more.data = more.valid = folder.write("ac.tsv", "x\tA\ny\tC\nx\tD\n");
  more.init = options.out;
  more.out = folder / "others";
  said.clear();
  train_model(more, hearing);
  EXPECT_THAT(said, Contains("labels that are not in " + options.out +
                             " begin with new weights: 'C', 'D'"));
  EXPECT_THAT(said, Contains("labels of " + options.out +
                             " that the data does not have are left out: 'B'"));
  more.data = more.valid = options.data;
  more.out = folder / "same";
  said.clear();
  train_model(more, hearing);
  EXPECT_THAT(said, testing::Not(Contains(HasSubstr("labels"))));
}

TEST_F(TrainingTest, SeeksTheBestAnewWhereTheValidationDataIsAnother) {
  train_model(options, watch);
  options.resume = true;
  options.assignments.emplace_back("train.steps=14");
  said.clear();
  train_model(options, watch);
  EXPECT_THAT(said, testing::Not(Contains(HasSubstr("starts again"))));
  // Fewer examples are different examples, too.
  options.assignments.emplace_back("train.steps=16");
  options.assignments.emplace_back("train.validation_examples=20");
  train_model(options, watch);
  EXPECT_THAT(
      said,
      Contains(HasSubstr("was validated on other examples: the search for the best weights")));
}

TEST_F(TrainingTest, EndsWithAnErrorWhereTheWeightsGiveNoProbabilities) {
  train_model(options, watch);
  const std::string weights = options.out + "/weights.safetensors";
  TensorFile file = read_safetensors(weights);
  for (auto& [name, tensor] : file.tensors) tensor.fill_(std::nanf(""));
  write_safetensors(weights, file);
  options.init = options.out;
  options.out = folder / "other";
  options.assignments.emplace_back("train.steps=5");
  for (const char* metric : {"token_error", "loss"}) {
    options.assignments.emplace_back(std::string("train.metric=") + metric);
    watch.progress = {};
    EXPECT_THAT([&] { train_model(options, watch); },
                ThrowsMessage<Error>(HasSubstr("ended at step 5 without weights to keep")));
    fs::remove_all(options.out);
  }
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
