#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "attend/kernels/attention.h"
#include "attend/kernels/cpu/naive-normaliser-inl.h"
#include "attend/kernels/cpu/naive-scope-inl.h"

// Attention and its gradients by their formulas, one number at a time in the arithmetic R: the
// reference for the self-test and the tests.

namespace attend::kernels {

template <class S>
auto number(S x) {
  if constexpr (kIsHalf<S>) {
    return widen(x);
  } else {
    return x;
  }
}

template <class S, class From>
S stored(From x) {
  if constexpr (kIsHalf<S>) {
    return narrow<S>(static_cast<float>(x));
  } else {
    return static_cast<S>(x);
  }
}

// Contiguous; a gradient is empty if the problem has no such input. dense, relative and edges have
// the strides of the problem's inputs.
template <class R>
struct NaiveResults {
  std::vector<R> context, lse, weights;  // weights before dropout, 0 outside the scope
  std::vector<R> query, key, value, vector, dense, slopes, sinks, relative, centres, widths, edges;
  std::vector<R> query_sums, key_sums, query_products, key_products;
  std::vector<R> alphas;
  // Sums of the absolute values of the terms, for sums over all rows that may nearly cancel.
  std::vector<R> vector_terms, slope_terms, sink_terms, alpha_terms, query_sum_terms, key_sum_terms;
  // Contribution of each row to the slopes and sinks of its head.
  std::vector<R> slope_rows, sink_rows;
  // Least distance of the scores of each row to a jump of the gradient, which sparsemax, softpick
  // and entmax from alpha 1.9 on have, or of the weights of top_k; infinite for other normalisers.
  std::vector<R> margin;
};

// Moves intermediate numbers randomly up or down by a few units in the last place of their terms:
// the permitted difference between two correct computations. If the step is large, equal numbers
// move the same way: equal keys keep equal scores in any computation. 0 moves nothing.
template <class R>
class Noise {
 public:
  Noise() = default;
  // operand_unit: for weights and score gradients as operands of products.
  Noise(double unit, uint64_t seed, double operand_unit = 0)
      : unit_(unit), operand_unit_(operand_unit), seed_(2 * seed + 1), engine_(seed) {}

  R of(R magnitude) { return move(magnitude, unit_); }
  R of_operand(R magnitude) { return operand_unit_ == 0 ? 0 : move(magnitude, operand_unit_); }
  bool none() const { return unit_ == 0; }

 private:
  R move(R magnitude, R unit) {
    if (unit_ == 0 || !std::isfinite(magnitude)) return 0;
    constexpr R kFar = R(1) / 1024;
    const R step = unit * magnitude;
    if (std::abs(step) < kFar) return engine_() % 2 == 0 ? step : -step;
    // A bit of a product with an odd number serves as a random bit.
    const uint64_t mixed = std::hash<R>{}(magnitude)*seed_ * 0x9e3779b97f4a7c15ULL;
    return mixed >> 63 ? step : -step;
  }

  R unit_ = 0, operand_unit_ = 0;
  uint64_t seed_ = 1;
  std::mt19937_64 engine_;
};

// f(x) and f'(x)
template <class R>
struct Activated {
  R value, slope;
};

template <class R>
Activated<R> activated(Activation activation, R negative_slope, R x) {
  switch (activation) {
    case Activation::tanh: {
      const R t = std::tanh(x);
      return {t, 1 - t * t};
    }
    case Activation::sigmoid: {
      const R r = 1 / (1 + std::exp(-x));
      return {r, r / (1 + std::exp(x))};
    }
    case Activation::relu:
      return {x <= 0 ? R(0) : x, R(x > 0)};
    case Activation::leaky_relu:
      if (negative_slope == 0) return activated<R>(Activation::relu, 0, x);
      return {x > 0 ? x : negative_slope * x, x > 0 ? R(1) : negative_slope};
  }
  return {};
}

// One dimension of a score: its value, its derivatives by q, k and v, the magnitude of its
// operands, and the share of that magnitude in the error of a small value.
template <class R>
struct ScoreTerm {
  R value = 0, by_query = 0, by_key = 0, by_vector = 0, magnitude = 0, share = 1;
};

template <class R, class T>
ScoreTerm<R> score_term(const Score<T>& score, R q, R k, R v) {
  switch (score.family) {
    case Family::dot:
      return {q * k, k, q, 0, std::abs(q * k)};
    case Family::additive: {
      const auto [f, slope] = activated<R>(score.activation, R(score.negative_slope), q + k);
      // tanh is flat past 19; before that its exponent is rounded.
      const R exponent = std::min<R>(19, std::abs(q) + std::abs(k));
      const bool bounded =
          score.activation == Activation::tanh || score.activation == Activation::sigmoid;
      const R size = bounded ? 2 + exponent / 4 : std::abs(q) + std::abs(k);
      // tanh is as small as its argument.
      const R share = score.activation == Activation::tanh ? std::min<R>(1, exponent) : R(1);
      return {v * f, v * slope, v * slope, f, std::abs(v) * size, share};
    }
    case Family::squared_distance: {
      // The kernels may expand it into terms up to four times as large.
      const R square = (q - k) * (q - k);
      return {-square, -2 * (q - k), 2 * (q - k), 0, 4 * square};
    }
    case Family::absolute_distance: {
      const R sign = R(q > k) - R(q < k);
      return {-std::abs(q - k), -sign, sign, 0, std::abs(q) + std::abs(k)};
    }
  }
  return {};
}

// The passes over one row. Upstream gradients and noise are optional: null, {}.
template <class R, class S>
class NaiveAttention {
 public:
  NaiveAttention(const Problem<S>& problem, const View<const S>& grad_context,
                 const Compute<S>* grad_lse, const Noise<R>& noise = {})
      : p_(problem), grad_context_(grad_context), grad_lse_(grad_lse), noise_(noise) {
    const int64_t rows = s_.batch * s_.heads * s_.queries, keys = s_.batch * s_.key_heads * s_.keys;
    r_.context.assign(rows * s_.value_depth, 0);
    r_.lse.assign(rows, 0);
    r_.weights.assign(rows * s_.keys, 0);
    r_.margin.assign(rows, std::numeric_limits<R>::infinity());
    r_.query.assign(rows * s_.depth, 0);
    r_.key.assign(keys * s_.depth, 0);
    r_.value.assign(keys * s_.value_depth, 0);
    if (has_vector()) r_.vector = r_.vector_terms = std::vector<R>(s_.heads * s_.depth, 0);
    if (b_.dense.data) r_.dense.assign(extent(b_.dense, s_.keys), 0);
    if (b_.slopes) {
      r_.slopes = r_.slope_terms = std::vector<R>(s_.heads, 0);
      r_.slope_rows = std::vector<R>(r_.lse.size(), 0);
    }
    if (b_.relative.data) r_.relative.assign(extent(b_.relative, b_.relative_count), 0);
    if (b_.centres) r_.centres = r_.widths = std::vector<R>(rows, 0);
    if (b_.query_sums) {
      r_.query_sums = r_.query_sum_terms = std::vector<R>(rows, 0);
      r_.key_sums = r_.key_sum_terms = std::vector<R>(s_.batch * s_.heads * s_.keys, 0);
    }
    if (b_.query_products) r_.query_products.assign(rows * b_.product_columns, 0);
    if (b_.key_products)
      r_.key_products.assign(s_.batch * s_.heads * s_.keys * b_.product_columns, 0);
    if (b_.edges.data) {
      lists_ = edge_scope(p_.scope)->lists;
      r_.edges.assign(extent(b_.edges, lists_.longest(s_)), 0);
    }
    if (p_.sinks) {
      r_.sinks = r_.sink_terms = std::vector<R>(s_.heads, 0);
      r_.sink_rows = std::vector<R>(r_.lse.size(), 0);
    }
    if (p_.alphas) r_.alphas = r_.alpha_terms = std::vector<R>(s_.heads, 0);
    by_sum_of_row_.assign(rows, 0);
    by_sum_of_key_.assign(keys, 0);
    if (p_.dropout.probability > 0) {
      mask_.resize(rows * s_.keys);
      dropout_mask(s_, p_.dropout, mask_.data());
    }
  }

  NaiveResults<R> run() {
    for (int64_t index = 0; index < s_.batch * s_.heads * s_.queries; ++index) {
      start(index);
      read_values();
      differentiate();
    }
    return std::move(r_);
  }

 private:
  template <class V>
  int64_t extent(const View<const V>& view, int64_t columns) const {
    return view.row(s_.batch - 1, s_.heads - 1, s_.queries - 1) - view.data + columns;
  }

  bool has_vector() const { return p_.score.family == Family::additive; }
  int64_t at_query(int64_t a) const { return index_ * s_.depth + a; }
  int64_t key_row(int64_t j) const { return (row_.batch * s_.key_heads + key_head_) * s_.keys + j; }
  int64_t at_key(int64_t j, int64_t a) const { return key_row(j) * s_.depth + a; }
  int64_t at_pair(int64_t j) const { return index_ * s_.keys + j; }
  const Compute<S>* dense(int64_t j) const {
    return b_.dense.row(row_.batch, row_.head, row_.query) + j;
  }
  const Compute<S>* relative(int64_t j) const {
    const int64_t ahead = (b_.key_positions ? b_.key_positions[j] : j) -
                          (b_.query_positions ? b_.query_positions[row_.query] : row_.query);
    return b_.relative.row(row_.batch, row_.head, row_.query) +
           std::clamp<int64_t>(ahead + b_.relative_offset, 0, b_.relative_count - 1);
  }
  const Compute<S>* edge(int64_t j) const {
    const int64_t* ends = lists_.row(row_);
    const int64_t* place = std::find(lists_.keys + ends[0], lists_.keys + ends[1], j);
    return b_.edges.row(row_.batch, row_.head, 0) + (place - lists_.keys) - ends[-row_.query];
  }
  int64_t at_key_sum(int64_t j) const { return (row_.batch * s_.heads + row_.head) * s_.keys + j; }
  int64_t column(int64_t j) const {
    return b_.columns[row_.batch * b_.columns_stride + j - row_.query + s_.queries - 1];
  }
  int64_t query_product(int64_t j) const { return index_ * b_.product_columns + column(j); }
  int64_t key_product(int64_t j) const { return at_key_sum(j) * b_.product_columns + column(j); }
  double sum_difference(int64_t j) const {
    return b_.query_sums[index_] - b_.key_sums[at_key_sum(j)];
  }
  R distance(int64_t j) const { return std::abs(R(row_.query + b_.slope_offset - j)); }
  R vector(int64_t a) const {
    return has_vector() ? R(p_.score.vector[row_.head * p_.score.vector_head_stride + a]) : R(0);
  }
  R grad_context(int64_t e) const {
    return number(grad_context_.row(row_.batch, row_.head, row_.query)[e]);
  }
  R value(int64_t j, int64_t e) const { return number(p_.value.row(row_.batch, key_head_, j)[e]); }
  R kept(int64_t j) const { return mask_.empty() ? R(1) : R(mask_[at_pair(j)]); }

  ScoreTerm<R> term(int64_t j, int64_t a) const {
    const R q = number(p_.query.row(row_.batch, row_.head, row_.query)[a]);
    return score_term<R>(p_.score, q, number(p_.key.row(row_.batch, key_head_, j)[a]), vector(a));
  }

  // The score before the soft cap.
  R plain_score(int64_t j) {
    R sum = 0, size = 0, ahead = 0, behind = 0;
    for (int64_t a = 0; a < s_.depth; ++a) {
      const ScoreTerm<R> t = term(j, a);
      sum += t.value;
      if (noise_.none()) continue;
      size = std::hypot(size, t.share * t.magnitude);
      (t.value > 0 ? ahead : behind) += std::abs(t.value);
    }
    const R scale = R(p_.score.scale), score = scale * sum;
    // If positive and negative terms overflow, the result depends on their order.
    if (std::isinf(ahead + behind) && ahead > 0 && behind > 0)
      return std::numeric_limits<R>::quiet_NaN();
    return score + noise_.of(2 * std::abs(score) + 2 * scale * size);
  }

  R capped(R score) const {
    const R cap = R(p_.score.soft_cap);
    return cap == 0 ? score : cap * std::tanh(score / cap);
  }

  R biased(int64_t j, R score) {
    // The relative error of an exponential is the absolute error of its exponent.
    R size = (p_.normaliser == Normaliser::none ? 0 : 1) + std::abs(score);
    const auto add = [&](R part) {
      score += part;
      size += std::abs(part);
    };
    if (b_.dense.data) add(*dense(j));
    if (b_.slopes) add(-R(b_.slopes[row_.head]) * distance(j));
    if (b_.relative.data) add(*relative(j));
    if (b_.edges.data) add(*edge(j));
    if (b_.centres) {
      const R off = (R(j) - b_.centres[index_]) / b_.widths[index_];
      add(-off * off / 2);
    }
    if (b_.query_sums) add(-R(std::abs(sum_difference(j))));
    if (b_.query_products) add(b_.query_products[query_product(j)]);
    if (b_.key_products) add(b_.key_products[key_product(j)]);
    return score + noise_.of(4 * size);
  }

  // Computes the scores of a row and its normaliser.
  void start(int64_t index) {
    index_ = index;
    row_ = {index / s_.queries / s_.heads, index / s_.queries % s_.heads, index % s_.queries};
    key_head_ = row_.head / (s_.heads / s_.key_heads);
    const R none = -std::numeric_limits<R>::infinity();
    plain_.assign(s_.keys, 0);
    scores_.assign(s_.keys, none);
    allowed_.assign(s_.keys, 0);
    for (int64_t j = 0; j < s_.keys; ++j) {
      allowed_[j] = sees(p_.scope, row_, j);
      if (!allowed_[j]) continue;
      plain_[j] = plain_score(j);
      scores_[j] = biased(j, capped(plain_[j]));
      allowed_[j] = scores_[j] != none;
    }
    rule_ = NaiveRule<R>(p_, row_.head);
    shift_ = normalise<R>(rule_, scores_, p_.sinks ? R(p_.sinks[row_.head]) : none);
    least_ = least_kept(rule_, scores_);
    r_.lse[index] = shift_.top + shift_.offset;
    for (const R s : scores_) r_.margin[index] = std::min(r_.margin[index], margin(s));
    // The kernels use the rounded value of an lse up to 256.
    shift_.offset += noise_.of(2 + 2 * std::min<R>(256, std::abs(shift_.top)));
  }

  // Distance of a score to the jump of its gradient.
  R margin(R score) const {
    if (rule_.is(Normaliser::softpick)) return std::abs(score);
    if (rule_.is(Normaliser::top_k))
      return score < least_ ? least_ - score : std::numeric_limits<R>::infinity();
    const bool jumps =
        rule_.is(Normaliser::sparsemax) || (rule_.is(Normaliser::entmax) && rule_.alpha > R(1.9));
    return jumps ? std::abs(score - shift_.top - shift_.offset)
                 : std::numeric_limits<R>::infinity();
  }

  void read_values() {
    weights_.assign(s_.keys, 0);
    by_weight_.assign(s_.keys, 0);
    const std::vector<R> found = weights_of(rule_, scores_, shift_, least_);
    for (int64_t j = 0; j < s_.keys; ++j) {
      if (!allowed_[j]) continue;
      R w = found[j];
      w += noise_.of(4 * w);
      r_.weights[at_pair(j)] = weights_[j] = w;
      const R used = w * kept(j) + noise_.of_operand(w * kept(j));
      R squares = 0;
      for (int64_t e = 0; e < s_.value_depth; ++e) {
        const R g = grad_context(e), v = value(j, e);
        r_.context[index_ * s_.value_depth + e] += used * v;
        r_.value[key_row(j) * s_.value_depth + e] += used * g;
        by_weight_[j] += g * v * kept(j);
        squares += g * g * v * v;
      }
      if (!noise_.none()) by_weight_[j] += noise_.of(2 * kept(j) * std::sqrt(squares));
    }
  }

  // The kernels compute sum_j w_j dw_j from the context.
  R mean_error() {
    R squares = 0;
    for (int64_t e = 0; e < s_.value_depth && !noise_.none(); ++e)
      squares += std::pow(grad_context(e) * r_.context[index_ * s_.value_depth + e], 2);
    R operands = 0;
    for (int64_t j = 0; j < s_.keys && !noise_.none(); ++j)
      operands += std::pow(weights_[j] * by_weight_[j], 2);
    return noise_.of(std::sqrt(squares)) + noise_.of_operand(std::sqrt(operands));
  }

  void differentiate() {
    const R error = mean_error(), by_lse = grad_lse_ ? R(grad_lse_[index_]) : R(0);
    const std::vector<R> gradient = by_scores(error, by_lse);
    if (p_.alphas) {
      const R by_alpha = alpha_gradient(rule_.alpha, weights_, by_weight_, by_lse);
      r_.alphas[row_.head] += by_alpha;
      r_.alpha_terms[row_.head] += std::abs(by_alpha);
    }
    if (p_.sinks) {
      R mean = error;
      for (int64_t j = 0; j < s_.keys; ++j) mean += weights_[j] * by_weight_[j];
      const R above = R(p_.sinks[row_.head]) - shift_.top - shift_.offset;
      const R by_sink = std::exp(above) * (by_lse - mean);
      r_.sinks[row_.head] += by_sink;
      r_.sink_rows[index_] = by_sink;
      r_.sink_terms[row_.head] += std::abs(by_sink);
    }
    for (int64_t j = 0; j < s_.keys; ++j) {
      if (allowed_[j]) differentiate_pair(j, gradient[j] + noise_.of(4 * gradient[j]));
    }
  }

  std::vector<R> by_scores(R error, R by_lse) const {
    if (rule_.is(Normaliser::stick_breaking)) return stick_gradients(scores_, weights_, by_weight_);
    if (!rule_.is(Normaliser::softpick))
      return score_gradients<R>(rule_, weights_, by_weight_, allowed_, error, by_lse);
    R mean = error;
    for (int64_t j = 0; j < s_.keys; ++j) mean += weights_[j] * by_weight_[j];
    return softpick_gradients(scores_, shift_, by_weight_, mean - by_lse);
  }

  void differentiate_pair(int64_t j, R ds) {
    if (b_.dense.data) r_.dense[dense(j) - b_.dense.data] += ds;
    if (b_.slopes) {
      r_.slopes[row_.head] -= ds * distance(j);
      r_.slope_rows[index_] -= ds * distance(j);
      r_.slope_terms[row_.head] += std::abs(ds) * distance(j);
    }
    if (b_.relative.data) r_.relative[relative(j) - b_.relative.data] += ds;
    if (b_.edges.data) r_.edges[edge(j) - b_.edges.data] += ds;
    if (b_.query_products) r_.query_products[query_product(j)] += ds;
    if (b_.key_products) r_.key_products[key_product(j)] += ds;
    if (b_.query_sums) {
      const R slope = sum_difference(j) > 0 ? -ds : ds;
      r_.query_sums[index_] += slope;
      r_.key_sums[at_key_sum(j)] -= slope;
      r_.query_sum_terms[index_] += std::abs(ds);
      r_.key_sum_terms[at_key_sum(j)] += std::abs(ds);
    }
    if (b_.centres) {
      const R w = b_.widths[index_], off = R(j) - b_.centres[index_];
      r_.centres[index_] += ds * off / (w * w);
      r_.widths[index_] += ds * off * off / (w * w * w);
    }
    const R cap = R(p_.score.soft_cap), t = cap == 0 ? R(0) : std::tanh(plain_[j] / cap);
    const R by_sum = ds * (1 - t * t + noise_.of(cap == 0 ? R(0) : R(4))) * R(p_.score.scale);
    for (R* sum : {&by_sum_, &by_sum_of_row_[index_], &by_sum_of_key_[key_row(j)]}) *sum += by_sum;
    const R operand = by_sum + noise_.of_operand(by_sum);
    for (int64_t a = 0; a < s_.depth; ++a) {
      const ScoreTerm<R> by = term(j, a);
      r_.query[at_query(a)] += operand * by.by_query;
      r_.key[at_key(j, a)] += operand * by.by_key;
      if (!has_vector()) continue;
      r_.vector[row_.head * s_.depth + a] += by_sum * by.by_vector;
      r_.vector_terms[row_.head * s_.depth + a] += std::abs(by_sum * by.by_vector);
      if (!noise_.none()) disturb(j, a, by_sum, by);
    }
  }

  // With r = 1 / (1 + e^(2 x)), tanh is 1 - 2 r and its derivative 4 (r - r^2). Each has an error
  // of a few units of 1. Their sums have errors of a few units of the sums of their parts, which
  // are as large as the sums of ds. Only tanh itself is more exact near 0.
  void disturb(int64_t j, int64_t a, R by_sum, const ScoreTerm<R>& by) {
    r_.vector[row_.head * s_.depth + a] +=
        by.share * (noise_.of(8 * by_sum) + noise_.of(2 * by_sum_));
    const R rough = noise_.of(4 * by_sum * by.magnitude), v = 4 * vector(a);
    r_.query[at_query(a)] += rough + noise_.of(v * by_sum_of_row_[index_]);
    r_.key[at_key(j, a)] += rough + noise_.of(v * by_sum_of_key_[key_row(j)]);
  }

  const Problem<S>& p_;
  const Shape& s_ = p_.shape;
  const Bias<Compute<S>>& b_ = p_.bias;
  View<const S> grad_context_;
  const Compute<S>* grad_lse_;
  Noise<R> noise_;
  NaiveResults<R> r_;
  EdgeLists lists_;  // set if edges have a bias
  std::vector<Compute<S>> mask_;
  int64_t index_ = 0, key_head_ = 0;  // current row
  Row row_;
  NaiveRule<R> rule_{p_, 0};
  NaiveShift<R> shift_ = {};
  R least_ = 0;   // least score that top_k keeps
  R by_sum_ = 0;  // sums of the gradients by uncapped scores: all, per row, per key
  std::vector<R> by_sum_of_row_, by_sum_of_key_;
  std::vector<R> plain_, scores_, weights_, by_weight_;
  std::vector<uint8_t> allowed_;
};

}  // namespace attend::kernels
