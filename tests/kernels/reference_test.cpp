// Tests of the reference: its gradients against finite differences, its normalisers against their
// definitions.
#include "tests/kernels/reference.h"

#include <gtest/gtest.h>

#include "tests/kernels/choices.h"

namespace attend::kernels::testing {
namespace reference_test {

using R = long double;
using Inputs = Case<double>;
using Numbers = std::vector<R>;

Inputs tiny(Family family, uint64_t seed) {
  Inputs c = random_case<double>({2, 4, 2, 3, 5, 3, 2}, family, 1, seed);
  c.score.scale = 0.8;
  return c;
}

void add_every_bias(Inputs& c) {
  const Shape& s = c.shape;
  c.dense_axes = {true, false, true};
  c.dense = random_numbers<double>(c.dense_axes.count(s, s.keys), 1, 21);
  c.slopes = random_numbers<double>(s.heads, 1, 22);
  c.slope_offset = 1;
  c.relative_count = 4;
  c.relative_offset = 2;
  c.relative_axes = {false, true, true};
  c.relative = random_numbers<double>(c.relative_axes.count(s, c.relative_count), 1, 23);
  c.query_positions = {0, 2, 1};
  c.key_positions = {1, 0, 3, 2, 5};
  c.centres = random_numbers<double>(c.rows(), 1, 24);
  c.widths = random_numbers<double>(c.rows(), 1, 25);
  for (double& w : c.widths) w = 1 + std::abs(w);
  c.query_sums = random_numbers<double>(c.rows(), 1, 26);
  c.key_sums = random_numbers<double>(s.batch * s.heads * s.keys, 1, 27);
  c.product_columns = 3;
  c.query_products = random_numbers<double>(c.rows() * 3, 1, 28);
  c.key_products = random_numbers<double>(s.batch * s.heads * s.keys * 3, 1, 29);
  c.columns = {0, 1, 1, 2, 0, 2, 1, 2, 0, 0, 1, 2, 0, 1};
}

R loss(const Inputs& c) {
  const NaiveResults<R> r = reference<R>(c);
  R sum = 0;
  for (size_t i = 0; i < r.context.size(); ++i) sum += r.context[i] * c.grad_context[i];
  for (size_t i = 0; i < r.lse.size(); ++i) {
    if (std::isfinite(r.lse[i])) sum += r.lse[i] * c.grad_lse[i];
  }
  return sum;
}

// Central differences have errors of step^2 of the third derivative, which is here 1 to 100.
void expect_derivative(Inputs c, std::vector<double> Inputs::*input, const Numbers& gradient) {
  constexpr double kStep = 0x1p-20;
  ASSERT_EQ((c.*input).size(), gradient.size());
  for (size_t i = 0; i < gradient.size(); ++i) {
    const double value = (c.*input)[i], above = value + kStep, below = value - kStep;
    (c.*input)[i] = above;
    const R loss_above = loss(c);
    (c.*input)[i] = below;
    const R loss_below = loss(c);
    (c.*input)[i] = value;
    ASSERT_NEAR(double((loss_above - loss_below) / (R(above) - R(below))), double(gradient[i]),
                1e-9 * std::max(1.0, std::abs(double(gradient[i]))))
        << i;
  }
}

void expect_derivatives(const Inputs& c) {
  const NaiveResults<R> r = reference<R>(c);
  expect_derivative(c, &Inputs::query, r.query);
  expect_derivative(c, &Inputs::key, r.key);
  expect_derivative(c, &Inputs::value, r.value);
  expect_derivative(c, &Inputs::vector, r.vector);
  expect_derivative(c, &Inputs::dense, r.dense);
  expect_derivative(c, &Inputs::slopes, r.slopes);
  expect_derivative(c, &Inputs::sinks, r.sinks);
  expect_derivative(c, &Inputs::relative, r.relative);
  expect_derivative(c, &Inputs::centres, r.centres);
  expect_derivative(c, &Inputs::widths, r.widths);
  expect_derivative(c, &Inputs::query_sums, r.query_sums);
  expect_derivative(c, &Inputs::key_sums, r.key_sums);
  expect_derivative(c, &Inputs::query_products, r.query_products);
  expect_derivative(c, &Inputs::key_products, r.key_products);
  expect_derivative(c, &Inputs::alphas, r.alphas);
}

TEST(Reference, GradientsOfScores) {
  for (const Family family :
       {Family::dot, Family::additive, Family::squared_distance, Family::absolute_distance}) {
    for (const Activation activation :
         {Activation::tanh, Activation::sigmoid, Activation::relu, Activation::leaky_relu}) {
      SCOPED_TRACE("family " + std::to_string(int(family)) + " activation " +
                   std::to_string(int(activation)));
      Inputs c = tiny(family, 11 + uint64_t(activation));
      c.score.activation = activation;
      c.score.soft_cap = activation == Activation::sigmoid ? 1.5 : 0;
      c.sinks = {0.1, -0.2, 0.5, 1};
      expect_derivatives(c);
    }
  }
}

TEST(Reference, GradientsOfNormalisersWithEveryBias) {
  for (const NormaliserChoice& normaliser : kNormalisers) {
    SCOPED_TRACE(normaliser.name);
    Inputs c = tiny(Family::dot, 31);
    add_every_bias(c);
    set_normaliser(normaliser, c);
    c.top = std::min<int64_t>(c.top, 2);
    c.scope = causal(1);
    c.dropout = {0.3, 7};
    expect_derivatives(c);
  }
}

TEST(Reference, RowsOfNormalisersSumToOne) {
  for (const NormaliserChoice& normaliser : kNormalisers) {
    Inputs c = tiny(Family::dot, 31);
    set_normaliser(normaliser, c);
    const NaiveRule<R> rule(PlacedCase<double>{c, {}}.problem(), 0);
    if (!rule.sums_to_one()) continue;
    for (const double deviation : {0.01, 1.0, 10.0, 1e30}) {
      const auto scores = converted<R>(random_numbers<double>(40, deviation, 5));
      const auto shift = normalise<R>(rule, scores, -std::numeric_limits<R>::infinity());
      const R least = least_kept(rule, scores);
      R sum = 0;
      for (const R s : scores) sum += weight(rule, s, shift, least);
      EXPECT_NEAR(double(sum), 1, 1e-15);
    }
  }
}

// By hand: (1, 0.5, -1) has support 2, t = (1.5 - 1) / 2.
TEST(Reference, SparsemaxOfThreeScores) {
  const auto threshold = [](Normaliser normaliser, const std::vector<double>& scores) {
    Problem<double> problem;
    problem.normaliser = normaliser;
    const auto [top, offset] = normalise<double>(NaiveRule<double>(problem, 0), scores, -HUGE_VAL);
    return top + offset;
  };
  EXPECT_DOUBLE_EQ(threshold(Normaliser::sparsemax, {1, 0.5, -1}), 0.25);
  // ((1 - t) / 2)^2 + ((0 - t) / 2)^2 = 1: t = (1 - sqrt 7) / 2, which is above -2
  EXPECT_DOUBLE_EQ(threshold(Normaliser::entmax15, {0, 1, -2}), (1 - std::sqrt(7.0)) / 2);
}

}  // namespace reference_test
}  // namespace attend::kernels::testing
