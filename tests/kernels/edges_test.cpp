// Tests of single rows with simple results, at the limits of the number types.
#include <cmath>
#include <limits>

#include "tests/kernels/choices.h"
#include "tests/kernels/run.h"

namespace attend::kernels::testing {
namespace edges_test {

template <class T>
class Edges : public ::testing::Test {};
using Types = ::testing::Types<float, double>;
TYPED_TEST_SUITE(Edges, Types);

// One head of depth 1.
template <class T>
Case<T> numbers(Family family, Normaliser normaliser, std::vector<T> queries, std::vector<T> keys,
                std::vector<T> values) {
  const auto count = [](const auto& values) { return static_cast<int64_t>(values.size()); };
  auto c = random_case<T>({1, 1, 1, count(queries), count(keys), 1, 1}, family);
  c.score.scale = 1;
  c.normaliser = normaliser;
  c.query = std::move(queries);
  c.key = std::move(keys);
  c.value = std::move(values);
  c.grad_lse.clear();
  return c;
}

template <class T>
std::vector<T> weights_of(const Case<T>& c, const Output<T>& forward) {
  const Shape& s = c.shape;
  std::vector<T> weights(c.rows() * s.keys, T(7));
  attention_weights<T>(PlacedCase<T>{c, {}}.problem(), forward.lse.data(), {{}, 0, s.queries},
                       contiguous(weights.data(), s.heads, s.queries, s.keys));
  return weights;
}

constexpr Normaliser kSumToOne[] = {Normaliser::softmax, Normaliser::sparsemax,
                                    Normaliser::entmax15};

constexpr Normaliser kAll[] = {Normaliser::softmax, Normaliser::sigmoid, Normaliser::none,
                               Normaliser::sparsemax, Normaliser::entmax15};

// Numbers as in additive masks: adding a number to a whole row changes nothing.
TYPED_TEST(Edges, RowsOfTheLargestNumbersShareTheWeight) {
  using T = TypeParam;
  constexpr T kMost = std::numeric_limits<T>::max();
  for (const int queries : {1, 7}) {  // few queries, and a whole panel
    for (const int form : {0, 1, 2, 3}) {
      SCOPED_TRACE(std::to_string(queries) + " queries, form " + std::to_string(form));
      const T large = form % 2 == 0 ? -kMost : kMost;
      auto c = numbers<T>(Family::dot, Normaliser::softmax, std::vector<T>(queries, T(1)),
                          std::vector<T>(3, form < 2 ? T(0) : large), {1, 2, 6});
      c.grad_context.assign(queries, 1);
      if (form < 2) {
        c.dense.assign(3 * queries, large);
        c.dense_axes = {false, false, true};
      }
      on_every_target([&] {
        const Output<T> forward = run_forward(c);
        for (const T weight : weights_of(c, forward)) EXPECT_NEAR(weight, 1.0 / 3, 1e-6);
        for (const T context : forward.context) EXPECT_NEAR(context, 3, 1e-5);
        for (const T lse : forward.lse) EXPECT_NEAR(lse / large, 1, 1e-6);
        const GradientOutput<T> gradients = run_backward(c, forward);
        for (const T by_value : gradients.value) EXPECT_NEAR(by_value, queries / 3.0, 1e-5);
        for (size_t n = 0; n < gradients.dense.size(); ++n)
          EXPECT_NEAR(gradients.dense[n], (c.value[n % 3] - 3) / 3, 1e-5);
      });
    }
  }
  // With other keys they have no weight, but they count as seen.
  auto c = numbers<T>(Family::dot, Normaliser::softmax, {1}, {0, -kMost}, {1, 2});
  on_every_target([&] { EXPECT_EQ(run_forward(c).context[0], 1); });
  c = numbers<T>(Family::dot, Normaliser::sigmoid, {1}, {-kMost, -kMost}, {1, 2});
  on_every_target([&] { EXPECT_EQ(run_forward(c).lse[0], 0); });
}

// max(0, -inf) is 0.
TYPED_TEST(Edges, ReluOfMinusInfinityIsZero) {
  using T = TypeParam;
  for (const Activation activation : {Activation::relu, Activation::leaky_relu}) {
    for (const int queries : {1, 7}) {
      auto c =
          numbers<T>(Family::additive, Normaliser::softmax,
                     std::vector<T>(queries, -std::numeric_limits<T>::infinity()), {1, 2}, {1, 3});
      c.score.activation = activation;
      c.score.negative_slope = 0;
      c.vector = {T(0.5)};
      c.grad_context.assign(queries, 1);
      on_every_target([&] {
        const Output<T> forward = run_forward(c);
        for (const T context : forward.context) EXPECT_EQ(context, 2);
        const GradientOutput<T> gradients = run_backward(c, forward);
        for (const auto* gradient : {&gradients.query, &gradients.key, &gradients.vector})
          for (const T x : *gradient) EXPECT_EQ(x, 0);
      });
    }
  }
}

// A key at the centre has distance 0 for every width.
TYPED_TEST(Edges, NarrowGaussiansSeeTheirCentre) {
  using T = TypeParam;
  constexpr T kLeast = std::numeric_limits<T>::min();
  for (const T width : {T(1e-18), T(5e-20), kLeast, kLeast / 1024}) {
    auto c = numbers<T>(Family::dot, Normaliser::softmax, {0}, {0, 0, 0}, {5, 1, 7});
    c.centres = {1};
    c.widths = {width};
    c.grad_context = {1};
    on_every_target([&] {
      const Output<T> forward = run_forward(c);
      EXPECT_EQ(forward.context[0], 1);
      const GradientOutput<T> gradients = run_backward(c, forward);
      EXPECT_EQ(gradients.widths[0], 0);
      EXPECT_EQ(gradients.centres[0], 0);
    });
  }
}

// Floats near 1e8 are 8 apart: a rounded lse of 1e8 + 1.1 does not determine the weights.
TYPED_TEST(Edges, EqualKeysOfLargeScoresShareTheWeight) {
  using T = TypeParam;
  const T large = std::is_same_v<T, float> ? T(1e4) : T(1e9);
  for (const int queries : {1, 7}) {  // few queries, and a whole panel
    for (const Normaliser normaliser : kSumToOne) {
      SCOPED_TRACE(std::to_string(int(normaliser)) + ", " + std::to_string(queries));
      auto c = numbers<T>(Family::dot, normaliser, std::vector<T>(queries, large),
                          {large, large, large}, {1, 2, 6});
      c.grad_context.assign(queries, 1);
      on_every_target([&] {
        const Output<T> forward = run_forward(c);
        const GradientOutput<T> gradients = run_backward(c, forward);
        for (const T weight : weights_of(c, forward)) EXPECT_NEAR(weight, 1.0 / 3, 1e-6);
        for (const T context : forward.context) EXPECT_NEAR(context, 3, 1e-5);
        for (const T by_value : gradients.value) EXPECT_NEAR(by_value, queries / 3.0, 1e-5);
        // ds_j = g_j (v_j - 3) with g = w, 1 and sqrt(w); dk_j = sum_i ds_j q
        const double g = normaliser == Normaliser::softmax     ? 1.0 / 3
                         : normaliser == Normaliser::sparsemax ? 1
                                                               : std::sqrt(1.0 / 3);
        for (int j = 0; j < 3; ++j) {
          const double want = queries * g * (c.value[j] - 3) * large;
          EXPECT_NEAR(gradients.key[j], want, 1e-5 * large);
        }
      });
    }
  }
}

TYPED_TEST(Edges, OneKeyFarAheadHasAllWeight) {
  using T = TypeParam;
  for (const Normaliser normaliser : kSumToOne) {
    const auto c = numbers<T>(Family::dot, normaliser, {T(1e9)}, {T(1e8), 1}, {1, 2});
    on_every_target([&] {
      const Output<T> forward = run_forward(c);
      EXPECT_EQ(forward.context[0], 1);
      EXPECT_EQ(weights_of(c, forward), (std::vector<T>{1, 0}));
      EXPECT_EQ(run_backward(c, forward).value[1], 0);
    });
  }
}

// Weights of exp(-1/4) to 1, for positions such as times of events or pixels of an image.
TYPED_TEST(Edges, DistancesOfNearPairsFarFromOthers) {
  using T = TypeParam;
  auto c = numbers<T>(Family::squared_distance, Normaliser::softmax, {0, 10000}, {10000, 10000.5},
                      {0, 1});
  c.grad_context = {1, 1};
  const double weight = std::exp(-0.25) / (1 + std::exp(-0.25));
  const double slope = 2 * 0.5 * weight * (1 - weight);  // 2 ds (k - q)
  on_every_target([&] {
    const Output<T> forward = run_forward(c);
    EXPECT_EQ(forward.context[0], 0);
    EXPECT_NEAR(forward.context[1], weight, 1e-6);
    const GradientOutput<T> gradients = run_backward(c, forward);
    EXPECT_NEAR(gradients.query[1], slope, 1e-6);
    EXPECT_NEAR(gradients.key[0], 0, 1e-6);
    EXPECT_NEAR(gradients.key[1], -slope, 1e-6);
  });
}

// A cap far above the scores keeps their digits.
TYPED_TEST(Edges, SoftCapKeepsTheDigitsOfSmallScores) {
  using T = TypeParam;
  auto c = numbers<T>(Family::dot, Normaliser::none, {1, T(0.01), T(1e-6)}, {1}, {1});
  for (const double cap : {2.0, 50.0, 1e6}) {
    c.score.soft_cap = cap;
    on_every_target([&] {
      const Output<T> forward = run_forward(c);
      for (int i = 0; i < 3; ++i) {
        const double want = cap * std::tanh(c.query[i] / cap);
        EXPECT_NEAR(forward.context[i], want, 16 * unit_roundoff<T>() * want) << cap;
      }
    });
  }
}

// Many keys for one query are split; the last split is the shortest.
TYPED_TEST(Edges, SplitsOfEqualKeys) {
  using T = TypeParam;
  constexpr int64_t kKeys = 8195;
  const T large = std::is_same_v<T, float> ? T(1e4) : T(1e9);
  std::vector<T> values(kKeys);
  for (int64_t j = 0; j < kKeys; ++j) values[j] = j < kKeys - 1024 ? 0 : 1;
  const auto c =
      numbers<T>(Family::dot, Normaliser::softmax, {large}, std::vector<T>(kKeys, large), values);
  on_every_target([&] {
    const Output<T> forward = run_forward(c);
    EXPECT_NEAR(forward.context[0], 1024.0 / kKeys, 1e-6);
    for (const T weight : weights_of(c, forward)) ASSERT_NEAR(weight, 1.0 / kKeys, 1e-9);
  });
}

TYPED_TEST(Edges, NanInAnySplitReachesContextAndLse) {
  using T = TypeParam;
  for (const Normaliser normaliser : kAll) {
    for (const int64_t place : {int64_t{0}, int64_t{4000}, int64_t{8194}}) {
      for (const bool only : {false, true}) {
        std::vector<T> keys(8195, only ? -std::numeric_limits<T>::infinity() : T(1));
        keys[place] = std::numeric_limits<T>::quiet_NaN();
        const auto c =
            numbers<T>(Family::dot, normaliser, {1}, keys, std::vector<T>(keys.size(), 1));
        on_every_target([&] {
          const Output<T> forward = run_forward(c);
          EXPECT_TRUE(std::isnan(forward.context[0])) << place << " " << int(normaliser);
          EXPECT_TRUE(std::isnan(forward.lse[0])) << place << " " << int(normaliser);
        });
      }
    }
  }
}

// One head with a NaN in each array in turn: rows that read it become NaN, the others stay finite.
TYPED_TEST(Edges, NanReachesContextAndLse) {
  using T = TypeParam;
  constexpr T kNan = std::numeric_limits<T>::quiet_NaN();
  for (const int64_t queries : {3, 21}) {
    for (const FamilyChoice& family : kFamilies) {
      for (const NormaliserChoice& normaliser : kNormalisers) {
        auto whole = random_case<T>({1, 1, 1, queries, 70, 9, 1}, family.family);
        whole.score.activation = family.activation;
        set_normaliser(normaliser, whole);
        add_bias(whole, {"all", true, true, true, true, {true, true, true}});
        const auto expect_nan = [&](const char* what, auto spoil, bool every_row) {
          SCOPED_TRACE(std::string(what) + ", " + family.name + ", " + normaliser.name);
          auto c = whole;
          spoil(c);
          const Output<T> forward = run_forward(c);
          for (int64_t i = 0; i < queries; ++i) {
            EXPECT_EQ(std::isnan(forward.context[i]), every_row || i == 1) << i;
            EXPECT_EQ(std::isnan(forward.lse[i]), every_row || i == 1) << i;
          }
        };
        expect_nan(
            "query", [&](auto& c) { c.query[9 + 4] = kNan; }, false);
        expect_nan(
            "key", [&](auto& c) { c.key[65 * 9 + 4] = kNan; }, true);
        expect_nan(
            "dense", [&](auto& c) { c.dense[70 + 66] = kNan; }, false);
        expect_nan(
            "slopes", [&](auto& c) { c.slopes[0] = kNan; }, true);
        expect_nan(
            "relative", [&](auto& c) { c.relative[2 * c.relative_count - 1] = kNan; }, false);
        expect_nan(
            "centres", [&](auto& c) { c.centres[1] = kNan; }, false);
        if (!whole.vector.empty())
          expect_nan(
              "vector", [&](auto& c) { c.vector[4] = kNan; }, true);
        if (normaliser.sinks)
          expect_nan(
              "sink", [&](auto& c) { c.sinks[0] = kNan; }, true);
      }
    }
  }
}

// The merged weights sum to 1, and NaN on either side remains.
TYPED_TEST(Edges, MergeOfLargeAndOfLostRows) {
  using T = TypeParam;
  constexpr T kNan = std::numeric_limits<T>::quiet_NaN();
  const Shape shape{1, 1, 1, 3, 1, 1, 1};
  const T large = std::is_same_v<T, float> ? T(1e8) : T(1e17);
  std::vector<T> a = {1, 1, kNan}, a_lse = {large, 0, kNan}, b = {3, kNan, 2},
                 b_lse = {large, kNan, 0};
  merge<T>(shape, {contiguous(a.data(), 1, 3, 1), a_lse.data()},
           {contiguous(b.data(), 1, 3, 1), b_lse.data()});
  EXPECT_EQ(a[0], 2);
  EXPECT_EQ(a_lse[0], large);
  for (const int row : {1, 2}) {
    EXPECT_TRUE(std::isnan(a[row]) && std::isnan(a_lse[row])) << row;
  }
}

// After merge an lse may include more keys than the requested weights.
TYPED_TEST(Edges, LseOfMoreKeysHolds) {
  using T = TypeParam;
  const auto c = numbers<T>(Family::dot, Normaliser::softmax, {1}, {1000, 1001}, {1, 2});
  Output<T> forward = run_forward(c);
  forward.lse[0] = T(1002 + std::log(1 + std::exp(-1.0) + std::exp(-2.0)));
  on_every_target([&] {
    const std::vector<T> weights = weights_of(c, forward);
    // An lse of 1000 is rounded to 2^-15.
    EXPECT_NEAR(weights[0], std::exp(1000 - forward.lse[0]), 1e-4);
    EXPECT_NEAR(weights[1], std::exp(1001 - forward.lse[0]), 1e-4);
  });
}

// No query sees keys past the length of its batch entry, or numbers between rows.
TYPED_TEST(Edges, NanThatNobodySeesChangesNothing) {
  using T = TypeParam;
  const Shape shape{2, 2, 1, 21, 90, 9, 5};
  const int64_t lengths[] = {70, 35};
  for (const FamilyChoice& family : kFamilies) {
    for (const NormaliserChoice& normaliser : kNormalisers) {
      SCOPED_TRACE(std::string(family.name) + ", " + normaliser.name);
      auto c = random_case<T>(shape, family.family);
      c.score.activation = family.activation;
      set_normaliser(normaliser, c);
      c.scope = {{{KeyLengths{lengths}}}};
      auto hidden = c;
      for (int64_t row = 0; row < shape.batch * shape.keys; ++row) {
        if (row % shape.keys < lengths[row / shape.keys]) continue;
        std::fill_n(hidden.key.begin() + row * shape.depth, shape.depth, std::nan(""));
        std::fill_n(hidden.value.begin() + row * shape.value_depth, shape.value_depth,
                    std::nan(""));
      }
      const Expected<T> expected(c);
      on_every_target([&] {
        const Output<T> forward = run_forward(hidden);
        expected.check(forward);
        expected.check(run_backward(hidden, forward));
      });
    }
  }
}

}  // namespace edges_test
}  // namespace attend::kernels::testing
