// Tests of models that answer any number of labels, through attend::Model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
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
namespace label_set_model_test {

using test::error_of;
using testing::ElementsAre;
using testing::HasSubstr;

const std::vector<Example> examples = {
    {"cab", {"red|big"}}, {"bad", {""}}, {"dab", {"old"}}, {"a", {"old|red"}}};
const std::vector<std::string> texts = {"cab", "a", "", "abba", "dabcab"};

class LabelSetModels : public testing::Test {
 protected:
  std::string make(const std::string& name, int64_t seed) {
    ModelConfig config;
    config.type = "classifier";
    for (const char* one : {"model.depth=8", "model.heads=2", "model.layers=1"})
      assign(config.settings(), one);
    TextConfig text = config.row().text;
    text.source_units = "char";
    text.target = TargetKind::labels;
    torch::manual_seed(seed);
    const PairModel model = make_pair_model(text, config, examples);
    std::filesystem::create_directory(folder / name);
    save_description(model, folder / name);
    save_weights(*model.network, folder / (name + "/weights.safetensors"));
    return folder / name;
  }

  test::TemporaryFolder folder;
};

TEST_F(LabelSetModels, AnswerTheLabelsOfAtLeastAHalf) {
  const Model model(make("m", 1), {.threads = 2});
  EXPECT_THAT(model.labels(), testing::UnorderedElementsAre("red", "old", "big"));
  const auto answers = model.answer(texts);
  const auto classes = model.classify(texts);
  EXPECT_TRUE(answers[2].candidates.empty()) << "nothing is asked";
  for (size_t i = 0; i < texts.size(); ++i) {
    if (texts[i].empty()) continue;
    const Candidate& best = answers[i].best();
    std::vector<std::string> wanted;
    double log_probability = 0;
    ASSERT_EQ(best.labels.size(), 3U);
    for (size_t l = 0; l < 3; ++l) {
      const auto& [label, probability] = classes[i][l];
      EXPECT_EQ(best.labels[l].token, label);
      EXPECT_NEAR(std::exp(best.labels[l].log_probability), probability, 1e-6);
      if (probability >= 0.5) wanted.push_back(label);
      log_probability += std::log(std::max(probability, 1 - probability));
    }
    std::sort(wanted.begin(), wanted.end());
    EXPECT_EQ(best.tokens, wanted);
    EXPECT_NEAR(best.log_probability, log_probability, 1e-5);
    const std::vector<Example> pair = {{texts[i], {best.text}}};
    EXPECT_NEAR(model.log_probabilities(pair)[0], log_probability, 1e-5);
  }
  const auto json = answer_json(model, "cab", answers[0], /*details=*/false)["predictions"][0];
  EXPECT_EQ(json["labels"].size(), 3U);
  EXPECT_EQ(json["labels"][0]["label"], answers[0].best().labels[0].token);
  const auto two = classification_json(model, "cab", answers[0], 2)["predictions"];
  EXPECT_EQ(two.size(), 2U);
  EXPECT_EQ(two[1]["target"], answers[0].best().labels[1].token);
}

TEST_F(LabelSetModels, AnswerAsOneWithTheMeanOfTheProbabilities) {
  const std::vector<std::string> folders = {make("one", 1), make("two", 2)};
  const auto probability_of = [](const Candidate& best, const std::string& label) {
    for (const Alternative& each : best.labels)
      if (each.token == label) return std::exp(each.log_probability);
    throw std::logic_error("no such label");
  };
  const Candidate first = Model(folders[0]).answer({"cab"})[0].best();
  const Candidate second = Model(folders[1]).answer({"cab"})[0].best();
  const Candidate both = Model::ensemble(folders).answer({"cab"})[0].best();
  for (const char* label : {"red", "old", "big"})
    EXPECT_NEAR(probability_of(both, label),
                (probability_of(first, label) + probability_of(second, label)) / 2, 1e-6);
  EXPECT_NEAR(likelihood(Model::ensemble({folders[0], folders[0]}), examples).loss(),
              likelihood(Model(folders[0]), examples).loss(), 1e-5);
}

TEST_F(LabelSetModels, AreMeasuredInAnyOrder) {
  const Model model(make("m", 1));
  const Evaluation evaluation = evaluate(model, {{"cab", {"red|big"}}}, {});
  EXPECT_THAT(evaluation.answers[0].reference_tokens[0], ElementsAre("big", "red"));
  EXPECT_EQ(evaluation.answers[0].references[0], "big|red");
  EXPECT_EQ(likelihood(model, examples).tokens, 4);
  EXPECT_THAT(error_of([&] {
                model.check_labels({{"a", {"old|new"}}}, "t.tsv");
              }),
              HasSubstr("label 'new' of 'a' was not in training"));
  EXPECT_NEAR(likelihood(model, {{"a", {"old|new"}}}).loss(),
              likelihood(model, {{"a", {"old"}}}).loss(), 1e-6)
      << "the loss leaves unknown labels out";
  EXPECT_THAT(error_of([&] { class_scores(model, examples); }), HasSubstr("any number of 3"));
  EXPECT_THAT(error_of([&] { model.answer({"a"}, {.beam = 2}); }),
              HasSubstr("answers a set of labels without a search"));
}

}  // namespace label_set_model_test
}  // namespace attend
