#include "attend/models/language_model.h"

#include <ATen/CPUGeneratorImpl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/optim/adam.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "attend/data/text_windows.h"
#include "attend/models/model_config.h"
#include "attend/text/vocabulary.h"
#include "tests/models/steps.h"
#include "tests/nn/module_gradients.h"
#include "tests/support/files.h"

namespace attend {
namespace language_model_test {

using at::Tensor;
using test::error_of;

constexpr int64_t tokens = 10;

// Two sources of one length, for steps, and others.
const std::vector<EncodedPair> pairs = {{{4, 5, 6}, {5, 6, 7, 4}},
                                        {{9, 4, 4}, {8}},
                                        {{}, {9, 9, 5}, {}, /*no_eos=*/true},
                                        {{6}, {4, 7}}};

LanguageModelConfig small() {
  LanguageModelConfig config;
  config.depth = 8;
  config.feed_forward = 12;
  config.heads = 2;
  config.layers = 2;
  config.context = 12;
  config.dropout = 0.1;
  return config;
}

std::shared_ptr<LanguageModel> make(const LanguageModelConfig& config) {
  torch::manual_seed(5);
  auto network = std::make_shared<LanguageModel>(config, tokens);
  network->to(torch::kDouble);
  return network;
}

struct Variant {
  std::string name;
  std::function<void(LanguageModelConfig&)> change;
};

// For the names of the test cases in GoogleTest.
void PrintTo(const Variant& variant, std::ostream* out) { *out << variant.name; }

// Mechanisms around the operator.
std::vector<Variant> mechanism_variants() {
  return {{"gated_attention", [](auto& c) { c.self.mechanism = "gated_attention"; }},
          {"differential", [](auto& c) { c.self.mechanism = "differential"; }},
          {"latent", [](auto& c) { c.self.mechanism = "latent", c.positions = Positions::none; }},
          {"moba",
           [](auto& c) {
             c.self.mechanism = "moba", c.self.scope = "top_blocks:2,2";
             c.positions = Positions::rotary;
           }},
          {"nsa",
           [](auto& c) {
             c.self.mechanism = "nsa", c.sparse_block = 2, c.sparse_blocks = 2, c.sparse_window = 2;
           }},
          {"attention_residuals", [](auto& c) { c.residual = Residual::attention; }},
          {"block_residuals",
           [](auto& c) { c.residual = Residual::attention, c.residual_block = 2, c.layers = 3; }},
          {"infini", [](auto& c) { c.self.mechanism = "infini", c.memory_segment = 2; }},
          {"multi_token",
           [](auto& c) {
             c.self.mechanism = "multi_token", c.mixed_queries = 2, c.mixed_keys = 3;
             c.positions = Positions::rotary;
           }},
          {"selective", [](auto& c) { c.self.mechanism = "selective"; }},
          {"dsa", [](auto& c) { c.self.mechanism = "dsa", c.index_keys = 2; }}};
}

std::vector<Variant> variants() {
  std::vector<Variant> all = {
      {"plain", [](auto&) {}},
      {"post_norm", [](auto& c) { c.normalise_first = false; }},
      {"relu", [](auto& c) { c.activation = HiddenActivation::relu; }},
      {"untied", [](auto& c) { c.tied = false; }},
      {"without_start", [](auto& c) { c.start = c.scale_embedding = false, c.output_bias = true; }},
      {"sinusoidal", [](auto& c) { c.positions = Positions::sinusoidal; }},
      {"rotary", [](auto& c) { c.positions = Positions::rotary; }},
      {"alibi", [](auto& c) { c.positions = Positions::none, c.self.mechanism = "alibi"; }},
      {"t5", [](auto& c) { c.positions = Positions::none, c.self.mechanism = "t5"; }},
      {"forget", [](auto& c) { c.positions = Positions::none, c.self.mechanism = "forget"; }},
      {"forget_rotary", [](auto& c) { c.positions = Positions::rotary, c.self.bias = "forget"; }},
      {"kerple_log", [](auto& c) { c.positions = Positions::none, c.self.bias = "kerple_log"; }},
      {"kerple_power",
       [](auto& c) { c.positions = Positions::none, c.self.mechanism = "kerple_power"; }},
      {"sandwich", [](auto& c) { c.positions = Positions::none, c.self.bias = "sandwich:8"; }},
      {"cope", [](auto& c) { c.positions = Positions::none, c.self.bias = "cope:3"; }},
      {"fire", [](auto& c) { c.positions = Positions::none, c.self.bias = "fire:5"; }},
      {"yarn",
       [](auto& c) {
         c.self.mechanism = "yarn", c.positions = Positions::none;
         c.rotary_scaling = "yarn:4,8; none", c.rotary_pairs = RotaryPairs::halves;
       }},
      {"llama3",
       [](auto& c) { c.positions = Positions::rotary, c.rotary_scaling = "llama3:8,16,1,4"; }},
      {"partial", [](auto& c) { c.positions = Positions::rotary, c.rotary_share = 0.5; }},
      {"shared_keys", [](auto& c) { c.key_heads = 1; }},
      {"gated", [](auto& c) { c.gated = true, c.first_norm = false; }},
      {"turns", [](auto& c) { c.scopes = "all; window:1", c.positions = Positions::rotary; }},
      {"window", [](auto& c) { c.self.mechanism = "sliding_window"; }},
      {"linear", [](auto& c) { c.self.mechanism = "linear"; }},
      {"sparsemax", [](auto& c) { c.self.normaliser = "sparsemax"; }},
      {"additive", [](auto& c) { c.self.score = "additive"; }},
      {"sink", [](auto& c) { c.self.mechanism = "sink"; }},
      {"retention", [](auto& c) { c.layer = "retention"; }},
      {"mamba2", [](auto& c) { c.layer = "mamba2"; }},
      {"gla", [](auto& c) { c.layer = "gla", c.positions = Positions::none; }},
      {"gated_delta", [](auto& c) { c.layer = "gated_delta"; }},
      {"hybrid", [](auto& c) { c.layer = "kda,attention", c.positions = Positions::rotary; }}};
  for (Variant& each : mechanism_variants()) all.push_back(std::move(each));
  return all;
}

class EveryLanguageModel : public testing::TestWithParam<Variant> {
 protected:
  void SetUp() override {
    LanguageModelConfig config = small();
    GetParam().change(config);
    network = make(config);
    batch = make_batch(pairs, {0, 1, 2, 3});
  }

  std::shared_ptr<LanguageModel> network;
  Batch batch;
};

INSTANTIATE_TEST_SUITE_P(Variants, EveryLanguageModel, testing::ValuesIn(variants()),
                         [](const auto& info) { return info.param.name; });

TEST_P(EveryLanguageModel, StepsGiveTheTeacherForcedProbabilities) {
  network->eval();
  const Batch equal = make_batch(pairs, {0, 1});
  reference::expect_steps(*network, equal, network->logits(equal, {}));
}

// Also beyond the context, when half of it is read again.
TEST_P(EveryLanguageModel, PackedStepsAreThoseOfLibTorch) {
  const std::vector<std::string> packed = {
      "plain",       "post_norm",       "relu",      "untied",     "without_start", "sinusoidal",
      "shared_keys", "gated_attention", "retention", "mamba2",     "gla",           "gated_delta",
      "rotary",      "alibi",           "t5",        "kerple_log", "kerple_power",  "sandwich",
      "hybrid",      "llama3",          "partial"};
  reference::expect_packed_steps(
      *network, make_batch(pairs, {0, 1}), /*steps=*/20,
      std::find(packed.begin(), packed.end(), GetParam().name) != packed.end());
}

TEST_P(EveryLanguageModel, BeamsReorderItsCaches) {
  reference::expect_reordering(*network, make_batch(pairs, {0, 1}));
}

TEST_P(EveryLanguageModel, SourcesOfAnyLengthAndPaddingChangeNothing) {
  const Tensor padded = network->logits(batch, {});
  for (int64_t i = 0; i < 4; ++i) {
    const Batch one = make_batch(pairs, {i});
    const Tensor single = network->logits(one, {});
    EXPECT_TRUE(torch::allclose(padded[i].slice(0, 0, single.size(1)), single[0], 1e-9, 1e-9)) << i;
    // The whole text continues an empty source or, without a start token, its first token.
    EncodedPair whole = pairs[static_cast<size_t>(i)];
    const size_t kept =
        GetParam().name == "without_start" ? std::min<size_t>(whole.source.size(), 1) : 0;
    whole.target.insert(whole.target.begin(), whole.source.begin() + static_cast<int64_t>(kept),
                        whole.source.end());
    whole.source.resize(kept);
    const Tensor text = network->logits(make_batch({whole}, {0}), {});
    const int64_t first = one.source.size(1) - static_cast<int64_t>(kept);
    EXPECT_TRUE(torch::allclose(text[0].slice(0, first), single[0], 1e-9, 1e-9)) << i;
  }
}

TEST_P(EveryLanguageModel, ObjectiveIsTheCrossEntropyOfTheTargets) {
  const Tensor log_p = network->logits(batch, {}).log_softmax(-1);
  const std::vector<std::vector<int64_t>> predicted = {
      {5, 6, 7, 4, 2}, {8, 2}, {9, 9, 5}, {4, 7, 2}};
  double expected = 0;
  for (size_t i = 0; i < predicted.size(); ++i)
    for (size_t t = 0; t < predicted[i].size(); ++t)
      expected -=
          log_p[static_cast<int64_t>(i)][static_cast<int64_t>(t)][predicted[i][t]].item<double>();
  EXPECT_NEAR(network->objective(batch, {}, 0).item<double>(), expected, 1e-9);
}

TEST_P(EveryLanguageModel, GradientsAreDifferences) {
  if (GetParam().name == "dsa") GTEST_SKIP() << "its indexer has another objective";
  reference::expect_parameter_slopes(*network, [&] { return network->objective(batch, {}, 0.1); });
}

TEST_P(EveryLanguageModel, NoPositionSeesLaterOnes) {
  Batch other = batch;
  other.target = batch.target.clone();
  other.target[0][2] = 9;
  const Tensor a = network->logits(batch, {}), b = network->logits(other, {});
  EXPECT_TRUE(torch::allclose(a[0].slice(0, 0, 3), b[0].slice(0, 0, 3), 1e-12, 1e-12));
  EXPECT_FALSE(torch::allclose(a[0][3], b[0][3], 1e-6, 1e-6));
}

// Logits after `text` and the mean weights of the heads at the last position. By the formulas of
// Vaswani et al. 2017, 3.2, in one layer as in GPT-2.
std::pair<Tensor, Tensor> by_formula(LanguageModel& network, const std::vector<int64_t>& text) {
  const auto weights = network.named_parameters();
  const auto map = [&](const Tensor& x, const std::string& name) {
    return at::linear(x, weights[name + ".weight"], weights[name + ".bias"]);
  };
  const auto norm = [&](const Tensor& x, const std::string& name) {
    const Tensor centred = x - x.mean(-1, true);
    return centred / (centred.square().mean(-1, true) + 1e-5).sqrt() * weights[name + ".weight"] +
           weights[name + ".bias"];
  };
  std::vector<int64_t> ids = {Vocabulary::bos};
  ids.insert(ids.end(), text.begin(), text.end());
  const Tensor embedding = weights["embedding.tokens.weight"];
  Tensor x = embedding.index({torch::tensor(ids)}) * std::sqrt(8.0) +
             weights["embedding.positions.table"].slice(0, 0, static_cast<int64_t>(ids.size()));
  const Tensor read = norm(x, "stack.layer0_self_norm");
  const auto heads = [&](const std::string& name) {
    return map(read, "stack.layer0_self." + name).view({-1, 2, 4}).transpose(0, 1);
  };
  const Tensor scores = heads("query").matmul(heads("key").transpose(1, 2)) / 2.0;
  const Tensor later = torch::ones_like(scores, torch::kBool).triu(1);
  const Tensor weight = scores.masked_fill(later, -INFINITY).softmax(-1);
  x = x + map(weight.matmul(heads("value")).transpose(0, 1).flatten(1), "stack.layer0_self.output");
  const Tensor hidden =
      map(norm(x, "stack.layer0_feed_forward_norm"), "stack.layer0_feed_forward.hidden");
  const Tensor gelu = hidden * 0.5 * (1 + (hidden / std::sqrt(2.0)).erf());
  x = x + map(gelu, "stack.layer0_feed_forward.output");
  return {norm(x, "stack.norm")[-1].matmul(embedding.t()), weight.mean(0)[-1]};
}

TEST(LanguageModel, IsWhatTheFormulasSay) {
  torch::NoGradGuard no_gradient;
  LanguageModelConfig config = small();
  config.layers = 1;
  const auto network = make(config);
  const Tensor source = torch::tensor({{7, 4, 9}});
  const auto state = network->start(source, torch::tensor({3}), {});
  const auto first = by_formula(*network, {7, 4, 9}), second = by_formula(*network, {7, 4, 9, 5});
  for (const auto& [token, expected] : {std::pair{1, first}, std::pair{5, second}}) {
    const StepResult result = state->step(torch::tensor({token}), true, {});
    EXPECT_TRUE(
        torch::allclose(result.log_probabilities[0], expected.first.log_softmax(-1), 1e-9, 1e-9));
    EXPECT_TRUE(torch::allclose(result.weights[0], expected.second.slice(0, 1, 4), 1e-9, 1e-9));
  }
}

// Far beyond the context, compared with a loop over the visible tokens.
// A fixed bias is part of the scores, and has no gradient. Tokens with one vector keep it.
TEST(LanguageModel, MayKeepBiasesAndSharedTokens) {
  LanguageModelConfig config = small();
  config.output_bias = config.fixed_output_bias = config.fixed_biases = true;
  config.shared_tokens = "1, 1, 1";
  const auto network = make(config);
  const auto parameters = network->named_parameters();
  const Batch batch = make_batch(pairs, {0, 1, 2, 3});
  const auto loss = [&] {
    return network->objective(batch, {.generator = at::make_generator<at::CPUGeneratorImpl>(5)}, 0);
  };
  const double without = loss().item<double>();
  {
    const torch::NoGradGuard no_gradient;
    parameters["output_bias"].copy_(at::linspace(-1, 1, tokens));
  }
  EXPECT_GT(std::abs(loss().item<double>() - without), 1e-3);
  torch::optim::Adam adam(network->parameters(), torch::optim::AdamOptions(0.01));
  const Tensor before = parameters["embedding.tokens.weight"].detach().clone();
  for (int step = 0; step < 3; ++step) {
    adam.zero_grad();
    loss().backward();
    adam.step();
  }
  for (const auto& item : parameters)
    EXPECT_EQ(item.value().grad().defined(), !item.key().ends_with("bias")) << item.key();
  const Tensor vectors = parameters["embedding.tokens.weight"].detach();
  EXPECT_FALSE(vectors[5].equal(before[5]));
  for (const int64_t fixed : {Vocabulary::padding, Vocabulary::bos, Vocabulary::eos})
    EXPECT_TRUE(vectors[fixed].allclose(vectors[5], 0, 1e-15)) << fixed;
}

TEST(LanguageModel, GoesOnOverTheEndOfItsContext) {
  torch::NoGradGuard no_gradient;
  for (const Positions positions : {Positions::learned, Positions::rotary}) {
    for (const int64_t context : {4, 7}) {
      LanguageModelConfig config = small();
      config.context = context;
      config.positions = positions;
      config.start = context == 4;
      const auto network = make(config);
      std::vector<int64_t> seen = {4, 5, 6, 7, 8, 9, 4, 4};
      const auto state = network->start(torch::tensor(seen).unsqueeze(0), torch::tensor({8}), {});
      int64_t token = Vocabulary::bos;
      for (int64_t t = 0; t < 23; ++t) {
        if (static_cast<int64_t>(seen.size()) + (config.start ? 1 : 0) > context)
          seen.erase(seen.begin(), seen.end() - context / 2);
        const Tensor expected =
            network->logits(make_batch({{seen, {4}, {}, true}}, {0}), {}).log_softmax(-1)[0][0];
        const StepResult result = state->step(torch::tensor({token}), true, {});
        EXPECT_TRUE(torch::allclose(result.log_probabilities[0], expected, 1e-9, 1e-9)) << t;
        EXPECT_EQ(result.weights.size(1), 8);
        // The source is out of the context, except for its last tokens at first.
        EXPECT_EQ(result.weights.slice(1, 0, 8 - context / 2).abs().sum().item<double>(), 0);
        if (t == 0) {
          EXPECT_GT(result.weights[0][7].item<double>(), 0);
        }
        if (t > context) {
          EXPECT_EQ(result.weights.abs().sum().item<double>(), 0);
        }
        token = 4 + (t * t) % 6;
        seen.push_back(token);
      }
    }
  }
}

TEST(LanguageModel, LearnsAText) {
  std::vector<int64_t> text;
  for (int64_t i = 0; i < 400; ++i) text.push_back(4 + i % 6);
  LanguageModelConfig config = small();
  config.dropout = 0;
  const auto network = make(config);
  torch::optim::Adam adam(network->parameters(), torch::optim::AdamOptions(0.01));
  for (uint64_t step = 0; step < 100; ++step) {
    std::vector<EncodedPair> windows;
    for (const TextWindow& window : shuffled_windows(400, 12, step, 0))
      windows.push_back(window_pair(text, window, 0));
    windows.resize(8);
    adam.zero_grad();
    (network->objective(make_batch(windows, {0, 1, 2, 3, 4, 5, 6, 7}), {}, 0) / 96).backward();
    adam.step();
  }
  torch::NoGradGuard no_gradient;
  // Within a window the next token is certain; the first one is one of six.
  const std::vector<EncodedPair> rest = windows_in_order(text, 11, 1);
  EXPECT_LT(network->objective(make_batch(rest, {1, 2, 3}), {}, 0).item<double>() / 33, 0.2);
  const double first =
      network->objective(make_batch({{{}, {6}, {}, true}}, {0}), {}, 0).item<double>();
  EXPECT_NEAR(first, std::log(6), 0.5);
}

TEST(LanguageModel, TellsWhatDoesNotFit) {
  const auto made = [](const std::function<void(LanguageModelConfig&)>& change) {
    return error_of([&] {
      LanguageModelConfig config = small();
      change(config);
      LanguageModel(config, 10);
    });
  };
  EXPECT_THAT(made([](auto& c) { c.heads = 3; }),
              testing::HasSubstr("does not divide model.depth"));
  EXPECT_THAT(made([](auto& c) { c.self.mechanism = "linformer"; }),
              testing::HasSubstr("take self"));
  for (const char* text : {"0, 1", "0, 1, 2, 3", "0, -1, 2", "0, , 2", "a, b, c"})
    EXPECT_THAT(made([&](auto& c) { c.shared_tokens = text; }),
                testing::HasSubstr("write three numbers of tokens"));
  EXPECT_THAT(made([](auto& c) { c.self.normaliser = "hard"; }),
              testing::HasSubstr("model.normaliser is hard"));
  LanguageModelConfig config = small();
  config.shared_tokens = "0, 0, 6";
  EXPECT_THAT(error_of([&] { make(config)->logits(make_batch(pairs, {0}), {}); }),
              testing::HasSubstr("token 10 shares a vector, and there are 10 tokens"));
  const auto network = make(small());
  const EncodedPair longer{std::vector<int64_t>(7, 4), std::vector<int64_t>(6, 4), {}, true};
  EXPECT_THAT(error_of([&] { network->logits(make_batch({longer}, {0}), {}); }),
              testing::HasSubstr("12 are learned"));
}

TEST(ModelLayer, NamesARecurrenceOrSeveral) {
  const auto config_of = [](const std::string& type, const std::vector<std::string>& settings) {
    ModelConfig config;
    assign({config.type_setting()}, "model.type=" + type);
    for (const std::string& each : settings) assign(config.settings(), each);
    return config;
  };
  const auto refusal = [&](const std::string& type, const std::vector<std::string>& settings) {
    return error_of([&] { config_of(type, settings).chosen().check(); });
  };
  using testing::HasSubstr;
  for (const RecurrenceRow& row : recurrence_table())
    for (const char* type : {"lm", "encoder", "classifier", "tagger", "transformer"})
      EXPECT_EQ(refusal(type, {fmt::format("model.layer=attention, {}", row.name)}), "");
  EXPECT_THAT(refusal("lm", {"model.layer=gated-delta"}), HasSubstr("did you mean gated_delta?"));
  EXPECT_THAT(refusal("lm", {"model.layer=kda,"}), HasSubstr("no model.layer is called ''"));
  EXPECT_THAT(refusal("encoder", {"model.layer=kda", "model.heads=1"}),
              HasSubstr("take an even number"));
  EXPECT_EQ(refusal("lm", {"model.layer=kda", "model.heads=1"}), "");
  EXPECT_THAT(refusal("set", {"model.layer=kda"}), HasSubstr("a set has no order"));
  for (const char* layer : {"kda", "attention"})
    EXPECT_EQ(config_of("lm", {fmt::format("model.layer={}", layer)}).chosen().not_shared_reason(),
              "");
  EXPECT_EQ(config_of("encoder", {"model.layer=kda"}).chosen().no_weights_reason(),
            "model.layer = kda");
}

}  // namespace language_model_test
}  // namespace attend
