#include "attend/nn/intra_attention.h"

#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/ops/differences.h"
#include "tests/ops/misuse.h"

namespace attend {
namespace intra_attention_test {

using at::Tensor;

constexpr int64_t depth = 3, hidden = 4, units = 5;
// For ten recurrent steps over sums of some dozens of products of numbers near 1.
constexpr double tolerance = 1e-12;

using Vector = std::vector<double>;

Vector vector_of(const Tensor& x) {
  const Tensor flat = x.detach().contiguous();
  return {flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel()};
}

// W x, W [rows, columns]
Vector times(const Tensor& matrix, const Vector& x) {
  const Vector w = vector_of(matrix);
  Vector product(static_cast<size_t>(matrix.size(0)), 0.0);
  for (size_t i = 0; i < product.size(); ++i) {
    for (size_t j = 0; j < x.size(); ++j) product[i] += w[i * x.size() + j] * x[j];
  }
  return product;
}

Vector softmax(const Vector& scores) {
  Vector weights;
  double sum = 0;
  for (const double score : scores) sum += std::exp(score);
  for (const double score : scores) weights.push_back(std::exp(score) / sum);
  return weights;
}

Vector joined(Vector a, const Vector& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// Hidden states of one sequence (Cheng et al. 2016, eq. 4-9).
std::vector<Vector> lstmn(const IntraAttentionCell& cell, const Tensor& sequence) {
  const auto parameters = cell.named_parameters();
  const Vector v = vector_of(parameters["attention.v"]), b = vector_of(parameters["attention.b"]);
  const Vector bias = vector_of(parameters["gates.bias"]);
  std::vector<Vector> h, c;
  Vector h_read(hidden, 0.0);
  for (int64_t t = 0; t < sequence.size(0); ++t) {
    const Vector x = vector_of(sequence[t]);
    const Vector asked = times(parameters["attention.W_q"], joined(x, h_read));
    Vector scores;
    for (const Vector& past : h) {
      const Vector key = times(parameters["attention.W_k"], past);
      double score = 0;
      for (size_t a = 0; a < v.size(); ++a) score += v[a] * std::tanh(asked[a] + key[a] + b[a]);
      scores.push_back(score);
    }
    const Vector weights = softmax(scores);
    h_read.assign(hidden, 0.0);
    Vector c_read(hidden, 0.0);
    for (size_t i = 0; i < h.size(); ++i) {
      for (size_t d = 0; d < hidden; ++d) {
        h_read[d] += weights[i] * h[i][d];
        c_read[d] += weights[i] * c[i][d];
      }
    }
    const Vector gates = times(parameters["gates.weight"], joined(h_read, x));
    h.emplace_back(hidden);
    c.emplace_back(hidden);
    for (size_t d = 0; d < hidden; ++d) {
      const auto gate = [&](size_t which) {
        return gates[which * hidden + d] + bias[which * hidden + d];
      };
      c.back()[d] = sigmoid(gate(1)) * c_read[d] + sigmoid(gate(0)) * std::tanh(gate(3));
      h.back()[d] = sigmoid(gate(2)) * std::tanh(c.back()[d]);
    }
  }
  return h;
}

IntraAttentionCell double_cell() {
  torch::manual_seed(1);
  IntraAttentionCell cell(depth, hidden, units);
  cell.to(torch::kDouble);
  return cell;
}

TEST(IntraAttention, IsTheRecurrenceOfThePaperInPaddedBatches) {
  IntraAttentionCell cell = double_cell();
  const Tensor x = torch::randn({3, 9, depth}, torch::kDouble);
  const std::vector<int64_t> lengths = {9, 1, 6};
  const Tensor states = cell.forward(x, torch::tensor(lengths));
  for (int64_t b = 0; b < 3; ++b) {
    const int64_t length = lengths[static_cast<size_t>(b)];
    const auto wanted = lstmn(cell, x[b].slice(0, 0, length));
    for (int64_t t = 0; t < length; ++t) {
      const Vector got = vector_of(states[b][t]);
      for (size_t d = 0; d < hidden; ++d)
        EXPECT_NEAR(got[d], wanted[static_cast<size_t>(t)][d], tolerance);
    }
    EXPECT_EQ(states[b].slice(0, length).abs().sum().item<double>(), 0);
  }
}

TEST(IntraAttention, DoesNotSeeWhatComesLater) {
  IntraAttentionCell cell = double_cell();
  Tensor x = torch::randn({2, 7, depth}, torch::kDouble);
  const Tensor before = cell.forward(x).slice(1, 0, 4).clone();
  x.slice(1, 4) += 100;
  EXPECT_TRUE(torch::equal(cell.forward(x).slice(1, 0, 4), before));
}

TEST(IntraAttention, ReadsTheTapeWithItsWeights) {
  IntraAttentionCell cell = double_cell();
  auto state = cell.start(2);
  for (int64_t t = 0; t < 5; ++t) {
    const Tensor input = torch::randn({2, depth}, torch::kDouble);
    const Tensor weights = cell.weights(input, state);
    ASSERT_EQ(weights.sizes(), (std::vector<int64_t>{2, t}));
    const auto next = cell.step(input, state).second;
    EXPECT_TRUE(torch::allclose(torch::bmm(weights.unsqueeze(1), state.tape.values).squeeze(1),
                                next.read, tolerance, tolerance));
    state = next;
  }
}

// Every other score that needs only the compared vectors.
TEST(IntraAttention, TakesOtherScores) {
  for (const char* score : {"general", "additive_relu"}) {
    IntraAttentionCell cell(depth, hidden, units, score);
    cell.forward(torch::randn({2, 4, depth})).square().sum().backward();
    for (const auto& item : cell.named_parameters())
      EXPECT_GT(item.value().grad().abs().sum().item<double>(), 0) << score << " " << item.key();
  }
}

// Checks the derivatives with respect to x and every parameter.
template <class Module, class Run>
void expect_module_gradients(Module& module, const Tensor& x, Run run) {
  std::vector<std::string> names = {"x"};
  reference::Tensors inputs = {x};
  for (const auto& item : module.named_parameters()) {
    names.push_back(item.key());
    inputs.push_back(item.value().detach().clone());
  }
  const auto objective = [&](const reference::Tensors& values) {
    {
      at::NoGradGuard no_gradient;
      size_t next = 1;
      for (Tensor& parameter : module.parameters()) parameter.copy_(values[next++]);
    }
    return run(values[0]);
  };
  reference::Tensors variables = reference::leaves({x});
  for (const Tensor& parameter : module.parameters()) variables.push_back(parameter);
  const auto derivatives = reference::gradients(run(variables[0]), variables, false);
  at::NoGradGuard no_gradients;
  reference::expect_central_differences(objective, inputs, derivatives, names);
}

TEST(IntraAttention, HasTheGradientsOfItsDifferences) {
  IntraAttentionCell cell = double_cell();
  const Tensor probe = torch::randn({2, 4, hidden}, torch::kDouble);
  expect_module_gradients(cell, torch::randn({2, 4, depth}, torch::kDouble), [&](const Tensor& x) {
    return (cell.forward(x, torch::tensor({4, 2})) * probe).sum();
  });
}

IntraDecoderAttention double_decoder(const std::string& score) {
  torch::manual_seed(2);
  IntraDecoderAttention module(depth, score, units);
  module.to(torch::kDouble);
  return module;
}

TEST(IntraDecoder, AttendsToTheStatesBefore) {
  const IntraDecoderAttention module = double_decoder("general");
  const Tensor states = torch::randn({2, 11, depth}, torch::kDouble);
  const auto [context, lse] = module.forward(states);
  const Tensor weights = module.weights(states, lse);
  for (int64_t b = 0; b < 2; ++b) {
    for (int64_t t = 0; t < 11; ++t) {
      Vector scores, sum(depth, 0.0);
      for (int64_t i = 0; i < t; ++i) {
        const Vector key = times(module.parameters()[0], vector_of(states[b][i]));
        const Vector query = vector_of(states[b][t]);
        double score = 0;
        for (size_t d = 0; d < depth; ++d) score += query[d] * key[d];
        scores.push_back(score);
      }
      Vector wanted = softmax(scores);
      for (int64_t i = 0; i < t; ++i) {
        for (int64_t d = 0; d < depth; ++d)
          sum[static_cast<size_t>(d)] +=
              wanted[static_cast<size_t>(i)] * states[b][i][d].item<double>();
      }
      wanted.resize(11, 0.0);
      const Vector got = vector_of(context[b][t]), got_weights = vector_of(weights[b][t]);
      for (size_t d = 0; d < depth; ++d) EXPECT_NEAR(got[d], sum[d], tolerance);
      for (size_t i = 0; i < 11; ++i) EXPECT_NEAR(got_weights[i], wanted[i], tolerance);
    }
  }
}

TEST(IntraDecoder, StepsAsItRunsOverASequence) {
  for (const char* score : {"general", "additive", "dot"}) {
    const IntraDecoderAttention module = double_decoder(score);
    const Tensor states = torch::randn({3, 6, depth}, torch::kDouble);
    const auto [context, lse] = module.forward(states);
    PastSteps past;
    for (int64_t t = 0; t < 6; ++t) {
      const auto [step, next] = module.step(states.select(1, t), past);
      EXPECT_TRUE(torch::allclose(step.context, context.select(1, t), tolerance, tolerance));
      EXPECT_TRUE(torch::allclose(step.lse, lse.select(1, t), tolerance, tolerance));
      past = next;
    }
    EXPECT_EQ(past.values.size(1), 6);
  }
}

TEST(IntraDecoder, HasTheGradientsOfItsDifferences) {
  IntraDecoderAttention module = double_decoder("general");
  const Tensor probe = torch::randn({2, 5, depth}, torch::kDouble);
  expect_module_gradients(
      module, torch::randn({2, 5, depth}, torch::kDouble),
      [&](const Tensor& x) { return (module.forward(x).context * probe).sum(); });
}

TEST(IntraAttentionErrors, SayWhatDoesNotFit) {
  expect_errors({
      {[] { IntraAttentionCell(3, 4, 5, "aditive"); }, "did you mean additive"},
      {[] { IntraAttentionCell(3, 4, 5, "dot"); }, "use general or additive"},
      {[] {
         IntraAttentionCell(3, 4, 5).forward(torch::zeros({2, 3}));
       },
       "inputs have shape [2, 3]; they must be [B, T, D]"},
      {[] {
         IntraDecoderAttention(3).forward(torch::zeros({2, 0, 3}));
       },
       "states have shape [2, 0, 3]; they must be [B, T, D], T 1 or more"},
  });
}

}  // namespace intra_attention_test
}  // namespace attend
