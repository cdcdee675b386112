#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "attend/kernels/attention.h"

// Normalisers of a row of scores (-inf outside the scope) by their definitions.

namespace attend::kernels {

// The normaliser of a row as one of its scores plus a distance. Their sum is the lse; for large
// scores it would lose the digits of the distance.
template <class R>
struct NaiveShift {
  R top, offset;
};

// ln sum_j exp(s_j - top), including the score of the sink unless it is -inf.
template <class R>
R log_sum_exp(const std::vector<R>& scores, R sink, R top) {
  R sum = std::exp(sink - top);
  for (const R x : scores) sum += std::exp(x - top);
  return std::log(sum);
}

// Scores of keys less the largest, in descending order.
template <class R>
std::vector<R> sorted(const std::vector<R>& scores, R top) {
  std::vector<R> order;
  order.reserve(scores.size());
  for (const R x : scores) {
    if (!(std::isinf(x) && x < 0)) order.push_back(x - top);
  }
  std::sort(order.begin(), order.end(), std::greater<>());
  return order;
}

// Martins 2016, algorithm 1: the support is the longest prefix with 1 + k s_k > s_1 + .. + s_k.
template <class R>
R sparsemax_threshold(const std::vector<R>& sorted) {
  R sum = 0, threshold = std::numeric_limits<R>::quiet_NaN(), count = 0;
  for (const R x : sorted) {
    sum += x;
    count += 1;
    if (1 + count * x > sum) threshold = (sum - 1) / count;
  }
  return threshold;
}

// Peters 2019, algorithm 2, for max(0, (s - t) / 2)^2: the threshold of k scores is the smaller
// root of sum (s - t)^2 = 4. The support is the longest prefix with all scores above its threshold.
template <class R>
R entmax_threshold(const std::vector<R>& sorted) {
  R threshold = std::numeric_limits<R>::quiet_NaN(), mean = 0, squares = 0, count = 0;
  for (const R x : sorted) {
    count += 1;
    const R step = x - mean;
    mean += step / count;
    squares += step * (x - mean);  // sum (s - mean)^2
    const R spread = (4 - squares) / count;
    if (spread < 0) break;
    const R t = mean - std::sqrt(spread);
    if (t <= x) threshold = t;
  }
  return threshold;
}

// The normaliser of one head, with its numbers.
template <class R>
struct NaiveRule {
  Normaliser kind;
  R alpha;
  int64_t top;

  template <class S>
  NaiveRule(const Problem<S>& problem, int64_t head)
      : kind(problem.normaliser),
        alpha(problem.alphas == nullptr ? R(2) : R(problem.alphas[head])),
        top(problem.top) {}

  bool is(Normaliser other) const { return kind == other; }
  bool sums_to_one() const {
    return !is(Normaliser::sigmoid) && !is(Normaliser::none) && !is(Normaliser::softpick) &&
           !is(Normaliser::stick_breaking);
  }
  bool depends() const { return sums_to_one() || is(Normaliser::softpick); }
};

// max(0, (alpha - 1) x)^(1 / (alpha - 1))
template <class R>
R alpha_power(R alpha, R x) {
  return x <= 0 ? R(0) : std::pow((alpha - 1) * x, 1 / (alpha - 1));
}

// Peters 2019, algorithm 1: bisection for the threshold of alpha_power.
template <class R>
R alpha_threshold(R alpha, const std::vector<R>& sorted) {
  R low = -1 / (alpha - 1);
  R high = -std::pow(R(sorted.size()), 1 - alpha) / (alpha - 1);
  for (int step = 0; step < std::numeric_limits<R>::digits + 4; ++step) {
    const R middle = (low + high) / 2;
    R sum = 0;
    for (const R x : sorted) {
      if (x <= middle) break;
      sum += alpha_power(alpha, x - middle);
    }
    (sum < 1 ? high : low) = middle;
  }
  return low;
}

// ln of the sum of exp over the scores from the `top`-th largest on, equal ones included.
template <class R>
R top_log_sum(int64_t top, const std::vector<R>& sorted) {
  const R least = sorted[std::min<size_t>(top, sorted.size()) - 1];
  R sum = 0;
  for (const R x : sorted) sum += x < least ? R(0) : std::exp(x);
  return std::log(sum);
}

// ln (sum_j |e^s_j - 1| + 1e-8) less the largest score, or 0; -inf if the sum is 0.
template <class R>
R softpick_log_sum(const std::vector<R>& scores, R top) {
  R sum = 0;
  for (const R x : scores) {
    if (std::isinf(x) && x < 0) continue;
    sum += x < 1 ? std::abs(std::expm1(x)) * std::exp(-top) : std::exp(x - top) - std::exp(-top);
  }
  return sum == 0 ? -std::numeric_limits<R>::infinity() : std::log(sum + R(1e-8) * std::exp(-top));
}

// The normaliser of a row with a finite score.
template <class R>
NaiveShift<R> shift_of(const NaiveRule<R>& rule, const std::vector<R>& scores, R sink, R top) {
  switch (rule.kind) {
    case Normaliser::softmax:
      return {top, log_sum_exp(scores, sink, top)};
    case Normaliser::softpick:
      return {std::max<R>(top, 0), softpick_log_sum(scores, std::max<R>(top, 0))};
    case Normaliser::sparsemax:
      return {top, sparsemax_threshold(sorted(scores, top))};
    case Normaliser::entmax15:
      return {top, entmax_threshold(sorted(scores, top))};
    case Normaliser::entmax:
      return {top, alpha_threshold(rule.alpha, sorted(scores, top))};
    case Normaliser::top_k:
      return {top, top_log_sum(rule.top, sorted(scores, top))};
    case Normaliser::sigmoid:
    case Normaliser::none:
    case Normaliser::stick_breaking:
      break;
  }
  return {0, 0};
}

// The sum of a row without keys is -inf. NaN among the scores makes it NaN; so does +inf if the
// weights depend on each other.
template <class R>
NaiveShift<R> normalise(const NaiveRule<R>& rule, const std::vector<R>& scores, R sink) {
  R top = -std::numeric_limits<R>::infinity(), poison = 0;
  for (const R x : scores) {
    top = std::max(top, x);
    if (std::isnan(x) || (rule.depends() && std::isinf(x) && x > 0))
      poison = std::numeric_limits<R>::quiet_NaN();
  }
  if (rule.is(Normaliser::softmax)) top = std::max(top, sink);
  if (poison != 0) return {rule.depends() ? top : R(0), poison};
  if (std::isinf(top) && top < 0) return {top, 0};
  return shift_of(rule, scores, sink, top);
}

// The least score that top_k keeps; -inf for other normalisers.
template <class R>
R least_kept(const NaiveRule<R>& rule, const std::vector<R>& scores) {
  if (!rule.is(Normaliser::top_k)) return -std::numeric_limits<R>::infinity();
  const std::vector<R> order = sorted(scores, R(0));
  return order.empty() ? R(0) : order[std::min<size_t>(rule.top, order.size()) - 1];
}

template <class R>
R weight(const NaiveRule<R>& rule, R score, const NaiveShift<R>& shift, R least) {
  if (std::isinf(score) && score < 0) return 0;
  const R from_top = score - shift.top - shift.offset;
  const R above = from_top < 0 ? R(0) : from_top;  // NaN stays NaN
  switch (rule.kind) {
    case Normaliser::softmax:
      return std::exp(from_top);
    case Normaliser::sigmoid:
      return 1 / (1 + std::exp(-score));
    case Normaliser::none:
      return score;
    case Normaliser::sparsemax:
      return above;
    case Normaliser::entmax15:
      return above * above / 4;
    case Normaliser::entmax:
      return std::isnan(from_top) ? from_top : alpha_power(rule.alpha, from_top);
    case Normaliser::softpick:
      if (score <= 0) return 0;
      return score < 1 ? std::expm1(score) * std::exp(-shift.top - shift.offset)
                       : std::exp(from_top) - std::exp(-shift.top - shift.offset);
    case Normaliser::top_k:
      return score < least ? R(0) : std::exp(from_top);
    case Normaliser::stick_breaking:
      break;
  }
  return 0;
}

// w_j = sigmoid(s_j) prod_{l > j} (1 - sigmoid(s_l)), with ln sigmoid(s) = min(s, 0) - ln(1 +
// e^-|s|).
template <class R>
std::vector<R> stick_weights(const std::vector<R>& scores) {
  std::vector<R> found(scores.size());
  R log_left = 0;
  for (size_t j = scores.size(); j-- > 0;) {
    const R s = scores[j], both = std::log1p(std::exp(-std::abs(s)));
    found[j] = std::exp((s < 0 ? s : R(0)) - both + log_left);
    log_left -= (s < 0 ? R(0) : s) + both;
  }
  return found;
}

template <class R>
std::vector<R> weights_of(const NaiveRule<R>& rule, const std::vector<R>& scores,
                          const NaiveShift<R>& shift, R least) {
  if (rule.is(Normaliser::stick_breaking)) return stick_weights(scores);
  std::vector<R> found;
  for (const R s : scores) found.push_back(weight<R>(rule, s, shift, least));
  return found;
}

// dw/ds at a fixed threshold.
template <class R>
R slope_of(const NaiveRule<R>& rule, R w, bool allowed) {
  switch (rule.kind) {
    case Normaliser::softmax:
    case Normaliser::top_k:
      return w;
    case Normaliser::sigmoid:
      return w * (1 - w);
    case Normaliser::none:
      return R(allowed);
    case Normaliser::sparsemax:
      return w > 0 ? R(1) : w;
    case Normaliser::entmax15:
      return std::sqrt(w);
    case Normaliser::entmax:
      return w > 0 ? std::pow(w, 2 - rule.alpha) : w;
    case Normaliser::softpick:
    case Normaliser::stick_breaking:
      break;
  }
  return 0;
}

// With b = sigmoid(s_k): ds_k = (1 - b) w_k dw_k - b sum_{j < k} w_j dw_j.
template <class R>
std::vector<R> stick_gradients(const std::vector<R>& scores, const std::vector<R>& weights,
                               const std::vector<R>& by_weight) {
  std::vector<R> gradient(scores.size());
  R before = 0;
  for (size_t k = 0; k < scores.size(); ++k) {
    if (std::isinf(scores[k]) && scores[k] < 0) continue;
    const R product = weights[k] * by_weight[k];
    gradient[k] = product / (1 + std::exp(scores[k])) - before / (1 + std::exp(-scores[k]));
    before += product;
  }
  return gradient;
}

// With S the divisor: dw_j/ds_k = e^s_k / S ([j = k] [s_k > 0] - sign(s_k) w_j).
template <class R>
std::vector<R> softpick_gradients(const std::vector<R>& scores, const NaiveShift<R>& shift,
                                  const std::vector<R>& by_weight, R common) {
  std::vector<R> gradient(scores.size());
  for (size_t k = 0; k < scores.size(); ++k) {
    const R s = scores[k];
    const R by_own = s > 0 ? by_weight[k] : R(0), sign = R(s > 0) - R(s < 0);
    const bool counts = !(std::isinf(s) && s < 0) && s != 0;
    if (counts) gradient[k] = std::exp(s - shift.top - shift.offset) * (by_own - sign * common);
  }
  return gradient;
}

// Gradients by the scores, from the weights, the gradients by the weights and the gradient by the
// lse. Let u_j be the derivative of weight j by s_j at a fixed threshold. For weights that sum to
// 1: ds_j = u_j (dw_j - sum_k u_k dw_k / sum_k u_k) and dlse / ds_j = u_j / sum_k u_k; a sink only
// adds to the sum.
template <class R>
std::vector<R> score_gradients(const NaiveRule<R>& rule, const std::vector<R>& weights,
                               const std::vector<R>& by_weight, const std::vector<uint8_t>& allowed,
                               R mean_error, R by_lse) {
  std::vector<R> slope(weights.size()), gradient(weights.size());
  R total = 0, mean = 0;
  for (size_t j = 0; j < weights.size(); ++j) {
    slope[j] = slope_of(rule, weights[j], allowed[j] != 0);
    total += slope[j];
    mean += slope[j] * by_weight[j];
  }
  if (rule.is(Normaliser::softmax)) total = 1;
  for (size_t j = 0; j < weights.size(); ++j) {
    const R shared =
        rule.sums_to_one() && slope[j] > 0 ? (by_lse - mean - mean_error) / total : R(0);
    gradient[j] = slope[j] * (by_weight[j] + shared);
  }
  return gradient;
}

// The gradient by alpha (Correia et al. 2019, proposition 1), plus the threshold's gradient times
// by_lse.
template <class R>
R alpha_gradient(R alpha, const std::vector<R>& weights, const std::vector<R>& by_weight,
                 R by_lse) {
  const R rate = alpha - 1;
  R total = 0, entropy = 0, found = 0;
  for (const R w : weights) {
    if (w <= 0) continue;
    total += std::pow(w, 2 - alpha);
    entropy -= w * std::log(w);
  }
  if (total == 0) return 0;
  for (size_t j = 0; j < weights.size(); ++j) {
    const R w = weights[j];
    if (w <= 0) continue;
    const R share = std::pow(w, 2 - alpha) / total;
    found +=
        by_weight[j] * ((w - share) / (rate * rate) - (w * std::log(w) + share * entropy) / rate);
  }
  return found + by_lse * (1 / (rate * rate) + entropy / rate) / total;
}

}  // namespace attend::kernels
