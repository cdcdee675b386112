#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "attend/ops/bias_term.h"
#include "attend/ops/scopes.h"

namespace attend {

// Terms added to the scores. Terms are combined with +: alibi(slopes) + dense_bias(mask_penalty).
// Every floating-point tensor here has a gradient. Query i is at position i + offset + offsets[b]
// among the keys; if the queries are the last ones, offset = keys - queries. offsets: int64 [B];
// undefined: 0. AttentionSpec can set them for all options at once.
struct Bias {
  std::vector<BiasTermPointer> terms = {};
};

Bias operator+(const Bias& a, const Bias& b);

// bias: broadcasts to [B, H, Tq, Tk]; for queries of three axes [B, Tq, Tk]. Expanded axes are read
// without a copy unless the tensor is differentiated.
Bias dense_bias(at::Tensor bias);

// -slopes[h] |i + offset - j|. slopes: [H], one number, or [B, H] for slopes per batch entry.
Bias alibi(at::Tensor slopes, int64_t offset = 0, at::Tensor offsets = {});

// Kernels of the distance (Chi et al. 2022, KERPLE): -p[h] ln(1 + a[h] |i + offset - j|) and -a[h]
// |i + offset - j|^p[h]. Both tensors: [H] or one number, positive; the power is at most 2 for a
// conditionally positive definite kernel. Error on a number that is not positive.
Bias kerple_log(at::Tensor p, at::Tensor a, int64_t offset = 0, at::Tensor offsets = {});
Bias kerple_power(at::Tensor p, at::Tensor a, int64_t offset = 0, at::Tensor offsets = {});

// factors[h] (p_i . p_j - depth / 2) for sinusoidal positions p of `depth` columns (Chi et al.
// 2023, Sandwich), that is, factors[h] sum_a (cos((i + offset - j) 10000^(-2 a / depth)) - 1), a =
// 1 .. depth / 2. It is 0 at distance 0. factors: [H] or one number. Error if the depth is odd or
// below 2.
Bias sandwich(at::Tensor factors, int64_t depth = 128, int64_t offset = 0, at::Tensor offsets = {});

// Factors of Chi et al. 2023: heads / (8 h), h = 1 ... heads. float32 [heads].
at::Tensor sandwich_factors(int64_t heads);

// -|c_i - c_j|, c_n = sum_{t <= n} ln sigmoid(gates_t), the sum of the logarithms of the gates
// after the earlier position up to the later one (Lin et al. 2025, forgetting attention). So a
// query multiplies the weight of an earlier key by the gates after the key up to its own. gates:
// broadcast to [B, H, keys], any numbers; for queries of three axes [B, keys]. Sums are float64; ln
// sigmoid is at least -1e5. Queries before the first key or after the last one have no gates of
// their own.
Bias forget(at::Tensor gates, int64_t offset = 0, at::Tensor offsets = {});

// s q_i . e[p_ij] with the scale s of the score (Golovneva et al. 2024, CoPE). The position p_ij is
// the sum of sigmoid(s q_i . k_t) over the keys t in scope from j to the query, both included, at
// most N - 1; 0 for keys after the query. Between whole positions, e is interpolated. table e: [N,
// A] or [H, N, A]. Memory is quadratic, as a position depends on all keys between. Error if the
// score is not of the dot family.
Bias cope(at::Tensor table, int64_t offset = 0, at::Tensor offsets = {});

// W_2 relu(W_1 x + b_1) + b_2 with x = ln(|c| |i - j| + 1) / (ln(|c| max(|threshold|, i) + 1) +
// 1e-6) and i the position of the query (Li et al. 2024, FIRE). Memory is quadratic, as x depends
// on i and j - i. Queries before the first key count as at 0.
struct FireBias {
  at::Tensor W_1, b_1;   // [units]
  at::Tensor W_2, b_2;   // [H, units] and [H]; for all heads [units] and one number
  at::Tensor c;          // one number
  at::Tensor threshold;  // one number
  int64_t offset = 0;
  at::Tensor offsets = {};
};
Bias fire(const FireBias& bias);

// table[h][bucket(j - i - offset)]. The first half of the buckets holds one distance each; further
// buckets get wider up to maximum_distance. Larger distances use the last bucket. table: [H,
// buckets] or [buckets]. If bidirectional, half of the buckets are for keys after the query;
// otherwise these keys share bucket 0.
struct BucketBias {
  at::Tensor table;
  bool bidirectional = true;
  int64_t maximum_distance = 128;
  int64_t offset = 0;
  at::Tensor offsets = {};
};
Bias buckets(const BucketBias& bias);

// scale q_i . table[clip(j - i - offset, -L, L) + L], with the mapped query q and the scale of the
// score. table: [2 L + 1, A] or [H, 2 L + 1, A].
Bias relative_keys(at::Tensor table, int64_t offset = 0, at::Tensor offsets = {});

// The terms of disentangled attention (He et al. 2021, eq. 4): scale q_i . table[c_ij] with the
// mapped query q, and scale k_j . table[c_ij] with the mapped key k and the scale of the score;
// c_ij is the column of position_columns() for the distance i + offset - j. table: [2 K, A] or [H,
// 2 K, A]. Memory is linear: products of each query or key with the columns that occur.
struct DisentangledBias {
  at::Tensor table;
  int64_t maximum_distance = 0;  // 0: each distance within K has its own column
  int64_t offset = 0;
  at::Tensor offsets = {};
};
Bias content_to_position(const DisentangledBias& bias);
Bias position_to_content(const DisentangledBias& bias);

// Columns of distances i - j (int64, any shape) in tables of 2 K columns: clip(d + K, 0, 2 K - 1),
// with d the distance. With a maximum_distance above K / 2, distances above K / 2 get wider and
// wider steps, up to K - 1 for maximum_distance - 1 (DeBERTa-v2). Error on fewer than 2 columns, an
// odd number, and a maximum_distance other than 0 that is too small.
at::Tensor position_columns(const at::Tensor& distance, int64_t columns, int64_t maximum_distance);

// -(j - centres_i)^2 / (2 widths_i^2). Both broadcast to [B, H, Tq]; for queries of three axes [B,
// Tq]. Widths must be positive; widths below 2e-13 (float64: 3e-103) are raised to it.
Bias gaussian(at::Tensor centres, at::Tensor widths);

// One number per edge of a scope of edges, in the order of its keys. bias: [edges], [H, edges] or
// [B, H, edges], axes of 1 broadcast. If batch entries or heads have their own lists, the last axis
// has the length of the longest list.
Bias edge_bias(at::Tensor bias);

// table[h][y_j - y_i + height - 1][x_j - x_i + width - 1] on a grid of queries and keys, position y
// width + x. table: [H, 2 height - 1, 2 width - 1], or without H. Query i is at i + offset, key j
// at j + first_key; queries and keys may end before the end of the grid.
Bias grid(at::Tensor table, int64_t offset = 0, int64_t first_key = 0);

// The bias for queries offset, offset + 1, ... without the queries before them: decoding step t has
// one query and offset t. Offsets grow. Dense biases, centres and widths with one row per query
// keep `queries` rows from the offset on (by default to the end); a single row stays. Error if a
// row is missing.
Bias shifted(const Bias& bias, int64_t offset, int64_t queries = unbounded);

// The bias for keys first ... first + keys - 1 without the others. A dense bias keeps the columns
// of these keys; a single column stays. Error if a column is missing.
Bias shifted_keys(const Bias& bias, int64_t first, int64_t keys);

// The bias for queries that begin at another position among the keys; terms that depend on
// positions are moved. Error on a grid if batch entries begin at different positions.
Bias placed(const Bias& bias, const QueryOffset& place);

// Slopes of Press et al. 2022: 2^(-8 h / heads), h = 1 ... heads, if heads is a power of two.
// Otherwise the slopes for the next lower power, followed by every other slope for the next higher
// one. float32 [heads].
at::Tensor alibi_slopes(int64_t heads);

// Bucket of each distance j - i (int64, any shape), 0 <= bucket < count.
at::Tensor distance_buckets(const at::Tensor& distance, int64_t count, bool bidirectional,
                            int64_t maximum_distance);

enum class BiasKind {
  dense,
  alibi,
  kerple_log,
  kerple_power,
  sandwich,
  forget,
  cope,
  fire,
  buckets,
  relative_keys,
  content_to_position,
  position_to_content,
  gaussian,
  grid,
  offset,
  sink
};

struct BiasParameter {
  std::string_view name;
  std::string_view shape;
  std::string_view meaning;
  int64_t axes = 0;              // number of axes after batch and heads
  std::string_view absent = {};  // default if the parameter is absent; empty: required
  // Maps the numbers that a model trains to valid ones; null: they are valid.
  at::Tensor (*from_trained)(const at::Tensor& trained) = nullptr;
};

// Numbers after the name of a bias, as in buckets:32 and grid:8x6. Axis i of the table, after the
// head axis, has length factor n_i + shift.
struct BiasNumbers {
  size_t count = 0;
  int64_t least = 0;  // minimum of each number if the table is trained
  int64_t factor = 1;
  int64_t shift = 0;
  bool sizes_table = true;   // false: the numbers give no axis of a table
  int64_t for_sentence = 0;  // a number that suits a sentence of a picture; 0: the given ones do
  // The largest distance may follow after a comma; numbers are then separated by commas, not x.
  bool takes_distance = false;
};

// Upper limit of these numbers; no trained table is larger.
inline constexpr int64_t largest_bias_number = 1 << 16;

// One row of the table of biases.
struct BiasRow {
  BiasKind kind;
  std::string_view name;
  std::string_view syntax;  // as read by parse_biases
  std::string_view formula;
  std::string_view source;
  std::vector<BiasParameter> parameters;
  BiasNumbers numbers = {};
  bool is_trained = true;      // false: a model cannot train it; it is only given by the caller
  bool is_positional = true;   // depends on the position of the query
  bool reads_queries = false;  // its tensor holds vectors that are compared with queries
  bool reads_keys = false;     // the same for keys
  // Its tensor has a number per key, which MultiHeadAttention computes from the source by a linear
  // map. Other modules do not support it.
  bool is_of_source = false;
  bool is_dense = false;  // takes a number per query and key of memory

  // Whether the first parameter holds vectors that are compared with queries or keys.
  bool compares() const { return reads_queries || reads_keys; }
};

// All biases, in the order of the documentation. The offset is one number per head, added to all
// its scores as a dense bias; the sink is AttentionSpec::sink.
const std::vector<BiasRow>& bias_table();

// Name of a parameter, unique among all biases, for example "alibi_slopes".
std::string parameter_name(const BiasRow& row, const BiasParameter& parameter);

// One part of a bias in text form.
struct BiasChoice {
  const BiasRow* row;
  std::vector<int64_t> numbers = {};  // numbers of the row; empty if omitted
};

// Parses "alibi + buckets:32" into its parts; an empty text has no parts. Numbers are 0 to
// largest_bias_number. Error on an unknown part (with the nearest name), on the wrong numbers for a
// row, and on a repeated part.
std::vector<BiasChoice> parse_biases(std::string_view text);

bool has_bias(const std::vector<BiasChoice>& biases, BiasKind kind);

// Lengths of the table axes that the numbers of the choice determine.
std::vector<int64_t> table_axes(const BiasChoice& choice);

}  // namespace attend
