#include "attend/nn/shared_sequence.h"

#include <ATen/CPUGeneratorImpl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/models/networks.h"
#include "tests/support/thread_world.h"

namespace attend {
namespace shared_sequence_test {

using at::Tensor;
using test::SomeNetwork;

constexpr int64_t tokens = 12;

// Sequences of many lengths, some shorter than the number of ranks; texts for language models.
const std::vector<EncodedPair> pairs = {
    {{4, 5, 6, 7, 8, 9, 4}, {5, 6, 7, 4, 11}}, {{9, 4, 4}, {8}}, {{6}, {9, 9, 10, 4, 5, 6, 7}}};
const std::vector<EncodedPair> texts = {{{}, {4, 5, 6, 7, 8, 9, 10, 11, 4, 6, 8}, {}, true},
                                        {{}, {9, 9, 5}, {}, true}};

std::vector<SomeNetwork> networks() {
  return {
      {"lm", {"model.context=16"}},
      {"lm_alibi", {"model.bias=alibi", "model.tied=false", "model.positions=none"}},
      {"lm_rotary", {"model.positions=rotary", "model.key_heads=1"}},
      {"lm_kerple", {"model.bias=kerple_log + fire:4", "model.positions=none"}},
      {"lm_yarn",
       {"model.positions=rotary", "model.rotary_scaling=yarn:4,8", "model.rotary_pairs=halves"}},
      {"lm_window", {"model.mechanism=sliding_window", "model.positions=sinusoidal"}},
      {"lm_sparse", {"model.normaliser=sparsemax", "model.normalise_first=false"}},
      {"lm_linear", {"model.mechanism=linear"}},
      {"lm_retention", {"model.layer=retention"}},
      {"lm_gated_delta", {"model.layer=gated_delta,attention"}},
      {"lm_rwkv6", {"model.layer=rwkv6"}},
      {"transformer", {}},
      {"transformer_kda", {"model.layer=kda"}},
      {"transformer_relative", {"model.bias=relative_keys:3 + alibi", "model.source_bias=sink"}},
      {"transformer_grid", {"model.bias=grid:5x6 + buckets:8", "model.positions=rotary"}},
      {"transformer_random", {"model.mechanism=performer"}},
      {"transformer_additive", {"model.source_mechanism=bahdanau", "model.tied=none"}},
      {"transformer_gumbel", {"model.source_normaliser=gumbel:0.7"}},
      {"transformer_global", {"model.scope=global:2 | window:1", "model.positions=learned"}},
      {"transformer_sensitive", {"model.source_mechanism=location_sensitive"}}};
}

// The same weights in each call, in float64, so that rounding is negligible.
std::shared_ptr<PairNetwork> make(const SomeNetwork& some) {
  ModelConfig config = some.config();
  assign(config.settings(), "model.dropout=0.2");
  assign(config.settings(), "model.attention_dropout=0.2");
  EXPECT_EQ(config.chosen().not_shared_reason(), "");
  torch::manual_seed(5);
  auto network = config.chosen().make_network(some.source, tokens);
  network->to(at::kDouble);
  return network;
}

// Returns the objective and the gradients of the weights.
std::vector<Tensor> learned(PairNetwork& network, const std::vector<EncodedPair>& from,
                            Communicator* world = nullptr) {
  std::vector<int64_t> all(from.size());
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int64_t>(i);
  const Pass pass{.generator = at::make_generator<at::CPUGeneratorImpl>(7), .world = world};
  const Tensor objective = network.objective(make_batch(from, all), pass, 0.1);
  objective.backward();
  std::vector<Tensor> results = {objective.detach()};
  for (const Tensor& weight : network.parameters())
    results.push_back(weight.grad().defined() ? weight.grad() : at::zeros_like(weight));
  return results;
}

class SharedNetwork : public testing::TestWithParam<SomeNetwork> {
 protected:
  static void expect_as_one(const std::vector<EncodedPair>& from, int64_t ranks) {
    const std::vector<Tensor> wanted = learned(*make(GetParam()), from);
    std::vector<std::shared_ptr<PairNetwork>> copies;
    for (int64_t r = 0; r < ranks; ++r) copies.push_back(make(GetParam()));
    std::vector<std::vector<Tensor>> parts(copies.size());
    ThreadWorld(ranks).run([&](Communicator& world) {
      const auto rank = static_cast<size_t>(world.rank());
      parts[rank] = learned(*copies[rank], from, &world);
    });
    // Softmax cancels a bias of all keys. Its gradient is only rounding and is compared with the
    // largest gradient.
    double largest = 0;
    for (size_t i = 1; i < wanted.size(); ++i)
      largest = std::max(largest, wanted[i].norm().item<double>());
    for (size_t i = 0; i < wanted.size(); ++i) {
      Tensor sum = at::zeros_like(wanted[i]);
      for (const auto& part : parts) sum += part[i];
      const double size = wanted[i].norm().item<double>();
      EXPECT_LE((sum - wanted[i]).norm().item<double>(),
                i == 0 ? 1e-12 * size : 1e-12 * size + 1e-14 * largest)
          << (i == 0 ? "objective" : copies[0]->named_parameters().keys()[i - 1]) << " of "
          << ranks;
    }
  }
};

// Including dropout and draws, which depend on the place in the whole sequence.
TEST_P(SharedNetwork, LearnsAsOneProcess) {
  for (const int64_t ranks : {1, 2, 3, 5}) {
    expect_as_one(pairs, ranks);
    if (GetParam().name.starts_with("lm")) expect_as_one(texts, ranks);
  }
}

INSTANTIATE_TEST_SUITE_P(Networks, SharedNetwork, testing::ValuesIn(networks()),
                         [](const auto& info) { return info.param.name; });

TEST(SharedSequences, AreRefusedByName) {
  const auto why = [](const SomeNetwork& some) {
    return some.config().chosen().not_shared_reason();
  };
  EXPECT_THAT(why({"seq2seq", {}}), testing::HasSubstr("transformer and lm"));
  EXPECT_THAT(why({"transformer", {"model.source_mechanism=local_p"}}),
              testing::HasSubstr("model.source_scope is around:"));
  for (const char* type : {"transformer", "lm"})
    EXPECT_THAT(why({type, {"model.experts=2"}}), testing::HasSubstr("model.experts"));
}

TEST(SharedSequences, AreWholeWithoutAWorld) {
  const Pass pass;
  const SharedSequence sequence(pass, 5);
  EXPECT_EQ(pass.over(sequence).sequence, nullptr);
  const Tensor all = at::arange(10).view({2, 5});
  EXPECT_TRUE(at::equal(sequence.own(all), all));
}

}  // namespace shared_sequence_test
}  // namespace attend
