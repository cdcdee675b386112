#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "python/shim/array.h"

// Attention of the kernels with plain arrays and lists of numbers, as an operator of PyTorch
// receives them.

namespace attend::shim {

// Arguments with a gradient, in the order of the operators.
namespace part {
enum Index : size_t {
  query,     // [B, H, Tq, A], mapped
  key,       // [B, Hkv, Tk, A], mapped
  value,     // [B, Hkv, Tk, Dv]
  vector,    // [A] or [H, A]: v of the additive family
  dense,     // [B or 1, H or 1, Tq or 1, Tk]
  slopes,    // [H]
  sinks,     // [H]
  relative,  // [B or 1, H or 1, Tq or 1, distances]
  centres,   // [B, H, Tq]
  widths,    // [B, H, Tq]
  edges,     // [B or 1, H or 1, 1, edges of the longest list]
  count
};
}  // namespace part

// Positions in AttentionCall::choices.
namespace choice {
enum Index : size_t { family, activation, normaliser, seed, slope_offset, relative_offset, count };
}  // namespace choice

// Positions in AttentionCall::numbers.
namespace number {
enum Index : size_t { scale, soft_cap, negative_slope, dropout, count };
}  // namespace number

// First number of each condition in AttentionCall::scope, with the numbers that follow it. T is a
// position in AttentionCall::tensors; -1: absent.
enum class Code : int64_t {
  end_of_clause = -1,
  window = 0,         // left, right, offset, dilation, T of the offsets
  key_lengths = 1,    // T
  query_lengths = 2,  // T
  prefix = 3,         // length
  global_rows = 4,    // rows
  segments = 5,       // T of the query starts, T of the key starts
  blocks = 6,         // T, block, first_query, first_key
  mask = 7,           // T
  around = 8,         // T, reach
  edges = 9,          // T of the offsets, T of the keys
};

struct AttentionCall {
  std::array<Array, part::count> parts;
  Array query_positions, key_positions;  // int64 [Tq] and [Tk]
  std::vector<Array> tensors;            // tensors of the scope
  std::vector<int64_t> scope;            // each clause ends with Code::end_of_clause
  std::vector<int64_t> choices;
  std::vector<double> numbers;
};

// Sizes of the results.
kernels::Shape shape_of(const AttentionCall& call);

// context: as the value, [B, H, Tq, Dv]; lse: [B, H, Tq]; unrounded: the context in float32 if
// values have 16 bits, otherwise absent. threads: 0 uses kernels::current_threads(). Error, with
// the name of the argument, if arguments do not fit each other.
void attention_forward(const AttentionCall& call, const Array& context, const Array& lse,
                       const Array& unrounded, int threads);

// `context` is the unrounded one if values have 16 bits. gradients: contiguous, shapes of the
// parts, but [H, A] for the vector; absent: not computed, except query, key and value. grad_lse may
// be absent.
void attention_backward(const AttentionCall& call, const Array& context, const Array& lse,
                        const Array& grad_context, const Array& grad_lse,
                        const std::array<Array, part::count>& gradients, int threads);

// Selected rows of the weights and of their summaries, see kernels::Selection.
struct Rows {
  std::vector<int64_t> heads;
  int64_t first = 0;
  int64_t count = 0;
};

// weights: [B, heads, rows, Tk].
void attention_weights(const AttentionCall& call, const Array& lse, const Rows& rows,
                       const Array& weights, int threads);
// weights and keys: [B, heads, rows, count].
void attention_top(const AttentionCall& call, const Array& lse, const Rows& rows,
                   const Array& weights, const Array& keys, int threads);
// entropy: [B, heads, rows].
void attention_entropy(const AttentionCall& call, const Array& lse, const Rows& rows,
                       const Array& entropy, int threads);
// sums: [B, heads, Tk].
void attention_column_sums(const AttentionCall& call, const Array& lse, const Rows& rows,
                           const Array& sums, int threads);

}  // namespace attend::shim
