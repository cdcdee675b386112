#include "attend/nn/recurrence_layer.h"

#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "attend/base/error.h"
#include "attend/nn/attention_trace.h"
#include "tests/nn/module_gradients.h"

namespace attend {
namespace recurrence_layer_test {

using at::Tensor;

constexpr int64_t depth = 8, heads = 2;

class EveryRecurrenceLayer : public testing::TestWithParam<std::string> {
 protected:
  std::shared_ptr<RecurrenceLayer> make(bool both_ways = false, double epsilon = 1e-5) const {
    torch::manual_seed(3);
    auto layer = std::make_shared<RecurrenceLayer>(RecurrenceLayerConfig{
        .row = &row(), .depth = depth, .heads = heads, .both_ways = both_ways, .epsilon = epsilon});
    layer->to(torch::kDouble);
    const at::NoGradGuard no_gradient;
    // Biases and norms that do nothing could be forgotten.
    for (Tensor& each : layer->parameters()) each.add_(torch::randn_like(each), 0.3);
    return layer;
  }

  const RecurrenceRow& row() const { return recurrence_row(GetParam()); }
};

INSTANTIATE_TEST_SUITE_P(Rows, EveryRecurrenceLayer, testing::ValuesIn([] {
                           std::vector<std::string> names;
                           names.reserve(recurrence_table().size());
                           for (const RecurrenceRow& row : recurrence_table())
                             names.emplace_back(row.name);
                           return names;
                         }()),
                         [](const auto& info) { return info.param; });

double softplus(double x) { return std::log1p(std::exp(x)); }

Tensor unit(const Tensor& x) { return x / (x.square().sum() + 1e-6).sqrt(); }

double logistic(double x) { return 1 / (1 + std::exp(-x)); }

// Loops over one sequence x [T, depth], one head and one token at a time.
class Written {
 public:
  Written(RecurrenceLayer& layer, const RecurrenceRow& row)
      : row_(row), parameters_(layer.named_parameters()) {}

  Tensor output(const Tensor& x) const {
    const Tensor joined = at::cat({head(x, 0), head(x, 1)}, 1);
    const Tensor gate = map("gate", x);
    const Tensor open = row_.sigmoid_gate ? gate.sigmoid() : gate * gate.sigmoid();
    return map("output", joined * open);
  }

 private:
  Tensor map(const std::string& name, const Tensor& x) const {
    return at::matmul(x, parameters_[name + ".weight"].t()) + parameters_[name + ".bias"];
  }

  // Queries, keys and values [T, 3 depth].
  Tensor inputs(const Tensor& x) const {
    const Tensor made = map("projection", x);
    if (!row_.convolution) return made;
    const Tensor weight = parameters_["convolution"];
    Tensor sums = at::zeros_like(made);
    for (int64_t t = 0; t < x.size(0); ++t)
      for (int64_t back = 0; back < 4 && back <= t; ++back)
        sums[t] += made[t - back] * weight.select(1, 3 - back);
    return sums * sums.sigmoid();
  }

  double number(const std::string& name, const Tensor& x, int64_t t, int64_t column) const {
    return map(name, x)[t][column].item<double>();
  }

  // Factors [d, 1] of the rows of the state.
  Tensor decay(const Tensor& x, int64_t t, int64_t head) const {
    const int64_t d = depth / heads;
    Tensor factors = at::ones({d, 1}, at::kDouble);
    for (int64_t i = 0; i < d; ++i) {
      double g = 0;
      if (row_.decay == DecayKind::head) g = std::log(1 - std::pow(2.0, -5 - head));
      if (row_.decay == DecayKind::token)
        g = -std::exp(parameters_["rate"][head].item<double>()) *
            softplus(number("decay", x, t, head));
      if (row_.decay == DecayKind::row)
        g = std::log(logistic(number("decay", x, t, head * d + i))) / 16;
      factors[i] = std::exp(g);
    }
    return factors;
  }

  double strength(const Tensor& x, int64_t t, int64_t head) const {
    if (row_.step_sizes) return softplus(number("decay", x, t, head));
    return row_.strength ? logistic(number("strength", x, t, head)) : 1;
  }

  Tensor head(const Tensor& x, int64_t head) const {
    const int64_t d = depth / heads;
    const Tensor all = inputs(x);
    Tensor state = at::zeros({d, d}, at::kDouble), outputs = at::zeros({x.size(0), d}, at::kDouble);
    for (int64_t t = 0; t < x.size(0); ++t) {
      const auto part = [&](int64_t which) {
        return all[t].narrow(0, which * depth + head * d, d);
      };
      Tensor query = part(0), key = part(1);
      if (row_.unit_keys) query = unit(query), key = unit(key);
      Tensor before = state;
      state = decay(x, t, head) * state;
      const Tensor known = row_.delta ? at::mv(state.t(), key) : at::zeros({d}, at::kDouble);
      state = state + at::outer(key, strength(x, t, head) * (part(2) - known));
      if (row_.bonus)
        before =
            before + at::outer(parameters_["bonus"][head] * key, strength(x, t, head) * part(2));
      const Tensor& read = row_.bonus ? before : state;
      outputs[t] = at::mv(read.t(), query) / std::sqrt(static_cast<double>(d));
    }
    const Tensor squares = outputs.square().mean(1, true);
    return outputs / (squares + 1e-5).sqrt() * parameters_["norm"];
  }

  const RecurrenceRow& row_;
  torch::OrderedDict<std::string, Tensor> parameters_;
};

TEST_P(EveryRecurrenceLayer, IsItsFormula) {
  const at::NoGradGuard no_gradient;
  const auto layer = make();
  const Tensor x = torch::randn({2, 7, depth}, torch::kDouble);
  const Tensor found = layer->forward(x);
  for (const int64_t b : {0, 1})
    EXPECT_TRUE(at::allclose(found[b], Written(*layer, row()).output(x[b]), 1e-10, 1e-10));
}

TEST_P(EveryRecurrenceLayer, StepsAreTheWhole) {
  const at::NoGradGuard no_gradient;
  const auto layer = make();
  const Tensor x = torch::randn({3, 9, depth}, torch::kDouble);
  const Tensor whole = layer->forward(x);
  RecurrenceLayerState state;
  std::vector<Tensor> parts = {layer->step(x.narrow(1, 0, 2), state)};
  for (int64_t t = 2; t < 9; ++t) parts.push_back(layer->step(x.narrow(1, t, 1), state));
  EXPECT_TRUE(at::allclose(at::cat(parts, 1), whole, 1e-10, 1e-10));
  EXPECT_EQ(state.state.sizes(), (std::vector<int64_t>{3, heads, 4, 4}));
}

TEST_P(EveryRecurrenceLayer, StatesAreReordered) {
  const at::NoGradGuard no_gradient;
  const auto layer = make();
  const Tensor x = torch::randn({3, 6, depth}, torch::kDouble);
  const Tensor rows = torch::tensor({2, 0, 2, 1});
  RecurrenceLayerState state;
  layer->step(x.narrow(1, 0, 5), state);
  state.reorder(rows);
  const Tensor next = layer->step(x.narrow(1, 5, 1).index_select(0, rows), state);
  EXPECT_TRUE(
      at::allclose(next, layer->forward(x).narrow(1, 5, 1).index_select(0, rows), 1e-10, 1e-10));
}

TEST_P(EveryRecurrenceLayer, GradientsAreDifferences) {
  for (const bool both_ways : {false, true}) {
    SCOPED_TRACE(both_ways);
    // With a small epsilon, the norm of an output near 0 has too large a third derivative.
    const auto layer = make(both_ways, /*epsilon=*/0.1);
    const Tensor x = torch::randn({2, 6, depth}, torch::kDouble);
    const Tensor lengths = torch::tensor({6, 4}).unsqueeze(1);
    const Tensor present = torch::arange(6).unsqueeze(0) < lengths;
    reference::expect_parameter_slopes(
        *layer, [&] { return (layer->forward(x, present).sin() * present.unsqueeze(2)).sum(); });
  }
}

TEST_P(EveryRecurrenceLayer, PaddingChangesNothing) {
  const at::NoGradGuard no_gradient;
  const auto layer = make(/*both_ways=*/true);
  const Tensor x = torch::randn({2, 9, depth}, torch::kDouble);
  const Tensor present = torch::arange(9).unsqueeze(0) < torch::tensor({9, 5}).unsqueeze(1);
  const Tensor found = layer->forward(x, present);
  EXPECT_TRUE(at::allclose(found.narrow(0, 0, 1), layer->forward(x.narrow(0, 0, 1)), 1e-10, 1e-10));
  EXPECT_TRUE(at::allclose(found[1].narrow(0, 0, 5),
                           layer->forward(x.narrow(0, 1, 1).narrow(1, 0, 5))[0], 1e-10, 1e-10));
}

TEST_P(EveryRecurrenceLayer, ReadsBothWaysOnRequest) {
  const at::NoGradGuard no_gradient;
  const Tensor x = torch::randn({1, 5, depth}, torch::kDouble);
  Tensor other = x.clone();
  other[0][4].fill_(2);
  for (const bool both_ways : {false, true}) {
    const auto layer = make(both_ways);
    const Tensor a = layer->forward(x), b = layer->forward(other);
    EXPECT_EQ(at::allclose(a[0][0], b[0][0], 1e-9, 1e-9), !both_ways);
    EXPECT_FALSE(at::allclose(a[0][4], b[0][4], 1e-6, 1e-6));
  }
}

// A watch sees the weights that the recurrence applies to its values.
TEST_P(EveryRecurrenceLayer, IsSeenAsAttention) {
  const at::NoGradGuard no_gradient;
  for (const bool both_ways : {false, true}) {
    const auto layer = make(both_ways);
    const Tensor x = torch::randn({2, 6, depth}, torch::kDouble);
    AttentionTrace trace;
    const Tensor watched = layer->forward(x, {}, Pass{}.watched_by(trace));
    EXPECT_TRUE(at::allclose(watched, layer->forward(x), 1e-10, 1e-10));
    ASSERT_EQ(trace.attentions().size(), 1U);
    const TracedAttention& seen = trace.attentions()[0];
    EXPECT_TRUE(seen.has_signed_weights());
    EXPECT_EQ(seen.heads(), heads);
    const Tensor weights = seen.weights();
    EXPECT_TRUE(weights.select(1, 0).equal(weights.select(1, 0).tril()));
    if (both_ways) {
      EXPECT_TRUE(weights.select(1, 1).equal(weights.select(1, 1).triu()));
    }
  }
}

// With and without a watch, in any order.
TEST_P(EveryRecurrenceLayer, WatchedStepsAreTheWhole) {
  const at::NoGradGuard no_gradient;
  const auto layer = make();
  const Tensor x = torch::randn({2, 8, depth}, torch::kDouble);
  AttentionTrace whole_trace;
  const Tensor whole = layer->forward(x, {}, Pass{}.watched_by(whole_trace));
  const Tensor weights = whole_trace.attentions()[0].weights();
  RecurrenceLayerState state;
  for (int64_t t = 0; t < 8; t += 2) {
    AttentionTrace trace;
    const bool is_watched = t != 4;
    const Tensor made =
        layer->step(x.narrow(1, t, 2), state, is_watched ? Pass{}.watched_by(trace) : Pass{});
    EXPECT_TRUE(at::allclose(made, whole.narrow(1, t, 2), 1e-10, 1e-10));
    ASSERT_EQ(trace.attentions().size(), t < 4 ? 1U : 0U);
    if (t == 2) state.reorder(torch::tensor({0, 1}));
    if (t >= 4) continue;
    EXPECT_TRUE(at::allclose(trace.attentions()[0].weights(),
                             weights.narrow(2, t, 2).narrow(3, 0, t + 2), 1e-10, 1e-10));
  }
}

TEST(RecurrenceLayer, RefusesWhatItCannotRead) {
  const RecurrenceRow& row = recurrence_row("gated_delta");
  EXPECT_THROW(RecurrenceLayer({.row = &row, .depth = 8, .heads = 3}), Error);
  EXPECT_THROW(RecurrenceLayer({.row = &row, .depth = 9, .heads = 3, .both_ways = true}), Error);
  RecurrenceLayer layer({.row = &row, .depth = 8, .heads = 2, .both_ways = true});
  RecurrenceLayerState state;
  EXPECT_THROW(layer.step(torch::ones({1, 1, 8}), state), Error);
}

}  // namespace recurrence_layer_test
}  // namespace attend
