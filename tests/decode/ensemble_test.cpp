#include "attend/decode/ensemble.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cmath>

#include "attend/base/error.h"
#include "tests/decode/table_model.h"
#include "tests/support/files.h"

namespace attend {
namespace ensemble_test {

using test::ends;
using test::TableModel;
using test::tasks_of;
using test::tokens;

std::unique_ptr<Ensemble> joined(const std::vector<TableModel*>& models) {
  std::vector<std::unique_ptr<DecodingState>> members;
  for (TableModel* model : models) members.push_back(model->start());
  return std::make_unique<Ensemble>(std::move(members));
}

// Expected: the log of the mean of the probabilities, by a loop.
TEST(Ensemble, IsTheMeanOfTheProbabilities) {
  torch::manual_seed(51);
  TableModel a(1, 2), b(1, 2), c(1, 2);
  a.table[1][0][0][2] = -std::numeric_limits<double>::infinity();
  const StepResult result =
      joined({&a, &b, &c})->step(torch::tensor({3, 0}, torch::kLong), /*with_weights=*/true, {});
  for (int64_t sentence = 0; sentence < 2; ++sentence) {
    const int64_t before = sentence == 0 ? 3 : 0;
    for (int64_t token = 0; token < tokens; ++token) {
      double sum = 0;
      for (const TableModel* model : {&a, &b, &c})
        sum += std::exp(model->log_probability(sentence, 0, before, token));
      EXPECT_NEAR(result.log_probabilities[sentence][token].item<double>(), std::log(sum / 3),
                  1e-14);
    }
    EXPECT_EQ(result.weights[sentence][2].item<float>(), static_cast<float>(before));
  }
}

// Each member's states follow the hypotheses.
TEST(Ensemble, OfOneModelTwiceIsTheModel) {
  torch::manual_seed(52);
  TableModel model(9, 3);
  const SearchOptions options{.beam = 3, .nbest = 3, .with_weights = true};
  const auto tasks = tasks_of({9, 2, 7});
  const auto alone = search(model.start(), tasks, ends, options);
  const auto found = search(joined({&model, &model}), tasks, ends, options);
  for (size_t b = 0; b < 3; ++b) {
    ASSERT_EQ(found[b].size(), alone[b].size());
    for (size_t i = 0; i < alone[b].size(); ++i) {
      EXPECT_EQ(found[b][i].ids, alone[b][i].ids);
      EXPECT_NEAR(found[b][i].log_probability, alone[b][i].log_probability, 1e-13);
      if (alone[b][i].ids.empty()) continue;
      EXPECT_EQ(found[b][i].weights, alone[b][i].weights);
    }
  }
}

TEST(Ensemble, RefusesMisuse) {
  EXPECT_THAT(test::error_of([] { joined({}); }), testing::HasSubstr("no models"));
  TableModel a(1, 1), b(1, 1);
  b.table = torch::zeros({1, 1, 5, 5}, torch::kDouble);
  EXPECT_THAT(test::error_of([&] {
                joined({&a, &b})->step(torch::zeros({1}, torch::kLong), false, {});
              }),
              testing::HasSubstr("model 2 has 5 tokens, the first 4"));
}

}  // namespace ensemble_test
}  // namespace attend
