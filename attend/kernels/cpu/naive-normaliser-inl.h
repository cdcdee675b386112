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

// The sum of a row without keys is -inf. NaN among the scores makes it NaN; so does +inf if the
// weights depend on each other.
template <class R>
NaiveShift<R> normalise(Normaliser normaliser, const std::vector<R>& scores, R sink) {
  const bool sparse = normaliser == Normaliser::sparsemax || normaliser == Normaliser::entmax15;
  const bool depends = sparse || normaliser == Normaliser::softmax;
  R top = -std::numeric_limits<R>::infinity(), poison = 0;
  for (const R x : scores) {
    top = std::max(top, x);
    if (std::isnan(x) || (depends && std::isinf(x) && x > 0))
      poison = std::numeric_limits<R>::quiet_NaN();
  }
  if (normaliser == Normaliser::softmax) top = std::max(top, sink);
  if (std::isinf(top) && top < 0 && poison == 0) return {top, 0};
  if (normaliser == Normaliser::softmax) return {top, log_sum_exp(scores, sink, top) + poison};
  if (!sparse) return {0, poison};
  if (poison != 0) return {top, poison};
  const std::vector<R> order = sorted(scores, top);
  return {top, normaliser == Normaliser::sparsemax ? sparsemax_threshold(order)
                                                   : entmax_threshold(order)};
}

template <class R>
R weight(Normaliser normaliser, R score, const NaiveShift<R>& shift) {
  if (std::isinf(score) && score < 0) return 0;
  const R from_top = score - shift.top - shift.offset;
  const R above = from_top < 0 ? R(0) : from_top;  // NaN stays NaN
  switch (normaliser) {
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
  }
  return 0;
}

// Gradients by the scores, from the weights, the gradients by the weights and the gradient by the
// lse. Let u_j be the derivative of weight j by s_j at a fixed threshold. For weights that sum to
// 1: ds_j = u_j (dw_j - sum_k u_k dw_k / sum_k u_k) and dlse / ds_j = u_j / sum_k u_k; a sink only
// adds to the sum.
template <class R>
std::vector<R> score_gradients(Normaliser normaliser, const std::vector<R>& weights,
                               const std::vector<R>& by_weight, const std::vector<uint8_t>& allowed,
                               R mean_error, R by_lse) {
  std::vector<R> slope(weights.size()), gradient(weights.size());
  R total = 0, mean = 0;
  for (size_t j = 0; j < weights.size(); ++j) {
    const R w = weights[j];
    slope[j] = normaliser == Normaliser::softmax     ? w
               : normaliser == Normaliser::sigmoid   ? w * (1 - w)
               : normaliser == Normaliser::none      ? R(allowed[j])
               : normaliser == Normaliser::sparsemax ? (w > 0 ? R(1) : w)
                                                     : std::sqrt(w);
    total += slope[j];
    mean += slope[j] * by_weight[j];
  }
  const bool sums_to_one = normaliser != Normaliser::sigmoid && normaliser != Normaliser::none;
  if (normaliser == Normaliser::softmax) total = 1;
  for (size_t j = 0; j < weights.size(); ++j) {
    const R shared = sums_to_one && slope[j] > 0 ? (by_lse - mean - mean_error) / total : R(0);
    gradient[j] = slope[j] * (by_weight[j] + shared);
  }
  return gradient;
}

}  // namespace attend::kernels
