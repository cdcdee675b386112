#pragma once

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <string>

#include "tests/kernels/reference.h"

// Runs the kernels on a case and compares them with the reference.

namespace attend::kernels::testing {

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

template <class S>
struct Output {
  std::vector<S> context;
  std::vector<Compute<S>> lse;
};

template <class S>
struct GradientOutput {
  std::vector<S> query, key, value;
  std::vector<Compute<S>> vector, dense, slopes, sinks, relative, centres, widths;
};

struct RunOptions {
  int threads = 1;
  Layout layout = Layout::heads_first;
};

template <class S>
Output<S> run_forward(const Case<S>& c, const RunOptions& run = {}) {
  const Shape& s = c.shape;
  const PlacedCase<S> placed{c, run.layout};
  Placed<S> context(s.batch, s.heads, s.queries, s.value_depth, run.layout);
  Output<S> out{{}, std::vector<Compute<S>>(c.rows(), 7)};
  attention_forward<S>(placed.problem(), {context.view(), out.lse.data()}, run.threads);
  out.context = context.numbers();
  EXPECT_TRUE(context.gaps_untouched());
  return out;
}

template <class S>
GradientOutput<S> run_backward(const Case<S>& c, const Output<S>& forward,
                               const RunOptions& run = {}) {
  using C = Compute<S>;
  const Shape& s = c.shape;
  const PlacedCase<S> placed{c, run.layout};
  const auto like_context = [&](const std::vector<S>& numbers) {
    return Placed<S>(numbers, s.batch, s.heads, s.queries, s.value_depth, run.layout);
  };
  const Placed<S> context = like_context(forward.context), grad = like_context(c.grad_context);
  Placed<S> query(s.batch, s.heads, s.queries, s.depth, run.layout);
  Placed<S> key(s.batch, s.key_heads, s.keys, s.depth, run.layout);
  Placed<S> value(s.batch, s.key_heads, s.keys, s.value_depth, run.layout);
  const auto like = [](const std::vector<C>& numbers) {
    return std::vector<C>(numbers.size(), C(7));
  };
  GradientOutput<S> g;
  g.vector.assign(c.vector.empty() ? 0 : s.heads * s.depth, C(7));
  g.dense = like(c.dense);
  g.slopes = like(c.slopes);
  g.sinks = like(c.sinks);
  g.relative = like(c.relative);
  g.centres = like(c.centres);
  g.widths = like(c.widths);
  attention_backward<S>(placed.problem(),
                        {context.input(), forward.lse.data(), grad.input(), pointer(c.grad_lse)},
                        {query.view(), key.view(), value.view(), pointer(g.vector),
                         pointer(g.dense), pointer(g.slopes), pointer(g.sinks), pointer(g.relative),
                         pointer(g.centres), pointer(g.widths)},
                        run.threads);
  g.query = query.numbers();
  g.key = key.numbers();
  g.value = value.numbers();
  EXPECT_TRUE(query.gaps_untouched() && key.gaps_untouched() && value.gaps_untouched());
  return g;
}

// Half of the distance between 1 and the next number.
template <class S>
constexpr double unit_roundoff() {
  return std::is_same_v<S, double>     ? 0x1p-53
         : std::is_same_v<S, float>    ? 0x1p-24
         : std::is_same_v<S, BFloat16> ? 0x1p-8
                                       : 0x1p-11;
}

// Below it numbers lose digits one by one.
template <class S>
constexpr double least_normal() {
  return std::is_same_v<S, double> ? 0x1p-1022 : std::is_same_v<S, Float16> ? 0x1p-14 : 0x1p-126;
}

template <class R>
double largest_difference(const std::vector<R>& a, const std::vector<R>& b) {
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const auto difference = static_cast<double>(std::abs(a[i] - b[i]));
    if (std::isfinite(difference)) largest = std::max(largest, difference);
  }
  return largest;
}

// What a case must give, and how far from it the kernels may be: `err(fused) <= factor *
// err(composed) + floor`, factor 2 for results and 3 for gradients. The composed path is the
// reference in the arithmetic of the kernels, with noise; the floor is the rounding of the result
// to what it is stored as.
template <class S>
class Expected {
 public:
  using C = Compute<S>;
  using R = std::conditional_t<std::is_same_v<S, double>, long double, double>;

  explicit Expected(const Case<S>& c) : want_(reference<R>(c)) {
    const double unit = unit_roundoff<C>();
    for (const uint64_t seed : {1, 2})
      composed_.push_back(reference<C>(c, {unit, unit_roundoff<S>(), seed}));
  }

  const NaiveResults<R>& want() const { return want_; }

  void check(const Output<S>& got) const {
    compare("context", got.context, &NaiveResults<R>::context, &NaiveResults<C>::context, 2);
    compare("lse", got.lse, &NaiveResults<R>::lse, &NaiveResults<C>::lse, 2);
  }

  void check(const GradientOutput<S>& got) const {
    compare("grad query", got.query, &NaiveResults<R>::query, &NaiveResults<C>::query, 3);
    compare("grad key", got.key, &NaiveResults<R>::key, &NaiveResults<C>::key, 3);
    compare("grad value", got.value, &NaiveResults<R>::value, &NaiveResults<C>::value, 3);
    compare("grad vector", got.vector, &NaiveResults<R>::vector, &NaiveResults<C>::vector, 3);
    compare("grad dense", got.dense, &NaiveResults<R>::dense, &NaiveResults<C>::dense, 3);
    compare("grad slopes", got.slopes, &NaiveResults<R>::slopes, &NaiveResults<C>::slopes, 3);
    compare("grad sinks", got.sinks, &NaiveResults<R>::sinks, &NaiveResults<C>::sinks, 3);
    compare("grad relative", got.relative, &NaiveResults<R>::relative, &NaiveResults<C>::relative,
            3);
    compare("grad centres", got.centres, &NaiveResults<R>::centres, &NaiveResults<C>::centres, 3);
    compare("grad widths", got.widths, &NaiveResults<R>::widths, &NaiveResults<C>::widths, 3);
  }

  // Rows of the weights of all heads.
  void check_weights(const std::vector<C>& got) const {
    compare("weights", got, &NaiveResults<R>::weights, &NaiveResults<C>::weights, 2);
  }

 private:
  template <class T>
  void compare(const char* what, const std::vector<T>& got,
               const std::vector<R> NaiveResults<R>::*truth,
               const std::vector<C> NaiveResults<C>::*composed, double factor) const {
    const std::vector<R>& want = want_.*truth;
    ASSERT_EQ(got.size(), want.size()) << what;
    double error = 0, size = 0;
    for (const NaiveResults<C>& other : composed_)
      error = std::max(error, largest_difference(converted<R>(other.*composed), want));
    for (const R x : want) {
      if (std::isfinite(x)) size = std::max(size, static_cast<double>(std::abs(x)));
    }
    // 4: the result is the last of a few operations of its own
    const double floor = factor * error + 4 * unit_roundoff<C>() * size + 4 * least_normal<C>();
    int failures = 0;
    for (size_t i = 0; i < got.size() && failures < 3; ++i) {
      const auto value = static_cast<R>(number(got[i]));
      if (!std::isfinite(want[i])) {
        const bool same = std::isnan(want[i]) ? std::isnan(value) : value == want[i];
        EXPECT_TRUE(same) << what << "[" << i << "] = " << value << ", not " << want[i];
        failures += !same;
        continue;
      }
      const double tolerance =
          floor +
          (kIsHalf<T> ? unit_roundoff<T>() * (std::abs(double(want[i])) + floor + least_normal<T>())
                      : 0);
      const double off = std::abs(static_cast<double>(value - want[i]));
      EXPECT_LE(off, tolerance) << what << "[" << i << "] = " << value << ", not " << want[i];
      failures += !(off <= tolerance);
    }
  }

  NaiveResults<R> want_;
  std::vector<NaiveResults<C>> composed_;
};

// Forward and backward on every target.
template <class S>
void expect_all(const Case<S>& c, const RunOptions& run = {}) {
  const Expected<S> expected(c);
  on_every_target([&] {
    const Output<S> forward = run_forward(c, run);
    expected.check(forward);
    expected.check(run_backward(c, forward, run));
  });
}

}  // namespace attend::kernels::testing
