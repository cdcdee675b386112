#include "attend/models/source_encoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/models/networks.h"
#include "tests/support/files.h"

namespace attend {
namespace source_encoder_test {

using at::Tensor;

SourceEncoderConfig small(Positions positions) {
  SourceEncoderConfig config;
  config.depth = 6;
  config.heads = 2;
  config.feed_forward = 5;
  config.positions = positions;
  config.maximum_source_length = 4;
  return config;
}

std::shared_ptr<SourceEncoder> make(const SourceShape& shape, const SourceEncoderConfig& config,
                                    int64_t class_tokens = 0) {
  torch::manual_seed(3);
  auto encoder = std::make_shared<SourceEncoder>(shape, config, class_tokens);
  encoder->to(torch::kDouble);
  return encoder;
}

// Vaswani et al. 2017, 3.4 and 3.5: sqrt(d) e + sin or cos of p / 10000^(2 i / d).
TEST(SourceEncoder, AddsSinusoidsToScaledTokens) {
  const auto encoder = make(SourceShape(9), small(Positions::sinusoidal));
  const Tensor source = torch::tensor({{4, 8, 4}}), lengths = torch::tensor({3});
  const StackSource found = encoder->forward(source, lengths, {});
  EXPECT_TRUE(torch::equal(found.lengths, lengths));
  for (int64_t p = 0; p < 3; ++p) {
    for (int64_t c = 0; c < 6; ++c) {
      const double angle = static_cast<double>(p) / std::pow(10000, (c - c % 2) / 6.0);
      const double expected = std::sqrt(6.0) * encoder->weight()[source[0][p]][c].item<double>() +
                              (c % 2 == 0 ? std::sin(angle) : std::cos(angle));
      // The random embedding and the rounded sinusoid are float32.
      EXPECT_NEAR(found.vectors[0][p][c].item<double>(), expected, 1e-12);
    }
  }
}

TEST(SourceEncoder, KnowsRowsAndColumnsOfAnImage) {
  const SourceShape shape = ImageForm{4, 2, 3};
  const auto told = make(shape, small(Positions::sinusoidal)),
             bare = make(shape, small(Positions::none));
  const Tensor patches = torch::randn({1, 6, 4}, torch::kDouble), lengths = torch::tensor({6});
  const Tensor positions = (told->forward(patches, lengths, {}).vectors -
                            bare->forward(patches, lengths, {}).vectors)[0];
  // Half of the dimensions encode the row, half the column.
  for (int64_t a = 0; a < 6; ++a) {
    for (int64_t b = 0; b < 6; ++b) {
      EXPECT_EQ(torch::allclose(positions[a].slice(0, 0, 3), positions[b].slice(0, 0, 3)),
                a / 3 == b / 3);
      EXPECT_EQ(torch::allclose(positions[a].slice(0, 3), positions[b].slice(0, 3)),
                a % 3 == b % 3);
    }
  }
}

TEST(SourceEncoder, PutsItsTokenFirst) {
  const auto encoder = make(SourceShape(9), small(Positions::learned), /*class_tokens=*/1);
  const StackSource found =
      encoder->forward(torch::tensor({{4, 5}, {6, 0}}), torch::tensor({2, 1}), {});
  EXPECT_EQ(found.vectors.sizes(), (std::vector<int64_t>{2, 3, 6}));
  EXPECT_TRUE(torch::equal(found.lengths, torch::tensor({3, 2})));
  const Tensor token = encoder->named_parameters()["class_token"];
  for (int64_t i = 0; i < 2; ++i) EXPECT_TRUE(torch::equal(found.vectors[i][0], token.view({6})));
}

// Rows of 4, 2 and 3 tokens, with 1, 2 and 0 hidden or unknown ones.
TEST(SourceEncoder, ScalesTokensByTheShareOfHiddenOnes) {
  SourceEncoderConfig config = small(Positions::none);
  config.token_dropout = 0.12;
  const auto encoder = make(SourceShape(9), config);
  constexpr int64_t unknown = Vocabulary::unknown;
  const Tensor source =
      torch::tensor({int64_t{4}, mask_token, int64_t{5}, int64_t{6}, unknown, mask_token,
                     int64_t{0}, int64_t{0}, int64_t{7}, int64_t{8}, int64_t{4}, int64_t{0}})
          .view({3, 4});
  const Tensor found = encoder->forward(source, torch::tensor({4, 2, 3}), {}).vectors;
  EXPECT_EQ(found[0][1].abs().max().item<double>(), 0);
  EXPECT_EQ(found[1].slice(0, 0, 2).abs().max().item<double>(), 0);
  const auto is_scaled = [&](int64_t row, int64_t place, double factor) {
    const Tensor expected = encoder->weight()[source[row][place]] * factor;
    return torch::allclose(found[row][place], expected, 1e-14, 0);
  };
  for (const int64_t place : {0, 2, 3}) EXPECT_TRUE(is_scaled(0, place, 0.88 / (3.0 / 4)));
  for (const int64_t place : {0, 1, 2}) EXPECT_TRUE(is_scaled(2, place, 0.88));
}

TEST(SourceEncoder, RefusesAContactHeadWithoutMaps) {
  SourceEncoderConfig config = small(Positions::none);
  config.contact_head = true;
  EXPECT_THAT(test::error_of([&] { config.check(); }),
              testing::HasSubstr("model.contact_head is true"));
  config.layers = 2;
  config.check();
  config.layer = "delta";
  EXPECT_THAT(test::error_of([&] { config.check(); }),
              testing::HasSubstr("not every layer has attention"));
}

TEST(SourceEncoder, RefusesMorePositionsThanItLearned) {
  const auto encoder = make(SourceShape(9), small(Positions::learned));
  EXPECT_THAT(test::error_of([&] {
                encoder->forward(torch::full({1, 5}, 4, torch::kLong), torch::tensor({5}), {});
              }),
              testing::HasSubstr("positions 0 to 4 are asked for, 4 are learned"));
}

// Vectors and bits of answers of every type with encoder layers. Sums of some tens of float32 terms
// near 1.
TEST(SourceEncoder, EncodesByPackedLayersAsByLibTorch) {
  const at::NoGradGuard no_gradient;
  std::vector<std::string> packed;
  for (const test::SomeNetwork& one : test::some_networks()) {
    SCOPED_TRACE(one.name);
    torch::manual_seed(3);
    const auto network = one.config().chosen().make_network(one.source, one.target);
    if (!network->packs_objective() || one.source.as<NodeForm>() != nullptr) continue;
    network->eval();
    const Tensor source = test::some_sources(one.source, 3, 9);
    const int64_t length = source.size(1);
    const Tensor lengths = torch::tensor({length, int64_t{2}, length - 3});
    const Tensor want = network->encodings(source, lengths, {});
    if (!network->pack(WeightType::float32)) continue;
    packed.push_back(one.name);
    const Tensor got = network->encodings(source, lengths, {});
    for (int64_t row = 0; row < 3; ++row)
      EXPECT_LT(
          (got - want)[row].slice(0, 0, lengths[row].item<int64_t>()).abs().max().item<float>(),
          1e-5);
    network->train();
    EXPECT_TRUE(network->encodings(source, lengths, {}).slice(1, 0, 2).equal(want.slice(1, 0, 2)))
        << "training packs nothing";
  }
  EXPECT_THAT(packed, ::testing::IsSupersetOf({"classifier", "classifier_normalised", "encoder",
                                               "encoder_albert", "encoder_contacts", "reader",
                                               "tagger_layers", "vit", "classifier_pairs"}));
  EXPECT_THAT(packed, ::testing::Not(::testing::Contains("classifier_hybrid")));
}

}  // namespace source_encoder_test
}  // namespace attend
