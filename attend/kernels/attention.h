#pragma once

#include <cstdint>
#include <span>
#include <type_traits>

#include "attend/kernels/dropout.h"
#include "attend/kernels/scope.h"
#include "attend/kernels/storage.h"

// Fused attention on plain pointers: c_i = sum_j w_ij v_j with w_ij = normaliser_j(score(q_i, k_j)
// + bias_ij) over the keys j in the scope of i, forward and backward, in O((queries + keys) depth)
// memory. Dao 2022 for the tiling, Bahdanau 2015 for the additive score.
//
// S is the storage type of queries, keys, values and contexts: float, double, BFloat16 or Float16.
// Everything else, and the arithmetic, is Compute<S>: double for double, otherwise float.

namespace attend::kernels {

// [batch, heads, rows, depth] in elements of any strides; the last axis is contiguous.
template <class T>
struct View {
  T* data = nullptr;
  int64_t batch_stride = 0;
  int64_t head_stride = 0;
  int64_t row_stride = 0;

  // Returns null for an array without elements.
  T* row(int64_t batch, int64_t head, int64_t row) const {
    if (data == nullptr) return nullptr;
    return data + batch * batch_stride + head * head_stride + row * row_stride;
  }
  operator View<const T>() const requires(!std::is_const_v<T>) {
    return {data, batch_stride, head_stride, row_stride};
  }
};

// A contiguous [batch, heads, rows, depth] array.
template <class T>
View<T> contiguous(T* data, int64_t heads, int64_t rows, int64_t depth) {
  return {data, heads * rows * depth, rows * depth, depth};
}

// heads / key_heads adjacent query heads share one head of keys and values.
struct Shape {
  int64_t batch = 1;
  int64_t heads = 1;
  int64_t key_heads = 1;
  int64_t queries = 0;
  int64_t keys = 0;
  int64_t depth = 0;        // queries and keys
  int64_t value_depth = 0;  // values and contexts
};

enum class Family {
  dot,                // scale sum_a q_a k_a
  additive,           // scale sum_a v_a f(q_a + k_a), f the activation
  squared_distance,   // -scale sum_a (q_a - k_a)^2
  absolute_distance,  // -scale sum_a |q_a - k_a|
};

// The absolute error of tanh is a few units in the last place of 1. In scores and in the gradient
// of the vector, the relative error is a few units in the last place in two cases: with up to 4
// queries, and in dimensions with all queries and keys within 0.06 of 0.
enum class Activation { tanh, sigmoid, relu, leaky_relu };

template <class T>
struct Score {
  Family family = Family::dot;
  double scale = 1;
  const T* vector = nullptr;       // v of the additive family: [depth], or [heads, depth]
  int64_t vector_head_stride = 0;  // depth if every head has its own v
  Activation activation = Activation::tanh;
  double negative_slope = 0.2;  // slope of leaky_relu, 0 to 1 (Brody 2022, GATv2)
  double soft_cap = 0;          // scores become cap tanh(score / cap) before the bias; 0: no cap
};

// Terms added to the scores; each may be absent (null).
template <class T>
struct Bias {
  // [batch, heads, queries, keys]; a stride of 0 broadcasts, also over queries.
  View<const T> dense;
  // -slopes[h] |i + slope_offset - j|: ALiBi (Press 2022).
  const T* slopes = nullptr;  // [heads]
  int64_t slope_offset = 0;
  // relative[b][h][i][c], c = key_positions[j] - query_positions[i] + relative_offset clamped to
  // [0, relative_count). With one row for all queries: buckets (Raffel 2020). With one row per
  // query: q_i . r_c (Shaw 2018). A stride of 0 broadcasts. Positions: null means i and j. On a
  // grid of width W, positions y (2 W - 1) + x make c a pair of distances.
  View<const T> relative;
  int64_t relative_count = 0;
  int64_t relative_offset = 0;
  const int64_t* query_positions = nullptr;  // [queries]
  const int64_t* key_positions = nullptr;    // [keys]
  // -(j - centres)^2 / (2 widths^2), with one centre and one positive width per query (Luong 2015,
  // eq. 10).
  const T* centres = nullptr;  // [batch, heads, queries]
  const T* widths = nullptr;   // [batch, heads, queries]
  // -|query_sums[b][h][i] - key_sums[b][h][j]|: sums of the logarithms of gates up to the positions
  // of query and key (forgetting, Lin et al. 2025). float64, so that differences of long sums stay
  // exact. Both or none.
  const double* query_sums = nullptr;  // [batch, heads, queries]
  const double* key_sums = nullptr;    // [batch, heads, keys]
  // query_products[b][h][i][c] + key_products[b][h][j][c], c = columns[b][j - i + queries - 1]:
  // products of a query, and of a key, with a vector per distance or bucket of distances (He et al.
  // 2021, disentangled attention). Contiguous; each may be null. Columns are 0 to product_columns -
  // 1.
  const T* query_products = nullptr;  // [batch, heads, queries, product_columns]
  const T* key_products = nullptr;    // [batch, heads, keys, product_columns]
  int64_t product_columns = 0;        // up to 2^20
  const int32_t* columns = nullptr;   // [batch, queries + keys - 1]
  int64_t columns_stride = 0;         // queries + keys - 1; 0: the same for all batch entries
  // [batch, heads, 1, edges of the longest list]: one number per edge, in the order of its list. A
  // stride of 0 broadcasts. Requires a scope of one clause with one condition of edges.
  View<const T> edges;
};

enum class Normaliser {
  softmax,    // exp(s) / sum_j exp(s)
  sigmoid,    // 1 / (1 + exp(-s)) (Ramapuram 2024)
  none,       // s
  sparsemax,  // max(0, s - t), t such that a row sums to 1 (Martins 2016)
  entmax15,   // max(0, (s - t) / 2)^2, likewise (Peters 2019, alpha 1.5)
  entmax,     // max(0, (a - 1) (s - t))^(1 / (a - 1)), likewise, a = Problem::alphas (Peters 2019)
  softpick,   // max(0, e^s - 1) / (sum_j |e^s - 1| + 1e-8) (Zuhri 2025)
  top_k,      // softmax over the keys with the k largest scores, k = Problem::top (Gupta 2021)
  stick_breaking,  // sigmoid(s_j) prod_l (1 - sigmoid(s_l)) over the keys l after j (Tan 2025)
};

template <class S>
struct Problem {
  Shape shape;
  Score<Compute<S>> score;
  Scope scope;
  Bias<Compute<S>> bias;
  // A learned score without a value in the softmax of each row: weights then sum to less than 1.
  // [heads], or null. Softmax only.
  const Compute<S>* sinks = nullptr;
  Normaliser normaliser = Normaliser::softmax;
  const Compute<S>* alphas = nullptr;  // [heads], above 1 and at most 4; entmax only
  int64_t top = 0;                     // 1 or more; top_k only
  Dropout dropout;
  View<const S> query;  // [batch, heads, queries, depth]
  View<const S> key;    // [batch, key_heads, keys, depth]
  View<const S> value;  // [batch, key_heads, keys, value_depth]
};

// Output of the forward pass. lse, [batch, heads, queries], contiguous, is the normaliser of a row:
// the natural logarithm of the sum of exp(score) over the scope for softmax, over the kept keys for
// top_k; the logarithm of the divisor for softpick; the threshold t for sparsemax and entmax;
// otherwise 0.
//
// Softpick: the lse of a row is also -inf if all its scores are 0. top_k: equal scores are all kept
// or all left out; scores 30 (double: 60) below the largest have weight 0.
//
// A row without a key in scope has context 0 and lse -inf (with sinks: the score of its sink). A
// key with score -inf is treated as out of scope; the least finite number is an ordinary score. NaN
// in the inputs of a row makes its context and lse NaN. For scores of 1e8, float cannot represent
// the difference between lse and the largest score; if this matters, backward and the weights
// recompute the scores.
template <class S>
struct Result {
  View<S> context;  // [batch, heads, queries, value_depth]
  Compute<S>* lse = nullptr;
  // If S has 16 bits: the context before rounding, contiguous, for backward; null: not written.
  Compute<S>* unrounded = nullptr;
};

// Inputs of the backward pass in addition to the problem: the result of forward and its gradients.
// The common term of a row's score gradients is computed from the context; from a context rounded
// to 16 bits, its error would exceed the remaining difference.
template <class S>
struct Upstream {
  View<const Compute<S>> context;  // Result::unrounded if S has 16 bits
  const Compute<S>* lse = nullptr;
  View<const S> grad_context;
  const Compute<S>* grad_lse = nullptr;  // null: zero
};

// Output of the backward pass, overwritten. Shapes as the inputs; vector is [heads, depth],
// contiguous, summed over the batch. Pointers may be null: the gradient is not computed. bias,
// relative and edges have the strides of Bias::dense, Bias::relative and Bias::edges, and are
// summed over broadcast axes.
template <class S>
struct Gradients {
  View<S> query;
  View<S> key;
  View<S> value;
  Compute<S>* vector = nullptr;
  Compute<S>* bias = nullptr;
  Compute<S>* slopes = nullptr;  // [heads]
  Compute<S>* sinks = nullptr;   // [heads]
  Compute<S>* relative = nullptr;
  Compute<S>* centres = nullptr;  // [batch, heads, queries]
  Compute<S>* widths = nullptr;   // [batch, heads, queries]
  Compute<S>* edges = nullptr;
  double* query_sums = nullptr;  // [batch, heads, queries]
  double* key_sums = nullptr;    // [batch, heads, keys]
  Compute<S>* alphas = nullptr;  // [heads]
  Compute<S>* query_products = nullptr;
  Compute<S>* key_products = nullptr;
};

// threads: 0 uses the number of OpenMP. Results are bit-identical for any number. Throws
// attend::Error on shapes that do not fit, with the name of the argument, and if memory runs out,
// with the size.
template <class S>
void attention_forward(const Problem<S>& problem, const Result<S>& result, int threads = 0);

template <class S>
void attention_backward(const Problem<S>& problem, const Upstream<S>& upstream,
                        const Gradients<S>& gradients, int threads = 0);

// Merges the softmax results over two disjoint sets of keys: `into` becomes the result over both,
// weighted by the two lse. A side without keys in a row has no weight there. T is float or double.
template <class T>
void merge(const Shape& shape, const Result<T>& into, const Result<T>& other);

// Selects rows of the weights before dropout, and of their summaries. They are computed from the
// lse of forward, without a queries x keys array. heads: query heads, in the order of the result;
// empty: all.
struct Selection {
  std::span<const int64_t> heads = {};
  int64_t first_row = 0;
  int64_t rows = 0;
};

// weights[b][n][r]: weights of query first_row + r of head heads[n] over every key, 0 outside the
// scope: [batch, selected heads, rows, keys].
template <class S>
void attention_weights(const Problem<S>& problem, const Compute<S>* lse, const Selection& selection,
                       const View<Compute<S>>& weights, int threads = 0);

// weights[b][n][e]: weight of edge e in the list of batch entry b and head heads[n]; 0 for queries
// outside the selected rows and after the last edge of the list. Shape: [batch, selected heads,
// edges of the longest list]. Requires a scope of one clause with one condition of edges.
template <class S>
void attention_edge_weights(const Problem<S>& problem, const Compute<S>* lse,
                            const Selection& selection, Compute<S>* weights, int threads = 0);

// The `count` largest weights of each row and their keys, largest first, equal weights in the order
// of the keys: [batch, selected heads, rows, count]. Only weights above 0 are listed; remaining
// entries have weight 0 and key -1. count 1 is the argmax.
template <class S>
void attention_top(const Problem<S>& problem, const Compute<S>* lse, const Selection& selection,
                   int64_t count, Compute<S>* weights, int64_t* keys, int threads = 0);

// -sum_j w_ij ln w_ij: [batch, selected heads, rows].
template <class S>
void attention_entropy(const Problem<S>& problem, const Compute<S>* lse, const Selection& selection,
                       Compute<S>* entropy, int threads = 0);

// sum_i w_ij over the selected rows: [batch, selected heads, keys].
template <class S>
void attention_column_sums(const Problem<S>& problem, const Compute<S>* lse,
                           const Selection& selection, Compute<S>* sums, int threads = 0);

// Dropout factors of the weights: [batch, heads, queries, keys], contiguous. Only for callers that
// need the mask itself; the passes above draw it on the fly.
template <class T>
void dropout_mask(const Shape& shape, const Dropout& dropout, T* mask);

}  // namespace attend::kernels
