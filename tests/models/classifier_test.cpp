#include "attend/models/classifier.h"

#include <ATen/CPUGeneratorImpl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/optim/adam.h>

#include <cmath>
#include <numeric>

#include "attend/text/vocabulary.h"
#include "tests/nn/module_gradients.h"
#include "tests/support/files.h"

namespace attend {
namespace classifier_test {

using at::Tensor;
using testing::HasSubstr;

constexpr int64_t words = 14, targets = 7;  // including the 4 fixed tokens of a vocabulary
constexpr int64_t labels = targets - 4;

const std::vector<EncodedPair> pairs = {{{4, 5, 6, 7, 8}, {4}}, {{9, 4, 13}, {6}}, {{5}, {5}}};

struct Variant {
  std::string name;
  ClassifierConfig config;
  bool ordered = false;
};

ClassifierConfig small(Pooling pooling = Pooling::mean) {
  ClassifierConfig config;
  config.pooling = pooling;
  config.attention_depth = 5;
  config.depth = 6;
  config.heads = 2;
  config.feed_forward = 7;
  config.word_dropout = config.dropout = config.output_dropout = 0.3;
  config.maximum_source_length = 20;
  return config;
}

TEST(ClassifierBias, DependsOnTheMechanism) {
  ClassifierConfig config;
  EXPECT_EQ(config.self.choices().bias, "buckets:32");
  config.self.mechanism = "alibi";
  EXPECT_EQ(config.self.choices().bias, "alibi");
  config.self.mechanism = "sparsemax";
  EXPECT_EQ(config.self.choices().bias, "buckets:32");
  config.self.mechanism = "linear";
  EXPECT_EQ(config.self.choices().bias, "");
  config.self.bias = "sink";
  EXPECT_EQ(config.self.choices().bias, "sink");
}

std::vector<Variant> variants() {
  std::vector<Variant> all;
  const auto add = [&](const std::string& name, Pooling pooling, auto&& change) {
    all.push_back({name, small(pooling)});
    change(all.back().config);
    const ClassifierConfig& made = all.back().config;
    all.back().ordered =
        made.recurrent_layers > 0 ||
        (made.layers > 0 && (made.self.bias != "none" || made.positions != Positions::none));
  };
  const auto nothing = [](ClassifierConfig&) {};
  add("sum", Pooling::sum, nothing);
  add("mean", Pooling::mean, nothing);
  add("mean_hidden", Pooling::mean, [](ClassifierConfig& c) { c.hidden = 7; });
  add("dot", Pooling::fixed_dot, nothing);
  add("dot_unnormalised", Pooling::fixed_dot, [](ClassifierConfig& c) {
    c.queries = 2;
    c.pooling_normaliser = "none";
  });
  add("mlp", Pooling::fixed_mlp, [](ClassifierConfig& c) { c.queries = 3; });
  add("self_mean", Pooling::mean, [](ClassifierConfig& c) { c.layers = 2; });
  add("self_mlp", Pooling::fixed_mlp, [](ClassifierConfig& c) { c.layers = 1; });
  add("self_set", Pooling::mean, [](ClassifierConfig& c) {
    c.layers = 1;
    c.self.bias = "none";
  });
  add("multi_head", Pooling::multi_head, nothing);
  add("self_multi_head", Pooling::multi_head, [](ClassifierConfig& c) {
    c.layers = 1;
    c.self.bias = "none";
  });
  add("induced", Pooling::multi_head, [](ClassifierConfig& c) {
    c.layers = 2;
    c.self.bias = "none";
    c.inducing_points = 3;
  });
  for (const Cell cell : {Cell::lstm, Cell::gru})
    add("recurrent_" + name_of(cell), cell == Cell::gru ? Pooling::fixed_dot : Pooling::fixed_mlp,
        [&](ClassifierConfig& c) {
          c.recurrent_layers = 2;
          c.cell = cell;
        });
  add("recurrent_below_class", Pooling::class_token,
      [](ClassifierConfig& c) { c.recurrent_layers = c.layers = 1; });
  for (const Positions positions : {Positions::learned, Positions::sinusoidal, Positions::rotary})
    add("class_" + name_of(positions), Pooling::class_token, [&](ClassifierConfig& c) {
      c.layers = 2;
      c.self.bias = "none";
      c.positions = positions;
      if (c.positions == Positions::rotary) c.heads = 3;  // for heads of even depth
    });
  add("class_linear", Pooling::class_token, [](ClassifierConfig& c) {
    c.layers = 1;
    c.self = {.mechanism = "linear"};
    c.positions = Positions::learned;
  });
  return all;
}

// With nonzero biases and distances, so that each has an effect.
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

TEST_P(EveryClassifier, OrderCountsWhereLayersAreToldPositions) {
  const Tensor forwards = logits_of(*network, {4, 5, 6, 7, 8});
  const Tensor backwards = logits_of(*network, {8, 7, 6, 5, 4});
  const double difference = (forwards - backwards).abs().max().item<double>();
  if (GetParam().ordered)
    EXPECT_GT(difference, 1e-3);
  else
    EXPECT_LT(difference, 1e-12);
}

TEST_P(EveryClassifier, TheStepGivesALabel) {
  const auto state = network->start(batch.source, batch.source_lengths, {});
  const Tensor start = torch::full({3}, Vocabulary::bos, torch::kLong);
  const Tensor first = state->step(start, false, {}).log_probabilities;
  ASSERT_EQ(first.sizes(), (std::vector<int64_t>{3, targets}));
  EXPECT_EQ(first.slice(1, 0, 4).exp().sum().item<double>(), 0);
  EXPECT_TRUE(torch::allclose(first.exp().sum(1), torch::ones({3}, torch::kDouble)));
  double likelihood = 0;
  for (int64_t i = 0; i < 3; ++i)
    likelihood -= first[i][pairs[static_cast<size_t>(i)].target[0]].item<double>();
  EXPECT_NEAR(network->objective(batch, {}, 0.0).item<double>(), likelihood, 1e-10);
}

TEST_P(EveryClassifier, WeightsShowTheWordsAlone) {
  const auto state = network->start(batch.source, batch.source_lengths, {});
  const Tensor start = torch::full({3}, Vocabulary::bos, torch::kLong);
  const Tensor weights = state->step(start, true, {}).weights;
  ASSERT_EQ(weights.defined(), network->attends());
  const ClassifierConfig& config = GetParam().config;
  const bool bag =
      config.layers == 0 && (config.pooling == Pooling::sum || config.pooling == Pooling::mean);
  EXPECT_EQ(network->attends(), !bag && config.self.mechanism != "linear");
  if (!network->attends()) return;
  ASSERT_EQ(weights.sizes(), batch.source.sizes());
  EXPECT_EQ(weights[1].slice(0, 3).abs().sum().item<double>(), 0);
  EXPECT_EQ(weights[2].slice(0, 1).abs().sum().item<double>(), 0);
  if (config.pooling_normaliser == "none") return;
  EXPECT_TRUE(torch::allclose(weights.sum(1), torch::ones({3}, torch::kDouble)));
}

// With the same dropout masks in each call.
TEST_P(EveryClassifier, GradientsAreDifferences) {
  reference::expect_parameter_slopes(*network, [&] {
    return network->objective(batch, {.generator = at::make_generator<at::CPUGeneratorImpl>(5)},
                              0.1);
  });
  for (const auto& item : network->named_parameters()) {
    // Softmax cancels whatever is added equally to all scores of a row.
    if (item.key().ends_with(".key.bias")) continue;
    EXPECT_GT(item.value().grad().abs().sum().item<double>(), 0) << item.key();
  }
}

TEST(Classifier, SumAndMeanAreThoseOfTheVectors) {
  for (const Pooling pooling : {Pooling::sum, Pooling::mean}) {
    const ClassifierConfig config = small(pooling);
    const auto network = make(config);
    const auto parameters = network->named_parameters();
    const std::vector<int64_t> source = {4, 4, 9};
    Tensor vector = torch::zeros({config.depth}, torch::kDouble);
    for (const int64_t word : source) vector = vector + parameters["encoder.input.weight"][word];
    if (config.pooling == Pooling::mean) vector = vector / 3;
    const Tensor expected =
        torch::mv(parameters["output.weight"], vector) + parameters["output.bias"];
    EXPECT_TRUE(torch::allclose(logits_of(*network, source), expected, 1e-12, 1e-12))
        << name_of(pooling);
  }
}

using Named = torch::OrderedDict<std::string, Tensor>;

Tensor linear(const Named& p, const std::string& name, const Tensor& x) {
  return at::matmul(x, p[name + ".weight"].t()) + p[name + ".bias"];
}

Tensor normalised(const Named& p, const std::string& name, const Tensor& x) {
  const Tensor centred = x - x.mean(-1, true);
  return centred / (centred.square().mean(-1, true) + 1e-5).sqrt() * p[name + ".weight"] +
         p[name + ".bias"];
}

struct WrittenOut {
  Tensor vectors;  // [S, depth]
  Tensor map;      // [S, S]: the mean over the heads
};

// The single layer of a classifier, x + W_o [heads], y + W_2 relu(W_1 norm(y)) and the last norm,
// without a bias of the scores (Vaswani et al. 2017, 3.1; Xiong et al. 2020).
WrittenOut layer_of(const Named& p, const Tensor& x, int64_t heads) {
  const std::string layer = "encoder.layers.layer0_";
  const Tensor in = normalised(p, layer + "self_norm", x);
  const int64_t head = x.size(1) / heads;
  const Tensor query = linear(p, layer + "self.query", in), key = linear(p, layer + "self.key", in),
               value = linear(p, layer + "self.value", in);
  Tensor map = torch::zeros({x.size(0), x.size(0)}, torch::kDouble);
  std::vector<Tensor> contexts;
  for (int64_t h = 0; h < heads; ++h) {
    const auto part = [&](const Tensor& all) { return all.slice(1, h * head, (h + 1) * head); };
    const Tensor weights =
        (at::mm(part(query), part(key).t()) / std::sqrt(static_cast<double>(head))).softmax(1);
    contexts.push_back(at::mm(weights, part(value)));
    map += weights / heads;
  }
  const Tensor read = x + linear(p, layer + "self.output", at::cat(contexts, 1));
  const Tensor inner = normalised(p, layer + "feed_forward_norm", read);
  const Tensor made = read + linear(p, layer + "feed_forward.output",
                                    linear(p, layer + "feed_forward.hidden", inner).relu());
  return {normalised(p, "encoder.layers.norm", made), map};
}

// Devlin et al. 2019: the last layer's vector of a token before the words.
TEST(Classifier, ReadsTheClassToken) {
  ClassifierConfig config = small(Pooling::class_token);
  config.layers = 1;
  config.self.bias = "none";
  config.positions = Positions::learned;
  const auto network = make(config);
  const Named p = network->named_parameters();
  const Tensor source = torch::tensor({4, 9, 5});
  const Tensor words = p["encoder.input.weight"].index_select(0, source) +
                       p["encoder.positions.table"].slice(0, 0, 3);
  const auto [vectors, map] =
      layer_of(p, at::cat({p["encoder.class_token"].view({1, 6}), words}), config.heads);
  EXPECT_TRUE(torch::allclose(logits_of(*network, {4, 9, 5}), linear(p, "output", vectors[0]),
                              1e-10, 1e-10));
  const Tensor read = map[0].slice(0, 1);
  EXPECT_TRUE(torch::allclose(network->word_weights(source.unsqueeze(0), torch::tensor({3}))[0],
                              read / read.sum()));
}

TEST(Classifier, RollsItsLayersOut) {
  ClassifierConfig config = small();
  config.layers = 1;
  config.self.bias = "none";
  const auto network = make(config);
  const Named p = network->named_parameters();
  const Tensor source = torch::tensor({{4, 5, 6}}), lengths = torch::tensor({3});
  const Tensor map =
      layer_of(p, p["encoder.input.weight"].index_select(0, source[0]), config.heads).map;
  for (int64_t j = 0; j < 3; ++j) {
    double expected = 0.5 / 3;
    for (int64_t i = 0; i < 3; ++i) expected += 0.5 / 3 * map[i][j].item<double>();
    EXPECT_NEAR(network->word_weights(source, lengths)[0][j].item<double>(), expected, 1e-12);
  }
}

TEST(Classifier, ReadsFramesAndShowsThem) {
  ClassifierConfig config = small(Pooling::class_token);
  config.layers = 1;
  config.positions = Positions::sinusoidal;
  torch::manual_seed(34);
  Classifier network(config, FrameForm{3}, targets);
  network.to(torch::kDouble);
  const Tensor frames = torch::randn({2, 5, 3}, torch::kDouble);
  const Tensor lengths = torch::tensor({5, 2});
  const Tensor logits = network.logits(frames, lengths, {});
  ASSERT_EQ(logits.sizes(), (std::vector<int64_t>{2, labels}));
  EXPECT_TRUE(torch::allclose(
      logits[1], network.logits(frames.slice(0, 1).slice(1, 0, 2), torch::tensor({2}), {})[0]));
  const Pass noise{.generator = at::make_generator<at::CPUGeneratorImpl>(5)};
  EXPECT_FALSE(torch::allclose(network.logits(frames, lengths, noise), logits));
  const auto state = network.start(frames, lengths, {});
  const Tensor start = torch::full({2}, Vocabulary::bos, torch::kLong);
  const Tensor weights = state->step(start, true, {}).weights;
  ASSERT_EQ(weights.sizes(), (std::vector<int64_t>{2, 5}));
  EXPECT_EQ(weights[1].slice(0, 2).sum().item<double>(), 0);
  EXPECT_NEAR(weights[1].sum().item<double>(), 1, 1e-12);
}

// Share of correct answers for the training pairs after training.
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

// good +, not good -, bad -, not bad +. If a word contributes a fixed number to a sum, good > 0,
// not + good < 0 and bad < 0 imply not + bad < 0. Self-attention does not have this limit.
TEST(Classifier, ContextTurnsAWordRound) {
  const std::vector<EncodedPair> examples = {{{4}, {4}}, {{6, 4}, {5}}, {{5}, {5}}, {{6, 5}, {4}}};
  ClassifierConfig config = small();
  config.pooling = Pooling::sum;
  EXPECT_LE(learned(config, examples), 0.75);
  config.pooling = Pooling::mean;
  config.layers = 1;
  EXPECT_EQ(learned(config, examples), 1);
}

TEST(Classifier, LearnsAnOrder) {
  const std::vector<EncodedPair> examples = {{{4, 5}, {4}}, {{5, 4}, {5}}};
  ClassifierConfig config = small();
  config.pooling = Pooling::fixed_mlp;
  EXPECT_EQ(learned(config, examples), 0.5);
  config.layers = 1;
  EXPECT_EQ(learned(config, examples), 1);
}

TEST(Classifier, NoiseAloneDecidesWhatIsDropped) {
  const auto network = make(small());
  const Batch batch = make_batch(pairs, {0, 1, 2});
  const auto run = [&](uint64_t seed) {
    return network->objective(batch, {.generator = at::make_generator<at::CPUGeneratorImpl>(seed)},
                              0.0);
  };
  EXPECT_TRUE(torch::equal(run(1), run(1)));
  EXPECT_FALSE(torch::equal(run(1), run(2)));
}

TEST(Classifier, TellsWhatDoesNotFit) {
  ClassifierConfig config = small();
  config.heads = 4;
  EXPECT_NO_THROW(config.check()) << "without layers nothing is divided";
  config.layers = 1;
  const auto refusal = [&] { return test::error_of([&] { Classifier(config, words, targets); }); };
  EXPECT_THAT(refusal(), HasSubstr("model.heads is 4"));
  config.heads = 2;
  config.self.mechanism = "linformer";
  EXPECT_THAT(refusal(), HasSubstr("take self"));
  config.self = {.mechanism = "self", .normaliser = "hard"};
  EXPECT_THAT(refusal(), HasSubstr("model.normaliser is hard"));
  config = small(Pooling::class_token);
  EXPECT_THAT(refusal(), HasSubstr("set model.layers to 1 or more"));
  config = small(Pooling::multi_head);
  config.queries = 2;
  EXPECT_THAT(refusal(), HasSubstr("take more heads"));
  config = small();
  config.inducing_points = 2;
  EXPECT_THAT(refusal(), HasSubstr("model.layers 0"));
  config.layers = 1;
  EXPECT_THAT(refusal(), HasSubstr("inducing points lack positions"));
}

TEST(Classifier, PoolsAtATemperature) {
  ClassifierConfig config = small(Pooling::fixed_dot);
  assign(config.settings(), "model.pooling_normaliser=temperature:1e6");
  config.check();
  torch::manual_seed(4);
  Classifier network(config, words, targets);
  network.eval();
  const Batch batch = make_batch({{{5, 6, 7, 8}, {5}}}, {0});
  const auto even = network.log_probabilities(batch, {});
  config.pooling = Pooling::mean;
  Classifier mean(config, words, targets);
  mean.eval();
  {
    const torch::NoGradGuard not_recorded;
    for (auto& item : mean.named_parameters())
      item.value().copy_(network.named_parameters()[item.key()]);
  }
  EXPECT_TRUE(at::allclose(even, mean.log_probabilities(batch, {}), 1e-5, 1e-5));
  config.pooling_normaliser = "temperature:hot";
  EXPECT_THAT(test::error_of([&] { config.check(); }), HasSubstr("'hot'"));
}

// A set has no order, and its scores have any sign; fixed queries learn only from the loss.
TEST(Classifier, PoolsByNormalisersThatTrainIt) {
  for (const NormaliserRow& row : normaliser_table()) {
    SCOPED_TRACE(row.name);
    ClassifierConfig config = small(Pooling::fixed_mlp);
    assign(config.settings(), "model.pooling_normaliser=" + std::string(row.name));
    const std::string refusal = test::error_of([&] { config.check(); });
    const bool refused = row.name == "hard" || row.name == "linear" || row.order_dependent;
    EXPECT_EQ(refusal.empty(), !refused) << refusal;
    if (refused) {
      EXPECT_THAT(refusal, HasSubstr("model.pooling_normaliser is " + std::string(row.name)));
      EXPECT_THAT(refusal, HasSubstr("take softmax, temperature:T"));
      continue;
    }
    // Softpick passes gradients to positive scores only, and this seed draws some.
    torch::manual_seed(3);
    Classifier network(config, words, targets);
    network.objective(make_batch({{{5, 6, 7, 8}, {5}}, {{9, 4}, {6}}}, {0, 1}), {}, 0).backward();
    for (const char* name : {"fixed.query", "fixed.v", "fixed.keys.weight"})
      EXPECT_GT(network.named_parameters()[name].grad().abs().sum().item<double>(), 0) << name;
  }
}

}  // namespace classifier_test
}  // namespace attend
