#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <algorithm>
#include <string>

#include "attend/base/error.h"
#include "tests/kernels/reference.h"

namespace attend::kernels::testing {
namespace {

// Runs a check on every target of this CPU, then lets the best one be chosen again.
template <class Check>
void on_every_target(const Check& check) {
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    check();
  }
  hwy::SetSupportedTargetsForTest(0);
}

double largest(const std::vector<double>& numbers) {
  double top = 0;
  for (const double x : numbers) {
    if (std::isfinite(x)) top = std::max(top, std::abs(x));
  }
  return top;
}

// |got - want| <= tolerance everywhere; -inf must match -inf.
template <class T>
void expect_near(const std::vector<T>& got, const std::vector<double>& want, double tolerance,
                 const char* what) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::isinf(want[i])) {
      ASSERT_EQ(static_cast<double>(got[i]), want[i]) << what << "[" << i << "]";
    } else {
      ASSERT_NEAR(static_cast<double>(got[i]), want[i], tolerance) << what << "[" << i << "]";
    }
  }
}

template <class T>
struct Output {
  std::vector<T> context, lse;
};

template <class T>
Output<T> run_forward(const Case<T>& c, int threads = 1) {
  const Shape& s = c.shape;
  Output<T> out{std::vector<T>(c.grad_context.size(), T(7)),
                std::vector<T>(c.grad_lse.size(), T(7))};
  attention_forward<T>(
      c.problem(),
      {contiguous(out.context.data(), s.heads, s.queries, s.value_depth), out.lse.data()}, threads);
  return out;
}

// A score of depth terms is off by a few units in the last place of a term times the root of their
// number; a weight is off by as much relatively, and so is the context. A term of the dot family is
// below q k. One of the additive family is below v, and its exponent, at most 19 either way before
// tanh is flat, is rounded too.
template <class T>
double score_error(const Case<T>& c) {
  std::vector<double> q(c.query.begin(), c.query.end()), k(c.key.begin(), c.key.end()),
      v(c.vector.begin(), c.vector.end());
  const double exponent = std::min(19.0, largest(q) + largest(k));
  const double term =
      c.score.family == Family::dot ? largest(q) * largest(k) : largest(v) * (2 + exponent / 4);
  return std::numeric_limits<T>::epsilon() *
         (4 + 2 * c.score.scale * term * std::sqrt(double(c.shape.depth)));
}

template <class T>
struct GradientOutput {
  std::vector<T> query, key, value, vector, bias, slopes, sinks;
};

template <class T>
GradientOutput<T> run_backward(const Case<T>& c, const Output<T>& forward, int threads = 1) {
  const Shape& s = c.shape;
  GradientOutput<T> g{std::vector<T>(c.query.size(), T(7)), std::vector<T>(c.key.size(), T(7)),
                      std::vector<T>(c.value.size(), T(7)), std::vector<T>(c.vector.size(), T(7)),
                      std::vector<T>(c.bias.size(), T(7)),  std::vector<T>(c.slopes.size(), T(7)),
                      std::vector<T>(c.sinks.size(), T(7))};
  attention_backward<T>(
      c.problem(),
      {contiguous(forward.context.data(), s.heads, s.queries, s.value_depth), forward.lse.data(),
       contiguous(c.grad_context.data(), s.heads, s.queries, s.value_depth), c.grad_lse.data()},
      {contiguous(g.query.data(), s.heads, s.queries, s.depth),
       contiguous(g.key.data(), s.key_heads, s.keys, s.depth),
       contiguous(g.value.data(), s.key_heads, s.keys, s.value_depth), g.vector.data(),
       g.bias.empty() ? nullptr : g.bias.data(), g.slopes.empty() ? nullptr : g.slopes.data(),
       g.sinks.empty() ? nullptr : g.sinks.data()},
      threads);
  return g;
}

// Forward and backward. A gradient sums one term a pair of query and key; each is off by as much as
// the weights, relative to the largest |dp| and the other factor of the term.
template <class T>
void expect_all(const Case<T>& c) {
  const Reference want = reference(c);
  const Output<T> forward = run_forward(c);
  const double error = score_error(c);
  const std::vector<double> v(c.value.begin(), c.value.end()),
      g(c.grad_context.begin(), c.grad_context.end()), q(c.query.begin(), c.query.end()),
      k(c.key.begin(), c.key.end()), u(c.vector.begin(), c.vector.end());
  expect_near(forward.context, want.context, 2 * error * (1 + largest(v)), "context");
  expect_near(forward.lse, want.lse,
              2 * error + 2 * std::numeric_limits<T>::epsilon() * largest(want.lse), "lse");
  const GradientOutput<T> got = run_backward(c, forward);
  const double dp = 4 + largest(v) * largest(g) * std::sqrt(double(c.shape.value_depth));
  // a key's weights over the queries that share it sum to at most their number
  const double rows = std::sqrt(double(c.shape.queries * c.shape.heads / c.shape.key_heads));
  const bool dot = c.score.family == Family::dot;
  const double scale = c.score.scale * dp * error;
  expect_near(got.value, want.grad_value, 2 * error * rows * largest(g), "grad_value");
  expect_near(got.query, want.grad_query, 4 * scale * (dot ? largest(k) : largest(u)),
              "grad_query");
  expect_near(got.key, want.grad_key, 4 * scale * rows * (dot ? largest(q) : largest(u)),
              "grad_key");
  expect_near(got.bias, want.grad_bias, 4 * dp * error * double(c.shape.batch), "grad_bias");
  expect_near(got.slopes, want.grad_slopes,
              4 * dp * error * rows * double(c.shape.queries + c.shape.keys), "grad_slopes");
  expect_near(got.sinks, want.grad_sinks, 4 * dp * error * rows * double(c.shape.batch),
              "grad_sinks");
  if (!dot) expect_near(got.vector, want.grad_vector, 4 * scale * rows * rows, "grad_vector");
}

const int64_t kSizes[] = {1, 2, 3, 17, 59, 111, 129};

template <class T>
class Attention : public ::testing::Test {};
using Types = ::testing::Types<float, double>;
TYPED_TEST_SUITE(Attention, Types);

TYPED_TEST(Attention, EverySize) {
  on_every_target([] {
    for (const int64_t queries : kSizes) {
      for (const int64_t keys : kSizes) {
        const Shape shape{2, 2, 1, queries, keys, 1 + (queries * keys) % 67, 1 + (keys * 5) % 37};
        expect_all(random_case<TypeParam>(shape, Family::dot, 1, queries + keys));
      }
    }
  });
}

TYPED_TEST(Attention, AdditiveOfEverySize) {
  on_every_target([] {
    for (const int64_t queries : {1, 3, 17, 59, 129}) {
      for (const int64_t keys : {1, 2, 17, 111}) {
        const Shape shape{2, 2, 1, queries, keys, 1 + (queries * keys) % 67, 1 + (keys * 5) % 37};
        expect_all(random_case<TypeParam>(shape, Family::additive, 1, queries + keys));
      }
    }
  });
}

TYPED_TEST(Attention, AdditiveOfEveryRange) {
  on_every_target([] {
    for (const double deviation : {1e-40, 0.01, 1.0, 3.0, 6.0, 10.0, 30.0, 100.0}) {
      SCOPED_TRACE("deviation " + std::to_string(deviation));
      expect_all(random_case<TypeParam>({1, 2, 2, 37, 70, 21, 8}, Family::additive, deviation));
    }
  });
}

TYPED_TEST(Attention, AdditiveOfOppositeOffsets) {
  on_every_target([] {
    auto c = random_case<TypeParam>({1, 1, 1, 37, 70, 20, 8}, Family::additive);
    for (auto& x : c.query) x += 60;
    for (auto& x : c.key) x -= 59;
    expect_all(c);
  });
}

TYPED_TEST(Attention, AdditiveOfInfinities) {
  on_every_target([] {
    auto c = random_case<TypeParam>({1, 1, 1, 37, 70, 20, 8}, Family::additive);
    const auto infinity = std::numeric_limits<TypeParam>::infinity();
    c.query[3 * 20 + 7] = infinity;
    c.query[5 * 20 + 1] = -infinity;
    c.key[8 * 20 + 2] = infinity;
    expect_all(c);
  });
}

TYPED_TEST(Attention, NaNStaysInItsRow) {
  on_every_target([] {
    for (const Family family : {Family::dot, Family::additive}) {
      auto c = random_case<TypeParam>({1, 1, 1, 37, 70, 20, 8}, family);
      const Output<TypeParam> clean = run_forward(c);
      c.query[11 * 20 + 4] = std::numeric_limits<TypeParam>::quiet_NaN();
      const Output<TypeParam> got = run_forward(c);
      const auto gradients = run_backward(c, got);
      for (int64_t i = 0; i < 37; ++i) {
        EXPECT_EQ(std::isnan(got.lse[i]), i == 11);
        for (int64_t e = 0; e < 8; ++e) EXPECT_EQ(std::isnan(got.context[i * 8 + e]), i == 11);
        for (int64_t a = 0; a < 20; ++a) {
          EXPECT_EQ(std::isnan(gradients.query[i * 20 + a]), i == 11) << i << " " << a;
        }
        if (i != 11) {
          EXPECT_EQ(got.lse[i], clean.lse[i]);
        }
      }
    }
  });
}

TYPED_TEST(Attention, BiasesAndSinks) {
  const Shape s{2, 4, 2, 30, 270, 12, 8};
  on_every_target([&] {
    for (const Family family : {Family::dot, Family::additive}) {
      for (int kind = 1; kind < 8; ++kind) {
        SCOPED_TRACE("kind " + std::to_string(kind));
        auto c = random_case<TypeParam>(s, family);
        if (kind & 1) c.bias = random_numbers<TypeParam>(s.heads * s.queries * s.keys, 1, 9);
        if (kind & 2) c.slopes = {TypeParam(0.5), TypeParam(0.25), TypeParam(0.1), TypeParam(0)};
        if (kind & 4) c.sinks = {TypeParam(0), TypeParam(5), TypeParam(-5), TypeParam(1)};
        if (kind & 1) c.scope = causal(220);
        expect_all(c);
      }
    }
  });
}

TYPED_TEST(Attention, FewQueriesOfManyKeys) {
  on_every_target([] {
    for (const Family family : {Family::dot, Family::additive}) {
      auto c = random_case<TypeParam>({1, 2, 1, 1, 5000, 20, 8}, family);
      expect_all(c);
      c.sinks = {TypeParam(9), TypeParam(1)};
      c.scope = Scope{{{Window{.left = 0, .right = 700}}}};  // the later splits are empty
      expect_all(c);
    }
  });
}

TYPED_TEST(Attention, MergeOfAnySplit) {
  const auto whole = random_case<TypeParam>({2, 1, 1, 13, 40, 20, 8}, Family::dot);
  const Output<TypeParam> want = run_forward(whole);
  for (const int64_t cut : {0, 1, 17, 40}) {
    auto low = whole, high = whole;
    low.scope = Scope{{{Prefix{cut}}}};
    std::vector<uint8_t> mask(40);
    for (int64_t j = 0; j < 40; ++j) mask[j] = j >= cut;
    high.scope = Scope{{{DenseMask{.mask = mask.data()}}}};
    Output<TypeParam> a = run_forward(low), b = run_forward(high);
    merge<TypeParam>(whole.shape, {contiguous(a.context.data(), 1, 13, 8), a.lse.data()},
                     {contiguous(b.context.data(), 1, 13, 8), b.lse.data()});
    const double error = 4 * score_error(whole);
    expect_near(a.context, {want.context.begin(), want.context.end()}, error, "context");
    expect_near(a.lse, {want.lse.begin(), want.lse.end()}, error, "lse");
  }
}

TYPED_TEST(Attention, WeightsOfRows) {
  on_every_target([] {
    for (const Family family : {Family::dot, Family::additive}) {
      auto c = random_case<TypeParam>({2, 2, 1, 90, 111, 20, 8}, family);
      c.scope = causal(-3);
      c.slopes = {TypeParam(0.5), TypeParam(0.25)};
      const Reference want = reference(c);
      const Output<TypeParam> forward = run_forward(c);
      const int64_t first = 2, rows = 80;
      std::vector<TypeParam> got(2 * 2 * rows * 111, TypeParam(7));
      attention_weights<TypeParam>(c.problem(), forward.lse.data(), {{}, first, rows},
                                   contiguous(got.data(), 2, rows, 111));
      std::vector<double> part;
      for (int64_t head = 0; head < 4; ++head) {
        const auto begin = want.weights.begin() + (head * 90 + first) * 111;
        part.insert(part.end(), begin, begin + rows * 111);
      }
      expect_near(got, part, 4 * score_error(c), "weights");
    }
  });
}

TYPED_TEST(Attention, RefusesWhatDoesNotFit) {
  auto c = random_case<TypeParam>({1, 2, 1, 3, 4, 5, 6}, Family::additive);
  auto problem = c.problem();
  problem.score.vector = nullptr;
  EXPECT_THROW(attention_forward<TypeParam>(problem, {}), Error);
  problem = c.problem();
  problem.shape.key_heads = 3;
  EXPECT_THROW(attention_forward<TypeParam>(problem, {}), Error);
  problem = c.problem();
  problem.shape.keys = -1;
  EXPECT_THROW(attention_forward<TypeParam>(problem, {}), Error);
  EXPECT_THROW(attention_weights<TypeParam>(c.problem(), nullptr, {{}, 2, 2}, {}), Error);
}

TYPED_TEST(Attention, RowsWithoutKeys) {
  on_every_target([] {
    auto c = random_case<TypeParam>({1, 1, 1, 70, 90, 20, 8}, Family::dot);
    c.scope = causal(-20);
    const auto got = run_forward(c);
    const auto gradients = run_backward(c, got);
    for (int64_t i = 0; i < 20; ++i) {
      EXPECT_EQ(got.lse[i], -std::numeric_limits<TypeParam>::infinity());
      for (int64_t e = 0; e < 8; ++e) EXPECT_EQ(got.context[i * 8 + e], 0);
      for (int64_t a = 0; a < 20; ++a) EXPECT_EQ(gradients.query[i * 20 + a], 0);
    }
  });
}

TYPED_TEST(Attention, Scopes) {
  const std::vector<int64_t> lengths = {100, 0}, starts = {0, 30, 30, 101, 150};
  std::vector<uint8_t> mask(150 * 140), layout = {1, 0, 0, 0, 0, 1, 1, 0, 1};
  for (size_t i = 0; i < mask.size(); ++i) mask[i] = i * 7919 % 11 < 4;
  const Scope window{{{Window{.left = 20, .right = 3}}}};
  const Scope masked{{{DenseMask{.mask = mask.data(), .query_stride = 140}}}};
  const Scope scopes[] = {
      causal(),
      causal(-10),
      window,
      Scope{{{Window{.left = 40, .right = 40, .offset = 5, .dilation = 3}}}},
      Scope{{{KeyLengths{lengths.data()}}}},
      Scope{{{Segments{starts.data(), starts.data(), 4}}}},
      Scope{{{BlockLayout{layout.data(), 3, 50}}}},
      masked,
      intersect(masked, window),
      unite(window, unite(Scope{{{Prefix{9}}}}, Scope{{{GlobalRows{4}}}})),
  };
  on_every_target([&] {
    int index = 0;
    for (const Scope& scope : scopes) {
      SCOPED_TRACE("scope " + std::to_string(index++));
      auto c = random_case<TypeParam>({2, 1, 1, 150, 140, 19, 23}, Family::dot);
      c.scope = scope;
      expect_all(c);
    }
  });
}

TYPED_TEST(Attention, ThreadsChangeNothing) {
  const auto c = random_case<TypeParam>({1, 2, 1, 300, 700, 24, 40}, Family::dot);
  const Output<TypeParam> one = run_forward(c, 1), three = run_forward(c, 3);
  EXPECT_EQ(one.context, three.context);
  EXPECT_EQ(one.lse, three.lse);
  const auto a = run_backward(c, one, 1), b = run_backward(c, one, 3);
  EXPECT_EQ(a.query, b.query);
  EXPECT_EQ(a.key, b.key);
  EXPECT_EQ(a.value, b.value);
}

TYPED_TEST(Attention, ManyChunksOfKeys) {
  on_every_target([] {
    for (const Family family : {Family::dot, Family::additive}) {
      auto c = random_case<TypeParam>({1, 2, 1, 70, 1100, 24, 40}, family);
      expect_all(c);
      c.scope = causal(900);
      expect_all(c);
    }
  });
}

}  // namespace
}  // namespace attend::kernels::testing
