#include "attend/models/tagger.h"

#include <ATen/CPUGeneratorImpl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/optim/adam.h>

#include <limits>

#include "attend/models/masked_language_model.h"
#include "attend/models/new_pair_model.h"
#include "attend/text/vocabulary.h"
#include "tests/nn/module_gradients.h"
#include "tests/support/files.h"

namespace attend {
namespace tagger_test {

using at::Tensor;
using test::error_of;
using testing::HasSubstr;

constexpr int64_t tokens = 12, targets = 8, first_label = Vocabulary::unknown + 1;

TaggerConfig small(int64_t recurrent, int64_t layers) {
  TaggerConfig config;
  config.depth = 8;
  config.feed_forward = 12;
  config.heads = 2;
  config.recurrent_layers = recurrent;
  config.layers = layers;
  return config;
}

std::shared_ptr<Tagger> make(const TaggerConfig& config) {
  torch::manual_seed(5);
  auto network = std::make_shared<Tagger>(config, SourceShape(tokens), targets);
  network->to(torch::kDouble);
  return network;
}

EncodedPair sentence(const std::vector<int64_t>& ids, const std::vector<int64_t>& labels) {
  return {ids, labels, {}, /*no_eos=*/true};
}

const std::vector<EncodedPair> sentences = {sentence({4, 5, 6, 7, 8, 4}, {4, 4, 5, 6, 7, 4}),
                                            sentence({9, 3, 4}, {5, 5, 7}), sentence({6}, {6})};

TaggerConfig with_output_layer() {
  TaggerConfig config = small(1, 1);
  config.output_layer = true;
  return config;
}

std::vector<TaggerConfig> kinds() {
  return {small(0, 2), small(1, 0), small(1, 1), small(0, 0), with_output_layer()};
}

TEST(Tagger, ObjectiveIsTheCrossEntropyOfEachTokensLabel) {
  for (const TaggerConfig& config : kinds()) {
    const auto network = make(config);
    const Batch batch = make_batch(sentences, {0, 1, 2});
    const Tensor log_p = network->logits(batch.source, batch.source_lengths, {}).log_softmax(-1);
    ASSERT_EQ(log_p.size(2), targets - first_label);
    double loss = 0, smoothed = 0;
    for (int64_t i = 0; i < 3; ++i)
      for (int64_t t = 0; t < batch.source_lengths[i].item<int64_t>(); ++t) {
        const int64_t label = batch.target[i][t].item<int64_t>() - first_label;
        loss -= log_p[i][t][label].item<double>();
        smoothed -= log_p[i][t].mean().item<double>();
      }
    EXPECT_NEAR(network->objective(batch, {}, 0).item<double>(), loss, 1e-9);
    EXPECT_NEAR(network->objective(batch, {}, 0.1).item<double>(), 0.9 * loss + 0.1 * smoothed,
                1e-9);
  }
}

TEST(Tagger, LogProbabilitiesAreThoseOfItsSteps) {
  torch::NoGradGuard no_gradient;
  for (const TaggerConfig& config : kinds()) {
    const auto network = make(config);
    const Batch batch = make_batch(sentences, {0});
    const Tensor all = network->log_probabilities(batch, {});
    EXPECT_TRUE(at::allclose(all.exp().sum(-1), at::ones({1, 6}, at::kDouble), 1e-9, 1e-9));
    EXPECT_EQ(all.slice(2, 0, first_label).max().item<double>(),
              -std::numeric_limits<double>::infinity());
    const auto state = network->start(batch.source, batch.source_lengths, {});
    for (int64_t t = 0; t < 6; ++t) {
      const StepResult step = state->step(at::tensor({Vocabulary::bos}), true, {});
      EXPECT_TRUE(at::allclose(step.log_probabilities, all.select(1, t), 1e-9, 1e-9));
      ASSERT_EQ(step.weights.defined(), network->attends());
      if (!network->attends()) continue;
      // The class token has the remaining weight.
      EXPECT_EQ(step.weights.size(1), 6);
      EXPECT_LT(step.weights.sum().item<double>(), 1);
      EXPECT_GT(step.weights.min().item<double>(), 0);
    }
  }
}

TEST(Tagger, PaddingChangesNothing) {
  torch::NoGradGuard no_gradient;
  for (const TaggerConfig& config : kinds()) {
    const auto network = make(config);
    const Batch batch = make_batch(sentences, {0, 1, 2});
    const Tensor padded = network->logits(batch.source, batch.source_lengths, {});
    for (int64_t i = 0; i < 3; ++i) {
      const Batch one = make_batch(sentences, {i});
      const Tensor single = network->logits(one.source, one.source_lengths, {});
      EXPECT_TRUE(at::allclose(padded[i].slice(0, 0, single.size(1)), single[0], 1e-9, 1e-9));
    }
  }
}

TEST(Tagger, GradientsAreDifferences) {
  const auto network = make(with_output_layer());
  const Batch batch = make_batch(sentences, {0, 1, 2});
  reference::expect_parameter_slopes(*network, [&] { return network->objective(batch, {}, 0.1); });
}

// The label depends only on other tokens: whether a token like the first follows.
TEST(Tagger, OverfitsLabelsThatTheirNeighboursDecide) {
  const std::vector<EncodedPair> some = {sentence({4, 5, 5, 6}, {5, 4, 5, 4}),
                                         sentence({5, 5, 4, 5}, {4, 4, 5, 5}),
                                         sentence({6, 5, 6}, {4, 6, 4})};
  TaggerConfig config = small(1, 1);
  config.dropout = config.word_dropout = config.output_dropout = 0;
  const auto network = make(config);
  torch::optim::Adam adam(network->parameters(), torch::optim::AdamOptions(0.02));
  const Batch batch = make_batch(some, {0, 1, 2});
  for (int step = 0; step < 100; ++step) {
    adam.zero_grad();
    network->objective(batch, {}, 0).backward();
    adam.step();
  }
  torch::NoGradGuard no_gradient;
  const Tensor answered = network->log_probabilities(batch, {}).argmax(2);
  const Tensor asked = batch.target != Vocabulary::padding;
  EXPECT_TRUE(answered.masked_select(asked).equal(batch.target.masked_select(asked)));
}

TEST(Tagger, BeginsAsAMaskedLanguageModel) {
  MaskedLanguageModelConfig config;
  const TaggerConfig own = small(0, 2);
  static_cast<SourceEncoderConfig&>(config) = own;
  const auto theirs = make(own)->named_parameters();
  const MaskedLanguageModel encoder(config, SourceShape(tokens));
  for (const auto& item : encoder.named_parameters()) {
    if (item.key() == "bias") continue;
    ASSERT_TRUE(theirs.contains(item.key())) << item.key();
    EXPECT_EQ(theirs[item.key()].sizes(), item.value().sizes()) << item.key();
  }
}

TEST(Tagger, TellsWhatDoesNotFit) {
  EXPECT_THAT(error_of([] { Tagger(small(1, 1), FrameForm{3}, targets); }),
              HasSubstr("reads only texts, not images, sounds, sets or molecules"));
  const auto network = make(small(0, 1));
  const Batch batch = make_batch({sentence({4, 5}, {4})}, {0});
  EXPECT_THAT(error_of([&] { network->objective(batch, {}, 0); }),
              HasSubstr("targets of 1 tokens for sources of 2"));
  EXPECT_EQ(small(0, 0).no_weights_reason(), "model.layers = 0");
}

// A model of words with rare labels, which are kept.
class TaggerModelTest : public testing::Test {
 protected:
  TaggerModelTest() {
    config.type = "tagger";
    for (const char* setting : {"model.depth=8", "model.layers=0", "model.maximum_source_length=3"})
      assign(config.settings(), setting);
    text = config.row().text;
    text.minimum_count = 2;
    model = make_pair_model(text, config, examples);
  }

  std::string refusal(const Example& example) const {
    return error_of(
        [&] { check_labels(model, tokenise_examples({example}, model.codecs), "test.tsv"); });
  }

  const std::vector<Example> examples = {{"in New York", {"O B I"}}, {"in June", {"O D"}}};
  ModelConfig config;
  TextConfig text;
  PairModel model;
};

TEST_F(TaggerModelTest, KeepsAllLabelsAndCutsThemWithTheirTokens) {
  EXPECT_EQ(model.source_vocabulary.size(), first_label + 1) << "only 'in' occurs twice";
  EXPECT_EQ(model.target_vocabulary.size(), first_label + 4);
  EXPECT_EQ(refusal(examples[0]), "");
  const auto pairs = model.encode({Example{"in in New York in", {"O O B I O"}}});
  EXPECT_EQ(pairs[0].source.size(), 3U);
  EXPECT_EQ(model.target_text(pairs[0].target), "O O B");
  EXPECT_TRUE(pairs[0].no_eos);
}

TEST_F(TaggerModelTest, RefusesLabelsThatDoNotFit) {
  EXPECT_EQ(refusal({"in May", {"O"}, 7}),
            "test.tsv:7: 1 labels (data.target_units = space) for the 2 tokens (data.source_units "
            "= space) of 'in May'; give each token one label");
  EXPECT_EQ(
      refusal({"in May", {"O X"}}),
      "test.tsv: label 'X' of 'in May' was not in training; the training labels are 'O', 'B', 'D', "
      "'I'");
  EXPECT_THAT(error_of([&] {
                model.encode({Example{"in May", {"O"}}});
              }),
              HasSubstr("'in May' has 2 tokens and 1 labels"));
}

}  // namespace tagger_test
}  // namespace attend
