// Tests of every family, normaliser and bias with very small, very large, equal or distant numbers,
// by the rule of Expected. Scores of 1e30 leave no digits for softmax on any path. But equal keys
// must have equal weights, and a key that leads by more than rounding must have all of the weight.
// Gradients must be consistent. As on the composed path, scores of -inf are out of scope, and +inf
// or NaN loses the row.
#include <algorithm>
#include <cmath>
#include <string>

#include "tests/kernels/choices.h"
#include "tests/kernels/run.h"

namespace attend::kernels::testing {
namespace magnitudes_test {

template <class S>
std::vector<double> magnitudes() {
  if (std::is_same_v<S, float>) return {1e-30, 1e-8, 1, 30, 1e4, 1e9, 1e30};
  return {1e-200, 1e-30, 1, 30, 1e8, 1e18, 1e200};
}

// Distribution of the queries and keys of a case.
struct Pattern {
  const char* name;
  // Factor and offset of a normally distributed number, by row.
  double (*spread)(int64_t row, double magnitude);
  double (*centre)(int64_t row, double magnitude);
  bool repeated = false;  // three keys, repeated
};

double nowhere(int64_t, double) { return 0; }
double all_of(int64_t, double magnitude) { return magnitude; }

const Pattern kPatterns[] = {
    {"random", all_of, nowhere},
    // Distances are in the last digits of the numbers.
    {"clusters", [](int64_t, double magnitude) { return std::min(1.0, magnitude / 1000); },
     [](int64_t row, double magnitude) { return row % 2 == 0 ? magnitude : -magnitude; }},
    {"equal keys", all_of, nowhere, true},
    {"one key", [](int64_t row, double magnitude) { return row == 7 ? magnitude : 1.0; }, nowhere},
};

constexpr Shape kShapes[] = {{1, 1, 1, 17, 66, 2, 2}, {1, 1, 1, 3, 67, 17, 2}};

template <class S>
void place(const Pattern& pattern, double magnitude, int64_t rows, int64_t depth, bool keys,
           std::vector<S>& numbers) {
  for (int64_t n = 0; n < static_cast<int64_t>(numbers.size()); ++n) {
    const int64_t row = n / depth % rows, a = n % depth;
    numbers[n] = S(pattern.centre(row, magnitude) +
                   pattern.spread(row, magnitude) * static_cast<double>(numbers[n]));
    if (keys && pattern.repeated && row >= 3) numbers[n] = numbers[n - 3 * depth];
    if (!std::isfinite(numbers[n])) ADD_FAILURE() << "row " << row << ", dimension " << a;
  }
}

// Some numbers, and all numbers of some rows, become -inf.
template <class S>
void add_holes(Case<S>& c) {
  for (size_t n = 0; n < c.dense.size(); ++n) {
    const auto row = n / c.shape.keys;
    if (row % 5 == 2 || n % 3 == 1) c.dense[n] = -std::numeric_limits<S>::infinity();
  }
}

// Leaves out the last two, only products by distance: large scores round them away.
constexpr int kCount = std::size(kBiases) - 2;

template <class S>
Case<S> make(const FamilyChoice& family, const NormaliserChoice& normaliser, const Pattern& pattern,
             double magnitude, int turn) {
  const Shape& shape = kShapes[turn % std::size(kShapes)];
  auto c = random_case<S>(shape, family.family, 1, turn);
  place(pattern, magnitude, shape.queries, shape.depth, false, c.query);
  place(pattern, magnitude, shape.keys, shape.depth, true, c.key);
  c.score.activation = family.activation;
  set_normaliser(normaliser, c);
  const int bias = turn % (kCount + 1);
  add_bias(c, kBiases[bias < kCount ? bias : 1]);
  if (bias == kCount) add_holes(c);
  return c;
}

// Softpick divides derivatives by a sum that cancelling tanh scores bring near 0. Their roundings
// of a unit of 1 then become as large as the gradients.
template <class S>
bool divides_roundings(const Case<S>& c, const Expected<S>& expected) {
  if (c.normaliser != Normaliser::softpick || c.score.family != Family::additive) return false;
  const auto& lse = expected.want().lse;
  return std::any_of(lse.begin(), lse.end(), [](auto x) { return std::isfinite(x) && x < -8; });
}

// A weight is recomputed as exp(s - lse) of numbers up to about 8, each with a few roundings. The
// additive family computes tanh(q + k) from e^(2q) and e^(-2k), so the roundings of these exponents
// enter, up to the size at which tanh is flat. Scores sum such errors, times v.
template <class S>
double allowed_units(const Case<S>& c) {
  constexpr double flat = 40;
  double largest = 0, exponent = 0;
  for (size_t first = 0; first < c.vector.size(); first += static_cast<size_t>(c.shape.depth)) {
    double sum = 0;
    for (int64_t a = 0; a < c.shape.depth; ++a)
      sum += std::abs(static_cast<double>(c.vector[first + static_cast<size_t>(a)]));
    largest = std::max(largest, sum);
  }
  for (const auto* numbers : {&c.query, &c.key})
    for (const S x : *numbers)
      exponent = std::max(exponent, std::min(flat, std::abs(static_cast<double>(number(x)))));
  return 4 * 8 + largest * std::abs(c.score.scale) * (4 + 2 * exponent);
}

template <class S>
void check(const Case<S>& c) {
  const Expected<S> expected(c, allowed_units(c));
  const PlacedCase<S> placed{c, {}};
  const Shape& s = c.shape;
  on_every_target([&] {
    const Output<S> forward = run_forward(c);
    expected.check(forward);
    if (!divides_roundings(c, expected)) expected.check(run_backward(c, forward));
    std::vector<S> weights(c.rows() * s.keys, S(7));
    attention_weights<S>(placed.problem(), forward.lse.data(), {{}, 0, s.queries},
                         contiguous(weights.data(), s.heads, s.queries, s.keys));
    expected.check_weights(weights);
  });
}

class Magnitudes : public ::testing::TestWithParam<int> {
 protected:
  template <class S>
  void check_all() {
    const FamilyChoice& family = kFamilies[GetParam()];
    int turn = 0;
    for (const NormaliserChoice& normaliser : kNormalisers) {
      for (const Pattern& pattern : kPatterns) {
        for (const double magnitude : magnitudes<S>()) {
          SCOPED_TRACE(std::string(normaliser.name) + ", " + pattern.name + " of " +
                       std::to_string(std::log10(magnitude)) + ", turn " + std::to_string(turn));
          check(make<S>(family, normaliser, pattern, magnitude, turn++));
          if (HasFailure()) return;
        }
      }
    }
  }
};

TEST_P(Magnitudes, OfFloats) { check_all<float>(); }
TEST_P(Magnitudes, OfDoubles) { check_all<double>(); }

INSTANTIATE_TEST_SUITE_P(Families, Magnitudes, ::testing::Range(0, int(std::size(kFamilies))),
                         [](const auto& info) { return kFamilies[info.param].name; });

}  // namespace magnitudes_test
}  // namespace attend::kernels::testing
