#pragma once

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "attend/kernels/recurrence.h"

// Linear recurrences token by token, in any arithmetic, and drawn cases.

namespace attend::kernels::testing {

// Inputs of a case, contiguous; offsets empty: one sequence per batch entry.
template <class T>
struct RecurrenceArrays {
  std::vector<T> query, key, value, decay, strength, initial, grad_output, grad_last;
};

struct RecurrenceCase {
  RecurrenceShape shape;
  bool delta = false, normalise = false, has_strength = true, has_initial = true;
  double scale = 1;
  std::vector<int64_t> offsets = {};
  RecurrenceArrays<double> arrays = {};

  int64_t sequences() const {
    return offsets.empty() ? shape.batch : static_cast<int64_t>(offsets.size()) - 1;
  }
  int64_t rows() const { return shape.batch * shape.heads * shape.tokens; }
  int64_t key_rows() const { return shape.batch * shape.key_heads * shape.tokens; }
  int64_t states() const { return sequences() * shape.heads * shape.depth * shape.value_depth; }
};

// Results and gradients. Gradients of queries and keys have one row per head.
template <class T>
struct RecurrenceResults {
  std::vector<T> output, last, query, key, value, decay, strength, initial;
};

template <class T, class From>
std::vector<T> numbers_of(const std::vector<From>& from) {
  return {from.begin(), from.end()};
}

// One sequence of one head in the arithmetic T.
template <class T>
class RecurrenceLoop {
 public:
  RecurrenceLoop(const RecurrenceCase& c, RecurrenceResults<T>& to) : c_(c), s_(c.shape), to_(to) {
    const auto& a = c.arrays;
    in_ = {numbers_of<T>(a.query),       numbers_of<T>(a.key),      numbers_of<T>(a.value),
           numbers_of<T>(a.decay),       numbers_of<T>(a.strength), numbers_of<T>(a.initial),
           numbers_of<T>(a.grad_output), numbers_of<T>(a.grad_last)};
    const auto sized = [](std::vector<T>& x, int64_t count) { x.assign(count, T(0)); };
    sized(to.output, c.rows() * s_.value_depth);
    sized(to.last, c.states());
    sized(to.query, c.rows() * s_.depth);
    sized(to.key, c.rows() * s_.depth);
    sized(to.value, c.rows() * s_.value_depth);
    sized(to.decay, c.rows() * s_.decay_depth);
    sized(to.strength, c.rows());
    sized(to.initial, c.states());
    for (int64_t sequence = 0; sequence < c.sequences(); ++sequence)
      for (int64_t head = 0; head < s_.heads; ++head) run(sequence, head);
  }

 private:
  struct Token {
    std::vector<T> q, k, f, w, before, decayed, after;
    T q_norm, k_norm, b;
  };

  // Row of an array with `heads` heads.
  int64_t row_of(int64_t head, int64_t heads, int64_t t) const {
    return (batch_ * heads + head) * s_.tokens + t;
  }

  std::vector<T> vector(const std::vector<T>& from, int64_t row, T& norm) const {
    std::vector<T> x(from.begin() + row * s_.depth, from.begin() + (row + 1) * s_.depth);
    norm = 1;
    if (!c_.normalise) return x;
    T sum = T(1e-6);
    for (const T y : x) sum += y * y;
    norm = 1 / std::sqrt(sum);
    for (T& y : x) y *= norm;
    return x;
  }

  void run(int64_t sequence, int64_t head) {
    batch_ = c_.offsets.empty() ? sequence : 0;
    const int64_t first = c_.offsets.empty() ? 0 : c_.offsets[sequence];
    const int64_t end = c_.offsets.empty() ? s_.tokens : c_.offsets[sequence + 1];
    const int64_t size = s_.depth * s_.value_depth,
                  first_number = (sequence * s_.heads + head) * size;
    std::vector<T> state(size, T(0));
    if (c_.has_initial)
      state.assign(in_.initial.begin() + first_number, in_.initial.begin() + first_number + size);
    std::vector<Token> tokens;
    for (int64_t t = first; t < end; ++t) tokens.push_back(forward(head, t, state));
    std::copy(state.begin(), state.end(), to_.last.begin() + first_number);
    std::vector<T> grad(in_.grad_last.begin() + first_number,
                        in_.grad_last.begin() + first_number + size);
    for (int64_t t = end - 1; t >= first; --t) backward(head, t, tokens[t - first], grad);
    std::copy(grad.begin(), grad.end(), to_.initial.begin() + first_number);
  }

  Token forward(int64_t head, int64_t t, std::vector<T>& state) {
    const int64_t depth = s_.depth, width = s_.value_depth, row = row_of(head, s_.heads, t);
    const int64_t key_row = row_of(head / (s_.heads / s_.key_heads), s_.key_heads, t);
    Token x;
    x.q = vector(in_.query, key_row, x.q_norm);
    x.k = vector(in_.key, key_row, x.k_norm);
    x.f.assign(depth, T(1));
    for (int64_t a = 0; s_.decay_depth > 0 && a < depth; ++a)
      x.f[a] = std::exp(in_.decay[row * s_.decay_depth + (s_.decay_depth == 1 ? 0 : a)]);
    x.b = c_.has_strength ? in_.strength[row] : T(1);
    x.before = state;
    for (int64_t n = 0; n < depth * width; ++n) state[n] *= x.f[n / width];
    x.decayed = state;
    x.w.assign(in_.value.begin() + row * width, in_.value.begin() + (row + 1) * width);
    for (int64_t n = 0; c_.delta && n < depth * width; ++n)
      x.w[n % width] -= state[n] * x.k[n / width];
    for (int64_t n = 0; n < depth * width; ++n) state[n] += x.k[n / width] * (x.b * x.w[n % width]);
    x.after = state;
    for (int64_t n = 0; n < depth * width; ++n)
      to_.output[row * width + n % width] += T(c_.scale) * x.q[n / width] * state[n];
    return x;
  }

  // x holds normalised numbers.
  void undo_normalise(const std::vector<T>& x, T norm, T* grad) const {
    if (!c_.normalise) return;
    T dot = 0;
    for (int64_t a = 0; a < s_.depth; ++a) dot += x[a] * grad[a];
    for (int64_t a = 0; a < s_.depth; ++a) grad[a] = norm * (grad[a] - dot * x[a]);
  }

  void backward(int64_t head, int64_t t, const Token& x, std::vector<T>& grad) {
    const int64_t depth = s_.depth, width = s_.value_depth, row = row_of(head, s_.heads, t);
    const T* upstream = in_.grad_output.data() + row * width;
    T *q = to_.query.data() + row * depth, *k = to_.key.data() + row * depth;
    std::vector<T> w(width, T(0));
    for (int64_t n = 0; n < depth * width; ++n) {
      const int64_t a = n / width, e = n % width;
      q[a] += T(c_.scale) * x.after[n] * upstream[e];
      grad[n] += T(c_.scale) * x.q[a] * upstream[e];
      k[a] += grad[n] * x.b * x.w[e];
      w[e] += grad[n] * x.k[a];
    }
    for (int64_t e = 0; e < width; ++e) {
      to_.strength[row] += w[e] * x.w[e];
      w[e] *= x.b;
      to_.value[row * width + e] = w[e];
    }
    for (int64_t n = 0; n < depth * width; ++n) {
      const int64_t a = n / width, e = n % width;
      if (c_.delta) {
        k[a] -= x.decayed[n] * w[e];
        grad[n] -= x.k[a] * w[e];
      }
      if (s_.decay_depth > 0)
        to_.decay[row * s_.decay_depth + (s_.decay_depth == 1 ? 0 : a)] += grad[n] * x.decayed[n];
      grad[n] *= x.f[a];
    }
    undo_normalise(x.q, x.q_norm, q);
    undo_normalise(x.k, x.k_norm, k);
  }

  const RecurrenceCase& c_;
  const RecurrenceShape& s_;
  RecurrenceResults<T>& to_;
  RecurrenceArrays<T> in_;
  int64_t batch_ = 0;
};

template <class T>
RecurrenceResults<T> recurrence_reference(const RecurrenceCase& c) {
  RecurrenceResults<T> results;
  RecurrenceLoop<T>(c, results);
  return results;
}

// Decays are uniform in [least_decay, 0], keys have about length 1, strengths are in (0, 2).
inline void draw(RecurrenceCase& c, double least_decay, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> uniform;
  const auto drawn = [&](int64_t count, auto next) {
    std::vector<double> numbers(static_cast<size_t>(count));
    for (double& x : numbers) x = static_cast<float>(next());
    return numbers;
  };
  const RecurrenceShape& s = c.shape;
  const double key_size = c.normalise ? 1 : 1 / std::sqrt(std::max<double>(1, s.depth));
  const auto plain = [&] { return normal(random); };
  c.arrays.query = drawn(c.key_rows() * s.depth, plain);
  c.arrays.key = drawn(c.key_rows() * s.depth, [&] { return key_size * normal(random); });
  c.arrays.value = drawn(c.rows() * s.value_depth, plain);
  c.arrays.decay = drawn(c.rows() * s.decay_depth, [&] { return least_decay * uniform(random); });
  c.arrays.strength = drawn(c.rows(), [&] { return (c.delta ? 1 : 2) * uniform(random); });
  c.arrays.initial = drawn(c.states(), plain);
  c.arrays.grad_output = drawn(c.rows() * s.value_depth, plain);
  c.arrays.grad_last = drawn(c.states(), plain);
}

}  // namespace attend::kernels::testing
