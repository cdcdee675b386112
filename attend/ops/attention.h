#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "attend/kernels/dropout.h"
#include "attend/ops/biases.h"
#include "attend/ops/normalisers.h"
#include "attend/ops/scopes.h"
#include "attend/ops/scores.h"

namespace attend {

// Path of the computation.
//
// fused: tile by tile in O((Tq + Tk) D) memory, on the CPU. With a linear normaliser: running sums
// in time and memory linear in Tq + Tk, on any device.
//
// composed: a sequence of tensor operations, on any device. Slower, supports every spec.
//
// automatic: fused if it supports the spec, otherwise composed.
enum class Path { automatic, fused, composed };

// Position of the queries among the keys.
enum class Align {
  first,  // query 0 at key 0
  last,   // the last query at the last key (bottom right); with lengths of queries or keys in the
          // scope, the last valid ones of each batch entry
};

using kernels::Dropout;

// Options of an attention mechanism: w_ij = normaliser_j(score(q_i, k_j) + bias_ij) over the keys j
// in scope(i). With designated initialisers: {.score = Score("additive", {{"v", v}}), .scope =
// causal() & window(128), .bias = alibi(slopes)}.
struct AttentionSpec {
  Score score = {};  // scaled dot
  Scope scope = {};  // all keys
  Bias bias = {};
  Normaliser normaliser = {};  // softmax
  // A learned score without a value in the softmax of each row: weights then sum to less than 1
  // (Xiao 2024). [H] or one number.
  at::Tensor sink = {};
  double soft_cap = 0;  // scores become cap tanh(score / cap) before the bias; 0: no cap
  // State carried over from earlier queries, for scores and normalisers that look back.
  PastWeights past = {};
  Dropout dropout = {};
  Path path = Path::automatic;
  // Query i has position i + offset among the keys; offset is the offset of `align` plus
  // query_offsets. query_offsets: int64 [B] or one number; undefined: 0. Windows, global tokens and
  // distance biases count from this position and add their own offsets. Masks, centres and similar
  // tensors have one row per query of the call.
  Align align = Align::first;
  at::Tensor query_offsets = {};
};

struct AttentionResult {
  at::Tensor context;  // [B, H, Tq, Dv]: sum_j w_ij v_j
  at::Tensor lse;  // [B, H, Tq]: normaliser of the row; for softmax log sum_j exp(score_ij) over
                   // the scope; float32 or float64
};

// Computes attention of queries [B, H, Tq, Dq] over keys [B, Hkv, Tk, Dk] with values [B, Hkv, Tk,
// Dv]: c_i = sum_j w_ij v_j.
//
// All three may have two axes ([T, D]) or three ([B, T, D]) instead; the results then have
// correspondingly fewer axes. Hkv must divide H: groups of heads share keys and values. Parameters
// with a head axis have H heads.
//
// Query, key and value share one floating dtype. bfloat16 and float16 are storage formats; the
// arithmetic is float32. Biases, sinks and parameters of the score may then be float32. If the
// processor multiplies bfloat16, kernel products on bfloat16 read weights and score gradients
// rounded to bfloat16.
//
// LibTorch's autocast does not change the arithmetic. Within autocast, queries, keys and values of
// different dtypes are converted to the widest of them, which is also the dtype of the context. All
// other tensors may then have any floating dtype.
//
// Differentiable twice in the queries, keys, values and every tensor of the score, the bias and the
// sink. The second derivative and forward mode use the composed path; automatic chooses it for
// forward mode.
//
// A query with no key in scope has context 0, lse -inf (with a sink: the score of the sink) and
// gradient 0. A key with score -inf is treated as out of scope; the least finite number is an
// ordinary score. NaN in the inputs of a query makes its context and lse NaN. Keys and values
// outside the scope have weight 0 but may be read: NaN or infinity in them may spread.
//
// The linear normaliser requires non-negative scores and supports no bias. Small scores keep their
// ratios: features are divided by the largest feature of their query or key, and a row by the
// largest visible key. A row with a scaled sum below 2^-100 (float64: 2^-1000) is treated as a
// row without keys. If all queries see the same keys, each exponential feature (elu_features,
// positive_features) is divided by its maximum over the keys, and no row is lost. With a soft cap
// the undivided sum is compared.
//
// Kernel results are bit-identical for any number of threads. LibTorch results may differ: scores
// that multiply by a matrix, relative keys, linear attention and the composed path.
//
// If the score or the normaliser looks back (location_sensitive, coverage, monotonic), queries run
// one after another, starting from spec.past. To continue after them, a caller needs their weights:
// for each query, past = after(past, attention_weights(query, key, lse, spec)), with the query axis
// removed. Query i then uses its own seed for dropout and samples.
//
// Error on shapes, dtypes or devices that do not fit, and on a spec without a kernel if the path is
// fused.
AttentionResult attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                          const AttentionSpec& spec = {});

// Parses "first" or "last"; Error otherwise.
Align parse_align(std::string_view text);

// Offset of the queries among the keys, from `align` and `query_offsets`: int64 [B] or one number,
// on the CPU. Error on offsets that do not fit.
at::Tensor offsets_of_queries(const AttentionSpec& spec, int64_t batch, int64_t queries,
                              int64_t keys);

// Returns the same options with the positions of the queries moved into the scope and the bias, for
// callers that split sequences. Error on offsets that do not fit, and on a grid bias if offsets
// differ between batch entries.
AttentionSpec placed(const AttentionSpec& spec, int64_t batch, int64_t queries, int64_t keys);

// The scores with their bias, [B, H, Tq, Tk], -inf outside the scope; float32 or float64.
at::Tensor attention_scores(const at::Tensor& query, const at::Tensor& key,
                            const AttentionSpec& spec = {});

// Selects weights by head and query. Heads require queries of four axes.
struct Selection {
  std::vector<int64_t> heads = {};  // head indices, in the order of the result; empty: all
  int64_t first_row = 0;
  std::optional<int64_t> rows = {};  // queries first_row, first_row + 1, ...; unset: to the last
};

// Returns the weights before dropout, [B, selected heads, rows, Tk], from the lse that
// attention(query, key, ., spec) returned: 0 outside the scope. Inputs may have two or three axes
// as in attention. If differentiated, this function and the summaries below use the composed path,
// which holds all Tq x Tk weights. Otherwise memory is limited to the size of the result. Error on
// a selection out of range.
at::Tensor attention_weights(const at::Tensor& query, const at::Tensor& key, const at::Tensor& lse,
                             const AttentionSpec& spec = {}, const Selection& selection = {});

// Returns the weights of a scope of edges, one per edge: [B, selected heads, edges of the longest
// list], in the order of each list. 0 for queries outside the selected rows and after the last edge
// of a list. If differentiated, queries are padded to the largest number of edges per query. Error
// on a scope that is not one clause with one condition of edges.
at::Tensor attention_edge_weights(const at::Tensor& query, const at::Tensor& key,
                                  const at::Tensor& lse, const AttentionSpec& spec = {},
                                  const Selection& selection = {});

// [B, selected heads, rows, count], largest first; equal weights in the order of the keys. Only
// weights above 0 are listed; remaining entries have weight 0 and key -1.
struct TopWeights {
  at::Tensor weights;
  at::Tensor keys;  // int64
};

// The `count` largest weights of each row, 1 or more.
TopWeights attention_top(const at::Tensor& query, const at::Tensor& key, const at::Tensor& lse,
                         int64_t count, const AttentionSpec& spec = {},
                         const Selection& selection = {});

// Key of the largest weight, int64 [B, selected heads, rows]; -1 for a row without positive
// weights.
at::Tensor attention_argmax(const at::Tensor& query, const at::Tensor& key, const at::Tensor& lse,
                            const AttentionSpec& spec = {}, const Selection& selection = {});

// -sum_j w_ij ln w_ij, [B, selected heads, rows]; float32 or float64. NaN for a row with a negative
// weight, which normaliser none may produce.
at::Tensor attention_entropy(const at::Tensor& query, const at::Tensor& key, const at::Tensor& lse,
                             const AttentionSpec& spec = {}, const Selection& selection = {});

// sum_i w_ij over the selected rows, [B, selected heads, Tk]; float32 or float64.
at::Tensor attention_column_sums(const at::Tensor& query, const at::Tensor& key,
                                 const at::Tensor& lse, const AttentionSpec& spec = {},
                                 const Selection& selection = {});

}  // namespace attend
