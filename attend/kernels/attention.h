#pragma once

#include <cstdint>

#include "attend/kernels/scope.h"

// Fused attention on plain pointers: c_i = sum_j softmax_j(score(q_i, k_j)) v_j over the keys j in
// the scope of i, forward and backward, in O((queries + keys) depth) memory. Dao 2022 for the
// tiling, Bahdanau 2015 for the additive score. T is float or double.

namespace attend::kernels {

// [batch, heads, rows, depth] in elements of any strides; the last axis is contiguous.
template <class T>
struct View {
  T* data = nullptr;
  int64_t batch_stride = 0;
  int64_t head_stride = 0;
  int64_t row_stride = 0;

  T* row(int64_t batch, int64_t head, int64_t row) const {
    return data + batch * batch_stride + head * head_stride + row * row_stride;
  }
};

// A contiguous [batch, heads, rows, depth] array.
template <class T>
View<T> contiguous(T* data, int64_t heads, int64_t rows, int64_t depth) {
  return {data, heads * rows * depth, rows * depth, depth};
}

// heads / key_heads query heads in a row share one head of keys and values.
struct Shape {
  int64_t batch = 1;
  int64_t heads = 1;
  int64_t key_heads = 1;
  int64_t queries = 0;
  int64_t keys = 0;
  int64_t depth = 0;        // of queries and keys
  int64_t value_depth = 0;  // of values and contexts
};

enum class Family {
  dot,       // scale sum_a q_a k_a
  additive,  // scale sum_a v_a tanh(q_a + k_a)
};

template <class T>
struct Score {
  Family family = Family::dot;
  double scale = 1;
  const T* vector = nullptr;       // v of the additive family: [depth], or [heads, depth]
  int64_t vector_head_stride = 0;  // depth when every head has its own v
};

// What is added to the scores; each part may be absent (null).
template <class T>
struct Bias {
  // [batch, heads, queries, keys]; a stride of 0 broadcasts, also over the queries.
  View<const T> dense;
  // -slopes[h] |i + slope_offset - j|: ALiBi (Press 2022).
  const T* slopes = nullptr;  // [heads]
  int64_t slope_offset = 0;
};

template <class T>
struct Problem {
  Shape shape;
  Score<T> score;
  Scope scope;
  Bias<T> bias;
  // A learned score that takes part in each row's softmax and has no value: weights then sum to
  // less than 1. [heads], or null.
  const T* sinks = nullptr;
  View<const T> query;  // [batch, heads, queries, depth]
  View<const T> key;    // [batch, key_heads, keys, depth]
  View<const T> value;  // [batch, key_heads, keys, value_depth]
};

// What forward writes. lse: [batch, heads, queries], contiguous; the natural logarithm of the sum
// of exp(score) over the scope. A row with no key in scope gets context 0 and lse -inf (its
// sink's score, where there are sinks).
template <class T>
struct Result {
  View<T> context;  // [batch, heads, queries, value_depth]
  T* lse = nullptr;
};

// What backward reads besides the problem: the result of forward and the gradients of both.
template <class T>
struct Upstream {
  View<const T> context;
  const T* lse = nullptr;
  View<const T> grad_context;
  const T* grad_lse = nullptr;  // null: zero
};

// What backward writes (it overwrites). Shapes as the inputs; vector is [heads, depth], contiguous,
// summed over the batch. The pointers may be null: that gradient is not wanted. bias has the
// strides of Bias::dense and is summed over the axes that it broadcasts.
template <class T>
struct Gradients {
  View<T> query;
  View<T> key;
  View<T> value;
  T* vector = nullptr;
  T* bias = nullptr;
  T* slopes = nullptr;  // [heads]
  T* sinks = nullptr;   // [heads]
};

// threads: 0 takes as many as OpenMP gives. Results do not depend on it. Throws attend::Error on
// shapes that do not fit, naming the argument.
template <class T>
void attention_forward(const Problem<T>& problem, const Result<T>& result, int threads = 0);

// The result over two disjoint sets of keys from the results over each: into becomes both. Rows
// without keys on either side weigh nothing.
template <class T>
void merge(const Shape& shape, const Result<T>& into, const Result<T>& other);

// Rows of the weights: weights[b][h][r] = the weights of query first_row + r over every key, 0
// outside the scope. lse as forward wrote it; weights: [batch, heads, rows, keys].
template <class T>
void attention_weights(const Problem<T>& problem, const T* lse, int64_t first_row, int64_t rows,
                       const View<T>& weights, int threads = 0);

template <class T>
void attention_backward(const Problem<T>& problem, const Upstream<T>& upstream,
                        const Gradients<T>& gradients, int threads = 0);

}  // namespace attend::kernels
