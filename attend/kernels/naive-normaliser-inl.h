#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "attend/kernels/attention.h"

// The normalisers of a row of scores, -inf outside the scope, as their definitions say.

namespace attend::kernels {

// ln sum_j exp(s_j), with the score of the sink among them unless it is -inf.
template <class R>
R log_sum_exp(const std::vector<R>& scores, R sink) {
  R top = sink, sum = 0;
  for (const R x : scores) top = std::max(top, x);
  if (std::isinf(top) && top < 0) return top;
  for (const R x : scores) sum += std::exp(x - top);
  return top + std::log(sum + std::exp(sink - top));
}

// The finite scores, largest first.
template <class R>
std::vector<R> sorted(const std::vector<R>& scores) {
  std::vector<R> order;
  order.reserve(scores.size());
  for (const R x : scores) {
    if (std::isfinite(x)) order.push_back(x);
  }
  std::sort(order.begin(), order.end(), std::greater<>());
  return order;
}

// Martins 2016, algorithm 1: the support is the longest beginning with 1 + k s_k > s_1 + .. + s_k.
template <class R>
R sparsemax_threshold(const std::vector<R>& scores) {
  R sum = 0, threshold = -std::numeric_limits<R>::infinity(), count = 0;
  for (const R x : sorted(scores)) {
    sum += x;
    count += 1;
    if (1 + count * x > sum) threshold = (sum - 1) / count;
  }
  return threshold;
}

// Peters 2019, algorithm 2, for max(0, (s - t) / 2)^2: the threshold of k scores is the smaller
// root of sum (s - t)^2 = 4, and the support is the longest beginning whose threshold is below all
// of it.
template <class R>
R entmax_threshold(const std::vector<R>& scores) {
  R threshold = -std::numeric_limits<R>::infinity(), mean = 0, squares = 0, count = 0;
  for (const R x : sorted(scores)) {
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

// What forward writes as lse.
template <class R>
R normalise(Normaliser normaliser, const std::vector<R>& scores, R sink) {
  const bool empty =
      std::all_of(scores.begin(), scores.end(), [](R x) { return std::isinf(x) && x < 0; });
  if (empty && normaliser != Normaliser::softmax) return -std::numeric_limits<R>::infinity();
  switch (normaliser) {
    case Normaliser::softmax:
      return log_sum_exp(scores, sink);
    case Normaliser::sparsemax:
      return sparsemax_threshold(scores);
    case Normaliser::entmax15:
      return entmax_threshold(scores);
    default:
      return 0;
  }
}

template <class R>
R weight(Normaliser normaliser, R score, R lse) {
  if (std::isinf(score) && score < 0) return 0;
  const R above = std::max<R>(0, score - lse);
  switch (normaliser) {
    case Normaliser::softmax:
      return std::exp(score - lse);
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

// Gradients by the scores from weights, gradients by the weights and that by the lse. With u_j the
// derivative of weight j by s_j at a fixed threshold, those that sum to 1 have ds_j = u_j (dw_j -
// sum_k u_k dw_k / sum_k u_k) and dlse / ds_j = u_j / sum_k u_k; a sink adds to the sum only.
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
               : normaliser == Normaliser::sparsemax ? R(w > 0)
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
