#include <ATen/CPUGeneratorImpl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>

#include "attend/base/error.h"
#include "attend/models/classifier.h"
#include "attend/models/language_model.h"
#include "attend/models/masked_language_model.h"
#include "attend/models/seq2seq.h"
#include "attend/models/transformer.h"
#include "attend/text/vocabulary.h"
#include "tests/support/software_device.h"

namespace attend {
namespace device_test {

using at::Tensor;
using reference::software_device;

constexpr int64_t tokens = 12;

const std::vector<EncodedPair> pairs = {
    {{4, 5, 6, 7}, {5, 6, 7, 4}}, {{9, 4}, {8}}, {{9, 4, 5, 6}, {8}}};

struct Placed {
  std::string name;
  std::function<std::shared_ptr<PairNetwork>()> make;
  Devices devices;
};

// For the names of the test cases in GoogleTest.
void PrintTo(const Placed& placed, std::ostream* out) { *out << placed.name; }

template <class Config>
Config small() {
  Config config;
  config.depth = 8;
  config.feed_forward = 12;
  config.heads = 2;
  config.dropout = 0;
  return config;
}

std::shared_ptr<PairNetwork> transformer(Positions positions, Tied tied) {
  auto config = small<TransformerConfig>();
  config.positions = positions;
  config.tied = tied;
  return std::make_shared<Transformer>(config, tokens, tokens);
}

std::shared_ptr<PairNetwork> transformer_with(const std::string& mechanism) {
  auto config = small<TransformerConfig>();
  config.self.mechanism = mechanism;
  return std::make_shared<Transformer>(config, tokens, tokens);
}

std::shared_ptr<PairNetwork> language_model() {
  return std::make_shared<LanguageModel>(small<LanguageModelConfig>(), tokens);
}

std::shared_ptr<PairNetwork> masked_language_model() {
  return std::make_shared<MaskedLanguageModel>(small<MaskedLanguageModelConfig>(), tokens);
}

std::shared_ptr<PairNetwork> classifier(Pooling pooling) {
  auto config = small<ClassifierConfig>();
  config.layers = 1;
  config.pooling = pooling;
  config.word_dropout = config.output_dropout = 0;
  return std::make_shared<Classifier>(config, tokens, tokens);
}

std::shared_ptr<PairNetwork> seq2seq(const std::function<void(Seq2SeqConfig&)>& change) {
  Seq2SeqConfig config;
  config.embedding = 6;
  config.hidden = 8;
  config.attention_depth = 5;
  config.dropout = 0;
  change(config);
  return std::make_shared<Seq2Seq>(config, tokens, tokens);
}

std::vector<Placed> all_placed() {
  const at::Device first = software_device(0), second = software_device(1);
  const Devices one{second, second, second}, three{first, at::kCPU, second};
  const auto everything = [](Seq2SeqConfig& c) {
    c.query = "state+extra";
    c.self_layers = 1;
    c.heads = 2;
    c.input_feeding = c.intra_decoder = c.copy = true;
  };
  std::vector<Placed> all = {
      {"transformer", [] { return transformer(Positions::sinusoidal, Tied::none); }, one},
      {"transformer_tied", [] { return transformer(Positions::learned, Tied::all); }, one},
      {"transformer_rotary", [] { return transformer(Positions::rotary, Tied::target); }, one},
      {"transformer_apart",
       [] { return transformer(Positions::sinusoidal, Tied::none); },
       {first, second, second}},
      {"transformer_tied_apart",
       [] { return transformer(Positions::learned, Tied::target); },
       {at::kCPU, first, first}},
      {"language_model", language_model, one},
      {"masked_language_model", masked_language_model, one},
      {"classifier_mean", [] { return classifier(Pooling::mean); }, one},
      {"classifier_fixed", [] { return classifier(Pooling::fixed_mlp); }, one},
      {"classifier_class", [] { return classifier(Pooling::class_token); }, one},
      {"seq2seq", [] { return seq2seq([](auto&) {}); }, one},
      {"seq2seq_apart", [] { return seq2seq([](auto&) {}); }, three},
      {"seq2seq_everything", [=] { return seq2seq(everything); }, one},
      {"seq2seq_everything_apart", [=] { return seq2seq(everything); }, three},
      {"seq2seq_attention_apart",
       [] { return seq2seq([](auto& c) { c.mechanism = "location_sensitive"; }); },
       {at::kCPU, first, at::kCPU}},
      {"seq2seq_fixed_context", [] { return seq2seq([](auto& c) { c.score = "none"; }); }, three},
      {"seq2seq_hard", [] { return seq2seq([](auto& c) { c.mechanism = "hard"; }); }, three},
  };
  for (const char* mechanism : {"additive_relu", "alibi", "t5", "shaw", "sink", "sparsemax",
                                "linear", "performer", "sliding_window", "global_tokens"})
    all.push_back({"transformer_" + std::string(mechanism),
                   [=] { return transformer_with(mechanism); }, one});
  return all;
}

class EveryNetwork : public testing::TestWithParam<Placed> {
 protected:
  // With the same weights in each call.
  static std::shared_ptr<PairNetwork> made() {
    torch::manual_seed(3);
    auto network = GetParam().make();
    network->to(torch::kDouble);
    return network;
  }

  void SetUp() override {
    placed->place(GetParam().devices);
    batch = make_batch(pairs, {0, on_cpu->wants_equal_lengths() ? 2 : 1});
  }

  std::shared_ptr<PairNetwork> on_cpu = made(), placed = made();
  Batch batch;
};

INSTANTIATE_TEST_SUITE_P(Devices, EveryNetwork, testing::ValuesIn(all_placed()),
                         [](const auto& info) { return info.param.name; });

void expect_close(const Tensor& found, const Tensor& expected, const std::string& what) {
  ASSERT_EQ(found.defined(), expected.defined()) << what;
  if (!found.defined()) return;
  EXPECT_TRUE(torch::allclose(found.cpu(), expected, 1e-9, 1e-9)) << what;
}

TEST_P(EveryNetwork, HasTheObjectiveAndGradientsOfTheCpu) {
  const auto differentiated = [&](PairNetwork& network) {
    const Pass pass{.generator = at::make_generator<at::CPUGeneratorImpl>(5)};
    const Tensor loss = network.objective(batch, pass, 0.1);
    loss.backward();
    return loss.detach();
  };
  const Tensor expected = differentiated(*on_cpu);
  expect_close(differentiated(*placed), expected, "objective");
  const auto parameters = placed->named_parameters();
  for (const auto& item : on_cpu->named_parameters())
    expect_close(parameters[item.key()].grad(), item.value().grad(), item.key());
}

TEST_P(EveryNetwork, StepsAsOnTheCpu) {
  torch::NoGradGuard no_gradient;
  on_cpu->eval();
  placed->eval();
  const auto state = on_cpu->start(batch.source, batch.source_lengths, {}),
             other = placed->start(batch.source, batch.source_lengths, {});
  const Tensor rows = torch::tensor({1, 0, 1});
  for (const auto& tokens :
       {torch::tensor({1, 1}), torch::tensor({5, 8}), torch::tensor({6, 4, 7})}) {
    if (tokens.size(0) == 3) {
      state->reorder(rows, /*same_sources=*/false);
      other->reorder(rows, /*same_sources=*/false);
    }
    const StepResult expected = state->step(tokens, true, {}),
                     found = other->step(tokens, true, {});
    EXPECT_EQ(found.log_probabilities.device(), GetParam().devices.decoder);
    expect_close(found.log_probabilities, expected.log_probabilities, "log-probabilities");
    expect_close(found.weights, expected.weights, "weights");
  }
}

void expect_refused(const std::shared_ptr<PairNetwork>& network, const Devices& devices,
                    const std::string& remedy) {
  EXPECT_THAT([&] { network->place(devices); },
              testing::ThrowsMessage<Error>(testing::HasSubstr(remedy)));
}

TEST(Placement, OfPartsIsRefusedWhereThereAreNone) {
  const at::Device other = software_device(0);
  expect_refused(language_model(), {at::kCPU, other, at::kCPU}, "--device, without --place");
  expect_refused(transformer(Positions::sinusoidal, Tied::none), {at::kCPU, at::kCPU, other},
                 "attention=hip");
  expect_refused(transformer(Positions::learned, Tied::all), {at::kCPU, other, other},
                 "place both on hip");
}

}  // namespace device_test
}  // namespace attend
