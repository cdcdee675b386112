#include <gmock/gmock.h>

#include "attend/data/image_resize.h"
#include "attend/import/import_model.h"
#include "attend/inference/model.h"
#include "tests/import/foreign_folder.h"
#include "tests/support/files.h"

namespace attend {
namespace golden_test {

using test::json;

class EveryGoldenCase : public testing::TestWithParam<std::string> {};

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const json& one : test::golden()["cases"]) all.push_back(one["name"]);
  return all;
}

Answer answer_of_five(const Model& model, const std::string& text) {
  SearchOptions search;
  search.maximum_length = 5;
  return model.answer({text}, search).at(0);
}

// The five best answers; the best may be none.
Answer spans_of(const Model& model, const std::string& text) {
  SearchOptions search;
  search.beam = search.nbest = 5;
  search.no_answer = true;
  return model.answer({text}, search).at(0);
}

// The model's numbers for a text, of the kind that the case contains.
std::vector<double> numbers_of(const json& one, const Model& model, const std::string& text) {
  std::vector<double> numbers;
  const std::string what = one["what"];
  if (what == "vector") {
    const std::vector<Embedding> embeddings = model.embed({text});
    numbers.assign(embeddings.at(0).whole.begin(), embeddings.at(0).whole.end());
  }
  if (what == "labels") {
    std::map<std::string, double> by_label;
    const auto labels = model.classify({text});
    for (const TokenProbability& each : labels.at(0))
      by_label[each.token] = std::log(each.probability);
    for (const std::string& label : model.labels()) numbers.push_back(by_label.at(label));
  }
  if (what == "score") numbers.push_back(model.numbers({text}).at(0).value());
  if (what == "continuation" || what == "translation") {
    const Answer answer = answer_of_five(model, text);
    for (const double logarithm : answer.best().log_probabilities)
      if (numbers.size() < 5) numbers.push_back(std::exp(logarithm));
  }
  if (what == "replaced") {
    const Answer answer = model.answer({text}).at(0);
    for (const double logarithm : answer.best().log_probabilities)
      numbers.push_back(std::exp(logarithm));
  }
  if (what == "spans") {
    const Answer answer = spans_of(model, text);
    const CharacterSpan& place = answer.best().span.value();
    numbers = {static_cast<double>(place.begin), static_cast<double>(place.end)};
    for (const Candidate& each : answer.candidates) numbers.push_back(each.log_probability);
  }
  if (what == "masked")
    for (const auto& guesses : model.fill(text, one["mask"], 3))
      for (const TokenProbability& guess : guesses) numbers.push_back(guess.probability);
  return numbers;
}

// Numbers near 1 after two layers in float32.
TEST_P(EveryGoldenCase, AnswersAsTransformersDoes) {
  const test::TemporaryFolder folder;
  test::ForeignFolder(GetParam()).write(folder / "theirs");
  const ImportedModel made = import_model(folder / "theirs", folder / "ours");
  EXPECT_EQ(made.architecture, GetParam());
  const Model model(folder / "ours");
  EXPECT_EQ(model.type(), made.type);
  const json& one = test::golden_case(GetParam());
  for (size_t i = 0; i < one["texts"].size(); ++i) {
    const std::vector<double> expected = one["answers"][i];
    EXPECT_THAT(numbers_of(one, model, one["texts"][i]),
                testing::Pointwise(testing::DoubleNear(1e-5), expected))
        << one["texts"][i];
    if (one.contains("said")) {
      const Answer answer = one["what"] == "spans" ? spans_of(model, one["texts"][i])
                                                   : answer_of_five(model, one["texts"][i]);
      EXPECT_EQ(answer.best().text, one["said"][i]);
    }
  }
}

// Expected bytes are from Pillow.
TEST(Resized, IsWhatPillowMakes) {
  for (const json& one : test::golden()["resizing"]) {
    const int64_t height = one["from"][0], width = one["from"][1];
    Image image{.height = height, .width = width, .pixels = "", .channels = 3};
    for (int64_t k = 0; k < height * width * 3; ++k)
      image.pixels += static_cast<char>(k * 53 % 256);
    const auto way = value_of<Resizing>(one["way"].get<std::string>(), "way");
    const Image made = resized(image, one["to"][0], one["to"][1], way);
    std::vector<int> bytes;
    for (const char byte : made.pixels) bytes.push_back(static_cast<unsigned char>(byte));
    EXPECT_EQ(bytes, one["pixels"].get<std::vector<int>>()) << one["way"] << one["from"];
  }
}

INSTANTIATE_TEST_SUITE_P(Import, EveryGoldenCase, testing::ValuesIn(names()),
                         [](const auto& info) { return info.param; });

}  // namespace golden_test
}  // namespace attend
