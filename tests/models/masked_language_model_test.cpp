#include "attend/models/masked_language_model.h"

#include <ATen/CPUGeneratorImpl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/optim/adam.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "attend/models/classifier.h"
#include "attend/text/vocabulary.h"
#include "tests/nn/module_gradients.h"
#include "tests/support/files.h"

namespace attend {
namespace masked_language_model_test {

using at::Tensor;
using test::error_of;

constexpr int64_t tokens = 12;

at::Generator seeded(uint64_t seed) { return at::make_generator<at::CPUGeneratorImpl>(seed); }

MaskedLanguageModelConfig small() {
  MaskedLanguageModelConfig config;
  config.depth = 8;
  config.feed_forward = 12;
  config.heads = 2;
  config.layers = 2;
  config.dropout = 0.1;
  return config;
}

std::shared_ptr<MaskedLanguageModel> make(const MaskedLanguageModelConfig& config) {
  torch::manual_seed(5);
  auto network = std::make_shared<MaskedLanguageModel>(config, SourceShape(tokens));
  network->to(torch::kDouble);
  return network;
}

EncodedPair line(const std::vector<int64_t>& ids) { return {ids, ids, {}, /*no_eos=*/true}; }

const std::vector<EncodedPair> lines = {line({4, 5, 6, 7, 8, 4, 5, 6, 7, 8, 9}), line({9, 4, 4}),
                                        line({6})};

TEST(MaskTokens, AsksForTheRoundedShareOfEachRow) {
  std::vector<int64_t> lengths;
  for (int64_t row = 0; row < 200; ++row) lengths.push_back(1 + row % 111);
  const Tensor length = torch::tensor(lengths);
  const Tensor inside = torch::arange(111).unsqueeze(0) < length.unsqueeze(1);
  const Tensor source = torch::randint(4, 54, {200, 111}) * inside;
  const MaskedTokens masked = mask_tokens(source, length, 0.15, 54, seeded(3));
  const Tensor asked = masked.asked != Vocabulary::padding;
  for (int64_t row = 0; row < 200; ++row)
    // std::rint and at::round both round ties to even.
    EXPECT_EQ(asked[row].sum().item<int64_t>(),
              std::max(1.0F, std::rint(0.15F * static_cast<float>(lengths[row]))));
  EXPECT_FALSE(asked.logical_and(inside.logical_not()).any().item<bool>());
  EXPECT_TRUE(masked.asked.equal(source * asked));
  EXPECT_TRUE((masked.shown == source).logical_or(asked).all().item<bool>());
  const auto of_asked = [&](const Tensor& which) {
    return which.logical_and(asked).sum().item<double>() / asked.sum().item<double>();
  };
  // About 1,670 tokens are hidden. A share p has a deviation of sqrt(p (1 - p) / 1670), 0.01 and
  // 0.007; four deviations are allowed. One of 50 random tokens equals the original.
  EXPECT_NEAR(of_asked(masked.shown == mask_token), 0.8, 0.04);
  EXPECT_NEAR(of_asked(masked.shown == source), 0.1 + 0.1 / 50, 0.03);
  EXPECT_GE(masked.shown.masked_select(inside.logical_and(masked.shown != mask_token))
                .min()
                .item<int64_t>(),
            4);
  const MaskedTokens same = mask_tokens(source, length, 0.15, 54, seeded(3));
  const MaskedTokens other = mask_tokens(source, length, 0.15, 54, seeded(4));
  EXPECT_TRUE(same.shown.equal(masked.shown) && same.asked.equal(masked.asked));
  EXPECT_FALSE(other.asked.equal(masked.asked));
  const MaskedTokens all = mask_tokens(source, length, 1, 54, seeded(3));
  EXPECT_TRUE(all.asked.equal(source));
}

TEST(MaskedLanguageModel, AsksForNothingUnknown) {
  constexpr int64_t unknown = Vocabulary::unknown;
  const std::vector<int64_t> ids = {5, unknown, 6, unknown, unknown, unknown};
  const Tensor source = torch::tensor(ids).view({2, 3});
  const Tensor lengths = at::full({2}, 3);
  const MaskedTokens masked = mask_tokens(source, lengths, 1, 54, seeded(3));
  EXPECT_TRUE(masked.asked.equal(source.masked_fill(source == unknown, Vocabulary::padding)));
  EXPECT_TRUE((masked.shown[1] == unknown).all().item<bool>());
  const auto network = make(small());
  const Batch batch = make_batch({line({unknown, unknown})}, {0});
  EXPECT_EQ(network->objective(batch, {}, 0).item<double>(), 0);
}

TEST(MaskTokens, ByContentDependsOnTheRowOnly) {
  const Tensor source = torch::randint(4, 54, {6, 40});
  const Tensor lengths = torch::tensor({40, 13, 40, 7, 1, 29});
  const MaskedTokens all = mask_tokens_by_content(source, lengths, 0.3, 54);
  for (int64_t row = 0; row < 6; ++row) {
    const auto length = lengths[row].item<int64_t>();
    const MaskedTokens alone = mask_tokens_by_content(source[row].slice(0, 0, length).unsqueeze(0),
                                                      at::full({1}, length), 0.3, 54);
    EXPECT_TRUE(alone.asked[0].equal(all.asked[row].slice(0, 0, length))) << row;
    EXPECT_TRUE(alone.shown[0].equal(all.shown[row].slice(0, 0, length))) << row;
    EXPECT_EQ((all.asked[row] != Vocabulary::padding).sum().item<int64_t>(),
              masked_tokens(length, 0.3));
  }
  const MaskedTokens other = mask_tokens_by_content(source + 1, lengths, 0.3, 55);
  EXPECT_FALSE((other.asked != 0).equal(all.asked != 0)) << "other tokens, other places";
}

// The sum over batches does not depend on the split into batches.
TEST(MaskedLanguageModel, ObjectiveDoesNotDependOnTheBatch) {
  const auto network = make(small());
  const auto objective = [&](const std::vector<int64_t>& rows) {
    return network->objective(make_batch(lines, rows), {}, 0).item<double>();
  };
  const double apart = objective({0}) + objective({1}) + objective({2});
  EXPECT_NEAR(objective({0, 1, 2}), apart, 1e-9 * apart);
  EXPECT_NEAR(objective({2, 0}) + objective({1}), apart, 1e-9 * apart);
}

TEST(MaskedLanguageModel, ObjectiveIsTheMeanOverWhatIsAskedFor) {
  for (const double share : {0.15, 0.6}) {
    MaskedLanguageModelConfig config = small();
    config.masked_share = share;
    const auto network = make(config);
    const Batch batch = make_batch(lines, {0, 1, 2});
    const MaskedTokens masked =
        mask_tokens_by_content(batch.source, batch.source_lengths, share, tokens);
    const Tensor log_p = network->logits(masked.shown, batch.source_lengths, {}).log_softmax(-1);
    double wanted = 0;
    for (int64_t i = 0; i < 3; ++i) {
      double sum = 0, count = 0;
      for (int64_t t = 0; t < batch.source.size(1); ++t)
        if (const auto id = masked.asked[i][t].item<int64_t>(); id != Vocabulary::padding) {
          sum -= log_p[i][t][id].item<double>();
          ++count;
        }
      wanted += sum / count * batch.source_lengths[i].item<double>();
    }
    EXPECT_NEAR(network->objective(batch, {}, 0).item<double>(), wanted, 1e-9);
    // With a generator the mean is over the batch.
    const MaskedTokens drawn =
        mask_tokens(batch.source, batch.source_lengths, share, tokens, seeded(1));
    EXPECT_GT(network->objective(batch, {.generator = seeded(1)}, 0).item<double>(), 0);
    EXPECT_GT((drawn.asked != Vocabulary::padding).sum().item<int64_t>(), 0);
    EXPECT_EQ(network->objective(batch, {}, 0).item<double>(),
              network->objective(batch, {}, 0).item<double>());
  }
}

TEST(MaskedLanguageModel, GradientsAreDifferences) {
  const auto network = make(small());
  const Batch batch = make_batch(lines, {0, 1, 2});
  reference::expect_parameter_slopes(*network, [&] { return network->objective(batch, {}, 0.1); });
}

TEST(MaskedLanguageModel, PaddingChangesNothing) {
  const auto network = make(small());
  const Batch batch = make_batch(lines, {0, 1, 2});
  const Tensor padded = network->logits(batch.source, batch.source_lengths, {});
  for (int64_t i = 0; i < 3; ++i) {
    const Batch one = make_batch(lines, {i});
    const Tensor single = network->logits(one.source, one.source_lengths, {});
    EXPECT_TRUE(torch::allclose(padded[i].slice(0, 0, single.size(1)), single[0], 1e-9, 1e-9));
  }
}

TEST(MaskedLanguageModel, AnswersWithItsSourceAndFillsInWhatIsUnknown) {
  torch::NoGradGuard no_gradient;
  const auto network = make(small());
  const double impossible = -std::numeric_limits<double>::infinity();
  const Batch batch = make_batch({line({4, 3, 6}), line({7})}, {0, 1});
  const auto state = network->start(batch.source, batch.source_lengths, {});
  const Tensor bos = torch::tensor({1, 1});
  const StepResult first = state->step(bos, true, {});
  const StepResult second = state->step(bos, true, {});
  const StepResult third = state->step(bos, false, {});
  const auto certain = [&](const Tensor& row, int64_t id) {
    Tensor expected = torch::full({tokens}, impossible, torch::kDouble);
    expected[id] = 0;
    return row.equal(expected);
  };
  EXPECT_TRUE(certain(first.log_probabilities[0], 4) && certain(first.log_probabilities[1], 7));
  EXPECT_TRUE(certain(third.log_probabilities[0], 6));
  const Tensor shown = torch::tensor({{4, 1, 6}});
  const Tensor guess = network->logits(shown, torch::tensor({3}), {})[0][1];
  EXPECT_TRUE(torch::allclose(second.log_probabilities[0].slice(0, 4),
                              guess.slice(0, 4).log_softmax(0), 1e-9, 1e-9));
  EXPECT_EQ(second.log_probabilities[0].slice(0, 0, 4).max().item<double>(), impossible);
  // The class token has the remaining weight.
  EXPECT_EQ(second.weights.sizes(), batch.source.sizes());
  EXPECT_LT(second.weights[0].sum().item<double>(), 1);
  EXPECT_GT(second.weights[0].min().item<double>(), 0);
  EXPECT_EQ(first.weights[1].slice(0, 1).abs().sum().item<double>(), 0);
}

TEST(MaskedLanguageModel, LearnsWhatStandsBetween) {
  // Two lines; any token identifies its line.
  const std::vector<EncodedPair> two = {line({4, 5, 6, 7, 8}), line({9, 10, 11, 9, 10})};
  MaskedLanguageModelConfig config = small();
  config.dropout = 0;
  const auto network = make(config);
  torch::optim::Adam adam(network->parameters(), torch::optim::AdamOptions(0.01));
  const Batch batch = make_batch(two, {0, 1, 0, 1});
  for (uint64_t step = 1; step <= 150; ++step) {
    adam.zero_grad();
    (network->objective(batch, {.generator = seeded(step)}, 0) / 20).backward();
    adam.step();
  }
  torch::NoGradGuard no_gradient;
  const Tensor shown = torch::tensor({{4, 1, 6, 7, 8}, {9, 10, 11, 1, 10}});
  const Tensor guess = network->logits(shown, torch::tensor({5, 5}), {}).argmax(-1);
  EXPECT_EQ(guess[0][1].item<int64_t>(), 5);
  EXPECT_EQ(guess[1][3].item<int64_t>(), 9);
}

TEST(MaskedLanguageModel, BeginsAClassifier) {
  ClassifierConfig config;
  static_cast<SourceEncoderConfig&>(config) = small();
  config.pooling = Pooling::class_token;
  const Classifier classifier(config, SourceShape(tokens), 6);
  const auto theirs = classifier.named_parameters();
  for (const auto& item : make(small())->named_parameters()) {
    if (item.key() == "bias") continue;
    ASSERT_TRUE(theirs.contains(item.key())) << item.key();
    EXPECT_EQ(theirs[item.key()].sizes(), item.value().sizes()) << item.key();
  }
}

TEST(MaskedLanguageModel, TellsWhatDoesNotFit) {
  MaskedLanguageModelConfig config = small();
  config.layers = 0;
  EXPECT_THAT(error_of([&] { make(config); }), testing::HasSubstr("model.layers is 0"));
  config = small();
  config.self.normaliser = "monotonic_hard";
  EXPECT_THAT(error_of([&] { make(config); }),
              testing::HasSubstr("model.normaliser is monotonic_hard"));
  EXPECT_THAT(error_of([] { MaskedLanguageModel(small(), FrameForm{3}); }),
              testing::HasSubstr("reads only texts, not images, sounds, sets or molecules"));
}

}  // namespace masked_language_model_test
}  // namespace attend
