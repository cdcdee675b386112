#include "attend/mechanisms/key_value_memory.h"

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cmath>

#include "tests/ops/differences.h"
#include "tests/ops/misuse.h"

namespace attend {
namespace key_value_memory_test {

using at::Tensor;

Tensor randn(at::IntArrayRef shape) { return torch::randn(shape, torch::kDouble); }

TEST(KeyValueMemory, ReadsValuesByTheNearnessOfTheirKeys) {
  torch::manual_seed(1);
  const Tensor keys = randn({5, 3}), values = randn({5, 2}), queries = randn({4, 3});
  const double beta = 2.5;
  KeyValueMemory memory(
      10, {.score = Score("cosine", {{"beta", torch::tensor(beta, torch::kDouble)}})});
  memory.write(keys, values);
  const auto [context, lse] = memory.read(queries);
  const Tensor weights = memory.weights(queries, lse);
  for (int64_t i = 0; i < 4; ++i) {
    double sum = 0, first = 0, second = 0;
    std::vector<double> powers;
    for (int64_t j = 0; j < 5; ++j) {
      const Tensor q = queries[i], k = keys[j];
      const double cosine = ((q * k).sum() / (q.norm() * k.norm())).item<double>();
      powers.push_back(std::exp(beta * cosine));
      sum += powers.back();
      first += powers.back() * values[j][0].item<double>();
      second += powers.back() * values[j][1].item<double>();
    }
    EXPECT_NEAR(context[i][0].item<double>(), first / sum, 1e-13);
    EXPECT_NEAR(context[i][1].item<double>(), second / sum, 1e-13);
    for (int64_t j = 0; j < 5; ++j)
      EXPECT_NEAR(weights[i][j].item<double>(), powers[static_cast<size_t>(j)] / sum, 1e-13);
  }
}

// With growing scores soft addressing becomes hard addressing.
TEST(KeyValueMemory, LooksUpTheNearestKey) {
  torch::manual_seed(2);
  const Tensor keys = randn({59, 3}), values = randn({59, 2}), queries = randn({7, 3});
  KeyValueMemory memory(59, {.score = "squared_distance"});
  memory.write(keys, values);
  const Tensor found = memory.lookup(queries);
  for (int64_t i = 0; i < 7; ++i) {
    int64_t nearest = 0;
    double least = INFINITY;
    for (int64_t j = 0; j < 59; ++j) {
      const double distance = (queries[i] - keys[j]).square().sum().item<double>();
      if (distance < least) {
        least = distance;
        nearest = j;
      }
    }
    EXPECT_TRUE(torch::equal(found[i], values[nearest]));
  }
  EXPECT_TRUE(torch::equal(memory.lookup(keys), values));
  KeyValueMemory strong(59, {.score = "squared_distance"});
  strong.write(1e4 * keys, values);
  EXPECT_TRUE(torch::allclose(strong.read(1e4 * queries).context, found));
}

TEST(KeyValueMemory, HoldsOneEntryAKeyAndForgetsTheOldest) {
  const Tensor a = torch::tensor({{1.0, 0.0}}), b = torch::tensor({{0.0, 1.0}});
  const Tensor c = torch::tensor({{-1.0, 0.0}});
  const auto value = [](double x) { return torch::full({1, 1}, x); };
  KeyValueMemory memory(2, {.score = "dot"});
  memory.write(a, value(1));
  memory.write(b, value(2));
  memory.write(a, value(3));  // the key exists: replaces its value and makes it newer than b
  EXPECT_EQ(memory.size(), 2);
  EXPECT_EQ(memory.lookup(a).item<double>(), 3);
  memory.write(c, value(4));
  EXPECT_EQ(memory.size(), 2);
  EXPECT_EQ(memory.lookup(a).item<double>(), 3);
  EXPECT_EQ(memory.lookup(c).item<double>(), 4);
  EXPECT_NE(memory.lookup(b).item<double>(), 2);
  memory.clear();
  memory.write(torch::cat({a, b, c}), torch::cat({value(5), value(6), value(7)}));
  EXPECT_EQ(memory.size(), 2);
  EXPECT_EQ(memory.lookup(b).item<double>(), 6);
  EXPECT_EQ(memory.lookup(c).item<double>(), 7);
}

TEST(KeyValueMemory, KeepsWhatWasWritten) {
  Tensor key = torch::ones({1, 2}), value = torch::ones({1, 1});
  KeyValueMemory memory(3);
  memory.write(key, value);
  value.fill_(9);
  EXPECT_EQ(memory.lookup(key).item<double>(), 1);
}

TEST(KeyValueMemory, HasTheGradientsOfItsDifferences) {
  torch::manual_seed(3);
  const Tensor probe = randn({2, 2});
  // The second write drops the first key and replaces nothing.
  const auto objective = [&](const reference::Tensors& x) {
    KeyValueMemory memory(3, {.score = Score("additive", {{"v", x[5]}})});
    memory.write(x[1], x[2]);
    memory.write(x[3], x[4]);
    return (memory.read(x[0]).context * probe).sum() + (memory.lookup(x[0]) * probe).sum();
  };
  reference::expect_gradients(
      objective,
      {randn({2, 3}), randn({3, 3}), randn({3, 2}), randn({1, 3}), randn({1, 2}), randn({3})},
      {"queries", "keys", "values", "later keys", "later values", "v"});
}

TEST(KeyValueMemory, RefusesWhatDoesNotFit) {
  KeyValueMemory memory(3), empty(1);
  memory.write(torch::zeros({1, 4}), torch::zeros({1, 2}));
  expect_errors({
      {[] { KeyValueMemory(0); }, "the capacity is 0; it must be 1 or more"},
      {[&] {
         empty.read(torch::zeros({1, 4}));
       },
       "nothing was written yet"},
      {[&] {
         empty.lookup(torch::zeros({1, 4}));
       },
       "nothing was written yet"},
      {[&] {
         empty.weights(torch::zeros({1, 4}), torch::zeros({1}));
       },
       "nothing was written yet"},
      {[&] { memory.write(torch::zeros({4}), torch::zeros({2})); }, "keys must have two axes"},
      {[&] {
         memory.write(torch::zeros({2, 4}), torch::zeros({1, 2}));
       },
       "2 keys and 1 values"},
      {[&] {
         memory.write(torch::zeros({1, 5}), torch::zeros({1, 2}));
       },
       "keys have depth 5, earlier ones 4"},
      {[&] {
         memory.write(torch::zeros({1, 4}), torch::zeros({1, 2}, torch::kDouble));
       },
       "values are Double on cpu, earlier ones Float on cpu"},
      {[&] {
         memory.read(torch::zeros({1, 5}));
       },
       "depth"},
  });
}

}  // namespace key_value_memory_test
}  // namespace attend
