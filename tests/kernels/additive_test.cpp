// The additive form computes exponents of limited range. Inputs beyond it must be correct, too.
#include <string>

#include "tests/kernels/run.h"

namespace attend::kernels::testing {
namespace additive_test {

template <class T>
class Additive : public ::testing::Test {};
using Types = ::testing::Types<float, double>;
TYPED_TEST_SUITE(Additive, Types);

TYPED_TEST(Additive, EverySize) {
  for (const int64_t queries : {1, 3, 17, 59, 129}) {
    for (const int64_t keys : {1, 2, 17, 111}) {
      SCOPED_TRACE(std::to_string(queries) + " queries, " + std::to_string(keys) + " keys");
      const Shape shape{2, 2, 1, queries, keys, 1 + (queries * keys) % 67, 1 + (keys * 5) % 37};
      expect_all(random_case<TypeParam>(shape, Family::additive, 1, queries + keys));
    }
  }
}

TYPED_TEST(Additive, EveryRange) {
  for (const double deviation : {0.01, 0.1, 1.0, 3.0, 6.0, 10.0, 30.0, 100.0}) {
    for (const int64_t queries : {3, 37}) {
      SCOPED_TRACE("deviation " + std::to_string(deviation));
      expect_all(
          random_case<TypeParam>({1, 2, 2, queries, 70, 21, 8}, Family::additive, deviation));
    }
  }
}

// Scores and the gradient of v are as small as the inputs and keep their digits. Both are sums of
// terms of either sign, each with an error of a few units in its last place.
TYPED_TEST(Additive, SmallInputs) {
  using R = typename Expected<TypeParam>::R;
  for (const double deviation : {1e-2, 1e-3, 1e-6}) {
    for (const int64_t queries : {3, 37}) {
      for (const Normaliser normaliser : {Normaliser::none, Normaliser::softmax}) {
        SCOPED_TRACE("deviation " + std::to_string(deviation));
        auto c = random_case<TypeParam>({1, 2, 2, queries, 70, 21, 8}, Family::additive, deviation);
        c.normaliser = normaliser;
        expect_all(c);
        const auto want = reference<R>(c);
        on_every_target([&] {
          const auto forward = run_forward(c);
          const auto vector = converted<R>(run_backward(c, forward).vector);
          const double unit = 16 * unit_roundoff<TypeParam>();
          const auto largest = [](const std::vector<R>& x) {
            return largest_difference(x, std::vector<R>(x.size()));
          };
          EXPECT_LE(largest_difference(vector, want.vector), unit * largest(want.vector));
          if (normaliser == Normaliser::none) {
            const auto context = converted<R>(forward.context);
            EXPECT_LE(largest_difference(context, want.context), unit * largest(want.context));
          }
        });
      }
    }
  }
}

// A soft cap keeps the digits of small scores.
TYPED_TEST(Additive, SmallScoresUnderACap) {
  for (const double deviation : {1e-1, 1e-3}) {
    auto c = random_case<TypeParam>({1, 2, 2, 37, 70, 21, 8}, Family::dot, deviation);
    c.normaliser = Normaliser::none;
    c.score.soft_cap = 30;
    expect_all(c);
  }
}

TYPED_TEST(Additive, Denormals) {
  const double least = std::numeric_limits<TypeParam>::min();
  for (const Family family : {Family::dot, Family::additive}) {
    for (const double deviation : {least / 1000, least, least * 100}) {
      SCOPED_TRACE("family " + std::to_string(int(family)));
      expect_all(random_case<TypeParam>({1, 2, 2, 37, 70, 21, 8}, family, deviation));
      auto c = random_case<TypeParam>({1, 2, 2, 37, 70, 21, 8}, family, 1);
      for (auto& x : c.value) x *= TypeParam(deviation);
      expect_all(c);
    }
  }
}

TYPED_TEST(Additive, OppositeOffsets) {
  for (const auto& [query, key] : {std::pair{60, -59},
                                   {-60, 59},
                                   {60, -60},
                                   {100, -100},
                                   {-100, 100},
                                   {1000, -999},
                                   {-999, 1000}}) {
    for (const Activation activation : {Activation::tanh, Activation::sigmoid}) {
      for (const auto& [queries, depth] :
           {std::pair{2, 20}, {37, 1}, {37, 3}, {37, 4}, {37, 5}, {37, 20}}) {
        SCOPED_TRACE("offset " + std::to_string(query) + " depth " + std::to_string(depth));
        auto c = random_case<TypeParam>({1, 1, 1, queries, 70, depth, 8}, Family::additive);
        c.score.activation = activation;
        for (auto& x : c.query) x += TypeParam(query);
        for (auto& x : c.key) x += TypeParam(key);
        expect_all(c);
      }
    }
  }
}

// One key, one query or one dimension far from all others.
TYPED_TEST(Additive, Outliers) {
  for (const double far : {30.0, 50.0, 90.0, 200.0, 1e4, 1e30}) {
    SCOPED_TRACE("far " + std::to_string(far));
    auto c = random_case<TypeParam>({1, 1, 1, 37, 70, 20, 8}, Family::additive);
    c.query[5 * 20 + 3] = TypeParam(far);
    c.query[6 * 20 + 4] = TypeParam(-far);
    c.key[7 * 20 + 3] = TypeParam(-far);
    c.key[9 * 20 + 4] = TypeParam(-far);
    for (int64_t i = 0; i < 37; ++i) c.query[i * 20 + 11] += TypeParam(far);
    expect_all(c);
  }
}

TYPED_TEST(Additive, Infinities) {
  for (const int64_t queries : {4, 37}) {
    auto c = random_case<TypeParam>({1, 1, 1, queries, 70, 20, 8}, Family::additive);
    const auto infinity = std::numeric_limits<TypeParam>::infinity();
    c.query[1 * 20 + 7] = infinity;
    c.query[3 * 20 + 1] = -infinity;
    c.key[8 * 20 + 2] = infinity;
    expect_all(c);
  }
}

TYPED_TEST(Additive, NaNStaysInItsRow) {
  for (const Family family : {Family::dot, Family::additive}) {
    for (const int64_t queries : {3, 37}) {
      auto c = random_case<TypeParam>({1, 1, 1, queries, 70, 20, 8}, family);
      on_every_target([&] {
        c.query[1 * 20 + 4] = TypeParam(0.5);
        const Output<TypeParam> clean = run_forward(c);
        const auto clean_gradients = run_backward(c, clean);
        c.query[1 * 20 + 4] = std::numeric_limits<TypeParam>::quiet_NaN();
        const Output<TypeParam> got = run_forward(c);
        const auto gradients = run_backward(c, got);
        for (int64_t i = 0; i < queries; ++i) {
          EXPECT_EQ(std::isnan(got.lse[i]), i == 1) << i;
          for (int64_t e = 0; e < 8; ++e) EXPECT_EQ(std::isnan(got.context[i * 8 + e]), i == 1);
          for (int64_t a = 0; a < 20; ++a)
            EXPECT_EQ(std::isnan(gradients.query[i * 20 + a]), i == 1) << i << " " << a;
          if (i == 1) continue;
          EXPECT_EQ(got.lse[i], clean.lse[i]);
          for (int64_t e = 0; e < 8; ++e)
            EXPECT_EQ(got.context[i * 8 + e], clean.context[i * 8 + e]);
        }
      });
    }
  }
}

// A key that no query sees may contain anything, like the padding of a batch.
TYPED_TEST(Additive, KeysOutOfScopeMayBeNaN) {
  for (const Family family : {Family::dot, Family::additive}) {
    for (const int64_t queries : {3, 37}) {
      const std::vector<int64_t> lengths = {50, 70};
      auto c = random_case<TypeParam>({2, 1, 1, queries, 70, 20, 8}, family);
      c.scope = Scope{{{KeyLengths{lengths.data()}}}};
      const Expected<TypeParam> expected(c);
      on_every_target([&] {
        auto padded = c;
        for (int64_t j = 50; j < 70; ++j) {
          for (int64_t a = 0; a < 20; ++a)
            padded.key[j * 20 + a] = std::numeric_limits<TypeParam>::quiet_NaN();
          for (int64_t e = 0; e < 8; ++e)
            padded.value[j * 8 + e] = std::numeric_limits<TypeParam>::quiet_NaN();
        }
        const Output<TypeParam> got = run_forward(padded);
        expected.check(got);
        expected.check(run_backward(padded, got));
      });
    }
  }
}

}  // namespace additive_test
}  // namespace attend::kernels::testing
