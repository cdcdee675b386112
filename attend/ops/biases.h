#pragma once

#include <ATen/ATen.h>

#include <string_view>
#include <variant>
#include <vector>

#include "attend/ops/scopes.h"

namespace attend {

// What is added to the scores. Biases add up with +: alibi(slopes) + dense_bias(mask_penalty).
// Every tensor here has a gradient. Query i stands at position i + offset among the keys: with
// fewer queries than keys, the last ones, offset = keys - queries.

// bias, broadcasts to [B, H, Tq, Tk], for queries of three axes [B, Tq, Tk].
struct DenseBias {
  at::Tensor bias;
};

// -slopes[h] |i + offset - j|. slopes [H] or one number.
struct AlibiBias {
  at::Tensor slopes;
  int64_t offset = 0;
};

// table[h][bucket(j - i - offset)]: buckets of one distance each up to a half of them, then ever
// wider ones up to maximum_distance, all farther ones in the last. table [H, buckets] or [buckets].
// Bidirectional: half of the buckets are for the keys after the query; else those share bucket 0.
struct BucketBias {
  at::Tensor table;
  bool bidirectional = true;
  int64_t maximum_distance = 128;
  int64_t offset = 0;
};

// scale q_i . table[clip(j - i - offset, -L, L) + L], q and scale as the score has them once its
// queries are mapped. table [2 L + 1, A] or [H, 2 L + 1, A].
struct RelativeKeysBias {
  at::Tensor table;
  int64_t offset = 0;
};

// -(j - centres_i)^2 / (2 widths_i^2). Both broadcast to [B, H, Tq], for queries of three axes
// [B, Tq]; widths are positive.
struct GaussianBias {
  at::Tensor centres;
  at::Tensor widths;
};

// table[h][y_j - y_i + height - 1][x_j - x_i + width - 1] on a grid of queries and keys, position
// y width + x, where [H, 2 height - 1, 2 width - 1] or without H is the table's shape. Query i
// stands at i + offset; queries and keys may end before the grid does.
struct GridBias {
  at::Tensor table;
  int64_t offset = 0;
};

using BiasTerm =
    std::variant<DenseBias, AlibiBias, BucketBias, RelativeKeysBias, GaussianBias, GridBias>;

struct Bias {
  std::vector<BiasTerm> terms = {};
};

Bias operator+(const Bias& a, const Bias& b);

Bias dense_bias(at::Tensor bias);
Bias alibi(at::Tensor slopes, int64_t offset = 0);
Bias buckets(const BucketBias& bias);
Bias relative_keys(at::Tensor table, int64_t offset = 0);
Bias gaussian(at::Tensor centres, at::Tensor widths);
Bias grid(at::Tensor table);

// The bias of the queries offset, offset + 1, ... when those before are not there: decoding step t
// has one query and offset t. Offsets grow; dense biases, centres and widths that have a row for
// every query keep those of the `queries` rows from the offset on (all that are left when not
// said), those of one row stay. Error where such a row is missing.
Bias shifted(const Bias& bias, int64_t offset, int64_t queries = unbounded);

// The slopes of Press et al. 2022: 2^(-8 h / heads), h = 1 ... heads, where heads is a power of
// two; else those of the power below and every other one of the power above. float32 [heads].
at::Tensor alibi_slopes(int64_t heads);

// The bucket of each distance j - i (int64, any shape), 0 <= bucket < count.
at::Tensor distance_buckets(const at::Tensor& distance, int64_t count, bool bidirectional,
                            int64_t maximum_distance);

struct BiasParameter {
  std::string_view name;
  std::string_view shape;
  std::string_view meaning;
};

// One row of the table of biases.
struct BiasRow {
  std::string_view name;
  std::string_view formula;
  std::string_view source;
  std::vector<BiasParameter> parameters;
};

// Every bias, in the order of the documentation.
const std::vector<BiasRow>& bias_table();

}  // namespace attend
