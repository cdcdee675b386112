// Tests of models that read sets, through attend::Model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "attend/inference/model.h"
#include "attend/models/model_folder.h"
#include "attend/models/new_pair_model.h"
#include "attend/models/parameters_file.h"
#include "tests/support/files.h"

namespace attend {
namespace set_model_test {

using test::error_of;
using testing::ElementsAre;
using testing::HasSubstr;

std::string make(const test::TemporaryFolder& folder, const std::vector<Example>& examples,
                 TargetKind target) {
  ModelConfig config;
  config.type = "set";
  for (const char* one : {"model.depth=8", "model.heads=2", "model.inducing_points=3"})
    assign(config.settings(), one);
  TextConfig text = config.row().text;
  text.target = target;
  torch::manual_seed(7);
  const PairModel model = make_pair_model(text, config, examples);
  std::filesystem::create_directory(folder / "m");
  save_description(model, folder / "m");
  save_weights(*model.network, folder / "m/weights.safetensors");
  return folder / "m";
}

TEST(SetModels, AnswerTheSameInAnyOrder) {
  const test::TemporaryFolder folder;
  const Model model(make(folder, {{"3 17 42", {"42"}}, {"5", {"5"}}}, TargetKind::number),
                    {.threads = 2});
  std::vector<std::string> elements = {"-7", "3", "0.3e1", "17", "42"}, texts;
  std::sort(elements.begin(), elements.end());
  do {
    std::string text;
    for (const std::string& element : elements) text += element + " ";
    texts.push_back(text);
  } while (std::next_permutation(elements.begin(), elements.end()));
  ASSERT_EQ(texts.size(), 120U);
  const auto answers = model.answer(texts, {.with_weights = true});
  const auto numbers = model.numbers(texts);
  for (size_t i = 0; i < texts.size(); ++i) {
    ASSERT_EQ(*numbers[i], *numbers[0]) << texts[i];
    EXPECT_EQ(answers[i].source.front(), "-7");
    EXPECT_EQ(answers[i].source.back(), "42");
    ASSERT_EQ(answers[i].best().weights, answers[0].best().weights);
    EXPECT_EQ(answers[i].best().weights.at(0).size(), 5U);
  }
}

TEST(SetModels, ReadPointsAndAnswerLabels) {
  const test::TemporaryFolder folder;
  const Model model(make(folder, {{"0.1,0.2 3,4", {"near"}}, {"9,9", {"far"}}}, TargetKind::text));
  const auto answers = model.answer({"3,4 0.1,0.2"});
  EXPECT_THAT(answers[0].source, ElementsAre("0.1,0.2", "3,4"));
  EXPECT_FALSE(model.has_source_image());
  EXPECT_THAT(error_of([&] { model.answer({"1 2"}); }), HasSubstr("this model reads 2"));
}

}  // namespace set_model_test
}  // namespace attend
