#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "attend/ops/bias_term.h"
#include "attend/ops/scopes.h"

namespace attend {

// What is added to the scores. Terms add up with +: alibi(slopes) + dense_bias(mask_penalty). Every
// tensor of floating numbers here has a gradient. Query i is at position i + offset + offsets[b]
// among the keys: with fewer queries than keys, the last ones, offset = keys - queries. offsets are
// int64 [B]; undefined: 0. AttentionSpec has them for all choices at once.
struct Bias {
  std::vector<BiasTermPointer> terms = {};
};

Bias operator+(const Bias& a, const Bias& b);

// bias, broadcasts to [B, H, Tq, Tk], for queries of three axes [B, Tq, Tk]. What an expanded
// tensor repeats over the batch, the heads or the queries is read where it is, not copied, unless
// it is differentiated.
Bias dense_bias(at::Tensor bias);

// -slopes[h] |i + offset - j|. slopes [H], one number, or [B, H] for a slope of each batch entry.
Bias alibi(at::Tensor slopes, int64_t offset = 0, at::Tensor offsets = {});

// table[h][bucket(j - i - offset)]: buckets of one distance each up to a half of them, then ever
// wider ones up to maximum_distance, all farther ones in the last. table [H, buckets] or [buckets].
// Bidirectional: half of the buckets are for the keys after the query; else those share bucket 0.
struct BucketBias {
  at::Tensor table;
  bool bidirectional = true;
  int64_t maximum_distance = 128;
  int64_t offset = 0;
  at::Tensor offsets = {};
};
Bias buckets(const BucketBias& bias);

// scale q_i . table[clip(j - i - offset, -L, L) + L], q and scale as the score has them once its
// queries are mapped. table [2 L + 1, A] or [H, 2 L + 1, A].
Bias relative_keys(at::Tensor table, int64_t offset = 0, at::Tensor offsets = {});

// -(j - centres_i)^2 / (2 widths_i^2). Both broadcast to [B, H, Tq], for queries of three axes
// [B, Tq]; widths are positive, and those below 2e-13, in float64 3e-103, count as that.
Bias gaussian(at::Tensor centres, at::Tensor widths);

// A number for each edge of a scope of edges, in the order of its keys: bias [edges], [H, edges] or
// [B, H, edges], where axes of 1 broadcast; of lists of their own as many as the longest has.
Bias edge_bias(at::Tensor bias);

// table[h][y_j - y_i + height - 1][x_j - x_i + width - 1] on a grid of queries and keys, position
// y width + x, where [H, 2 height - 1, 2 width - 1] or without H is the table's shape. Query i
// is at i + offset, key j at j + first_key; queries and keys may end before the grid does.
Bias grid(at::Tensor table, int64_t offset = 0, int64_t first_key = 0);

// The bias for the queries offset, offset + 1, ... when the queries before them are absent:
// decoding step t has one query and offset t. Offsets grow; dense biases, centres and widths that
// have a row for every query keep those of the `queries` rows from the offset on (by default to the
// end), those of one row stay. Error where such a row is missing.
Bias shifted(const Bias& bias, int64_t offset, int64_t queries = unbounded);

// The bias for the keys first ... first + keys - 1 when the others are absent. A dense bias keeps
// the columns of these; one of one column stays. Error where such a column is missing.
Bias shifted_keys(const Bias& bias, int64_t first, int64_t keys);

// The bias for queries that begin elsewhere among the keys: whatever counts positions moves there.
// Error on a grid where batch entries begin at different places.
Bias placed(const Bias& bias, const Place& place);

// The slopes of Press et al. 2022: 2^(-8 h / heads), h = 1 ... heads, where heads is a power of
// two; else those of the power below and every other one of the power above. float32 [heads].
at::Tensor alibi_slopes(int64_t heads);

// The bucket of each distance j - i (int64, any shape), 0 <= bucket < count.
at::Tensor distance_buckets(const at::Tensor& distance, int64_t count, bool bidirectional,
                            int64_t maximum_distance);

enum class BiasKind { dense, alibi, buckets, relative_keys, gaussian, grid, offset, sink };

struct BiasParameter {
  std::string_view name;
  std::string_view shape;
  std::string_view meaning;
  int64_t axes = 0;              // behind those of batch and heads
  std::string_view absent = {};  // what its absence means, where it may be absent
};

// The numbers behind a row's name, as in buckets:32 and grid:8x6. Axis i of its table, behind that
// of heads, is factor n_i + shift long.
struct BiasNumbers {
  size_t count = 0;
  int64_t least = 0;  // that each may be where the table is trained
  int64_t factor = 1;
  int64_t shift = 0;
};

// More of them is no table that anyone trains.
inline constexpr int64_t largest_bias_number = 1 << 16;

// One row of the table of biases.
struct BiasRow {
  BiasKind kind;
  std::string_view name;
  std::string_view syntax;  // as parse_biases reads it
  std::string_view formula;
  std::string_view source;
  std::vector<BiasParameter> parameters;
  BiasNumbers numbers = {};
  bool is_trained = true;     // a model may have it; else it is only given
  bool is_positional = true;  // it depends on the position of the query
};

// Every bias, in the order of the documentation. The offset is one number for all scores and
// becomes a dense bias; the sink is AttentionSpec::sink.
const std::vector<BiasRow>& bias_table();

// "alibi_slopes": a parameter among those of all choices.
std::string parameter_name(const BiasRow& row, const BiasParameter& parameter);

// One part of a bias in its text form.
struct BiasChoice {
  const BiasRow* row;
  std::vector<int64_t> numbers = {};  // as many as the row has; none where they were left out
};

// "alibi + buckets:32" as its parts; none for an empty text. Numbers are 0 to largest_bias_number.
// Error with the nearest name on an unknown part, on other numbers than the row's, and on the same
// part twice.
std::vector<BiasChoice> parse_biases(std::string_view text);

bool has_bias(const std::vector<BiasChoice>& biases, BiasKind kind);

// The lengths of those axes of the choice's table that its numbers determine.
std::vector<int64_t> table_axes(const BiasChoice& choice);

}  // namespace attend
