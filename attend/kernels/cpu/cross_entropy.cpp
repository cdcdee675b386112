#include "attend/kernels/cross_entropy.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attend/kernels/cpu/cross_entropy.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep

#include <cmath>

#include "attend/kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend::kernels::HWY_NAMESPACE {

template <class T>
HWY_INLINE T Wide(T x) {
  return x;
}
HWY_INLINE float Wide(BFloat16 x) { return widen(x); }

template <class S>
HWY_INLINE S Narrow(Compute<S> x) {
  if constexpr (std::is_same_v<S, BFloat16>) {
    return narrow<BFloat16>(x);
  } else {
    return x;
  }
}

// One row. Tokens before the first smoothed token and after the last whole vector are processed one
// by one.
template <class S>
class LogitRow {
 public:
  using T = Compute<S>;

  LogitRow(const CrossEntropy<S>& problem, int64_t row)
      : problem_(problem),
        logits_(problem.logits + row * problem.tokens),
        target_(problem.target[row]),
        first_(problem.smoothing > 0 ? problem.first : 0),
        whole_(first_ + (problem.tokens - first_) / kLanes<T> * kLanes<T>) {}

  double loss() {
    const auto tokens = static_cast<double>(problem_.tokens - first_);
    find_largest();
    const double powers = sum_of_powers();
    const double log_sum = static_cast<double>(largest_) + std::log(powers);
    // log p_j = logit_j - log_sum
    const double right = static_cast<double>(at(target_)) - log_sum;
    double loss = -(1 - problem_.smoothing) * right;
    // Skipped without smoothing: an excluded token has logit -inf, and 0 times the mean would be
    // NaN.
    if (problem_.smoothing > 0)
      loss -= problem_.smoothing * (static_cast<double>(sum_) / tokens - log_sum);
    if (problem_.with_slopes) write_slopes(static_cast<T>(1 / powers));
    return loss;
  }

 private:
  HWY_INLINE Vec<T> load(int64_t j) const {
    const auto logits = Load(logits_ + j);
    return problem_.bias == nullptr ? logits : hn::Add(logits, Load(problem_.bias + j));
  }

  HWY_INLINE T at(int64_t j) const {
    return Wide(logits_[j]) + (problem_.bias == nullptr ? T{0} : problem_.bias[j]);
  }

  // Calls f for the tokens outside whole vectors.
  template <class F>
  HWY_INLINE void for_others(F f) const {
    for (int64_t j = 0; j < first_; ++j) f(j);
    for (int64_t j = whole_; j < problem_.tokens; ++j) f(j);
  }

  // Finds the largest logit, and the sum of logits from the first smoothed token on.
  void find_largest() {
    const Tag<T> d;
    auto largest = Set<T>(-std::numeric_limits<T>::infinity());
    auto sum = hn::Zero(d);
    for (int64_t j = first_; j < whole_; j += kLanes<T>) {
      const auto x = load(j);
      largest = hn::Max(largest, x);
      sum = hn::Add(sum, x);
    }
    largest_ = hn::GetLane(hn::MaxOfLanes(d, largest));
    sum_ = hn::GetLane(hn::SumOfLanes(d, sum));
    for_others([&](int64_t j) {
      largest_ = std::max(largest_, at(j));
      if (j >= first_) sum_ += at(j);
    });
  }

  // e^(x - largest): subtracts first, since the product of a large x would lose its last bits.
  HWY_INLINE Vec<T> power(Vec<T> x) const {
    return Exp2<T>(hn::Mul(hn::Sub(x, Set<T>(largest_)), Set<T>(static_cast<T>(kLog2E))));
  }

  HWY_INLINE T power_at(int64_t j) const { return std::exp(at(j) - largest_); }

  // sum_j e^(logit_j - largest)
  double sum_of_powers() const {
    const Tag<T> d;
    auto sum = hn::Zero(d);
    for (int64_t j = first_; j < whole_; j += kLanes<T>) sum = hn::Add(sum, power(load(j)));
    T total = hn::GetLane(hn::SumOfLanes(d, sum));
    for_others([&](int64_t j) { total += power_at(j); });
    return static_cast<double>(total);
  }

  // dloss/dlogit_j = p_j - (1 - s) [j = target] - s / (V - first) [j >= first]
  void write_slopes(T scale) {
    const T share =
        static_cast<T>(problem_.smoothing / static_cast<double>(problem_.tokens - first_));
    const auto share_of = [&](int64_t j) { return j < first_ ? T{0} : share; };
    T* bias_slopes = problem_.bias_slopes;
    const T right =
        power_at(target_) * scale - share_of(target_) - static_cast<T>(1 - problem_.smoothing);
    const T bias_before = bias_slopes == nullptr ? T{0} : bias_slopes[target_];
    for (int64_t j = first_; j < whole_; j += kLanes<T>) {
      const auto slope = hn::MulSub(power(load(j)), Set<T>(scale), Set<T>(share));
      if (bias_slopes != nullptr) Store(hn::Add(Load(bias_slopes + j), slope), bias_slopes + j);
      Store(slope, logits_ + j);
    }
    for_others([&](int64_t j) {
      const T slope = power_at(j) * scale - share_of(j);
      if (bias_slopes != nullptr) bias_slopes[j] += slope;
      logits_[j] = Narrow<S>(slope);
    });
    logits_[target_] = Narrow<S>(right);
    if (bias_slopes != nullptr) bias_slopes[target_] = bias_before + right;
  }

  const CrossEntropy<S>& problem_;
  S* logits_;
  const int64_t target_;
  const int64_t first_, whole_;
  T largest_ = 0, sum_ = 0;
};

template <class S>
double AllRows(const CrossEntropy<S>& problem) {
  double loss = 0;
  for (int64_t row = 0; row < problem.rows; ++row) loss += LogitRow<S>(problem, row).loss();
  return loss;
}

double CrossEntropyFloat(const CrossEntropy<float>& problem) { return AllRows(problem); }
double CrossEntropyDouble(const CrossEntropy<double>& problem) { return AllRows(problem); }
double CrossEntropyBFloat16(const CrossEntropy<BFloat16>& problem) { return AllRows(problem); }

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace attend::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attend::kernels {

HWY_EXPORT(CrossEntropyFloat);
HWY_EXPORT(CrossEntropyDouble);
HWY_EXPORT(CrossEntropyBFloat16);

template <>
double cross_entropy(const CrossEntropy<float>& problem) {
  return HWY_DYNAMIC_DISPATCH(CrossEntropyFloat)(problem);
}

template <>
double cross_entropy(const CrossEntropy<double>& problem) {
  return HWY_DYNAMIC_DISPATCH(CrossEntropyDouble)(problem);
}

template <>
double cross_entropy(const CrossEntropy<BFloat16>& problem) {
  return HWY_DYNAMIC_DISPATCH(CrossEntropyBFloat16)(problem);
}

}  // namespace attend::kernels
#endif
