#include "attend/models/vit.h"

#include <ATen/CPUGeneratorImpl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "attend/text/vocabulary.h"
#include "tests/nn/module_gradients.h"
#include "tests/support/files.h"

namespace attend {
namespace vit_test {

using at::Tensor;
using test::error_of;
using testing::HasSubstr;

constexpr int64_t labels = 3, targets = labels + 4;
// Images of 2 x 3 patches of 2 x 2 pixels.
const SourceShape shape = ImageForm{4, 2, 3};

VitConfig small() {
  VitConfig config;
  config.depth = 4;
  config.feed_forward = 5;
  config.heads = 2;
  config.layers = 1;
  config.maximum_source_length = 6;
  return config;
}

// With nonzero biases, so that each has an effect.
std::shared_ptr<Classifier> make(const VitConfig& config) {
  torch::manual_seed(7);
  auto network = std::make_shared<Classifier>(config, shape, targets);
  network->to(torch::kDouble);
  torch::NoGradGuard no_gradient;
  for (Tensor& parameter : network->parameters()) parameter.add_(torch::randn_like(parameter) / 2);
  return network;
}

struct Parameters {
  torch::OrderedDict<std::string, Tensor> all;

  const Tensor& of(const std::string& name) const { return all[name]; }
  // x W^T + b.
  Tensor linear(const std::string& name, const Tensor& x) const {
    return torch::matmul(x, of(name + ".weight").t()) + of(name + ".bias");
  }
  Tensor norm(const std::string& name, const Tensor& x) const {
    const Tensor centred = x - x.mean(-1, true);
    return centred / (centred.square().mean(-1, true) + 1e-5).sqrt() * of(name + ".weight") +
           of(name + ".bias");
  }
};

struct Heads {
  Tensor output, weights;  // [7, 4]; mean over the heads, [7, 7]
};

// Vaswani et al. 2017, eq. 1 for two heads of depth 2.
Heads heads(const Parameters& p, const Tensor& x) {
  const std::string name = "encoder.layers.layer0_self";
  const Tensor query = p.linear(name + ".query", x), key = p.linear(name + ".key", x),
               value = p.linear(name + ".value", x);
  std::vector<Tensor> contexts;
  Tensor weights = torch::zeros({7, 7}, torch::kDouble);
  for (int64_t head = 0; head < 2; ++head) {
    const auto part = [&](const Tensor& whole) { return whole.slice(1, 2 * head, 2 * head + 2); };
    const Tensor w = (torch::matmul(part(query), part(key).t()) / std::sqrt(2.0)).softmax(1);
    contexts.push_back(torch::matmul(w, part(value)));
    weights += w / 2;
  }
  return {p.linear(name + ".output", torch::cat(contexts, 1)), weights};
}

// Dosovitskiy et al. 2021, eq. 1 to 4, for one image.
struct Reference {
  Tensor logits, weights;
};
Reference reference(const Classifier& network, const Tensor& patches) {
  const Parameters p{network.named_parameters()};
  const std::string layer = "encoder.layers.layer0_";
  const Tensor places = p.of("encoder.positions.table");
  Tensor x = torch::cat(
      {p.of("encoder.class_token").view({1, 4}), p.linear("encoder.input", patches) + places});
  const Heads attended = heads(p, p.norm(layer + "self_norm", x));
  x = x + attended.output;
  const Tensor hidden =
      p.linear(layer + "feed_forward.hidden", p.norm(layer + "feed_forward_norm", x));
  const Tensor gelu = hidden * 0.5 * (1 + torch::erf(hidden / std::sqrt(2.0)));
  x = p.norm("encoder.layers.norm", x + p.linear(layer + "feed_forward.output", gelu));
  // Rollout of one layer: half of each patch's weight is from the class token's row.
  const Tensor row = attended.weights[0].slice(0, 1);
  return {p.linear("output", x[0]), row / row.sum()};
}

TEST(Vit, IsTheFormula) {
  const auto network = make(small());
  const Tensor images = torch::randn({2, 6, 4}, torch::kDouble);
  const Tensor lengths = torch::tensor({6, 6});
  const Tensor logits = network->logits(images, lengths, {});
  const Tensor weights = network->word_weights(images, lengths);
  ASSERT_EQ(logits.sizes(), (std::vector<int64_t>{2, labels}));
  ASSERT_EQ(weights.sizes(), (std::vector<int64_t>{2, 6}));
  for (int64_t i = 0; i < 2; ++i) {
    const auto [expected, looked] = reference(*network, images[i]);
    // Some hundred operations on numbers near 1.
    EXPECT_TRUE(torch::allclose(logits[i], expected, 1e-10, 1e-10));
    EXPECT_TRUE(torch::allclose(weights[i], looked, 1e-10, 1e-10));
  }
}

// Their vectors follow the class token's, and they share no position with a patch.
TEST(Vit, ReadsRegistersAndAnswersWithout) {
  VitConfig config = small();
  config.registers = 2;
  const auto network = make(config);
  const Tensor images = torch::randn({1, 6, 4}, torch::kDouble), lengths = torch::tensor({6});
  const TopVectors top = network->top_vectors(6, 1);
  EXPECT_EQ(top.before_source, 3);
  EXPECT_TRUE(at::equal(top.shares, at::eye(9).slice(0, 0, 1)));
  EXPECT_EQ(network->encodings(images, lengths, {}).size(1), 6);
  const Tensor weights = network->word_weights(images, lengths);
  EXPECT_EQ(weights.sizes(), (std::vector<int64_t>{1, 6}));
  EXPECT_NEAR(weights.sum().item<double>(), 1, 1e-12);
  AttentionTrace trace;
  const Tensor logits = network->logits(images, lengths, Pass{}.watched_by(trace));
  EXPECT_EQ(trace.attentions()[0].weights().size(2), 9);
  const torch::NoGradGuard no_gradients;
  network->named_parameters()["encoder.class_token"].slice(1, 1).select(2, 0) += 1;
  EXPECT_FALSE(at::allclose(network->logits(images, lengths, {}), logits, 1e-3, 1e-3));
  config.pooling = Pooling::mean;
  EXPECT_THROW(config.check(), Error);
}

// Flips, shifts and convolutions move all colours of a pixel together. If two of three colours have
// zero weights, the answer is the answer for a grey image.
TEST(Vit, ReadsColours) {
  VitConfig config = small();
  config.image = {.convolutions = 1, .channels = 2, .flip = true, .shift = 1};
  const SourceShape colours = ImageForm{12, 2, 3, 3};
  torch::manual_seed(3);
  Classifier network(config, colours, targets);
  Classifier one(config, shape, targets);
  network.to(torch::kDouble);
  one.to(torch::kDouble);
  const torch::NoGradGuard no_gradients;
  const std::string first = "encoder.input.convolution0.weight";
  auto parameters = network.named_parameters();
  parameters[first].slice(1, 1).zero_();
  for (const auto& item : one.named_parameters())
    item.value().copy_(item.key() == first ? parameters[first].slice(1, 0, 1)
                                           : parameters[item.key()]);
  const Tensor grey = torch::randn({4, 6, 4}, torch::kDouble), lengths = torch::full({4}, 6);
  const auto answer = [&](Classifier& asked, const Tensor& images) {
    return asked.logits(images, lengths,
                        {.generator = at::make_generator<at::CPUGeneratorImpl>(5)});
  };
  EXPECT_TRUE(at::allclose(answer(network, torch::cat({grey, 2 * grey, -grey}, 2)),
                           answer(one, grey), 1e-10, 1e-10));
}

TEST(Vit, KnowsWhereAPatchIs) {
  const Tensor image = torch::randn({1, 6, 4}, torch::kDouble), lengths = torch::tensor({6});
  const Tensor turned = image.flip(1);
  for (const Positions positions :
       {Positions::learned, Positions::sinusoidal, Positions::rotary, Positions::none}) {
    VitConfig config = small();
    config.positions = positions;
    const auto network = make(config);
    const Tensor change =
        network->logits(image, lengths, {}) - network->logits(turned, lengths, {});
    if (positions == Positions::none)
      EXPECT_LT(change.abs().max().item<double>(), 1e-12);
    else
      EXPECT_GT(change.abs().max().item<double>(), 1e-3) << name_of(positions);
  }
}

TEST(Vit, GradientsAreDifferences) {
  for (const Positions positions : {Positions::learned, Positions::sinusoidal}) {
    VitConfig config = small();
    config.positions = positions;
    config.layers = 2;
    const auto network = make(config);
    const Batch batch{torch::randn({2, 6, 4}, torch::kDouble),
                      torch::tensor({6, 6}),
                      torch::tensor({{int64_t{4}, Vocabulary::eos}, {int64_t{6}, Vocabulary::eos}}),
                      {}};
    reference::expect_parameter_slopes(*network, [&] {
      return network->objective(batch, {.generator = at::make_generator<at::CPUGeneratorImpl>(5)},
                                0.1);
    });
  }
}

TEST(Vit, RefusesOtherImages) {
  const auto network = make(small());
  EXPECT_THAT(error_of([&] {
                network->logits(torch::zeros({1, 5, 4}, torch::kDouble), torch::tensor({5}), {});
              }),
              HasSubstr("5 patches"));
  EXPECT_THAT(error_of([&] {
                network->logits(torch::tensor({{4, 5}}), torch::tensor({2}), {});
              }),
              HasSubstr("this network reads frames"));
}

}  // namespace vit_test
}  // namespace attend
