#pragma once

#include <utility>

#include "tests/kernels/case.h"
#include "tests/kernels/reference_normaliser.h"
#include "tests/kernels/reference_scope.h"

// Attention as its formula says, one number at a time: the oracle of the kernel tests.

namespace attend::kernels::testing {

template <class R>
struct Reference {
  std::vector<R> context, lse, weights;  // weights before dropout
  std::vector<R> query, key, value, vector, dense, slopes, sinks, relative, centres, widths;
};

// Moves the numbers between the steps by a few units in the last place of the terms that they are
// sums of, at random up or down: what may differ between two right ways to compute the same. 0
// leaves them alone.
template <class R>
class Noise {
 public:
  Noise(double unit, double storage_unit, uint64_t seed)
      : unit_(unit), storage_unit_(storage_unit), engine_(seed) {}

  R of(R magnitude) { return sign() * unit_ * magnitude; }
  R of_storage(R magnitude) { return sign() * storage_unit_ * magnitude; }
  bool none() const { return unit_ == 0; }

 private:
  R sign() { return unit_ == 0 ? 0 : engine_() % 2 == 0 ? R(1) : R(-1); }

  R unit_, storage_unit_;
  std::mt19937_64 engine_;
};

// f(x) and f'(x) of the additive family.
template <class R>
std::pair<R, R> activate(const Score<double>& score, R x) {
  switch (score.activation) {
    case Activation::tanh: {
      const R t = std::tanh(x);
      return {t, 1 - t * t};
    }
    case Activation::sigmoid: {
      const R r = 1 / (1 + std::exp(-x));
      return {r, r / (1 + std::exp(x))};
    }
    case Activation::relu:
      return {x > 0 ? x : R(0) * x, R(x > 0)};
    case Activation::leaky_relu:
      return {x > 0 ? x : R(score.negative_slope) * x, x > 0 ? R(1) : R(score.negative_slope)};
  }
  return {};
}

// One dimension of a score: its value, derivatives by q, k and v, and how large the numbers are
// that it is computed from.
template <class R>
struct Term {
  R value = 0, by_query = 0, by_key = 0, by_vector = 0, magnitude = 0;
};

template <class R>
Term<R> score_term(const Score<double>& score, R q, R k, R v) {
  switch (score.family) {
    case Family::dot:
      return {q * k, k, q, 0, std::abs(q * k)};
    case Family::additive: {
      const auto [f, slope] = activate(score, q + k);
      // tanh is flat past 19; before that its exponent is rounded
      const R exponent = std::min<R>(19, std::abs(q) + std::abs(k));
      const bool bounded =
          score.activation == Activation::tanh || score.activation == Activation::sigmoid;
      const R size = bounded ? 2 + exponent / 4 : std::abs(q) + std::abs(k);
      return {v * f, v * slope, v * slope, f, std::abs(v) * size};
    }
    case Family::squared_distance: {
      const R size = std::abs(q) + std::abs(k);
      return {-(q - k) * (q - k), -2 * (q - k), 2 * (q - k), 0, size * size};
    }
    case Family::absolute_distance: {
      const R sign = R(q > k) - R(q < k);
      return {-std::abs(q - k), -sign, sign, 0, std::abs(q) + std::abs(k)};
    }
  }
  return {};
}

// The passes over one row.
template <class R>
class ReferenceRows {
 public:
  ReferenceRows(const Case<R, R>& c, Noise<R> noise) : c_(c), noise_(noise) {
    const int64_t rows = c.rows();
    r_.context.assign(rows * s_.value_depth, 0);
    r_.lse.assign(rows, -std::numeric_limits<R>::infinity());
    r_.weights.assign(rows * s_.keys, 0);
    r_.query.assign(c.query.size(), 0);
    r_.key.assign(c.key.size(), 0);
    r_.value.assign(c.value.size(), 0);
    r_.vector.assign(c.vector.empty() ? 0 : s_.heads * s_.depth, 0);
    sums_.assign(1 + rows + s_.batch * s_.key_heads * s_.keys, 0);
    r_.dense.assign(c.dense.size(), 0);
    r_.slopes.assign(c.slopes.size(), 0);
    r_.sinks.assign(c.sinks.size(), 0);
    r_.relative.assign(c.relative.size(), 0);
    r_.centres.assign(c.centres.size(), 0);
    r_.widths.assign(c.widths.size(), 0);
  }

  Reference<R> run() {
    for (int64_t index = 0; index < c_.rows(); ++index) {
      start(index);
      read_values();
      differentiate();
    }
    return std::move(r_);
  }

 private:
  int64_t at_query(int64_t a) const { return index_ * s_.depth + a; }
  int64_t at_key(int64_t j, int64_t a) const { return (first_key_ + j) * s_.depth + a; }
  int64_t at_value(int64_t j, int64_t e) const { return (first_key_ + j) * s_.value_depth + e; }
  int64_t at_vector(int64_t a) const { return (c_.shared_vector ? 0 : h_ * s_.depth) + a; }
  int64_t at_pair(int64_t j) const { return index_ * s_.keys + j; }
  int64_t at_dense(int64_t j) const { return c_.dense_axes.at(s_, s_.keys, {b_, h_, i_}) + j; }
  int64_t at_relative(int64_t j) const {
    const int64_t ahead = (c_.key_positions.empty() ? j : c_.key_positions[j]) -
                          (c_.query_positions.empty() ? i_ : c_.query_positions[i_]);
    const int64_t bucket =
        std::clamp<int64_t>(ahead + c_.relative_offset, 0, c_.relative_count - 1);
    return c_.relative_axes.at(s_, c_.relative_count, {b_, h_, i_}) + bucket;
  }
  R distance(int64_t j) const { return std::abs(R(i_ + c_.slope_offset - j)); }

  Term<R> term(int64_t j, int64_t a) const {
    return score_term<R>(c_.score, c_.query[at_query(a)], c_.key[at_key(j, a)],
                         c_.vector.empty() ? R(0) : c_.vector[at_vector(a)]);
  }

  // The score before and after the cap.
  std::pair<R, R> capped(int64_t j) {
    R sum = 0, squares = 0;
    for (int64_t a = 0; a < s_.depth; ++a) {
      const Term<R> t = term(j, a);
      sum += t.value;
      squares += t.magnitude * t.magnitude;
    }
    R score = R(c_.score.scale) * sum;
    if (!noise_.none())
      score += noise_.of(2 * std::abs(score) + 2 * R(c_.score.scale) * std::sqrt(squares));
    const R cap = R(c_.score.soft_cap);
    return {score, cap == 0 ? score : cap * std::tanh(score / cap)};
  }

  R biased(int64_t j, R score) {
    R size = 1 + std::abs(score);
    const auto add = [&](R part) {
      score += part;
      size += std::abs(part);
    };
    if (!c_.dense.empty()) add(c_.dense[at_dense(j)]);
    if (!c_.slopes.empty()) add(-c_.slopes[h_] * distance(j));
    if (!c_.relative.empty()) add(c_.relative[at_relative(j)]);
    if (!c_.centres.empty()) {
      const R off = (R(j) - c_.centres[index_]) / c_.widths[index_];
      add(-off * off / 2);
    }
    return score + noise_.of(4 * size);
  }

  void start(int64_t index) {
    index_ = index;
    i_ = index % s_.queries;
    h_ = index / s_.queries % s_.heads;
    b_ = index / s_.queries / s_.heads;
    first_key_ = (b_ * s_.key_heads + h_ / (s_.heads / s_.key_heads)) * s_.keys;
    const R none = -std::numeric_limits<R>::infinity();
    raw_.assign(s_.keys, 0);
    scores_.assign(s_.keys, none);
    allowed_.assign(s_.keys, 0);
    for (int64_t j = 0; j < s_.keys; ++j) {
      allowed_[j] = sees(c_.scope, {b_, h_, i_}, j);
      if (!allowed_[j]) continue;
      const auto [raw, score] = capped(j);
      raw_[j] = raw;
      scores_[j] = biased(j, score);
    }
    lse_ = normalise<R>(c_.normaliser, scores_, c_.sinks.empty() ? none : c_.sinks[h_]);
    r_.lse[index] = lse_;
    if (std::isfinite(lse_)) lse_ += noise_.of(2 + 2 * std::abs(lse_));
  }

  R kept(int64_t j) const { return c_.dropped.empty() ? R(1) : c_.dropped[at_pair(j)]; }

  void read_values() {
    weights_.assign(s_.keys, 0);
    by_weight_.assign(s_.keys, 0);
    for (int64_t j = 0; j < s_.keys; ++j) {
      if (!allowed_[j]) continue;
      R w = weight<R>(c_.normaliser, scores_[j], lse_);
      w += noise_.of(4 * w);
      r_.weights[at_pair(j)] = weights_[j] = w;
      const R used = w * kept(j);
      R squares = 0;
      for (int64_t e = 0; e < s_.value_depth; ++e) {
        const R g = c_.grad_context[index_ * s_.value_depth + e], v = c_.value[at_value(j, e)];
        r_.context[index_ * s_.value_depth + e] += used * v;
        r_.value[at_value(j, e)] += used * g;
        by_weight_[j] += g * v * kept(j);
        squares += g * g * v * v;
      }
      if (!noise_.none()) by_weight_[j] += noise_.of(2 * kept(j) * std::sqrt(squares));
    }
  }

  // The kernels take sum_j w_j dw_j from the context as it is stored.
  R mean_error() {
    R squares = 0;
    for (int64_t e = 0; e < s_.value_depth && !noise_.none(); ++e) {
      const int64_t at = index_ * s_.value_depth + e;
      squares += std::pow(c_.grad_context[at] * r_.context[at], 2);
    }
    return noise_.of_storage(std::sqrt(squares));
  }

  void differentiate() {
    const R error = mean_error(), by_lse = c_.grad_lse[index_];
    const std::vector<R> gradient =
        score_gradients<R>(c_.normaliser, weights_, by_weight_, allowed_, error, by_lse);
    if (!c_.sinks.empty()) {
      R mean = error;
      for (int64_t j = 0; j < s_.keys; ++j) mean += weights_[j] * by_weight_[j];
      r_.sinks[h_] += std::exp(c_.sinks[h_] - lse_) * (by_lse - mean);
    }
    for (int64_t j = 0; j < s_.keys; ++j) {
      if (allowed_[j]) differentiate_pair(j, gradient[j] + noise_.of(4 * gradient[j]));
    }
  }

  void differentiate_pair(int64_t j, R ds) {
    if (!c_.dense.empty()) r_.dense[at_dense(j)] += ds;
    if (!c_.slopes.empty()) r_.slopes[h_] -= ds * distance(j);
    if (!c_.relative.empty()) r_.relative[at_relative(j)] += ds;
    if (!c_.centres.empty()) {
      const R w = c_.widths[index_], off = R(j) - c_.centres[index_];
      r_.centres[index_] += ds * off / (w * w);
      r_.widths[index_] += ds * off * off / (w * w * w);
    }
    const R cap = R(c_.score.soft_cap), t = cap == 0 ? R(0) : std::tanh(raw_[j] / cap);
    const R scaled = ds * (1 - t * t + noise_.of(cap == 0 ? R(0) : R(4))) * R(c_.score.scale);
    for (const int64_t at : {int64_t{0}, 1 + index_, 1 + c_.rows() + first_key_ + j})
      sums_[at] += scaled;
    for (int64_t a = 0; a < s_.depth; ++a) {
      const Term<R> part = term(j, a);
      r_.query[at_query(a)] += scaled * part.by_query;
      r_.key[at_key(j, a)] += scaled * part.by_key;
      if (c_.vector.empty()) continue;
      r_.vector[h_ * s_.depth + a] += scaled * part.by_vector;
      if (!noise_.none()) disturb(j, a, scaled, part.magnitude);
    }
  }

  // With r = 1 / (1 + e^(2 x)), tanh is 1 - 2 r and its derivative 4 (r - r^2): each is good to a
  // few units of 1, and the sums over them to as many of the sums of their parts, which are as
  // large as the sums of ds.
  void disturb(int64_t j, int64_t a, R scaled, R magnitude) {
    r_.vector[h_ * s_.depth + a] += noise_.of(8 * scaled) + noise_.of(2 * sums_[0]);
    const R rough = noise_.of(4 * scaled * magnitude), v = 4 * c_.vector[at_vector(a)];
    r_.query[at_query(a)] += rough + noise_.of(v * sums_[1 + index_]);
    r_.key[at_key(j, a)] += rough + noise_.of(v * sums_[1 + c_.rows() + first_key_ + j]);
  }

  const Case<R, R>& c_;
  const Shape& s_ = c_.shape;
  Noise<R> noise_;
  Reference<R> r_;
  int64_t index_ = 0, i_ = 0, h_ = 0, b_ = 0;  // of the row, its query, head and batch entry
  int64_t first_key_ = 0;                      // row of its key 0 among all keys
  R lse_ = 0;
  std::vector<R> sums_;  // of the gradients by the scores: all, each row's, each key's
  std::vector<R> raw_, scores_, weights_, by_weight_;
  std::vector<uint8_t> allowed_;
};

template <class R>
Reference<R> reference(const Case<R, R>& c, const Noise<R>& noise = {0, 0, 1}) {
  return ReferenceRows<R>(c, noise).run();
}

}  // namespace attend::kernels::testing
