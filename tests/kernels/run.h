#pragma once

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <string>

#include "attend/kernels/bfloat16_products.h"
#include "tests/kernels/reference.h"

// Runs the kernels on a case and compares the results with the reference.

namespace attend::kernels::testing {

// Runs a check with bf16 products and without. Logs if the machine lacks them.
template <class Check>
void on_every_bfloat16_level(const Check& check) {
  if (bfloat16_kernels() == nullptr)
    GTEST_LOG_(WARNING) << "SKIPPED by bf16: this machine has no fast products";
  for (const bool allowed : {true, false}) {
    SCOPED_TRACE(allowed ? "products of bf16, if they are there" : "products of floats");
    allow_bfloat16_kernels(allowed);
    check();
  }
  allow_bfloat16_kernels(true);
}

// Runs a check on every target of this CPU, then restores the automatic choice.
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
  std::vector<Compute<S>> unrounded = {};  // if empty, the context itself
};

template <class S>
struct GradientOutput {
  std::vector<S> query, key, value;
  std::vector<Compute<S>> vector, dense, slopes, sinks, relative, centres, widths, edges, alphas;
  std::vector<double> query_sums, key_sums;
  std::vector<Compute<S>> query_products, key_products;
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
  if (kIsHalf<S>) out.unrounded.assign(c.rows() * s.value_depth, 7);
  attention_forward<S>(placed.problem(), {context.view(), out.lse.data(), pointer(out.unrounded)},
                       run.threads);
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
  const Placed<C> context(
      forward.unrounded.empty() ? converted<C>(forward.context) : forward.unrounded, s.batch,
      s.heads, s.queries, s.value_depth, run.layout);
  const Placed<S> grad(c.grad_context, s.batch, s.heads, s.queries, s.value_depth, run.layout);
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
  g.edges = like(c.edges);
  g.query_sums.assign(c.query_sums.size(), 7);
  g.key_sums.assign(c.key_sums.size(), 7);
  g.alphas = like(c.alphas);
  g.query_products = like(c.query_products);
  g.key_products = like(c.key_products);
  attention_backward<S>(
      placed.problem(), {context.input(), forward.lse.data(), grad.input(), pointer(c.grad_lse)},
      {query.view(), key.view(), value.view(), pointer(g.vector), pointer(g.dense),
       pointer(g.slopes), pointer(g.sinks), pointer(g.relative), pointer(g.centres),
       pointer(g.widths), pointer(g.edges), pointer(g.query_sums), pointer(g.key_sums),
       pointer(g.alphas), pointer(g.query_products), pointer(g.key_products)},
      run.threads);
  g.query = query.numbers();
  g.key = key.numbers();
  g.value = value.numbers();
  EXPECT_TRUE(query.gaps_untouched() && key.gaps_untouched() && value.gaps_untouched());
  return g;
}

// Half the distance between 1 and the next number.
template <class S>
constexpr double unit_roundoff() {
  return std::is_same_v<S, double>     ? 0x1p-53
         : std::is_same_v<S, float>    ? 0x1p-24
         : std::is_same_v<S, BFloat16> ? 0x1p-8
                                       : 0x1p-11;
}

// Smaller numbers lose digits.
template <class S>
constexpr double least_normal() {
  return std::is_same_v<S, double> ? 0x1p-1022 : std::is_same_v<S, Float16> ? 0x1p-14 : 0x1p-126;
}

// Larger numbers are stored as infinity.
template <class S>
constexpr double largest_number() {
  return std::is_same_v<S, Float16>    ? 0x1.ffcp15
         : std::is_same_v<S, BFloat16> ? 0x1.fep127
                                       : double(std::numeric_limits<Compute<S>>::max());
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

// Returns whether bf16 products round weights and gradients of scores to bf16.
inline bool rounds_operands() { return bfloat16_kernels() != nullptr; }

// Expected results of a case with the allowed error: `err(fused) <= factor * err(composed) +
// floor`, with factor 2 for results and 3 for gradients.
// The composed path is the reference in the arithmetic of the kernels, with and without noise. The
// floor is the rounding of the stored result. An array with one number per head sums rows with
// independent rounding. There the error of the composed path is two standard deviations: three
// times that is exceeded once in half a billion. If products round weights to bf16, the composed
// path does, too.
// If a score overflows on the composed path other than to -inf, results that depend on it are not
// checked: the row if the array has rows, otherwise the whole array.
template <class S>
class Expected {
 public:
  using C = Compute<S>;
  using R = std::conditional_t<std::is_same_v<S, double>, long double, double>;

  // `units`: allowed roundings of a result, for its last few operations.
  explicit Expected(const Case<S>& c, double units = 4)
      : units_(units), shape_(c.shape), want_(reference<R>(c)), rows_(c.rows()) {
    const double unit = unit_roundoff<C>();
    composed_.push_back(reference<C>(c));
    // Several draws estimate the largest error of an array with one number per head.
    const uint64_t draws = c.sinks.empty() && c.slopes.empty() && c.alphas.empty() ? 2 : 6;
    for (uint64_t seed = 1; seed <= draws; ++seed)
      composed_.push_back(reference<C>(c, {unit, seed}));
    if (std::is_same_v<S, BFloat16> && c.score.family == Family::dot && rounds_operands()) {
      for (uint64_t seed = 1; seed <= draws; ++seed)
        rounded_.push_back(reference<C>(c, {unit, seed, unit_roundoff<S>()}));
    }
    find_lost();
    if (c.normaliser == Normaliser::top_k) leave_out_undecided();
    // A weight below the least normal number is lost, together with its products.
    double largest = 4;
    for (const auto* numbers : {&c.query, &c.key, &c.value, &c.grad_context}) {
      for (const S x : *numbers) {
        const double size = std::abs(double(number(x)));
        if (std::isfinite(size)) largest = std::max(largest, size);
      }
    }
    underflow_ = least_normal<C>() * static_cast<double>(c.shape.keys + c.rows()) * largest;
  }

  const NaiveResults<R>& want() const { return want_; }

  void check(const Output<S>& got) const {
    compare("context", got.context, &NaiveResults<R>::context, &NaiveResults<C>::context, 2, true);
    // Weights follow the absolute error of the lse.
    std::vector<R> sizes = want_.lse;
    sizes.push_back(1);
    compare("lse", got.lse, &NaiveResults<R>::lse, &NaiveResults<C>::lse, 2, true, sizes);
  }

  void check(const GradientOutput<S>& got) const {
    compare("grad query", got.query, &NaiveResults<R>::query, &NaiveResults<C>::query, 3, true);
    compare("grad key", got.key, &NaiveResults<R>::key, &NaiveResults<C>::key, 3);
    compare("grad value", got.value, &NaiveResults<R>::value, &NaiveResults<C>::value, 3);
    compare("grad vector", got.vector, &NaiveResults<R>::vector, &NaiveResults<C>::vector, 3, false,
            want_.vector_terms);
    compare("grad dense", got.dense, &NaiveResults<R>::dense, &NaiveResults<C>::dense, 3);
    compare("grad slopes", got.slopes, &NaiveResults<R>::slopes, &NaiveResults<C>::slopes, 3, false,
            want_.slope_terms,
            2 * deviation(&NaiveResults<R>::slope_rows, &NaiveResults<C>::slope_rows));
    compare("grad sinks", got.sinks, &NaiveResults<R>::sinks, &NaiveResults<C>::sinks, 3, false,
            want_.sink_terms,
            2 * deviation(&NaiveResults<R>::sink_rows, &NaiveResults<C>::sink_rows));
    compare("grad relative", got.relative, &NaiveResults<R>::relative, &NaiveResults<C>::relative,
            3);
    compare("grad centres", got.centres, &NaiveResults<R>::centres, &NaiveResults<C>::centres, 3);
    compare("grad widths", got.widths, &NaiveResults<R>::widths, &NaiveResults<C>::widths, 3);
    compare("grad alphas", got.alphas, &NaiveResults<R>::alphas, &NaiveResults<C>::alphas, 3, false,
            want_.alpha_terms);
    compare("grad edges", got.edges, &NaiveResults<R>::edges, &NaiveResults<C>::edges, 3);
    compare("grad query products", got.query_products, &NaiveResults<R>::query_products,
            &NaiveResults<C>::query_products, 3);
    compare("grad key products", got.key_products, &NaiveResults<R>::key_products,
            &NaiveResults<C>::key_products, 3);
    compare("grad query sums", got.query_sums, &NaiveResults<R>::query_sums,
            &NaiveResults<C>::query_sums, 3, false, want_.query_sum_terms);
    compare("grad key sums", got.key_sums, &NaiveResults<R>::key_sums, &NaiveResults<C>::key_sums,
            3, false, want_.key_sum_terms);
  }

  // Weights of all rows of all heads.
  void check_weights(const std::vector<C>& got) const {
    compare("weights", got, &NaiveResults<R>::weights, &NaiveResults<C>::weights, 2, true);
  }

 private:
  template <class T>
  void compare(const char* what, const std::vector<T>& got,
               const std::vector<R> NaiveResults<R>::*truth,
               const std::vector<C> NaiveResults<C>::*composed, double factor, bool of_rows = false,
               const std::vector<R>& terms = {}, double error = 0) const {
    const std::vector<R>& want = want_.*truth;
    ASSERT_EQ(got.size(), want.size()) << what;
    double size = 0;
    for (const NaiveResults<C>& other : composed_)
      error = std::max(error, largest_difference(converted<R>(other.*composed), want));
    for (const NaiveResults<C>& other : rounded_) {
      if (rounds_operands())
        error = std::max(error, largest_difference(converted<R>(other.*composed), want));
    }
    for (const R x : terms.empty() ? want : terms) {
      if (std::isfinite(x)) size = std::max(size, static_cast<double>(std::abs(x)));
    }
    const double floor = factor * error + units_ * unit_roundoff<C>() * size + underflow_;
    const size_t together = std::max<size_t>(1, rows_ == 0 ? 1 : got.size() / rows_);
    int failures = 0;
    for (size_t i = 0; i < got.size() && failures < 3; ++i) {
      const auto value = static_cast<R>(number(got[i]));
      if (of_rows ? lost_[i / together] : lost_[rows_]) continue;
      if (value == R((composed_[0].*composed)[i])) continue;
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
      const bool overflows = std::abs(double(want[i])) + tolerance > largest_number<T>();
      if (overflows && std::isinf(value) && (value > 0) == (want[i] > 0)) continue;
      const double off = std::abs(static_cast<double>(value - want[i]));
      EXPECT_LE(off, tolerance) << what << "[" << i << "] = " << value << ", not " << want[i];
      failures += !(off <= tolerance);
    }
  }

  // The largest standard deviation of a sum over rows from their rounding. Rows are rounded
  // independently; the draws of noise estimate the errors.
  double deviation(const std::vector<R> NaiveResults<R>::*truth,
                   const std::vector<C> NaiveResults<C>::*composed) const {
    const std::vector<R>& want = want_.*truth;
    std::vector<double> variances(shape_.heads, 0);
    const auto& draws = rounds_operands() && !rounded_.empty() ? rounded_ : composed_;
    for (const NaiveResults<C>& draw : draws) {
      for (size_t row = 0; row < want.size(); ++row) {
        const auto error = static_cast<double>((draw.*composed)[row] - want[row]);
        if (std::isfinite(error))
          variances[row / shape_.queries % shape_.heads] += error * error / double(draws.size());
      }
    }
    return variances.empty() ? 0 : std::sqrt(*std::max_element(variances.begin(), variances.end()));
  }

  // Marks rows that have lost their weights on the composed path.
  void find_lost() {
    const size_t keys = rows_ == 0 ? 0 : want_.weights.size() / rows_;
    lost_.assign(rows_ + 1, 0);
    for (const NaiveResults<C>& other : composed_) {
      for (size_t i = 0; i < want_.weights.size(); ++i) {
        if (!std::isfinite(want_.weights[i]) || std::isfinite(other.weights[i])) continue;
        lost_[i / keys] = lost_[rows_] = 1;
      }
    }
  }

  // Marks rows in which rounding decides which keys top_k keeps.
  void leave_out_undecided() {
    constexpr double least = 1000 * unit_roundoff<C>();
    for (size_t row = 0; row < want_.margin.size(); ++row) {
      const auto size = std::max<double>(1, std::abs(static_cast<double>(want_.lse[row])));
      if (want_.margin[row] <= least * size) lost_[row] = lost_[rows_] = 1;
    }
  }

  double units_;
  Shape shape_;
  NaiveResults<R> want_;
  size_t rows_;
  double underflow_;
  std::vector<uint8_t> lost_;
  std::vector<NaiveResults<C>> composed_;
  std::vector<NaiveResults<C>> rounded_;  // with weights rounded as in bf16 products
};

// Checks forward and backward on every target.
template <class S>
void expect_all(const Case<S>& c, const RunOptions& run = {}) {
  const Expected<S> expected(c);
  on_every_target([&] {
    const Output<S> forward = run_forward(c, run);
    expected.check(forward);
    expected.check(run_backward(c, forward, run));
  });
  if (!std::is_same_v<S, BFloat16> || c.score.family != Family::dot) return;
  // The checks above used bf16 products if the processor has them.
  allow_bfloat16_kernels(false);
  const Output<S> forward = run_forward(c, run);
  expected.check(forward);
  expected.check(run_backward(c, forward, run));
  allow_bfloat16_kernels(true);
}

}  // namespace attend::kernels::testing
