#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "attend/kernels/attention.h"

// Attention as its formula says, one number at a time in fp64: the oracle of the kernel tests.

namespace attend::kernels::testing {

struct Reference {
  std::vector<double> context, lse, weights;                          // forward
  std::vector<double> grad_query, grad_key, grad_value, grad_vector;  // backward
  std::vector<double> grad_bias, grad_slopes, grad_sinks;
};

// Inputs of a problem as the kernel sees them, contiguous, and the same numbers in fp64.
template <class T>
struct Case {
  Shape shape;
  Score<T> score;
  Scope scope;
  std::vector<T> query, key, value, vector, grad_context, grad_lse;
  std::vector<T> bias, slopes, sinks;  // empty: none; bias [heads, queries, keys], one batch entry

  Problem<T> problem() const {
    Problem<T> p;
    p.shape = shape;
    p.score = score;
    p.scope = scope;
    if (!bias.empty()) p.bias.dense = {bias.data(), 0, shape.queries * shape.keys, shape.keys};
    if (!slopes.empty()) p.bias.slopes = slopes.data();
    p.bias.slope_offset = 3;
    if (!sinks.empty()) p.sinks = sinks.data();
    p.score.vector = vector.data();
    p.score.vector_head_stride = shape.depth;
    p.query = contiguous(query.data(), shape.heads, shape.queries, shape.depth);
    p.key = contiguous(key.data(), shape.key_heads, shape.keys, shape.depth);
    p.value = contiguous(value.data(), shape.key_heads, shape.keys, shape.value_depth);
    return p;
  }
};

template <class T>
std::vector<T> random_numbers(int64_t count, double deviation, uint64_t seed) {
  std::mt19937_64 engine(seed);
  std::normal_distribution<double> normal(0, deviation);
  std::vector<T> numbers(count);
  for (T& x : numbers) x = static_cast<T>(normal(engine));
  return numbers;
}

template <class T>
Case<T> random_case(const Shape& s, Family family, double deviation = 1, uint64_t seed = 1) {
  Case<T> c;
  c.shape = s;
  c.score.family = family;
  c.score.scale = 1 / std::sqrt(double(std::max<int64_t>(1, s.depth)));
  c.query = random_numbers<T>(s.batch * s.heads * s.queries * s.depth, deviation, seed);
  c.key = random_numbers<T>(s.batch * s.key_heads * s.keys * s.depth, deviation, seed + 1);
  c.value = random_numbers<T>(s.batch * s.key_heads * s.keys * s.value_depth, 1, seed + 2);
  c.vector = random_numbers<T>(s.heads * s.depth, 1, seed + 3);
  c.grad_context = random_numbers<T>(s.batch * s.heads * s.queries * s.value_depth, 1, seed + 4);
  c.grad_lse = random_numbers<T>(s.batch * s.heads * s.queries, 1, seed + 5);
  return c;
}

inline double pair_score(Family family, double scale, const double* q, const double* k,
                         const double* v, int64_t depth) {
  double sum = 0;
  for (int64_t a = 0; a < depth; ++a) {
    sum += family == Family::dot ? q[a] * k[a] : v[a] * std::tanh(q[a] + k[a]);
  }
  return scale * sum;
}

// The inputs as doubles, and the passes over one row.
template <class T>
struct ReferenceRows {
  const Case<T>& c;
  const Shape& s = c.shape;
  std::vector<double> q{c.query.begin(), c.query.end()}, k{c.key.begin(), c.key.end()},
      v{c.value.begin(), c.value.end()}, u{c.vector.begin(), c.vector.end()},
      dout{c.grad_context.begin(), c.grad_context.end()},
      dlse{c.grad_lse.begin(), c.grad_lse.end()};
  Reference r = {};

  struct Row {
    int64_t index, i, h, b;  // of the row; its query, head and batch
    int64_t first_key;       // row of its key 0 among all keys
    std::vector<double> p;   // scores, then weights
    double mean = 0;         // sum_j p_j dp_j
    std::vector<double> dp;  // derivative by the weights
  };

  double distance(const Row& row, int64_t j) const { return std::abs(double(row.i + 3 - j)); }

  Row scores(int64_t index) const {
    Row row;
    row.index = index;
    row.i = index % s.queries;
    row.h = index / s.queries % s.heads;
    row.b = index / s.queries / s.heads;
    row.first_key = (row.b * s.key_heads + row.h / (s.heads / s.key_heads)) * s.keys;
    row.p.assign(s.keys, -std::numeric_limits<double>::infinity());
    row.dp.assign(s.keys, 0);
    for (int64_t j = 0; j < s.keys; ++j) {
      if (!in_scope(c.scope, {row.b, row.h, row.i}, j)) continue;
      row.p[j] =
          pair_score(c.score.family, c.score.scale, q.data() + index * s.depth,
                     k.data() + (row.first_key + j) * s.depth, u.data() + row.h * s.depth, s.depth);
      if (!c.bias.empty()) row.p[j] += c.bias[(row.h * s.queries + row.i) * s.keys + j];
      if (!c.slopes.empty()) row.p[j] -= c.slopes[row.h] * distance(row, j);
    }
    return row;
  }

  // false: no key is in scope.
  bool normalise(Row& row) {
    double top = -std::numeric_limits<double>::infinity(), sum = 0;
    for (const double x : row.p) top = std::max(top, x);
    if (!c.sinks.empty()) top = std::max(top, double(c.sinks[row.h]));
    if (top == -std::numeric_limits<double>::infinity()) return false;
    if (!c.sinks.empty()) sum = std::exp(c.sinks[row.h] - top);
    for (double& x : row.p) sum += x = std::exp(x - top);
    for (double& x : row.p) x /= sum;
    r.lse[row.index] = top + std::log(sum);
    return true;
  }

  void read_values(Row& row) {
    for (int64_t j = 0; j < s.keys; ++j) {
      r.weights[row.index * s.keys + j] = row.p[j];
      for (int64_t e = 0; e < s.value_depth; ++e) {
        const double g = dout[row.index * s.value_depth + e];
        const double value = v[(row.first_key + j) * s.value_depth + e];
        r.context[row.index * s.value_depth + e] += row.p[j] * value;
        r.grad_value[(row.first_key + j) * s.value_depth + e] += row.p[j] * g;
        row.dp[j] += g * value;
      }
      row.mean += row.p[j] * row.dp[j];
    }
  }

  void differentiate(const Row& row) {
    if (!c.sinks.empty())
      r.grad_sinks[row.h] +=
          std::exp(c.sinks[row.h] - r.lse[row.index]) * (dlse[row.index] - row.mean);
    for (int64_t j = 0; j < s.keys; ++j) {
      const double ds = row.p[j] * (row.dp[j] - row.mean + dlse[row.index]);
      if (!c.bias.empty()) r.grad_bias[(row.h * s.queries + row.i) * s.keys + j] += ds;
      if (!c.slopes.empty()) r.grad_slopes[row.h] -= ds * distance(row, j);
      differentiate_score(row, j, ds * c.score.scale);
    }
  }

  void differentiate_score(const Row& row, int64_t j, double ds) {
    for (int64_t a = 0; a < s.depth; ++a) {
      const int64_t at_query = row.index * s.depth + a;
      const int64_t at_key = (row.first_key + j) * s.depth + a;
      if (c.score.family == Family::dot) {
        r.grad_query[at_query] += ds * k[at_key];
        r.grad_key[at_key] += ds * q[at_query];
        continue;
      }
      const double t = std::tanh(q[at_query] + k[at_key]);
      const double slope = ds * u[row.h * s.depth + a] * (1 - t * t);
      r.grad_query[at_query] += slope;
      r.grad_key[at_key] += slope;
      r.grad_vector[row.h * s.depth + a] += ds * t;
    }
  }
};

template <class T>
Reference reference(const Case<T>& c) {
  ReferenceRows<T> rows{c};
  Reference& r = rows.r;
  r.context.assign(rows.dout.size(), 0);
  r.lse.assign(rows.dlse.size(), -std::numeric_limits<double>::infinity());
  r.weights.assign(rows.dlse.size() * c.shape.keys, 0);
  r.grad_query.assign(rows.q.size(), 0);
  r.grad_key.assign(rows.k.size(), 0);
  r.grad_value.assign(rows.v.size(), 0);
  r.grad_vector.assign(rows.u.size(), 0);
  r.grad_bias.assign(c.bias.size(), 0);
  r.grad_slopes.assign(c.slopes.size(), 0);
  r.grad_sinks.assign(c.sinks.size(), 0);
  for (int64_t index = 0; index < c.shape.batch * c.shape.heads * c.shape.queries; ++index) {
    auto row = rows.scores(index);
    if (!rows.normalise(row)) continue;
    rows.read_values(row);
    rows.differentiate(row);
  }
  return r;
}

}  // namespace attend::kernels::testing
