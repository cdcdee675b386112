#include "attend/models/classifier.h"

#include <ATen/CPUGeneratorImpl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "attend/base/error.h"
#include "attend/data/vocabulary.h"

namespace attend {
namespace {

using at::Tensor;
using testing::HasSubstr;

constexpr int64_t words = 14, targets = 7;  // of which 4 are a vocabulary's fixed ones
constexpr int64_t labels = targets - 4;

const std::vector<EncodedPair> pairs = {{{4, 5, 6, 7, 8}, {4}}, {{9, 4, 13}, {6}}, {{5}, {5}}};

struct Variant {
  std::string name;
  ClassifierConfig config;
  bool ordered = false;
};

ClassifierConfig small() {
  return {.attention_depth = 5,
          .self_heads = 2,
          .embedding = 6,
          .word_dropout = 0.3,
          .dropout = 0.3,
          .maximum_source_length = 20};
}

std::vector<Variant> variants() {
  std::vector<Variant> all;
  const auto add = [&](const std::string& name, const std::string& pooling, auto&& change) {
    all.push_back({name, small()});
    all.back().config.pooling = pooling;
    change(all.back());
  };
  const auto nothing = [](Variant&) {};
  add("sum", "sum", nothing);
  add("mean", "mean", nothing);
  add("mean_hidden", "mean", [](Variant& v) { v.config.hidden = 7; });
  add("dot", "fixed_dot", nothing);
  add("dot_unnormalised", "fixed_dot", [](Variant& v) {
    v.config.queries = 2;
    v.config.normaliser = "none";
  });
  add("mlp", "fixed_mlp", [](Variant& v) { v.config.queries = 3; });
  add("self_mean", "mean", [](Variant& v) {
    v.config.self_layers = 2;
    v.ordered = true;
  });
  add("self_mlp", "fixed_mlp", [](Variant& v) {
    v.config.self_layers = 1;
    v.ordered = true;
  });
  return all;
}

// With biases and distances that are not 0, so that each counts.
std::shared_ptr<Classifier> make(const ClassifierConfig& config) {
  torch::manual_seed(31);
  auto network = std::make_shared<Classifier>(config, words, targets);
  network->to(torch::kDouble);
  torch::NoGradGuard no_gradient;
  for (Tensor& parameter : network->parameters()) parameter.add_(torch::randn_like(parameter) / 2);
  return network;
}

Tensor logits_of(Classifier& network, const std::vector<int64_t>& source) {
  return network.logits(torch::tensor(source).unsqueeze(0),
                        torch::tensor({static_cast<int64_t>(source.size())}), {})[0];
}

class EveryClassifier : public testing::TestWithParam<Variant> {
 protected:
  void SetUp() override { network = make(GetParam().config); }

  std::shared_ptr<Classifier> network;
  const Batch batch = make_batch(pairs, {0, 1, 2});
};

INSTANTIATE_TEST_SUITE_P(Table, EveryClassifier, testing::ValuesIn(variants()),
                         [](const auto& info) { return info.param.name; });

TEST_P(EveryClassifier, PaddingChangesNothing) {
  const Tensor padded = network->logits(batch.source, batch.source_lengths, {});
  ASSERT_EQ(padded.sizes(), (std::vector<int64_t>{3, labels}));
  for (int64_t i = 0; i < 3; ++i)
    EXPECT_TRUE(torch::allclose(
        padded[i], logits_of(*network, pairs[static_cast<size_t>(i)].source), 1e-10, 1e-10));
}

TEST_P(EveryClassifier, OrderCountsBehindSelfAttentionAlone) {
  const Tensor forwards = logits_of(*network, {4, 5, 6, 7, 8});
  const Tensor backwards = logits_of(*network, {8, 7, 6, 5, 4});
  const double difference = (forwards - backwards).abs().max().item<double>();
  if (GetParam().ordered)
    EXPECT_GT(difference, 1e-3);
  else
    EXPECT_LT(difference, 1e-12);
}

TEST_P(EveryClassifier, StepsGiveALabelAndThenTheEnd) {
  StepState state = network->start(batch.source, batch.source_lengths);
  const Tensor start = torch::full({3}, Vocabulary::start, torch::kLong);
  const Tensor first = network->step(start, state, false).log_probabilities;
  ASSERT_EQ(first.sizes(), (std::vector<int64_t>{3, targets}));
  EXPECT_EQ(first.slice(1, 0, 4).exp().sum().item<double>(), 0);
  EXPECT_TRUE(torch::allclose(first.exp().sum(1), torch::ones({3}, torch::kDouble)));
  double likelihood = 0;
  for (int64_t i = 0; i < 3; ++i)
    likelihood -= first[i][pairs[static_cast<size_t>(i)].target[0]].item<double>();
  EXPECT_NEAR(network->objective(batch, {}, 0.0).item<double>(), likelihood, 1e-10);
  const Tensor second = network->step(batch.target.select(1, 0), state, false).log_probabilities;
  EXPECT_TRUE(torch::equal(second.select(1, Vocabulary::end), torch::zeros({3}, torch::kDouble)));
  EXPECT_EQ(second.exp().sum().item<double>(), 3);
}

TEST_P(EveryClassifier, WeightsShowTheWordsAlone) {
  StepState state = network->start(batch.source, batch.source_lengths);
  const Tensor start = torch::full({3}, Vocabulary::start, torch::kLong);
  const Tensor weights = network->step(start, state, true).weights;
  ASSERT_EQ(weights.defined(), network->attends());
  const bool bag = GetParam().name.starts_with("sum") || GetParam().name.starts_with("mean");
  EXPECT_EQ(network->attends(), !bag);
  if (bag) return;
  ASSERT_EQ(weights.sizes(), batch.source.sizes());
  EXPECT_EQ(weights[1].slice(0, 3).abs().sum().item<double>(), 0);
  EXPECT_EQ(weights[2].slice(0, 1).abs().sum().item<double>(), 0);
  if (GetParam().config.normaliser == "none") return;
  EXPECT_TRUE(torch::allclose(weights.sum(1), torch::ones({3}, torch::kDouble)));
}

// Along a random direction of each parameter, with the same masks each time. Central differences of
// step h err by h^2 times a third derivative and eps / h times the value: 1e-10 both at h = 1e-5.
TEST_P(EveryClassifier, GradientsAreDifferences) {
  const auto objective = [&] {
    return network->objective(batch, at::make_generator<at::CPUGeneratorImpl>(5), 0.1);
  };
  objective().backward();
  torch::NoGradGuard no_gradient;
  constexpr double h = 1e-5;
  for (auto& item : network->named_parameters()) {
    Tensor& parameter = item.value();
    ASSERT_TRUE(parameter.grad().defined()) << item.key();
    const Tensor direction = torch::randn_like(parameter);
    const double derivative = (parameter.grad() * direction).sum().item<double>();
    parameter.add_(direction, h);
    const auto above = objective().item<double>();
    parameter.sub_(direction, 2 * h);
    const auto below = objective().item<double>();
    parameter.add_(direction, h);
    EXPECT_NEAR(derivative, (above - below) / (2 * h), 1e-7 * (1 + std::abs(derivative)))
        << item.key();
    EXPECT_GT(parameter.grad().abs().sum().item<double>(), 0) << item.key();
  }
}

TEST(Classifier, SumAndMeanAreThoseOfTheVectors) {
  for (const char* pooling : {"sum", "mean"}) {
    ClassifierConfig config = small();
    config.pooling = pooling;
    const auto network = make(config);
    const auto parameters = network->named_parameters();
    const std::vector<int64_t> source = {4, 4, 9};
    Tensor vector = torch::zeros({config.embedding}, torch::kDouble);
    for (const int64_t word : source) vector = vector + parameters["embedding.weight"][word];
    if (config.pooling == "mean") vector = vector / 3;
    const Tensor expected =
        torch::mv(parameters["output.weight"], vector) + parameters["output.bias"];
    EXPECT_TRUE(torch::allclose(logits_of(*network, source), expected, 1e-12, 1e-12)) << pooling;
  }
}

// x + W_o [heads], then y + W_2 relu(W_1 norm(y)), a loop over heads, queries and keys.
TEST(SelfAttentionLayer, IsTheFormula) {
  constexpr int64_t depth = 6, heads = 2, length = 4, head = depth / heads;
  torch::manual_seed(32);
  SelfAttentionLayer layer(depth, heads, 0);
  layer.to(torch::kDouble);
  auto parameters = layer.named_parameters();
  {
    torch::NoGradGuard no_gradient;
    parameters["distances"].normal_();
  }
  const auto norm = [&](const Tensor& x, const std::string& name) {
    return torch::layer_norm(x, {depth}, parameters[name + ".weight"], parameters[name + ".bias"]);
  };
  const auto linear = [&](const Tensor& x, const std::string& name) {
    return torch::linear(x, parameters[name + ".weight"], parameters[name + ".bias"]);
  };
  const Tensor x = torch::randn({length, depth}, torch::kDouble);
  const Tensor mapped = linear(norm(x, "attention_norm"), "projections");
  const auto part = [&](int64_t which, int64_t h) {
    return mapped.slice(1, which * depth + h * head, which * depth + (h + 1) * head);
  };
  Tensor contexts = torch::zeros({length, depth}, torch::kDouble);
  Tensor map = torch::zeros({length, length}, torch::kDouble);
  for (int64_t h = 0; h < heads; ++h) {
    Tensor scores = torch::mm(part(0, h), part(1, h).t()) / std::sqrt(static_cast<double>(head));
    for (int64_t i = 0; i < length; ++i) {
      for (int64_t j = 0; j < length; ++j) {
        // Raffel et al. 2020: half of the 32 buckets for the keys after the query, one for each of
        // the distances below 8.
        const int64_t bucket = std::abs(j - i) + (j > i ? 16 : 0);
        scores[i][j] += parameters["distances"][h][bucket];
      }
    }
    const Tensor weights = scores.softmax(-1);
    contexts.slice(1, h * head, (h + 1) * head).copy_(torch::mm(weights, part(2, h)));
    map += weights / heads;
  }
  const Tensor read = x + linear(contexts, "merge");
  const Tensor expected =
      read + linear(linear(norm(read, "forward_norm"), "inner").relu(), "outer");
  const Tensor lengths = torch::tensor({length});
  EXPECT_TRUE(
      torch::allclose(layer.forward(x.unsqueeze(0), lengths, {})[0], expected, 1e-10, 1e-10));
  EXPECT_TRUE(torch::allclose(layer.weights(x.unsqueeze(0), lengths)[0], map, 1e-10, 1e-10));
}

TEST(Classifier, RollsItsLayersOut) {
  ClassifierConfig config = small();
  config.self_layers = 1;
  const auto network = make(config);
  const Tensor source = torch::tensor({{4, 5, 6}}), lengths = torch::tensor({3});
  SelfAttentionLayer layer(config.embedding, config.self_heads, 0);
  layer.to(torch::kDouble);
  const auto whole = network->named_parameters();
  torch::NoGradGuard no_gradient;
  for (auto& item : layer.named_parameters()) item.value().copy_(whole["self0." + item.key()]);
  const Tensor map =
      layer.weights(whole["embedding.weight"].index_select(0, source[0]).unsqueeze(0), lengths)[0];
  for (int64_t j = 0; j < 3; ++j) {
    double expected = 0.5 / 3;
    for (int64_t i = 0; i < 3; ++i) expected += 0.5 / 3 * map[i][j].item<double>();
    EXPECT_NEAR(network->word_weights(source, lengths)[0][j].item<double>(), expected, 1e-12);
  }
}

// The share of the pairs that a classifier gets right after it learned them.
double learned(const ClassifierConfig& config, const std::vector<EncodedPair>& examples) {
  torch::manual_seed(33);
  Classifier network(config, words, 6);
  std::vector<int64_t> all(examples.size());
  std::iota(all.begin(), all.end(), 0);
  const Batch batch = make_batch(examples, all);
  torch::optim::Adam adam(network.parameters(), torch::optim::AdamOptions(1e-2));
  for (int step = 0; step < 200; ++step) {
    adam.zero_grad();
    network.objective(batch, {}, 0.0).backward();
    adam.step();
  }
  const Tensor answers = network.logits(batch.source, batch.source_lengths, {}).argmax(1) + 4;
  return (answers == batch.target.select(1, 0)).to(torch::kDouble).mean().item<double>();
}

// good +, not good -, bad -, not bad +: for a sum of numbers a word, good > 0, not + good < 0 and
// bad < 0 leave not + bad < 0. Self-attention is not bound to a sum.
TEST(Classifier, ContextTurnsAWordRound) {
  const std::vector<EncodedPair> examples = {{{4}, {4}}, {{6, 4}, {5}}, {{5}, {5}}, {{6, 5}, {4}}};
  ClassifierConfig config = small();
  config.pooling = "sum";
  EXPECT_LE(learned(config, examples), 0.75);
  config.pooling = "mean";
  config.self_layers = 1;
  EXPECT_EQ(learned(config, examples), 1);
}

TEST(Classifier, LearnsAnOrder) {
  const std::vector<EncodedPair> examples = {{{4, 5}, {4}}, {{5, 4}, {5}}};
  ClassifierConfig config = small();
  config.pooling = "fixed_mlp";
  EXPECT_EQ(learned(config, examples), 0.5);
  config.self_layers = 1;
  EXPECT_EQ(learned(config, examples), 1);
}

TEST(Classifier, NoiseAloneDecidesWhatIsDropped) {
  const auto network = make(small());
  const Batch batch = make_batch(pairs, {0, 1, 2});
  const auto run = [&](uint64_t seed) {
    return network->objective(batch, at::make_generator<at::CPUGeneratorImpl>(seed), 0.0);
  };
  EXPECT_TRUE(torch::equal(run(1), run(1)));
  EXPECT_FALSE(torch::equal(run(1), run(2)));
}

TEST(Classifier, RefusesHeadsThatDoNotDivideTheDepth) {
  ClassifierConfig config = small();
  config.self_heads = 4;
  EXPECT_NO_THROW(config.check()) << "without layers nothing is divided";
  config.self_layers = 1;
  try {
    Classifier(config, words, targets);
    FAIL() << "4 heads do not divide a depth of 6";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("model.self_heads is 4"));
  }
}

}  // namespace
}  // namespace attend
