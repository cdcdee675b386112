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

// fused: tile by tile in O((Tq + Tk) D) memory, on the CPU; where the normaliser is linear, running
// sums in time and memory linear in Tq + Tk, on any device. composed: tensor operations one after
// another, on any device; slower, never wrong. automatic: fused where it fits.
enum class Path { automatic, fused, composed };

// The positions of the queries among the keys.
enum class Align {
  first,  // query 0 at key 0
  last,   // the last query at the last key (bottom right); with lengths of queries or keys in the
          // scope the last of those in each batch entry
};

using kernels::Dropout;

// The choices of an attention mechanism: w_ij = normaliser_j(score(q_i, k_j) + bias_ij) over the
// keys j in scope(i). With designated initialisers:
// {.score = Score("additive", {{"v", v}}), .scope = causal() & window(128), .bias = alibi(slopes)}.
struct AttentionSpec {
  Score score = {};  // scaled dot
  Scope scope = {};  // all keys
  Bias bias = {};
  Normaliser normaliser = {};  // softmax
  // A learned score that takes part in each row's softmax and has no value: weights then sum to
  // less than 1 (Xiao 2024). [H] or one number.
  at::Tensor sink = {};
  double soft_cap = 0;  // scores become cap tanh(score / cap) before the bias; 0: as they are
  // What queries before those of this call gave, for scores and normalisers that look back.
  PastWeights past = {};
  Dropout dropout = {};
  Path path = Path::automatic;
  // Query i has position i + offset among the keys. The offset is that of `align` plus these: int64
  // [B], or one number; undefined: 0. Windows, global tokens and biases of distance count from
  // there and add their own offsets. Masks, centres and the like have a row for each query of the
  // call.
  Align align = Align::first;
  at::Tensor query_offsets = {};
};

struct AttentionResult {
  at::Tensor context;  // [B, H, Tq, Dv]: sum_j w_ij v_j
  at::Tensor lse;      // [B, H, Tq]: what normalised the row, for softmax log sum_j exp(score_ij)
                       // over the scope; float32 or float64
};

// Attention of queries [B, H, Tq, Dq] over keys [B, Hkv, Tk, Dk] with values [B, Hkv, Tk, Dv]:
// c_i = sum_j w_ij v_j.
//
// All three may have two axes ([T, D]) or three ([B, T, D]) instead; the results then have as many
// fewer. Hkv must divide H: heads in groups share keys and values. Parameters with an axis of heads
// have H of them.
//
// Floating dtypes, one for all; bfloat16 and float16 are storage, the arithmetic is float32. Where
// the processor multiplies bfloat16, products of the kernels on bfloat16 read weights and gradients
// of scores rounded to it. Biases, sinks and parameters of the score may be float32 then.
// LibTorch's autocast does not change what is computed; within it queries, keys and values of
// several dtypes are converted to the widest of them, which the context has, and all other tensors
// may have any. Differentiable twice in the queries, keys, values and every tensor of the score,
// the bias and the sink; the second derivative is taken on the composed path. Forward mode takes
// the composed path, too, which automatic then chooses. A query with no key in scope has context 0,
// lse -inf (with a sink the sink's score) and gradient 0. A key whose score is -inf counts as one
// out of scope; the least finite number is a score like any other. NaN in what a query reads makes
// its context and lse NaN. Keys and values outside the scope have weight 0 but may be read: NaN or
// infinity in them may spread.
//
// Normaliser linear takes scores that cannot be negative, without a bias. However small they are,
// their ratio holds: features are measured from the largest one of their query and of their key, a
// row from the largest key that it sees. A row whose sum lies below 2^-100 (float64: 2^-1000) of
// these counts as one without keys. Where all queries see the same keys, features that are
// exponentials (elu_features, positive_features) are measured from their own largest key, and no
// row is lost. With a soft cap, which is applied in between, the sum itself is compared.
//
// The kernels give the same bits whatever the number of threads. What LibTorch computes may not:
// scores that multiply by a matrix, relative keys, linear attention and the composed path.
//
// Where the score or the normaliser looks back (location_sensitive, coverage, monotonic), the
// queries run one after another, the first from spec.past on. A caller who continues after them
// needs their weights: step by step, past = after(past, attention_weights(query, key, lse, spec))
// for one query without its axis. Query i then draws dropout and samples from a seed of its own.
//
// Error on shapes, dtypes or devices that do not fit, and where the path is fused, on a spec that
// has no kernel.
AttentionResult attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                          const AttentionSpec& spec = {});

// "first" or "last"; Error otherwise.
Align parse_align(std::string_view text);

// By how much `align` and `query_offsets` move the queries among the keys: int64 [B], or one
// number, on the CPU. Error on offsets that do not fit.
at::Tensor offsets_of_queries(const AttentionSpec& spec, int64_t batch, int64_t queries,
                              int64_t keys);

// The same choices with the positions of the queries in the scope and the bias, and nowhere else,
// for callers who cut up the sequences. Error on offsets that do not fit, and on a grid bias where
// they differ from batch entry to batch entry.
AttentionSpec placed(const AttentionSpec& spec, int64_t batch, int64_t queries, int64_t keys);

// The scores with their bias, [B, H, Tq, Tk], -inf outside the scope; float32 or float64.
at::Tensor attention_scores(const at::Tensor& query, const at::Tensor& key,
                            const AttentionSpec& spec = {});

// Some of the weights. Heads are those of queries of four axes.
struct Selection {
  std::vector<int64_t> heads = {};  // their numbers, in the order of the result; empty: all
  int64_t first_row = 0;
  std::optional<int64_t> rows = {};  // queries first_row, first_row + 1, ...; else to the last
};

// The weights before dropout, [B, selected heads, rows, Tk], behind attention(query, key, .,
// spec), from the lse it returned: 0 outside the scope. Two and three axes as in attention. These
// and the summaries below take the composed path, which holds all Tq x Tk of them, where they are
// to be differentiated; else no more is held than is returned. Error when the selection is not
// there.
at::Tensor attention_weights(const at::Tensor& query, const at::Tensor& key, const at::Tensor& lse,
                             const AttentionSpec& spec = {}, const Selection& selection = {});

// The weights of a scope of edges by edge, [B, selected heads, edges of the longest list], in the
// order of each list: 0 where the query is not of the selected rows, and behind a list's last edge.
// Where they are to be differentiated, queries are padded to the one with the most edges. Error on
// a scope that is not one clause with one condition of edges.
at::Tensor attention_edge_weights(const at::Tensor& query, const at::Tensor& key,
                                  const at::Tensor& lse, const AttentionSpec& spec = {},
                                  const Selection& selection = {});

// [B, selected heads, rows, count], largest first, equal ones in the order of the keys. Only
// weights above 0 are listed; places past them hold weight 0 and key -1.
struct TopWeights {
  at::Tensor weights;
  at::Tensor keys;  // int64
};

// The `count` largest weights of each row, 1 or more.
TopWeights attention_top(const at::Tensor& query, const at::Tensor& key, const at::Tensor& lse,
                         int64_t count, const AttentionSpec& spec = {},
                         const Selection& selection = {});

// The key of the largest weight, int64 [B, selected heads, rows]; -1 for a row without any.
at::Tensor attention_argmax(const at::Tensor& query, const at::Tensor& key, const at::Tensor& lse,
                            const AttentionSpec& spec = {}, const Selection& selection = {});

// -sum_j w_ij ln w_ij, [B, selected heads, rows]; float32 or float64. NaN for a row with a weight
// below 0, as normaliser none may have one.
at::Tensor attention_entropy(const at::Tensor& query, const at::Tensor& key, const at::Tensor& lse,
                             const AttentionSpec& spec = {}, const Selection& selection = {});

// sum_i w_ij over the selected rows, [B, selected heads, Tk]; float32 or float64.
at::Tensor attention_column_sums(const at::Tensor& query, const at::Tensor& key,
                                 const at::Tensor& lse, const AttentionSpec& spec = {},
                                 const Selection& selection = {});

}  // namespace attend
