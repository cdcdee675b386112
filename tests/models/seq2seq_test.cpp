#include "attend/models/seq2seq.h"

#include <ATen/CPUGeneratorImpl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/optim/adam.h>

#include <functional>
#include <numeric>

#include "attend/base/error.h"
#include "attend/nn/mechanism_table.h"
#include "attend/text/vocabulary.h"
#include "tests/models/steps.h"
#include "tests/nn/module_gradients.h"

namespace attend {
namespace seq2seq_test {

using at::Tensor;

Seq2SeqConfig small() {
  Seq2SeqConfig config;
  config.embedding = 6;
  config.hidden = 8;
  config.attention_depth = 5;
  config.encoder_layers = 2;
  config.dropout = 0.3;
  config.maximum_source_length = 20;
  return config;
}

const std::vector<EncodedPair> pairs = {
    {{4, 5, 6, 7, 8}, {4, 5}}, {{9, 4}, {6, 7, 8, 4}}, {{5}, {5}}};

constexpr int64_t tokens = 10;

struct Variant {
  std::string name;
  Seq2SeqConfig config;
};

// For the names of the test cases in GoogleTest.
void PrintTo(const Variant& variant, std::ostream* out) { *out << variant.name; }

using Change = std::function<void(Seq2SeqConfig&)>;

Variant variant(const std::string& name, const Change& change) {
  Variant made{name, small()};
  change(made.config);
  return made;
}

// Parts of the network other than its attention.
std::vector<Variant> part_variants() {
  std::vector<Variant> all = {
      variant("fed", [](auto& c) { c.query = "state", c.input_feeding = true; }),
      variant("tied_target", [](auto& c) { c.tied = Tied::target; }),
      variant("tied_all", [](auto& c) { c.tied = Tied::all; }),
      variant("self_layers", [](auto& c) { c.self_layers = 2, c.heads = 2; }),
      variant("self_layers_fixed_context",
              [](auto& c) { c.self_layers = 1, c.heads = 2, c.score = "none"; }),
      variant("self_layers_alone",
              [](auto& c) { c.self_layers = 1, c.encoder = Annotations::none; }),
      variant("plain", [](auto& c) { c.plain = true, c.score = "none", c.encoder_layers = 1; }),
      variant("intra_decoder", [](auto& c) { c.intra_decoder = true; }),
      variant("copy", [](auto& c) { c.copy = true; }),
      variant("coverage_weight", [](auto& c) { c.coverage_weight = 1; }),
      variant("everything", [](auto& c) {
        c.cell = Cell::lstm, c.query = "state+extra", c.tied = Tied::all;
        c.decoder_layers = 2, c.self_layers = 1, c.heads = 2;
        c.residual = c.input_feeding = c.intra_decoder = c.copy = true;
        c.coverage_weight = 0.5;
      })};
  for (const Cell cell : {Cell::gru, Cell::lstm}) {
    const auto deep = [&](const std::string& name, const std::string& query, bool residual) {
      all.push_back(variant(name + "_" + name_of(cell), [&](auto& c) {
        c.cell = cell, c.query = query, c.residual = residual, c.decoder_layers = 3;
      }));
    };
    deep("deep", "previous_state", false);
    deep("deep_state_first", "state", false);
    deep("residual", "previous_state", true);
    deep("residual_state_first", "state+context", true);
  }
  return all;
}

// Every mechanism that a recurrent decoder can use, every score, and every part of a query.
std::vector<Variant> variants() {
  std::vector<Variant> all = part_variants();
  for (const Mechanism& row : mechanism_table()) {
    if (row.refusal.empty())
      all.push_back(
          variant("mechanism_" + std::string(row.name), [&](auto& c) { c.mechanism = row.name; }));
  }
  for (const ScoreRow& row : score_table()) {
    if (!row.name.ends_with("_features"))
      all.push_back(
          variant("score_" + std::string(row.name), [&](auto& c) { c.score = row.name; }));
  }
  // Sources are shorter than these prefixes.
  all.push_back(variant("prefix", [](auto& c) { c.scope = "prefix:4"; }));
  all.push_back(variant("global", [](auto& c) { c.scope = "window:1 | global:3"; }));
  for (const Cell cell : {Cell::gru, Cell::lstm}) {
    const auto with = [&](const std::string& name, const std::string& score,
                          const std::string& query) {
      all.push_back(variant(name + "_" + name_of(cell),
                            [&](auto& c) { c.cell = cell, c.score = score, c.query = query; }));
    };
    with("fixed_context", "none", "");
    with("input_feeding", "general", "state+context");
    with("every_part", "additive", "previous_state + state + token + context + extra");
    with("before_the_state", "additive", "token+context+extra");
    with("sequential", "coverage", "state");
  }
  return all;
}

class EveryVariant : public testing::TestWithParam<Variant> {
 protected:
  void SetUp() override {
    torch::manual_seed(11);
    const Seq2SeqConfig& config = GetParam().config;
    network = std::make_shared<Seq2Seq>(config, 12, config.wants_joint_vocabulary() ? 12 : tokens);
    network->to(torch::kDouble);
  }
  std::shared_ptr<Seq2Seq> network;
};

INSTANTIATE_TEST_SUITE_P(Table, EveryVariant, testing::ValuesIn(variants()),
                         [](const auto& info) { return info.param.name; });

// Returns whether weights sum to 1: the normaliser does so, and every query has a key.
bool sums_to_one(const AttentionChoices& choices) {
  return Normaliser(choices.normaliser).row().sums_to_one && choices.bias != "sink" &&
         (choices.scope == "all" || choices.scope.find("global") < 99);
}

TEST_P(EveryVariant, StepsGiveTheTeacherForcedProbabilities) {
  const Batch batch = make_batch(pairs, {0, 1, 2});
  for (const bool training : {true, false}) {
    network->train(training);
    reference::expect_steps(
        *network, batch, network->logits(batch, {}), [&](const StepResult& result) {
          ASSERT_EQ(result.weights.defined(), network->attends());
          if (!network->attends()) return;
          if (sums_to_one(GetParam().config.choices())) {
            EXPECT_TRUE(torch::allclose(result.weights.sum(1), torch::ones({3}, torch::kDouble)));
          }
          EXPECT_EQ(result.weights[2].slice(0, 1).abs().sum().item<double>(), 0);
        });
  }
}

TEST_P(EveryVariant, PackedStepsAreThoseOfLibTorch) {
  const Seq2SeqConfig& config = GetParam().config;
  const AttentionChoices choices = config.attends() ? config.choices() : AttentionChoices();
  const std::vector<std::string> scores = {"dot",     "scaled_dot", "disentangled_dot",
                                           "general", "additive",   "linear"};
  const bool reads_both_states = config.query.find("previous_state + state") == 0;
  const bool has_packed_form =
      config.attends() && !reads_both_states && !config.intra_decoder && !config.copy &&
      choices.scope == "all" && choices.bias.empty() && choices.normaliser == "softmax" &&
      std::find(scores.begin(), scores.end(), choices.score) != scores.end();
  reference::expect_packed_steps(*network, make_batch(pairs, {0, 1, 2}), /*steps=*/6,
                                 has_packed_form);
}

TEST_P(EveryVariant, PaddingChangesNothing) {
  const Batch together = make_batch(pairs, {0, 1, 2});
  const Tensor padded = network->logits(together, {});
  for (int64_t i = 0; i < 3; ++i) {
    const Batch alone = make_batch(pairs, {i});
    const Tensor single = network->logits(alone, {});
    EXPECT_TRUE(torch::allclose(padded[i].slice(0, 0, single.size(1)), single[0], 1e-10, 1e-10));
  }
}

TEST_P(EveryVariant, ObjectiveIsTheCrossEntropyOfItsLogits) {
  const Batch batch = make_batch(pairs, {0, 1, 2});
  const Tensor logits = network->logits(batch, {});
  const Tensor log_p = logits - logits.logsumexp(-1, true);
  // A mixture of copies and vocabulary already consists of probabilities.
  if (GetParam().config.copy) {
    EXPECT_TRUE(torch::allclose(logits, log_p, 1e-12, 1e-12));
  }
  for (const double smoothing : {0.0, 0.1}) {
    double expected = 0;
    for (int64_t i = 0; i < 3; ++i)
      for (int64_t t = 0; t < batch.target_lengths[i].item<int64_t>(); ++t)
        expected -= (1 - smoothing) * log_p[i][t][batch.target[i][t]].item<double>() +
                    smoothing * log_p[i][t].slice(0, Vocabulary::eos).mean().item<double>();
    EXPECT_NEAR(network->objective(batch, {}, smoothing).item<double>(), expected, 1e-9);
  }
}

Pass noise_of(uint64_t seed) {
  return {.generator = at::make_generator<at::CPUGeneratorImpl>(seed)};
}

// With the same dropout masks in each call. Random draws and the coverage cost have gradients that
// differ from the slopes of the objective's value.
TEST_P(EveryVariant, GradientsAreDifferences) {
  const Batch batch = make_batch(pairs, {0, 1, 2});
  const auto objective = [&] { return network->objective(batch, noise_of(5), 0.1); };
  const std::string normaliser = GetParam().config.choices().normaliser;
  if (normaliser == "hard" || normaliser.starts_with("gumbel") ||
      GetParam().config.coverage_weight > 0)
    objective().backward();
  else
    reference::expect_parameter_slopes(*network, objective);
  for (const auto& item : network->named_parameters()) {
    // Softmax cancels whatever the query adds equally to all scores.
    const bool cancels = item.key() == "attention.w_q" || item.key() == "attention.b";
    if (cancels && GetParam().config.choices().score == "linear") continue;
    if (item.key().starts_with("self.") && item.key().ends_with(".key.bias")) continue;
    EXPECT_GT(item.value().grad().abs().sum().item<double>(), 0) << item.key();
  }
}

TEST_P(EveryVariant, LearnsThePairs) {
  const Batch batch = make_batch(pairs, {0, 1, 2});
  const auto loss = [&] {
    torch::NoGradGuard no_gradient;
    return network->objective(batch, {}, 0).item<double>();
  };
  const double before = loss();
  torch::optim::Adam adam(network->parameters(), torch::optim::AdamOptions(0.02));
  for (uint64_t step = 1; step <= 25; ++step) {
    adam.zero_grad();
    (network->objective(batch, noise_of(step), 0) / 10).backward();
    adam.step();
  }
  // Ten target tokens, a vocabulary of ten: learning only frequencies would give a higher loss.
  EXPECT_LT(loss(), 0.6 * before);
}

TEST_P(EveryVariant, BeamsReorderWhatIsCarried) {
  reference::expect_reordering(*network, make_batch(pairs, {0, 1}));
}

TEST(Seq2Seq, NoiseAloneDecidesTheMasks) {
  torch::manual_seed(12);
  Seq2Seq network(small(), 12, 10);
  const Batch batch = make_batch(pairs, {0, 1, 2});
  const auto run = [&](uint64_t seed) { return network.logits(batch, noise_of(seed)); };
  EXPECT_TRUE(torch::equal(run(1), run(1)));
  EXPECT_FALSE(torch::equal(run(1), run(2)));
}

TEST(Seq2Seq, LossIsTheCrossEntropyOfTheTokensAlone) {
  torch::manual_seed(13);
  const Tensor logits = torch::randn({2, 3, 7}, torch::kDouble);
  const Tensor target = torch::tensor({{4, 2, 0}, {5, 6, 2}});
  const Tensor log_p = logits.log_softmax(-1);
  double plain = 0, uniform = 0;
  for (int64_t b = 0; b < 2; ++b) {
    for (int64_t t = 0; t < 3; ++t) {
      const auto token = target[b][t].item<int64_t>();
      if (token == Vocabulary::padding) continue;
      plain -= log_p[b][t][token].item<double>();
      uniform -= log_p[b][t].slice(0, Vocabulary::eos).mean().item<double>();
    }
  }
  EXPECT_NEAR(sequence_loss(logits, target, 0.0).item<double>(), plain, 1e-12 * plain);
  EXPECT_NEAR(sequence_loss(logits, target, 0.2).item<double>(), 0.8 * plain + 0.2 * uniform,
              1e-12 * plain);
}

// Model folders from before there were mechanisms have these names.
TEST(Seq2Seq, KeepsTheNamesOfItsWeights) {
  const Seq2Seq network(small(), 12, 10);
  std::vector<std::string> names;
  for (const auto& item : network.named_parameters()) {
    if (item.key().starts_with("attention")) names.push_back(item.key());
  }
  EXPECT_THAT(names,
              testing::ElementsAre("attention.v", "attention.W_q", "attention.W_k", "attention.b"));
  EXPECT_EQ(network.named_parameters()["decoder.gru.weight_ih"].size(1), 6 + 8);
}

TEST(Seq2Seq, HardAttentionSumsToItsCrossEntropy) {
  torch::manual_seed(14);
  Seq2SeqConfig config = small();
  config.mechanism = "hard";
  config.dropout = 0;
  Seq2Seq network(config, 12, 10);
  const Batch batch = make_batch(pairs, {0, 1, 2});
  const Tensor logits = network.logits(batch, noise_of(4));
  const double expected = sequence_loss(logits, batch.target, 0.1).item<double>();
  const auto found = network.objective(batch, noise_of(4), 0.1).item<double>();
  EXPECT_NEAR(found, expected, 1e-4 * expected);  // float32; the signal is added and removed
}

// The value remains the cross-entropy, as with draws.
TEST(Seq2Seq, CoverageCostsGradientsAlone) {
  const Batch batch = make_batch(pairs, {0, 1, 2});
  const auto trained = [&](double weight) {
    torch::manual_seed(16);
    Seq2SeqConfig config = small();
    config.coverage_weight = weight;
    config.dropout = 0;
    Seq2Seq network(config, 12, 10);
    const Tensor loss = network.objective(batch, noise_of(4), 0);
    loss.backward();
    return std::pair(loss.item<double>(), network.named_parameters()["attention.v"].grad().clone());
  };
  const auto [without, plain] = trained(0);
  const auto [once, some] = trained(1);
  const auto [twice, more] = trained(2);
  EXPECT_NEAR(once, without, 1e-4);
  EXPECT_NEAR(twice, without, 1e-4);
  EXPECT_GT((some - plain).abs().sum().item<double>(), 1e-4);
  EXPECT_TRUE(torch::allclose(more - some, some - plain, 1e-3, 1e-5));
}

// Targets are reversed sources with tokens absent from training: copying is correct, and the
// vocabulary is of no use.
TEST(Seq2Seq, CopiesTokensThatItHasNotSeen) {
  std::vector<EncodedPair> training, unseen;
  for (int64_t i = 0; i < 64; ++i) {
    const int64_t a = 4 + i % 8, b = 4 + (i / 8 + 3 * i) % 8;
    training.push_back({{a, b}, {b, a}});
  }
  for (int64_t token = 12; token < 20; ++token) unseen.push_back({{token, 5}, {5, token}});
  std::vector<int64_t> all(training.size());
  std::iota(all.begin(), all.end(), 0);
  const auto loss_of_unseen = [&](bool copy) {
    torch::manual_seed(17);
    Seq2SeqConfig config = small();
    config.hidden = 16;
    config.encoder = Annotations::none;  // tokens do not read their neighbours
    config.dropout = 0;
    config.copy = copy;
    Seq2Seq network(config, 20, 20);
    const Batch batch = make_batch(training, all);
    torch::optim::Adam adam(network.parameters(), torch::optim::AdamOptions(0.02));
    for (uint64_t step = 1; step <= 80; ++step) {
      adam.zero_grad();
      (network.objective(batch, noise_of(step), 0) / 192).backward();
      adam.step();
    }
    const Batch test = make_batch(unseen, {0, 1, 2, 3, 4, 5, 6, 7});
    return network.objective(test, {}, 0).item<double>() / 24;
  };
  // One token in three is unseen: copying it must cost far less than guessing among 20.
  EXPECT_LT(loss_of_unseen(true), 0.5 * loss_of_unseen(false));
}

TEST(Seq2Seq, OneEmbeddingIsInOnePlace) {
  Seq2SeqConfig config = small();
  config.tied = Tied::all;
  Seq2Seq network(config, 12, 12);
  const Batch batch = make_batch(pairs, {0, 1, 2});
  const Tensor before = network.logits(batch, {});
  network.place({});
  EXPECT_TRUE(torch::equal(network.logits(batch, {}), before));
  EXPECT_THROW(network.place({at::kCPU, at::kCPU, at::kCUDA}), Error);
}

// The draw changes later steps, so that only the reward trains the score of the query.
TEST(Seq2Seq, HardAttentionTrainsByRewardAndEntropy) {
  const Batch batch = make_batch(pairs, {0, 1, 2});
  const auto gradient = [&](double entropy_weight) {
    torch::manual_seed(15);
    Seq2SeqConfig config = small();
    config.mechanism = "hard";
    config.entropy_weight = entropy_weight;
    Seq2Seq network(config, 12, 10);
    network.objective(batch, noise_of(4), 0).backward();
    return network.named_parameters()["attention.v"].grad().clone();
  };
  const Tensor without = gradient(0), with = gradient(1), twice = gradient(2);
  EXPECT_GT(without.abs().sum().item<double>(), 0);
  EXPECT_GT((with - without).abs().sum().item<double>(), 0);
  EXPECT_TRUE(torch::allclose(twice - with, with - without, 1e-3, 1e-5));
}

// Sutskever et al. 2014, by LibTorch's cells.
TEST(Seq2Seq, APlainDecoderKnowsTheLastStateAlone) {
  Seq2SeqConfig config = small();
  config.plain = true;
  config.score = "none";
  config.encoder_layers = 1;
  config.hidden = 7;
  torch::manual_seed(4);
  Seq2Seq network(config, tokens, tokens);
  network.to(torch::kDouble);
  const auto p = network.named_parameters();
  const auto stepped = [&](const std::string& cell, const std::string& end, const Tensor& x,
                           const Tensor& state) {
    return at::gru_cell(x, state, p[cell + "weight_ih" + end], p[cell + "weight_hh" + end],
                        p[cell + "bias_ih" + end], p[cell + "bias_hh" + end]);
  };
  const auto rows = [&](const char* name, int64_t id) { return p[name][id].unsqueeze(0); };
  const Batch batch = make_batch(pairs, {1});
  const Tensor logits = network.logits(batch, {});
  Tensor state = at::zeros({1, 7}, at::kDouble);
  for (const int64_t id : pairs[1].source)
    state = stepped("encoder.layer0.", "_l0", rows("source_embedding.weight", id), state);
  int64_t before = Vocabulary::bos;
  for (size_t t = 0; t < pairs[1].target.size(); ++t) {
    state = stepped("decoder.gru.", "", rows("target_embedding.weight", before), state);
    const Tensor expected = at::linear(state, p["output.weight"], p["output.bias"]);
    EXPECT_TRUE(expected[0].allclose(logits[0][static_cast<int64_t>(t)], 1e-10, 1e-10)) << t;
    before = pairs[1].target[t];
  }
}

}  // namespace seq2seq_test
}  // namespace attend
