#include "attend/models/transformer.h"

#include <ATen/CPUGeneratorImpl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/optim/adam.h>

#include <algorithm>
#include <functional>
#include <map>

#include "attend/base/error.h"
#include "attend/text/vocabulary.h"
#include "tests/models/steps.h"
#include "tests/nn/module_gradients.h"
#include "tests/support/files.h"

namespace attend {
namespace transformer_test {

using at::Tensor;
using test::error_of;

constexpr int64_t tokens = 10;

const std::vector<EncodedPair> pairs = {
    {{4, 5, 6, 7, 8}, {5, 6, 7, 4}}, {{9, 4, 4}, {8}}, {{6}, {9, 9}}};

struct Variant {
  std::string name;
  std::function<void(TransformerConfig&)> change;
};

// For the names of the test cases in GoogleTest.
void PrintTo(const Variant& variant, std::ostream* out) { *out << variant.name; }

std::vector<Variant> variants() {
  return {{"plain", [](auto&) {}},
          {"post_norm", [](auto& c) { c.normalise_first = false; }},
          {"gelu", [](auto& c) { c.activation = HiddenActivation::gelu; }},
          {"untied", [](auto& c) { c.tied = Tied::none; }},
          {"all_tied", [](auto& c) { c.tied = Tied::all; }},
          {"marian",
           [](auto& c) {
             c.tied = Tied::all, c.output_bias = true, c.normalise_first = false;
             c.positions = Positions::sinusoidal_halves, c.activation = HiddenActivation::swish;
           }},
          {"unscaled", [](auto& c) { c.scale_embedding = false; }},
          {"learned_positions", [](auto& c) { c.positions = Positions::learned; }},
          {"rotary", [](auto& c) { c.positions = Positions::rotary; }},
          {"alibi", [](auto& c) { c.positions = Positions::none, c.self.mechanism = "alibi"; }},
          {"t5", [](auto& c) { c.positions = Positions::none, c.self.mechanism = "t5"; }},
          {"t5_whole",
           [](auto& c) {
             c.positions = Positions::none, c.self.mechanism = "t5", c.source.score = "dot";
             c.shared_bias = true, c.norm = NormKind::rms, c.epsilon = 1e-6, c.gated = true;
             c.activation = HiddenActivation::gelu_tanh, c.head_depth = 3,
             c.scale_embedding = false;
             c.tied = Tied::all, c.scale_output = true, c.output_bias = true;
           }},
          {"tied_inputs", [](auto& c) { c.tied = Tied::inputs, c.norm = NormKind::rms; }},
          {"forget", [](auto& c) { c.positions = Positions::none, c.self.bias = "forget"; }},
          {"forget_causal", [](auto& c) { c.self.mechanism = "forget"; }},
          {"kerple_power",
           [](auto& c) { c.positions = Positions::none, c.self.bias = "kerple_power"; }},
          {"cope", [](auto& c) { c.positions = Positions::none, c.self.bias = "cope:3"; }},
          {"fire", [](auto& c) { c.positions = Positions::none, c.self.mechanism = "fire"; }},
          {"yarn",
           [](auto& c) {
             c.positions = Positions::rotary, c.rotary_scaling = "yarn:4,8";
             c.rotary_share = 0.5;
           }},
          {"shared_keys", [](auto& c) { c.key_heads = 1; }},
          {"gated", [](auto& c) { c.gated = true, c.first_norm = false; }},
          {"turns", [](auto& c) { c.scopes = "all; window:1", c.positions = Positions::rotary; }},
          {"window", [](auto& c) { c.self.mechanism = "sliding_window"; }},
          {"global", [](auto& c) { c.self.mechanism = "global_tokens"; }},
          {"linear", [](auto& c) { c.self.mechanism = "linear"; }},
          {"gated_attention",
           [](auto& c) { c.self.mechanism = c.source.mechanism = "gated_attention"; }},
          {"differential", [](auto& c) { c.self.mechanism = c.source.mechanism = "differential"; }},
          {"latent", [](auto& c) { c.self.mechanism = "latent", c.positions = Positions::none; }},
          {"dsa", [](auto& c) { c.self.mechanism = "dsa", c.index_keys = 2; }},
          {"attention_residuals", [](auto& c) { c.residual = Residual::attention; }},
          {"sparsemax", [](auto& c) { c.self.normaliser = "sparsemax"; }},
          {"additive_source", [](auto& c) { c.source.mechanism = "bahdanau"; }},
          {"sink", [](auto& c) { c.source.mechanism = "sink"; }},
          {"location_sensitive", [](auto& c) { c.source.mechanism = "location_sensitive"; }}};
}

class EveryTransformer : public testing::TestWithParam<Variant> {
 protected:
  void SetUp() override {
    TransformerConfig config;
    config.depth = 8;
    config.feed_forward = 12;
    config.heads = 2;
    config.encoder_layers = config.decoder_layers = 2;
    config.dropout = 0.1;
    config.maximum_source_length = 8;
    GetParam().change(config);
    torch::manual_seed(5);
    network = std::make_shared<Transformer>(config, tokens, tokens);
    network->to(torch::kDouble);
    batch = make_batch(pairs, {0, 1, 2});
  }

  std::shared_ptr<Transformer> network;
  Batch batch;
};

INSTANTIATE_TEST_SUITE_P(Variants, EveryTransformer, testing::ValuesIn(variants()),
                         [](const auto& info) { return info.param.name; });

TEST_P(EveryTransformer, StepsGiveTheTeacherForcedProbabilities) {
  network->eval();
  reference::expect_steps(*network, batch, network->logits(batch, {}),
                          [&](const StepResult& result) {
                            ASSERT_EQ(result.weights.sizes(), batch.source.sizes());
                            EXPECT_EQ(result.weights[2].slice(0, 1).abs().sum().item<double>(), 0);
                          });
}

TEST_P(EveryTransformer, BeamsReorderItsCaches) { reference::expect_reordering(*network, batch); }

bool has_packed_steps(const std::string& variant) {
  const std::vector<std::string> packed = {
      "plain",       "post_norm", "gelu",        "untied",          "all_tied", "learned_positions",
      "shared_keys", "marian",    "unscaled",    "gated_attention", "rotary",   "alibi",
      "t5",          "t5_whole",  "tied_inputs", "kerple_power",    "yarn"};
  return std::find(packed.begin(), packed.end(), variant) != packed.end();
}

TEST_P(EveryTransformer, AppendedStepsAreThoseOfEachAlone) {
  if (!has_packed_steps(GetParam().name)) {
    EXPECT_FALSE(network->start(batch.source, batch.source_lengths, {})->appends());
    return;
  }
  reference::expect_appended_steps(*network, batch);
}

TEST_P(EveryTransformer, PackedStepsAreThoseOfLibTorch) {
  const bool has_packed_form = has_packed_steps(GetParam().name);
  // Beyond the first 16 keys, for which room is allocated at once.
  const int64_t steps = 20;
  reference::expect_packed_steps(*network, batch, steps, has_packed_form);
}

TEST_P(EveryTransformer, PaddingChangesNothing) {
  const Tensor padded = network->logits(batch, {});
  for (int64_t i = 0; i < 3; ++i) {
    const Tensor single = network->logits(make_batch(pairs, {i}), {});
    EXPECT_TRUE(torch::allclose(padded[i].slice(0, 0, single.size(1)), single[0], 1e-9, 1e-9));
  }
}

TEST_P(EveryTransformer, ObjectiveIsTheCrossEntropyOfItsLogits) {
  const Tensor log_p = network->logits(batch, {}).log_softmax(-1);
  double expected = 0;
  for (int64_t i = 0; i < 3; ++i)
    for (int64_t t = 0; t < batch.target_lengths[i].item<int64_t>(); ++t)
      expected -= log_p[i][t][batch.target[i][t].item<int64_t>()].item<double>();
  EXPECT_NEAR(network->objective(batch, {}, 0).item<double>(), expected, 1e-9);
}

// With the same dropout masks in each call.
TEST_P(EveryTransformer, GradientsAreDifferences) {
  if (GetParam().name == "dsa") GTEST_SKIP() << "its indexer has another objective";
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

TEST_P(EveryTransformer, LearnsThePairs) {
  const auto loss = [&] {
    torch::NoGradGuard no_gradient;
    return network->objective(batch, {}, 0).item<double>();
  };
  const double before = loss();
  torch::optim::Adam adam(network->parameters(), torch::optim::AdamOptions(0.01));
  for (uint64_t step = 1; step <= 40; ++step) {
    adam.zero_grad();
    (network->objective(batch, {.generator = at::make_generator<at::CPUGeneratorImpl>(step)}, 0) /
     10)
        .backward();
    adam.step();
  }
  EXPECT_LT(loss(), 0.6 * before);
}

// Later tokens must not reach earlier logits, for any scope.
TEST_P(EveryTransformer, NoPositionSeesLaterOnes) {
  Batch other = batch;
  other.target = batch.target.clone();
  other.target[0][2] = 9;
  const Tensor a = network->logits(batch, {}), b = network->logits(other, {});
  EXPECT_TRUE(torch::allclose(a[0].slice(0, 0, 3), b[0].slice(0, 0, 3), 1e-12, 1e-12));
  EXPECT_FALSE(torch::allclose(a[0][3], b[0][3], 1e-6, 1e-6));
}

// A fixed bias is part of the scores, and has no gradient; other parameters have the same one.
TEST(Transformer, MayKeepTheOutputsBias) {
  for (const Tied tied : {Tied::all, Tied::inputs}) {
    std::map<std::string, Tensor> gradients[2];
    for (const bool is_fixed : {false, true}) {
      TransformerConfig config;
      config.depth = config.feed_forward = 8;
      config.heads = 2;
      config.encoder_layers = config.decoder_layers = 1;
      config.dropout = 0;
      config.tied = tied;
      config.output_bias = true;
      config.fixed_output_bias = is_fixed;
      torch::manual_seed(5);
      Transformer network(config, tokens, tokens);
      const auto parameters = network.named_parameters();
      const std::string name = tied == Tied::all ? "output_bias" : "output.bias";
      {
        torch::NoGradGuard no_gradient;
        parameters[name].copy_(at::linspace(-1, 1, tokens));
      }
      network.objective(make_batch(pairs, {0, 1, 2}), {}, 0).backward();
      EXPECT_EQ(parameters[name].grad().defined(), !is_fixed);
      for (const auto& item : parameters)
        if (item.key() != name) gradients[is_fixed ? 1 : 0][item.key()] = item.value().grad();
    }
    for (const auto& [name, gradient] : gradients[0])
      EXPECT_TRUE(gradient.equal(gradients[1].at(name))) << name;
  }
}

// Sounds of 3 and 2 frames, and images of 2 x 1 patches.
TEST(Transformer, ReadsFrames) {
  torch::NoGradGuard no_gradient;
  for (const bool image : {false, true}) {
    TransformerConfig config;
    config.depth = 8;
    config.feed_forward = 12;
    config.heads = 2;
    config.encoder_layers = config.decoder_layers = 1;
    torch::manual_seed(5);
    Transformer network(config, image ? SourceShape(ImageForm{4, 2, 1}) : FrameForm{4}, tokens);
    network.to(torch::kDouble);
    network.eval();
    std::vector<EncodedPair> heard = {{{}, {5, 6}}, {{}, {7}}};
    heard[0].frames = torch::randn({image ? 2 : 3, 4});
    heard[1].frames = torch::randn({2, 4});
    Batch batch = make_batch(heard, {0, 1});
    batch.source = batch.source.to(torch::kDouble);
    const Tensor whole = network.logits(batch, {}).log_softmax(-1);
    const auto state = network.start(batch.source, batch.source_lengths, {});
    Tensor before = torch::full({2}, Vocabulary::bos, torch::kLong);
    for (int64_t t = 0; t < 2; ++t) {
      const StepResult result = state->step(before, true, {});
      EXPECT_TRUE(torch::allclose(result.log_probabilities, whole.select(1, t), 1e-9, 1e-9)) << t;
      ASSERT_EQ(result.weights.sizes(), batch.source.sizes().slice(0, 2));
      before = batch.target.select(1, t);
    }
    Batch single = make_batch(heard, {1});
    single.source = single.source.to(torch::kDouble);
    EXPECT_TRUE(torch::allclose(network.logits(single, {}).log_softmax(-1)[0],
                                whole[1].slice(0, 0, 2), 1e-9, 1e-9));
  }
}

// A normaliser is refused by name, or the loss trains the queries and keys before it.
TEST(Transformer, TakesNormalisersThatTrainIt) {
  for (const NormaliserRow& row : normaliser_table()) {
    for (const bool of_source : {false, true}) {
      SCOPED_TRACE(std::string(row.name) + (of_source ? " of the source" : ""));
      TransformerConfig config;
      config.depth = 8;
      config.heads = 2;
      config.encoder_layers = config.decoder_layers = 1;
      MechanismSettings& changed = of_source ? config.source : config.self;
      changed.normaliser = row.name;
      if (row.running_sums) changed.score = "elu_features";
      std::string refusal = error_of([&] { config.check(); });
      EXPECT_EQ(refusal.empty(), row.name != "hard" && row.name != "monotonic_hard") << refusal;
      if (!refusal.empty()) {
        EXPECT_THAT(refusal, testing::StartsWith(of_source ? "model.source_normaliser is "
                                                           : "model.normaliser is "));
        EXPECT_THAT(refusal, testing::HasSubstr(std::string(row.name) + ", which gives"));
        EXPECT_THAT(refusal, testing::HasSubstr("take softmax, "));
        continue;
      }
      torch::manual_seed(6);
      Transformer network(config, tokens, tokens);
      network.objective(make_batch(pairs, {0, 1, 2}), {}, 0).backward();
      for (const auto& item : network.named_parameters()) {
        if (!item.key().ends_with(".query.weight") && !item.key().ends_with(".key.weight"))
          continue;
        EXPECT_GT(item.value().grad().abs().sum().item<double>(), 0) << item.key();
      }
    }
  }
}

TEST(Transformer, TellsWhatDoesNotFit) {
  const auto made = [](const std::function<void(TransformerConfig&)>& change) {
    return error_of([&] {
      TransformerConfig config;
      change(config);
      Transformer(config, 10, 12);
    });
  };
  EXPECT_THAT(made([](auto& c) { c.heads = 3; }),
              testing::HasSubstr("does not divide model.depth"));
  EXPECT_THAT(made([](auto& c) { c.key_heads = 3; }),
              testing::HasSubstr("does not divide model.heads"));
  EXPECT_THAT(made([](auto& c) { c.experts = 1; }),
              testing::HasSubstr("model.chosen_experts is 2, model.experts 1"));
  EXPECT_THAT(made([](auto& c) { c.experts = 3, c.gated = true; }),
              testing::HasSubstr("model.gated is true, and model.experts 3"));
  EXPECT_THAT(made([](auto& c) { c.first_norm = c.normalise_first = false; }),
              testing::HasSubstr("model.first_norm is false, and so is model.normalise_first"));
  EXPECT_THAT(made([](auto& c) { c.shared_tokens = "0, 0, 1"; }),
              testing::HasSubstr("model.shared_tokens is '0, 0, 1', and model.tied target"));
  EXPECT_THAT(made([](auto& c) { c.scopes = "all; windows:3"; }), testing::HasSubstr("windows:3"));
  EXPECT_THAT(made([](auto& c) { c.scopes = "all", c.self.scope = "causal"; }),
              testing::HasSubstr("model.scope is causal and model.scopes all"));
  EXPECT_THAT(made([](auto& c) { c.scopes = "around:3"; }),
              testing::HasSubstr("write it as model.scope"));
  EXPECT_THAT(made([](auto& c) { c.scopes = std::string(300, ';'); }),
              testing::HasSubstr("model.scopes has over 256 parts"));
  for (const char* base : {"", "10000;", "1", "ten", "1e13"})
    EXPECT_THAT(made([&](auto& c) { c.rotary_bases = base; }),
                testing::HasSubstr("model.rotary_bases has"));
  EXPECT_THAT(made([](auto& c) { c.rotary_scaling = "yarn:4,8"; }),
              testing::HasSubstr("model.positions sinusoidal rotates nothing; take rotary"));
  EXPECT_THAT(made([](auto& c) {
                c.positions = Positions::rotary;
                c.rotary_scaling = "dynamic:4,8";
              }),
              testing::HasSubstr("take yarn:FACTOR,LENGTH"));
  EXPECT_THAT(made([](auto& c) { c.self.mechanism = "yarn"; }),
              testing::HasSubstr("such as model.rotary_scaling=yarn:4,2048"));
  EXPECT_THAT(made([](auto& c) { c.self.bias = "cope:4", c.self.score = "additive"; }),
              testing::HasSubstr("bias cope counts products"));
  for (const char* score : {"dot", "scaled_dot", "additive"})
    EXPECT_THAT(made([&](auto& c) { c.self.score = score, c.self.normaliser = "linear"; }),
                testing::HasSubstr("take elu_features or positive_features"));
  EXPECT_THAT(made([](auto& c) { c.tied = Tied::all; }), testing::HasSubstr("joint_vocabulary"));
  EXPECT_THAT(error_of([] {
                TransformerConfig config;
                config.tied = Tied::all;
                Transformer(config, FrameForm{4}, 12);
              }),
              testing::HasSubstr("take target"));
  EXPECT_THAT(made([](auto& c) { c.self.mechanism = "linformer"; }),
              testing::HasSubstr("take self"));
  EXPECT_THAT(
      made([](auto& c) { c.self.mechanism = "sinusoidal", c.positions = Positions::learned; }),
      testing::HasSubstr("take one of both"));
}

}  // namespace transformer_test
}  // namespace attend
