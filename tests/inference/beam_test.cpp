// Beam search against teacher forcing: after a beam moves rows, each state continues as if it had
// read only its hypothesis.
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>

#include "attend/decode/search.h"
#include "attend/models/pair_network.h"
#include "attend/text/vocabulary.h"
#include "tests/models/networks.h"

namespace attend {
namespace beam_test {

using at::Tensor;

constexpr int64_t vocabulary = 12;
const SpecialTokens special{
    Vocabulary::bos, Vocabulary::eos, {Vocabulary::padding, Vocabulary::bos, Vocabulary::unknown}};

// Networks that search for answers: they neither fill in their sources nor answer numbers, sets or
// spans.
std::vector<test::SomeNetwork> answering_networks() {
  std::vector<test::SomeNetwork> all = test::some_networks();
  std::erase_if(all, [](const test::SomeNetwork& each) {
    const AnswerKind& kind = *each.config().row().answers;
    return kind.fills() || kind.is_span() || each.target.is_number() || each.target.is_label_set;
  });
  return all;
}

class NetworkInABeam : public testing::TestWithParam<test::SomeNetwork> {
 protected:
  void SetUp() override {
    torch::manual_seed(7);
    const SourceShape& source = GetParam().source;
    config = GetParam().config();
    network = config.chosen().make_network(source, vocabulary);
    network->eval();
    sources = test::some_sources(source, 3, /*tokens=*/5);
    lengths = at::full({3}, sources.size(1), at::kLong);
  }

  // Checks that the search's log probabilities of the answers and their ends equal the values of
  // one pass.
  void expect_teacher_forcing(double tolerance) {
    const at::NoGradGuard no_gradient;
    // Answers have different lengths, so that the rows of sources change too.
    std::vector<SearchTask> tasks = {{.longest = 7}, {.longest = 3}, {.longest = 5}};
    for (SearchTask& task : tasks) task.length = config.row().answers->length(sources.size(1));
    const auto found =
        search(network->start(sources, lengths, {}), tasks, special,
               {.beam = 4, .nbest = 4, .minimum_length = tasks[0].length > 0 ? 0 : 2});
    for (int64_t b = 0; b < 3; ++b) {
      ASSERT_FALSE(found[static_cast<size_t>(b)].empty());
      for (const Candidate& each : found[static_cast<size_t>(b)]) {
        std::vector<int64_t> target = each.ids;
        if (each.log_probabilities.size() > target.size()) target.push_back(Vocabulary::eos);
        const Tensor ids = at::tensor(target, at::kLong).unsqueeze(0);
        const Tensor whole =
            network->log_probabilities({sources.narrow(0, b, 1), lengths.narrow(0, b, 1), ids,
                                        at::full({1}, ids.size(1), at::kLong)},
                                       {});
        const Tensor expected = whole.to(at::kDouble).gather(2, ids.unsqueeze(2)).flatten();
        EXPECT_TRUE(
            at::allclose(at::tensor(each.log_probabilities), expected, tolerance, tolerance))
            << b << expected << at::tensor(each.log_probabilities);
      }
    }
  }

  ModelConfig config;
  std::shared_ptr<PairNetwork> network;
  Tensor sources, lengths;
};

TEST_P(NetworkInABeam, AnswersAsByTeacherForcing) {
  network->to(at::kDouble);
  if (sources.is_floating_point()) sources = sources.to(at::kDouble);
  expect_teacher_forcing(1e-9);
}

// Sums of some tens of float32 terms.
TEST_P(NetworkInABeam, AnswersSoByPackedSteps) {
  if (network->pack(WeightType::float32)) expect_teacher_forcing(1e-5);
}

INSTANTIATE_TEST_SUITE_P(Models, NetworkInABeam, testing::ValuesIn(answering_networks()),
                         [](const auto& info) { return info.param.name; });

TEST(NetworksInABeam, AreOfEveryType) {
  const std::vector<test::SomeNetwork> all = answering_networks();
  for (const ModelType* row : model_types())
    EXPECT_TRUE(row->answers->fills() || !row->answers->has_answers() ||
                !row->answers->is_searched() ||
                std::any_of(all.begin(), all.end(),
                            [&](const auto& each) { return each.config().type == row->name; }))
        << row->name;
}

}  // namespace beam_test
}  // namespace attend
