// Properties of every attention, for random numbers.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <numeric>

#include "tests/kernels/choices.h"
#include "tests/kernels/run.h"

namespace attend::kernels::testing {
namespace properties_test {

template <class T>
const T& any_of(const auto& table) {
  return table[*rc::gen::inRange<size_t>(0, std::size(table))];
}

int64_t any_size(int64_t maximum) { return *rc::gen::inRange<int64_t>(1, maximum); }
uint64_t any_seed() { return *rc::gen::inRange<uint64_t>(1, 1U << 30); }
bool any_bool() { return *rc::gen::arbitrary<bool>(); }

Shape any_shape() {
  const int64_t key_heads = any_size(3);
  return {any_size(3),  key_heads * any_size(3), key_heads,
          any_size(90), any_size(200),           any_size(24),
          any_size(20)};
}

// Any family and normaliser, without bias and scope.
Case<double> any_case() {
  const auto& family = any_of<FamilyChoice>(kFamilies);
  const auto& normaliser = any_of<NormaliserChoice>(kNormalisers);
  auto c = random_case<double>(any_shape(), family.family, 1, any_seed());
  c.score.activation = family.activation;
  c.score.soft_cap = any_bool() ? 2 : 0;
  set_normaliser(normaliser, c);
  return c;
}

// Allows only rounding: scores and values of a few units, sums of at most 200 weights, and its
// effect on sparse thresholds.
bool near(const std::vector<double>& a, const std::vector<double>& b, double tolerance = 1e-11) {
  if (a.size() != b.size()) return false;
  double largest = 1;
  for (const double x : a) {
    if (std::isfinite(x)) largest = std::max(largest, std::abs(x));
  }
  for (size_t i = 0; i < a.size(); ++i) {
    if (!(a[i] == b[i] || std::abs(a[i] - b[i]) <= tolerance * largest)) return false;
  }
  return true;
}

bool near(const Output<double>& a, const Output<double>& b) {
  return near(a.context, b.context) && near(a.lse, b.lse);
}

// Rows of `width` numbers; row i of the result is row order[i] of each group.
std::vector<double> reordered(const std::vector<double>& from, int64_t width,
                              const std::vector<int64_t>& order) {
  std::vector<double> to(from.size());
  const auto rows = static_cast<int64_t>(order.size());
  for (size_t i = 0; i < to.size(); ++i) {
    const int64_t row = static_cast<int64_t>(i) / width, column = static_cast<int64_t>(i) % width;
    to[i] = from[(row / rows * rows + order[row % rows]) * width + column];
  }
  return to;
}

TEST(KernelProperties, OrderOfKeysDoesNotMatter) {
  EXPECT_TRUE(rc::check([] {
    auto c = any_case();
    RC_PRE(c.normaliser != Normaliser::stick_breaking);
    add_bias(c, {"dense", true, false, false, false, {any_bool(), any_bool(), any_bool()}});
    std::vector<int64_t> order(c.shape.keys);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), std::mt19937_64(any_seed()));
    auto other = c;
    other.key = reordered(c.key, c.shape.depth, order);
    other.value = reordered(c.value, c.shape.value_depth, order);
    other.dense = reordered(c.dense, 1, order);
    const auto a = run_forward(c), b = run_forward(other);
    RC_ASSERT(near(a, b));
    const auto x = run_backward(c, a), y = run_backward(other, b);
    RC_ASSERT(near(x.query, y.query));
    RC_ASSERT(near(reordered(x.key, c.shape.depth, order), y.key));
    RC_ASSERT(near(reordered(x.value, c.shape.value_depth, order), y.value));
    RC_ASSERT(near(reordered(x.dense, 1, order), y.dense));
  }));
}

// A number added to all scores of a row only changes the lse, by the same amount.
TEST(KernelProperties, NormalisedWeightsDoNotSeeAShift) {
  EXPECT_TRUE(rc::check([] {
    auto c = any_case();
    RC_PRE(c.normaliser != Normaliser::sigmoid);
    RC_PRE(c.normaliser != Normaliser::none);
    RC_PRE(c.normaliser != Normaliser::softpick);
    RC_PRE(c.normaliser != Normaliser::stick_breaking);
    RC_PRE(c.sinks.empty());
    const double shift = *rc::gen::inRange<int>(-50, 50);
    c.dense_axes = {false, true, true};
    c.dense.assign(c.dense_axes.count(c.shape, c.shape.keys), 0);
    auto shifted = c;
    shifted.dense.assign(c.dense.size(), shift);
    auto want = run_forward(c);
    const auto got = run_forward(shifted);
    for (double& x : want.lse) x += shift;
    RC_ASSERT(near(want, got));
    const auto x = run_backward(c, run_forward(c)), y = run_backward(shifted, got);
    RC_ASSERT(near(x.query, y.query));
    RC_ASSERT(near(x.value, y.value));
  }));
}

TEST(KernelProperties, MergingAnySplitOfTheKeysGivesTheWhole) {
  EXPECT_TRUE(rc::check([] {
    auto whole = any_case();
    RC_PRE(whole.normaliser == Normaliser::softmax);
    ScopeArrays arrays;
    const auto& choice = any_of<ScopeChoice>(kScopes);
    whole.scope = choice.make(whole.shape, arrays);
    const int64_t keys = whole.shape.keys, cut = *rc::gen::inRange<int64_t>(0, keys + 1);
    const auto lower = Scope{{{Prefix{cut}}}};
    std::vector<uint8_t> mask(keys);
    for (int64_t j = 0; j < keys; ++j) mask[j] = j >= cut;
    auto low = whole, high = whole;
    low.scope = intersect(whole.scope, lower);
    high.scope = intersect(whole.scope, Scope{{{DenseMask{.mask = mask.data()}}}});
    high.sinks.clear();  // one part has them
    Output<double> a = run_forward(low), b = run_forward(high);
    const Shape& s = whole.shape;
    const auto result = [&](Output<double>& out) {
      return Result<double>{contiguous(out.context.data(), s.heads, s.queries, s.value_depth),
                            out.lse.data()};
    };
    merge<double>(s, result(a), result(b));
    RC_ASSERT(near(a, run_forward(whole)));
  }));
}

// Results do not depend on the form of a scope.
TEST(KernelProperties, ScopesAreTheSetsThatTheySay) {
  EXPECT_TRUE(rc::check([] {
    auto c = any_case();
    ScopeArrays first, second;
    const Scope x = any_of<ScopeChoice>(kScopes).make(c.shape, first);
    const Scope y = any_of<ScopeChoice>(kScopes).make(c.shape, second);
    c.scope = any_bool() ? unite(x, y) : intersect(x, y);
    const Shape& s = c.shape;
    std::vector<uint8_t> mask(s.batch * s.heads * s.queries * s.keys);
    for (size_t n = 0; n < mask.size(); ++n) {
      const auto index = static_cast<int64_t>(n);
      const Row row{index / s.keys / s.queries / s.heads, index / s.keys / s.queries % s.heads,
                    index / s.keys % s.queries};
      mask[n] = sees(c.scope, row, index % s.keys);
    }
    auto masked = c;
    masked.scope =
        Scope{{{DenseMask{mask.data(), s.heads * s.queries * s.keys, s.queries * s.keys, s.keys}}}};
    const auto a = run_forward(c), b = run_forward(masked);
    RC_ASSERT(near(a, b));
    const auto g = run_backward(c, a), h = run_backward(masked, b);
    RC_ASSERT(near(g.query, h.query));
    RC_ASSERT(near(g.key, h.key));
    RC_ASSERT(near(g.value, h.value));
  }));
}

TEST(KernelProperties, PaddingChangesNothing) {
  EXPECT_TRUE(rc::check([] {
    const auto c = any_case();
    const Shape& s = c.shape;
    auto padded = c;
    padded.shape.keys += any_size(70);
    const auto pad = [&](std::vector<double>& numbers, int64_t depth) {
      const auto from = numbers;
      const int64_t heads = s.batch * s.key_heads;
      numbers = random_numbers<double>(heads * padded.shape.keys * depth, 1, any_seed());
      for (int64_t h = 0; h < heads; ++h)
        std::copy_n(from.begin() + h * s.keys * depth, s.keys * depth,
                    numbers.begin() + h * padded.shape.keys * depth);
    };
    pad(padded.key, s.depth);
    pad(padded.value, s.value_depth);
    const std::vector<int64_t> lengths(s.batch, s.keys);
    padded.scope = Scope{{{KeyLengths{lengths.data()}}}};
    const auto a = run_forward(c), b = run_forward(padded);
    RC_ASSERT(near(a, b));
    const auto g = run_backward(c, a), h = run_backward(padded, b);
    RC_ASSERT(near(g.query, h.query));
    RC_ASSERT(near(g.vector, h.vector));
    for (int64_t n = 0; n < s.batch * s.key_heads * padded.shape.keys * s.depth; ++n) {
      if (n / s.depth % padded.shape.keys >= s.keys) RC_ASSERT(h.key[n] == 0);
    }
  }));
}

// Results are bit-identical for any number of threads and in every run.
TEST(KernelProperties, ThreadsAndRepetitionChangeNothing) {
  EXPECT_TRUE(rc::check([] {
    auto c = any_case();
    c.shape.batch = 1;
    c = [&] {
      auto longer = random_case<double>({1, c.shape.heads, c.shape.key_heads, c.shape.queries,
                                         any_size(1500), c.shape.depth, c.shape.value_depth},
                                        c.score.family, 1, any_seed());
      longer.score = c.score;
      longer.normaliser = c.normaliser;
      longer.alphas = c.alphas;
      longer.top = c.top;
      longer.sinks = c.sinks;
      return longer;
    }();
    add_bias(c, any_of<BiasChoice>(kBiases));
    const RunOptions one{1}, many{static_cast<int>(any_size(5))};
    const auto a = run_forward(c, one), b = run_forward(c, many);
    RC_ASSERT(a.context == b.context);
    RC_ASSERT(a.lse == b.lse);
    const auto g = run_backward(c, a, one), h = run_backward(c, a, many);
    RC_ASSERT(g.query == h.query);
    RC_ASSERT(g.key == h.key);
    RC_ASSERT(g.value == h.value);
    RC_ASSERT(g.vector == h.vector);
    RC_ASSERT(g.dense == h.dense);
    RC_ASSERT(g.slopes == h.slopes);
    RC_ASSERT(g.sinks == h.sinks);
    RC_ASSERT(g.relative == h.relative);
    RC_ASSERT(g.centres == h.centres);
    RC_ASSERT(g.widths == h.widths);
    RC_ASSERT(g.query_sums == h.query_sums);
    RC_ASSERT(g.key_sums == h.key_sums);
    RC_ASSERT(g.query_products == h.query_products);
    RC_ASSERT(g.key_products == h.key_products);
  }));
}

// The context and the gradients are computed from weights with the same mask.
TEST(KernelProperties, DropoutDrawsTheSameMaskInBothPasses) {
  EXPECT_TRUE(rc::check([] {
    auto c = any_case();
    c.dropout = {0.25 * static_cast<double>(any_size(4)), any_seed()};
    const auto want = reference<long double>(c);
    const auto got = run_forward(c);
    RC_ASSERT(near(converted<double>(want.context), got.context, 1e-10));
    const auto gradients = run_backward(c, got);
    RC_ASSERT(near(converted<double>(want.value), gradients.value, 1e-10));
  }));
}

TEST(KernelProperties, DropoutDropsAtItsRate) {
  EXPECT_TRUE(rc::check([] {
    const Shape shape{2, 3, 1, 100, 101, 1, 1};
    const Dropout dropout{0.01 * *rc::gen::inRange<int>(1, 100), any_seed()};
    std::vector<float> mask(2 * 3 * 100 * 101), other(mask.size());
    dropout_mask(shape, dropout, mask.data());
    double dropped = 0;
    for (const float x : mask) {
      RC_ASSERT(x == 0 || x == static_cast<float>(1 / (1 - dropout.probability)));
      dropped += x == 0;
    }
    const auto count = static_cast<double>(mask.size());
    const double deviation = std::sqrt(count * dropout.probability * (1 - dropout.probability));
    // six deviations: exceeded once in half a billion
    RC_ASSERT(std::abs(dropped - count * dropout.probability) <= 6 * deviation + 1);
    dropout_mask(shape, dropout, other.data());
    RC_ASSERT(mask == other);
    dropout_mask(shape, {dropout.probability, dropout.seed + 1}, other.data());
    RC_ASSERT(mask != other);
  }));
}

// Rows, heads, batch entries, keys and seeds are drawn independently: two of them agree only by
// chance.
TEST(KernelProperties, DropoutDrawsIndependently) {
  const Shape s{2, 2, 1, 64, 257, 1, 1};
  const int64_t row = s.keys, head = row * s.queries, batch = head * s.heads;
  std::vector<double> mask(2 * batch), other(mask.size());
  for (const uint64_t seed : {0ULL, 1ULL, 2ULL, 3ULL, ~0ULL}) {
    dropout_mask(s, {0.5, seed}, mask.data());
    dropout_mask(s, {0.5, seed + 1}, other.data());
    const auto agreement = [&](const std::vector<double>& with, int64_t step) {
      const auto count = static_cast<int64_t>(mask.size()) - step;
      double equal = 0;
      for (int64_t i = 0; i < count; ++i) equal += mask[i] == with[i + step];
      return (equal - 0.5 * static_cast<double>(count)) / std::sqrt(0.25 * double(count));
    };
    for (const int64_t step : {int64_t{1}, int64_t{2}, int64_t{64}, row, row + 1, head, batch})
      EXPECT_LE(std::abs(agreement(mask, step)), 6) << "seed " << seed << " step " << step;
    for (const int64_t step : {int64_t{0}, int64_t{1}, row, head})
      EXPECT_LE(std::abs(agreement(other, step)), 6) << "seed " << seed << " step " << step;
  }
}

}  // namespace properties_test
}  // namespace attend::kernels::testing
