// Tests of classifiers that read pairs of texts, and of answers that are a probability.
#include <ATen/CPUGeneratorImpl.h>
#include <gmock/gmock.h>

#include <cmath>

#include "attend/models/classifier.h"
#include "attend/models/new_pair_model.h"
#include "tests/support/files.h"

namespace attend {
namespace pair_texts_test {

using at::Tensor;
using test::error_of;
using testing::ElementsAre;
using testing::HasSubstr;

const std::vector<Example> examples = {{"a b\tc", {"0.25"}}, {"b\ta c", {"1"}}, {"c", {"0"}}};

PairModel make(const std::vector<std::string>& settings = {},
               const std::string& type = "classifier") {
  ModelConfig config;
  config.type = type;
  for (const char* small :
       {"model.depth=4", "model.heads=2", "model.layers=1", "model.feed_forward=5"})
    assign(config.settings(), small);
  for (const std::string& one : settings) assign(config.settings(), one);
  TextConfig text = config.row().text;
  text.source_units = "space";
  text.pairs = PairTexts::optional;
  if (type == "classifier") text.target = TargetKind::probability;
  torch::manual_seed(3);
  PairModel model = make_pair_model(text, config, examples);
  model.network->to(at::kDouble);
  model.network->eval();
  return model;
}

Tensor logits(const PairModel& model, const std::vector<std::vector<int64_t>>& sources) {
  std::vector<EncodedPair> pairs;
  std::vector<int64_t> all;
  for (const auto& source : sources) {
    all.push_back(std::ssize(all));
    pairs.push_back({.source = source, .target = {0}, .no_eos = true});
  }
  const Batch batch = make_batch(pairs, all);
  return model.network->start(batch.source, batch.source_lengths, {})
      ->step(at::zeros({std::ssize(sources)}, at::kLong), false, {})
      .log_probabilities.squeeze(1);
}

TEST(PairTexts, AreIdsOfTwoVocabularies) {
  const PairModel model = make();
  const int64_t size = model.source_vocabulary.size();
  const auto id = [&](const char* token) { return model.source_vocabulary.id(token); };
  const std::vector<EncodedPair> pairs = model.encode(examples);
  EXPECT_THAT(pairs[0].source, ElementsAre(id("a"), id("b"), id(pair_separator), id("c") + size));
  EXPECT_THAT(pairs[2].source, ElementsAre(id("c")));
  EXPECT_EQ(model.vocabulary_id(pairs[0].source[3]), id("c"));
}

// The second text's vector is the sum of its token and its side.
TEST(PairTexts, HaveAVectorPerText) {
  const PairModel model = make({"model.layers=0", "model.pooling=sum", "model.word_dropout=0"});
  const int64_t size = model.source_vocabulary.size(), a = model.source_vocabulary.id("a");
  auto parameters = model.network->named_parameters();
  const Tensor sides = parameters["encoder.sides"], output = parameters["output.weight"];
  const Tensor found = logits(model, {{a}, {a + size}});
  const Tensor expected = (output * (sides[1] - sides[0])).sum();
  EXPECT_NEAR((found[1] - found[0]).item<double>(), expected.item<double>(), 1e-14);
  EXPECT_FALSE(
      make({"model.side_vectors=false"}).network->named_parameters().contains("encoder.sides"));
}

TEST(PairTexts, LoseTheEndOfTheLonger) {
  const PairModel model = make({"model.maximum_source_length=8"});
  const auto kept = [&](const std::string& source) {
    SourceTokens tokens = model.codecs.source.split_source(source);
    model.truncate_source(tokens.names, tokens.second);
    std::string text;
    for (size_t i = 0; i < tokens.names.size(); ++i)
      text += (i == static_cast<size_t>(tokens.second) ? "|" : "") + tokens.names[i];
    return text;
  };
  EXPECT_EQ(kept("a b c\td e f"), "abc\t|def");
  EXPECT_EQ(kept("a b c d e f g h\ti"), "abcdef\t|i");
  EXPECT_EQ(kept("a\tb c d e f g h i"), "a\t|bcdefg");
  EXPECT_EQ(kept("a b c d e f g\th i j k l m n"), "abc\t|hijk");
  EXPECT_EQ(kept("a b c d e f g h i j"), "abcdefgh");
  const PairModel tiny = make({"model.maximum_source_length=2"});
  EXPECT_THAT(error_of([&] {
                tiny.encode({Example{"a b\tc", {"0"}}});
              }),
              HasSubstr("a pair has 1 special tokens; take 3 or more"));
}

TEST(PairTexts, AreReadByClassifiersOnly) {
  EXPECT_THAT(error_of([] { make({}, "tagger"); }),
              HasSubstr("data.pairs is optional, and model.type tagger reads single texts"));
  TextConfig text{.language_token = true, .pairs = PairTexts::always};
  EXPECT_THAT(error_of([&] { make_codecs(text); }), HasSubstr("data.language_token is true"));
}

// Dropped words keep their text.
TEST(PairTexts, AreDroppedWithinTheirText) {
  Pass pass;
  pass.generator = at::make_generator<at::CPUGeneratorImpl>(1);
  const Tensor dropped =
      drop_words(at::tensor({5, 7, 15, 17}, at::kLong).unsqueeze(0), 1, pass, 10);
  const int64_t unknown = Vocabulary::unknown;
  EXPECT_TRUE(dropped[0].equal(at::tensor({unknown, unknown, unknown + 10, unknown + 10})));
}

TEST(Probabilities, AreLearnedByBinaryCrossEntropy) {
  const PairModel model = make();
  const std::vector<EncodedPair> pairs = model.encode(examples);
  const Batch batch = make_batch(pairs, {0, 1, 2});
  const Tensor scores = logits(model, {pairs[0].source, pairs[1].source, pairs[2].source});
  double expected = 0;
  for (int64_t i = 0; i < 3; ++i) {
    const double target = *pairs[static_cast<size_t>(i)].number;
    const double p = 1 / (1 + std::exp(-scores[i].item<double>()));
    expected -= target * std::log(p) + (1 - target) * std::log(1 - p);
  }
  EXPECT_NEAR(model.network->objective(batch, {}, 0).item<double>(), expected, 1e-6);
  const double step[] = {scores[0].item<double>()};
  EXPECT_DOUBLE_EQ(*model.answer_kind().read_step(model, step)->number,
                   1 / (1 + std::exp(-step[0])));
}

TEST(Probabilities, AreTargetsFrom0To1) {
  EXPECT_EQ(target_probability("0"), 0);
  EXPECT_EQ(target_probability(" 1 "), 1);
  for (const char* text : {"-0.1", "1.0001", "nan", "yes", ""})
    EXPECT_THAT(error_of([&] { target_probability(text); }), HasSubstr("not a number from 0 to 1"))
        << text;
}

}  // namespace pair_texts_test
}  // namespace attend
