// Tests of models that answer numbers, through attend::Model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "attend/inference/answer_json.h"
#include "attend/inference/evaluation.h"
#include "attend/inference/model.h"
#include "attend/models/model_folder.h"
#include "attend/models/new_pair_model.h"
#include "attend/models/parameters_file.h"
#include "tests/support/files.h"

namespace attend {
namespace number_model_test {

using test::error_of;
using testing::HasSubstr;

const std::vector<Example> examples = {
    {"cab", {"-20"}}, {"bad", {"100"}}, {"dab", {"7.5"}}, {"a", {"12"}}};
const std::vector<std::string> texts = {"cab", "a", "", "abba", "dabcab"};

class NumberModels : public testing::Test {
 protected:
  std::string make(const std::string& name, uint64_t seed, const std::string& more = "0",
                   TargetKind kind = TargetKind::number) {
    ModelConfig config;
    config.type = "classifier";
    for (const char* one : {"model.depth=8", "model.heads=2", "model.layers=1"})
      assign(config.settings(), one);
    TextConfig text = config.row().text;
    text.source_units = "char";
    text.target = kind;
    torch::manual_seed(static_cast<int64_t>(seed));
    std::vector<Example> all = examples;
    all.push_back({"b", {more}});
    const PairModel model = make_pair_model(text, config, all);
    std::filesystem::create_directory(folder / name);
    save_description(model, folder / name);
    save_weights(*model.network, folder / (name + "/weights.safetensors"));
    return folder / name;
  }

  test::TemporaryFolder folder;
};

TEST_F(NumberModels, AnswerInTheUnitOfTraining) {
  const Model model(make("m", 1), {.threads = 2});
  const auto numbers = model.numbers(texts);
  const auto answers = model.answer(texts, {.with_weights = true});
  ASSERT_EQ(numbers.size(), texts.size());
  EXPECT_FALSE(numbers[2].has_value()) << "nothing is asked";
  for (size_t i = 0; i < texts.size(); ++i) {
    if (!numbers[i]) continue;
    EXPECT_EQ(answers[i].best().number, numbers[i]);
    EXPECT_EQ(target_number(answers[i].best().text), *numbers[i]);
    ASSERT_EQ(answers[i].best().weights.size(), 1U);
    EXPECT_EQ(answers[i].best().weights[0].size(), texts[i].size());
    EXPECT_EQ(model.numbers({texts[i]})[0], numbers[i]) << "the same in a batch and by itself";
  }
  const auto json = answer_json(model, "cab", answers[0], /*details=*/true);
  EXPECT_EQ(json["predictions"][0]["number"].get<double>(), *numbers[0]);
  EXPECT_FALSE(json["predictions"][0].contains("log_probability"));
}

TEST_F(NumberModels, AnswerAsOneWithTheMean) {
  const std::vector<std::string> folders = {make("one", 1), make("two", 2)};
  const double first = *Model(folders[0]).numbers({"cab"})[0];
  const double second = *Model(folders[1]).numbers({"cab"})[0];
  EXPECT_NE(first, second);
  // Answers have seven digits.
  EXPECT_NEAR(*Model::ensemble(folders).numbers({"cab"})[0], (first + second) / 2, 1e-4);
  const std::string other = make("other", 1, "1000");
  EXPECT_THAT(error_of([&] {
                Model::ensemble({folders[0], other});
              }),
              HasSubstr("has other vocabularies or targets than the first model"));
}

TEST_F(NumberModels, AreMeasuredByTheirErrors) {
  const Model model(make("m", 1));
  const auto answers = evaluate(model, examples, {}).answers;
  double squares = 0;
  for (size_t i = 0; i < examples.size(); ++i) {
    const double error =
        *model.numbers({examples[i].source})[0] - target_number(examples[i].targets[0]);
    squares += error * error;
  }
  EXPECT_NEAR(measure_answers(metric_named("mse"), answers), squares / 4, 1e-9 * squares);
}

TEST_F(NumberModels, HaveNeitherLabelsNorProbabilities) {
  const Model model(make("m", 1));
  EXPECT_EQ(model.answer_kind().name(), "number");
  EXPECT_TRUE(model.labels().empty());
  EXPECT_THAT(error_of([&] { model.classify({"a"}); }), HasSubstr("has no labels"));
  EXPECT_THAT(error_of([&] { model.log_probabilities(examples); }), HasSubstr("no probabilities"));
  EXPECT_THAT(error_of([&] { model.answer({"a"}, {.beam = 2}); }),
              HasSubstr("without a search; leave beam"));
  EXPECT_THAT(error_of([&] { class_scores(model, examples); }), HasSubstr("two labels"));
  const Model labels(make("labels", 1, "0", TargetKind::text));
  EXPECT_THAT(error_of([&] { labels.numbers({"a"}); }), HasSubstr("was not trained on numbers"));
}

}  // namespace number_model_test
}  // namespace attend
