// Tests of models that learn a known relation, so that the tokens they depend on are known.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "attend/data/tables.h"
#include "attend/explain/explanation_json.h"
#include "attend/explain/faithfulness.h"
#include "attend/runs/training.h"
#include "tests/support/files.h"

namespace attend {
namespace planted_test {

struct Planted {
  test::TemporaryFolder folder;
  std::vector<Example> tests;
  std::vector<int64_t> places;  // positions of the keyword, if present
  TrainOptions options;

  void train(const std::vector<std::string>& settings) {
    options.out = folder / "model";
    options.assignments = {"data.source_units=space",  "train.replicas=1",      "train.patience=0",
                           "train.learning_rate=2e-3", "train.warmup_steps=50", "train.batch=32",
                           "train.weight_average=0.98"};
    options.assignments.insert(options.assignments.end(), settings.begin(), settings.end());
    train_model(options);
  }
};

// Sentences from a vocabulary of 20 words with word-by-word translations; `reverse`: in reverse
// order.
void write_translations(Planted& planted, bool reverse) {
  std::mt19937_64 draws(3);
  const auto sentence = [&] {
    std::vector<uint64_t> words(3 + draws() % 8);
    for (uint64_t& word : words) word = draws() % 20;
    return words;
  };
  const auto pair = [&] {
    std::string source, target;
    const auto words = sentence();
    for (size_t i = 0; i < words.size(); ++i) {
      source += fmt::format("{}w{}", i == 0 ? "" : " ", words[i]);
      const uint64_t other = words[reverse ? words.size() - 1 - i : i];
      target += fmt::format("{}v{}", i == 0 ? "" : " ", (7 * other + 3) % 20);
    }
    return Example{source, {target}};
  };
  std::string train, valid;
  for (int i = 0; i < 3000; ++i) {
    const Example one = pair();
    train += one.source + '\t' + one.targets[0] + '\n';
  }
  for (int i = 0; i < 50; ++i) {
    planted.tests.push_back(pair());
    valid += planted.tests.back().source + '\t' + planted.tests.back().targets[0] + '\n';
  }
  planted.options.data = planted.folder.write("train.tsv", train);
  planted.options.valid = planted.folder.write("valid.tsv", valid);
}

// Share of target tokens with the largest score on another word than the one they translate.
double alignment_error(const Planted& planted, const char* method, bool reverse) {
  const Model model(planted.options.out);
  int64_t wrong = 0, all = 0;
  for (const Example& example : planted.tests) {
    const Subject subject = answered_subject(model, example.source, {}, example.targets[0]);
    const at::Tensor best = method_scores(find_method(method), subject).argmax(1);
    const auto length = static_cast<int64_t>(subject.target.size());
    for (int64_t t = 0; t < length; ++t, ++all)
      wrong += best[t].item<int64_t>() != (reverse ? length - 1 - t : t) ? 1 : 0;
  }
  return static_cast<double>(wrong) / static_cast<double>(all);
}

// A recurrent decoder attends to the word it translates next.
TEST(PlantedTruth, ARecurrentDecoderIsAlignedToTheWordsItTranslates) {
  for (const bool reverse : {false, true}) {
    Planted planted;
    write_translations(planted, reverse);
    planted.train({"data.target_units=space", "model.embedding=32", "model.hidden=64",
                   "model.attention_depth=32", "train.epochs=8", "model.dropout=0.1"});
    EXPECT_LE(alignment_error(planted, "attention", reverse), 0.01) << "reverse " << reverse;
  }
}

void write_keywords(Planted& planted) {
  std::mt19937_64 draws(5);
  std::string lines[2];
  for (int i = 0; i < 2200; ++i) {
    const bool good = draws() % 2 == 0;
    const uint64_t length = 5 + draws() % 11, place = draws() % length;
    std::string text;
    for (uint64_t j = 0; j < length; ++j)
      text += fmt::format("{}{}", j == 0 ? "" : " ",
                          j == place ? fmt::format("{}{}", good ? "fine" : "poor", draws() % 3)
                                     : fmt::format("noise{}", draws() % 60));
    lines[i < 2000 ? 0 : 1] += fmt::format("{}\t{}\n", text, good ? "good" : "bad");
    if (i < 2000) continue;
    planted.tests.push_back({text, {good ? "good" : "bad"}});
    planted.places.push_back(static_cast<int64_t>(place));
  }
  planted.options.data = planted.folder.write("train.tsv", lines[0]);
  planted.options.valid = planted.folder.write("valid.tsv", lines[1]);
}

TEST(PlantedTruth, AKeywordAmongNoiseIsFound) {
  Planted planted;
  write_keywords(planted);
  planted.train({"model.type=classifier", "model.depth=32", "model.recurrent_layers=1",
                 "model.pooling=fixed_mlp", "model.attention_depth=16", "train.epochs=8",
                 "model.word_dropout=0", "model.output_dropout=0.2"});
  const Model model(planted.options.out);
  for (const char* method : {"gradient_x_input", "occlusion", "integrated_gradients"}) {
    int64_t found = 0;
    for (size_t i = 0; i < planted.tests.size(); ++i) {
      const Subject subject = answered_subject(model, planted.tests[i].source, {});
      const at::Tensor scores = method_scores(find_method(method), subject)[0];
      found += scores.argmax().item<int64_t>() == planted.places[i] ? 1 : 0;
    }
    EXPECT_GE(static_cast<double>(found), 0.99 * static_cast<double>(planted.tests.size()))
        << method;
  }
  const Faithfulness measured = measure_faithfulness(
      model, planted.tests,
      {.methods = {&find_method("attention"), &find_method("occlusion")},
       .figures = {&find_figure("comprehensiveness"), &find_figure("flips_by_token"),
                   &find_figure("tau_random_weights")},
       .examples = 0});
  ASSERT_EQ(measured.figures.size(), 6U);
  for (const FaithfulnessFigure& one : measured.figures) {
    SCOPED_TRACE(fmt::format("{} {}: {} in [{}, {}], other {}, difference in [{}, {}]",
                             one.method->name, one.figure->name, one.mean, one.low, one.high,
                             one.other, one.difference_low, one.difference_high));
    EXPECT_TRUE(one.passed);
    EXPECT_LE(one.low, one.mean);
    EXPECT_GE(one.high, one.mean);
    if (one.figure == &find_figure("tau_random_weights")) {
      EXPECT_LE(std::abs(one.mean), 0.1);
    }
  }
  EXPECT_THAT(faithfulness_json(measured), testing::HasSubstr("\"flips_by_token\""));
  EXPECT_THAT(faithfulness_svg(measured, "planted"), testing::HasSubstr("</svg>"));
}

}  // namespace planted_test
}  // namespace attend
