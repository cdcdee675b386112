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
    Problem<T> p{shape, score, scope, {}, nullptr, {}, {}, {}};
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
  c.score = {family, 1 / std::sqrt(double(std::max<int64_t>(1, s.depth))), nullptr, 0};
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

template <class T>
Reference reference(const Case<T>& c) {
  const Shape& s = c.shape;
  const std::vector<double> q(c.query.begin(), c.query.end()), k(c.key.begin(), c.key.end()),
      v(c.value.begin(), c.value.end()), u(c.vector.begin(), c.vector.end()),
      dout(c.grad_context.begin(), c.grad_context.end()),
      dlse(c.grad_lse.begin(), c.grad_lse.end());
  Reference r;
  r.context.assign(dout.size(), 0);
  r.lse.assign(dlse.size(), -std::numeric_limits<double>::infinity());
  r.weights.assign(dlse.size() * s.keys, 0);
  r.grad_query.assign(q.size(), 0);
  r.grad_key.assign(k.size(), 0);
  r.grad_value.assign(v.size(), 0);
  r.grad_vector.assign(u.size(), 0);
  r.grad_bias.assign(c.bias.size(), 0);
  r.grad_slopes.assign(c.slopes.size(), 0);
  r.grad_sinks.assign(c.sinks.size(), 0);
  for (int64_t row = 0; row < s.batch * s.heads * s.queries; ++row) {
    const int64_t i = row % s.queries, h = row / s.queries % s.heads, b = row / s.queries / s.heads;
    const int64_t kv = (b * s.key_heads + h / (s.heads / s.key_heads)) * s.keys;
    const double* qi = q.data() + row * s.depth;
    const double* uh = u.data() + h * s.depth;
    std::vector<double> p(s.keys, -std::numeric_limits<double>::infinity());
    double top = -std::numeric_limits<double>::infinity(), sum = 0;
    for (int64_t j = 0; j < s.keys; ++j) {
      if (!in_scope(c.scope, {b, h, i}, j)) continue;
      p[j] =
          pair_score(c.score.family, c.score.scale, qi, k.data() + (kv + j) * s.depth, uh, s.depth);
      if (!c.bias.empty()) p[j] += c.bias[(h * s.queries + i) * s.keys + j];
      if (!c.slopes.empty()) p[j] -= c.slopes[h] * std::abs(double(i + 3 - j));
      top = std::max(top, p[j]);
    }
    if (!c.sinks.empty()) top = std::max(top, double(c.sinks[h]));
    if (top == -std::numeric_limits<double>::infinity()) continue;
    if (!c.sinks.empty()) sum = std::exp(c.sinks[h] - top);
    for (double& x : p) sum += x = std::exp(x - top);
    r.lse[row] = top + std::log(sum);
    double mean = 0;
    std::vector<double> dp(s.keys, 0);
    for (int64_t j = 0; j < s.keys; ++j) {
      p[j] /= sum;
      r.weights[row * s.keys + j] = p[j];
      for (int64_t e = 0; e < s.value_depth; ++e) {
        const double g = dout[row * s.value_depth + e];
        r.context[row * s.value_depth + e] += p[j] * v[(kv + j) * s.value_depth + e];
        r.grad_value[(kv + j) * s.value_depth + e] += p[j] * g;
        dp[j] += g * v[(kv + j) * s.value_depth + e];
      }
      mean += p[j] * dp[j];
    }
    if (!c.sinks.empty()) {
      r.grad_sinks[h] += std::exp(c.sinks[h] - r.lse[row]) * (dlse[row] - mean);
    }
    for (int64_t j = 0; j < s.keys; ++j) {
      double ds = p[j] * (dp[j] - mean + dlse[row]);
      if (!c.bias.empty()) r.grad_bias[(h * s.queries + i) * s.keys + j] += ds;
      if (!c.slopes.empty()) r.grad_slopes[h] -= ds * std::abs(double(i + 3 - j));
      ds *= c.score.scale;
      for (int64_t a = 0; a < s.depth; ++a) {
        const double x = qi[a], y = k[(kv + j) * s.depth + a];
        double& dq = r.grad_query[row * s.depth + a];
        double& dk = r.grad_key[(kv + j) * s.depth + a];
        if (c.score.family == Family::dot) {
          dq += ds * y;
          dk += ds * x;
        } else {
          const double t = std::tanh(x + y);
          dq += ds * uh[a] * (1 - t * t);
          dk += ds * uh[a] * (1 - t * t);
          r.grad_vector[h * s.depth + a] += ds * t;
        }
      }
    }
  }
  return r;
}

}  // namespace attend::kernels::testing
