#include "attend/decode/batch_invariance.h"

#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include "attend/models/pair_network.h"
#include "attend/text/vocabulary.h"
#include "tests/models/networks.h"

namespace attend {
namespace batch_invariance_test {

using at::Tensor;

constexpr int64_t vocabulary = 12, steps = 18;

// Output of a network for one source: log probabilities [steps, V] and weights [steps, S].
struct Given {
  Tensor log_probabilities, weights;
};

class NetworkInCompany : public testing::TestWithParam<test::SomeNetwork> {
 protected:
  void SetUp() override {
    torch::manual_seed(3);
    network = GetParam().config().chosen().make_network(GetParam().source, GetParam().target);
    network->eval();
    sources = test::some_sources(GetParam().source, count, /*tokens=*/9);
    tokens = at::randint(Vocabulary::unknown + 1, vocabulary, {count, steps}, at::kLong);
    tokens.select(1, 0).fill_(Vocabulary::bos);
  }

  void expect_the_same_in_any_company() const {
    std::vector<int64_t> order(count);
    for (int64_t i = 0; i < count; ++i) order[static_cast<size_t>(i)] = (i * 31 + 5) % count;
    const std::vector<Given> all = answers(order);
    for (const int64_t width : {1, 2, 5, 33}) {
      for (const int64_t first : {int64_t{0}, count - width}) {
        const auto begin = order.begin() + first;
        const std::vector<Given> some = answers({begin, begin + width});
        for (int64_t i = 0; i < width; ++i) {
          const Given &got = some[static_cast<size_t>(i)],
                      &want = all[static_cast<size_t>(first + i)];
          ASSERT_TRUE(at::equal(got.log_probabilities, want.log_probabilities))
              << width << " " << i << " "
              << (got.log_probabilities - want.log_probabilities).abs().max().item<double>();
          ASSERT_TRUE(at::equal(got.weights, want.weights)) << width << " " << i;
        }
      }
    }
  }

  // Outputs for the sources of these numbers, computed as one batch.
  std::vector<Given> answers(const std::vector<int64_t>& rows) const {
    const at::NoGradGuard no_gradient;
    const BatchInvariantGuard invariant;
    const Tensor which = at::tensor(rows, at::kLong);
    const Tensor source = sources.index_select(0, which), given = tokens.index_select(0, which);
    const auto batch = static_cast<int64_t>(rows.size());
    const auto state = network->start(source, at::full({batch}, source.size(1), at::kLong), {});
    std::vector<Tensor> log_probabilities, weights;
    for (int64_t step = 0; step < steps; ++step) {
      if (step > 0 && step == GetParam().config().row().answers->length(source.size(1))) break;
      StepResult result = state->step(given.select(1, step), true, {});
      log_probabilities.push_back(result.log_probabilities);
      if (result.weights.defined()) weights.push_back(result.weights);
    }
    std::vector<Given> each;
    const Tensor all = at::stack(log_probabilities, 1);
    const Tensor looks = weights.empty() ? at::zeros({batch, 1}) : at::stack(weights, 1);
    for (int64_t i = 0; i < batch; ++i) each.push_back({all[i], looks[i]});
    return each;
  }

  // Log probabilities [rows, steps, V] for sources padded after their lengths.
  Tensor log_probabilities(const Tensor& source, const Tensor& lengths, const Tensor& given) const {
    const at::NoGradGuard no_gradient;
    const BatchInvariantGuard invariant;
    const auto state = network->start(source, lengths, {});
    std::vector<Tensor> found;
    for (int64_t step = 0; step < steps; ++step)
      found.push_back(
          state->step(given.select(1, step), /*with_weights=*/false, {}).log_probabilities);
    return at::stack(found, 1);
  }

  void expect_the_same_beside_longer_sources() const {
    Tensor padded = sources.clone();
    const int64_t longest = padded.size(1);
    const Tensor lengths = at::arange(count).remainder(longest) + 1;
    padded.masked_fill_(at::arange(longest).unsqueeze(0) >= lengths.unsqueeze(1),
                        Vocabulary::padding);
    const Tensor together = log_probabilities(padded, lengths, tokens);
    for (int64_t i = 0; i < count; ++i) {
      const Tensor length = lengths.narrow(0, i, 1);
      const Tensor alone =
          log_probabilities(padded.narrow(0, i, 1).narrow(1, 0, length.item<int64_t>()), length,
                            tokens.narrow(0, i, 1));
      ASSERT_TRUE(at::equal(together[i], alone[0])) << i;
    }
  }

  static constexpr int64_t count = 70;
  std::shared_ptr<PairNetwork> network;
  Tensor sources, tokens;
};

// Bit-identical, also beyond the context of a language model.
TEST_P(NetworkInCompany, AnswersASourceAloneAsInAnyCompany) { expect_the_same_in_any_company(); }

TEST_P(NetworkInCompany, AnswersSoWithPackedWeights) {
  for (const WeightType weights : {WeightType::float32, WeightType::bfloat16, WeightType::int8}) {
    if (network->pack(weights)) expect_the_same_in_any_company();
  }
}

TEST_P(NetworkInCompany, AnswersSoBesideLongerSourcesWherePaddingIsExact) {
  for (const WeightType weights : {WeightType::float32, WeightType::bfloat16, WeightType::int8}) {
    if (network->pack(weights) && network->pads_exactly()) expect_the_same_beside_longer_sources();
  }
}

INSTANTIATE_TEST_SUITE_P(Models, NetworkInCompany, testing::ValuesIn(test::some_networks()),
                         [](const auto& info) { return info.param.name; });

}  // namespace batch_invariance_test
}  // namespace attend
