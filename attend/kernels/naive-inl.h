#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "attend/kernels/attention.h"

// Attention and its gradients as the formulas say, one number at a time in the arithmetic T: what
// the self-test holds the kernels against.

namespace attend::kernels {

inline float number(float x) { return x; }
inline double number(double x) { return x; }
inline float number(BFloat16 x) { return widen(x); }
inline float number(Float16 x) { return widen(x); }

// Contiguous; a gradient is empty where the problem has no such input. dense and relative have the
// strides of the problem's.
template <class T>
struct NaiveResults {
  std::vector<T> context, lse;
  std::vector<T> query, key, value, vector, dense, slopes, sinks, relative, centres, widths;
  // Sums of the terms' absolute values where a sum over all rows leaves little of them.
  std::vector<T> slope_terms, sink_terms;
  // Of each row, the least distance of a score to the threshold of sparsemax, where the gradient
  // jumps; infinite for other normalisers.
  std::vector<T> margin;
};

// f(x) and f'(x)
template <class T>
struct Activated {
  T value, slope;
};

template <class T>
Activated<T> activated(Activation activation, T negative_slope, T x) {
  switch (activation) {
    case Activation::tanh:
      return {std::tanh(x), 1 - std::tanh(x) * std::tanh(x)};
    case Activation::sigmoid: {
      const T y = 1 / (1 + std::exp(-x));
      return {y, y * (1 - y)};
    }
    case Activation::relu:
      return {std::max(x, T(0)), x > 0 ? T(1) : T(0)};
    case Activation::leaky_relu:
      return {x > 0 ? x : negative_slope * x, x > 0 ? T(1) : negative_slope};
  }
  return {};
}

// One depth's share of a score and its derivatives.
template <class T>
struct ScoreTerm {
  T value, by_query, by_key, by_vector;
};

template <class T, class U>
ScoreTerm<T> score_term(const Score<U>& score, T q, T k, T v) {
  const T difference = q - k;
  switch (score.family) {
    case Family::dot:
      return {q * k, k, q, 0};
    case Family::additive: {
      const auto [value, slope] = activated<T>(score.activation, T(score.negative_slope), q + k);
      return {v * value, v * slope, v * slope, value};
    }
    case Family::squared_distance:
      return {-difference * difference, -2 * difference, 2 * difference, 0};
    case Family::absolute_distance: {
      const T sign = difference > 0 ? T(1) : difference < 0 ? T(-1) : T(0);
      return {-std::abs(difference), -sign, sign, 0};
    }
  }
  return {};
}

// t such that sum_j weight(s_j - t) is 1, for a weight that grows and is 1 at `widest`: halving
// finds it.
template <class T, class Weight>
T threshold(const std::vector<T>& scores, T widest, const Weight& weight) {
  T high = *std::max_element(scores.begin(), scores.end()), low = high - widest;
  for (;;) {
    const T middle = low + (high - low) / 2;
    if (middle <= low || middle >= high) return middle;
    T sum = 0;
    for (const T s : scores) sum += weight(s - middle);
    (sum > 1 ? low : high) = middle;
  }
}

template <class T>
T sparsemax_weight(T x) {
  return std::max(x, T(0));
}
template <class T>
T entmax15_weight(T x) {
  return x > 0 ? x * x / 4 : T(0);
}

template <class T, class S>
class NaiveAttention {
 public:
  NaiveAttention(const Problem<S>& problem, const View<const S>& grad_context,
                 const Compute<S>* grad_lse)
      : p_(problem), s_(problem.shape), grad_context_(grad_context), grad_lse_(grad_lse) {
    const int64_t rows = s_.batch * s_.heads * s_.queries, keys = s_.batch * s_.key_heads * s_.keys;
    r_.context.assign(rows * s_.value_depth, 0);
    r_.lse.assign(rows, 0);
    r_.margin.assign(rows, std::numeric_limits<T>::infinity());
    r_.query.assign(rows * s_.depth, 0);
    r_.key.assign(keys * s_.depth, 0);
    r_.value.assign(keys * s_.value_depth, 0);
    const Bias<Compute<S>>& bias = p_.bias;
    if (p_.score.family == Family::additive) r_.vector.assign(s_.heads * s_.depth, 0);
    if (bias.dense.data) r_.dense.assign(extent(bias.dense, s_.keys), 0);
    if (bias.slopes) r_.slopes = r_.slope_terms = std::vector<T>(s_.heads, 0);
    if (bias.relative.data) r_.relative.assign(extent(bias.relative, bias.relative_count), 0);
    if (bias.centres) r_.centres.assign(rows, 0);
    if (bias.centres) r_.widths.assign(rows, 0);
    if (p_.sinks) r_.sinks = r_.sink_terms = std::vector<T>(s_.heads, 0);
    if (p_.dropout.probability > 0) {
      mask_.resize(rows * s_.keys);
      dropout_mask(s_, p_.dropout, mask_.data());
    }
  }

  NaiveResults<T> run() {
    for (int64_t index = 0; index < s_.batch * s_.heads * s_.queries; ++index) {
      Position at;
      at.index = index;
      at.i = index % s_.queries;
      at.h = index / s_.queries % s_.heads;
      at.b = index / s_.queries / s_.heads;
      at.key_head = at.h / (s_.heads / s_.key_heads);
      run_row(at);
    }
    return std::move(r_);
  }

 private:
  struct Position {
    int64_t index, b, h, i, key_head;
  };

  template <class V>
  int64_t extent(const View<const V>& view, int64_t columns) const {
    return view.row(s_.batch - 1, s_.heads - 1, s_.queries - 1) - view.data + columns;
  }

  int64_t key_row(const Position& at, int64_t j) const {
    return (at.b * s_.key_heads + at.key_head) * s_.keys + j;
  }

  void run_row(const Position& at) {
    std::vector<int64_t> keys;
    std::vector<T> scores;
    keys.reserve(s_.keys);
    scores.reserve(s_.keys);
    for (int64_t j = 0; j < s_.keys; ++j) {
      if (!in_scope(p_.scope, {at.b, at.h, at.i}, j)) continue;
      keys.push_back(j);
      scores.push_back(capped(plain_score(at, j)).value + bias(at, j));
    }
    std::vector<T> weights = normalise(at, scores);
    std::vector<T> slopes(keys.size());  // by the weights
    for (size_t n = 0; n < keys.size(); ++n) slopes[n] = read_value(at, keys[n], weights[n]);
    const T lse_slope = grad_lse_ ? T(grad_lse_[at.index]) : T(0);
    by_scores(at, weights, lse_slope, slopes);
    for (size_t n = 0; n < keys.size(); ++n) differentiate(at, keys[n], slopes[n]);
  }

  ScoreTerm<T> term(const Position& at, int64_t j, int64_t a) const {
    const T q = number(p_.query.row(at.b, at.h, at.i)[a]);
    const T k = number(p_.key.row(at.b, at.key_head, j)[a]);
    const bool additive = p_.score.family == Family::additive;
    const T v = additive ? T(p_.score.vector[at.h * p_.score.vector_head_stride + a]) : T(0);
    return score_term<T>(p_.score, q, k, v);
  }

  T plain_score(const Position& at, int64_t j) const {
    T sum = 0;
    for (int64_t a = 0; a < s_.depth; ++a) sum += term(at, j, a).value;
    return T(p_.score.scale) * sum;
  }

  Activated<T> capped(T score) const {
    const T cap = p_.score.soft_cap;
    if (cap == 0) return {score, 1};
    const T y = std::tanh(score / cap);
    return {cap * y, 1 - y * y};
  }

  T distance(const Position& at, int64_t j) const {
    return std::abs(T(at.i + p_.bias.slope_offset - j));
  }

  int64_t relative_column(const Position& at, int64_t j) const {
    const Bias<Compute<S>>& bias = p_.bias;
    const int64_t query = bias.query_positions ? bias.query_positions[at.i] : at.i;
    const int64_t key = bias.key_positions ? bias.key_positions[j] : j;
    return std::clamp<int64_t>(key - query + bias.relative_offset, 0, bias.relative_count - 1);
  }

  T bias(const Position& at, int64_t j) const {
    const Bias<Compute<S>>& bias = p_.bias;
    T sum = 0;
    if (bias.dense.data) sum += bias.dense.row(at.b, at.h, at.i)[j];
    if (bias.slopes) sum -= T(bias.slopes[at.h]) * distance(at, j);
    if (bias.relative.data) sum += bias.relative.row(at.b, at.h, at.i)[relative_column(at, j)];
    if (bias.centres) {
      const T away = (T(j) - bias.centres[at.index]) / bias.widths[at.index];
      sum -= away * away / 2;
    }
    return sum;
  }

  // Writes lse.
  std::vector<T> normalise(const Position& at, std::vector<T> s) {
    constexpr T kInfinity = std::numeric_limits<T>::infinity();
    T& lse = r_.lse[at.index];
    if (p_.normaliser == Normaliser::none) return s;
    if (p_.normaliser == Normaliser::sigmoid) {
      for (T& x : s) x = 1 / (1 + std::exp(-x));
      return s;
    }
    const T sink = p_.sinks ? T(p_.sinks[at.h]) : -kInfinity;
    lse = sink;
    if (s.empty()) return s;
    if (p_.normaliser == Normaliser::softmax) {
      const T top = std::max(sink, *std::max_element(s.begin(), s.end()));
      T sum = std::exp(sink - top);
      for (const T x : s) sum += std::exp(x - top);
      lse = top + std::log(sum);
      for (T& x : s) x = std::exp(x - top) / sum;
      return s;
    }
    const bool sparse = p_.normaliser == Normaliser::sparsemax;
    const auto weight = sparse ? sparsemax_weight<T> : entmax15_weight<T>;
    lse = threshold(s, sparse ? T(1) : T(2), weight);
    for (T& x : s) {
      if (sparse) r_.margin[at.index] = std::min(r_.margin[at.index], std::abs(x - lse));
      x = weight(x - lse);
    }
    return s;
  }

  // c_ie += m_j w_j v_je; returns dw_j = m_j sum_e dc_ie v_je, with m the dropout mask.
  T read_value(const Position& at, int64_t j, T weight) {
    const T mask = mask_.empty() ? T(1) : T(mask_[at.index * s_.keys + j]);
    T slope = 0;
    for (int64_t e = 0; e < s_.value_depth; ++e) {
      const T value = number(p_.value.row(at.b, at.key_head, j)[e]);
      const T grad = number(grad_context_.row(at.b, at.h, at.i)[e]);
      r_.context[at.index * s_.value_depth + e] += mask * weight * value;
      r_.value[key_row(at, j) * s_.value_depth + e] += mask * weight * grad;
      slope += mask * grad * value;
    }
    return slope;
  }

  // dw becomes ds. The normalisers whose weights sum to one share a form: ds_j = g_j (dw_j - sum_k
  // g_k dw_k / sum_k g_k), with g = w, 1 where w > 0, and sqrt(w).
  void by_scores(const Position& at, const std::vector<T>& w, T lse_slope, std::vector<T>& slopes) {
    if (p_.normaliser == Normaliser::none) return;
    std::vector<T> g = w;
    T total = 0, mean = 0;
    for (size_t n = 0; n < w.size(); ++n) {
      if (p_.normaliser == Normaliser::sigmoid) slopes[n] *= w[n] * (1 - w[n]);
      if (p_.normaliser == Normaliser::sparsemax) g[n] = w[n] > 0 ? T(1) : T(0);
      if (p_.normaliser == Normaliser::entmax15) g[n] = std::sqrt(w[n]);
      total += g[n];
      mean += g[n] * slopes[n];
    }
    if (p_.normaliser == Normaliser::sigmoid) return;
    if (p_.normaliser == Normaliser::softmax) {
      total = 1;  // with the sink's weight, whose dw is 0
      if (p_.sinks) {
        const T weight = std::exp(T(p_.sinks[at.h]) - r_.lse[at.index]);
        r_.sinks[at.h] += weight * (lse_slope - mean);
        r_.sink_terms[at.h] += weight * std::abs(lse_slope - mean);
      }
    }
    for (size_t n = 0; n < w.size(); ++n) slopes[n] = g[n] * (slopes[n] - mean / total + lse_slope);
  }

  void differentiate(const Position& at, int64_t j, T ds) {
    const Bias<Compute<S>>& bias = p_.bias;
    if (bias.dense.data) r_.dense[bias.dense.row(at.b, at.h, at.i) + j - bias.dense.data] += ds;
    if (bias.slopes) {
      r_.slopes[at.h] -= ds * distance(at, j);
      r_.slope_terms[at.h] += std::abs(ds) * distance(at, j);
    }
    if (bias.relative.data) {
      const auto* row = bias.relative.row(at.b, at.h, at.i);
      r_.relative[row + relative_column(at, j) - bias.relative.data] += ds;
    }
    if (bias.centres) {
      const T width = bias.widths[at.index], away = T(j) - bias.centres[at.index];
      r_.centres[at.index] += ds * away / (width * width);
      r_.widths[at.index] += ds * away * away / (width * width * width);
    }
    const bool has_cap = p_.score.soft_cap != 0;
    const T by_sum = ds * T(p_.score.scale) * (has_cap ? capped(plain_score(at, j)).slope : T(1));
    for (int64_t a = 0; a < s_.depth; ++a) {
      const ScoreTerm<T> by = term(at, j, a);
      r_.query[at.index * s_.depth + a] += by_sum * by.by_query;
      r_.key[key_row(at, j) * s_.depth + a] += by_sum * by.by_key;
      if (!r_.vector.empty()) r_.vector[at.h * s_.depth + a] += by_sum * by.by_vector;
    }
  }

  const Problem<S>& p_;
  const Shape& s_;
  View<const S> grad_context_;
  const Compute<S>* grad_lse_;
  std::vector<Compute<S>> mask_;
  NaiveResults<T> r_;
};

}  // namespace attend::kernels
