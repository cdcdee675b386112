#pragma once

#include "attend/ops/biases.h"
#include "attend/ops/lowered_spec.h"

namespace attend {

// Accumulates the terms of a bias. The kernels accept one part of each form; if a form is already
// used, a further term is added to the dense bias.
class BiasParts {
 public:
  // `query_axes`: number of axes of the caller's queries.
  BiasParts(int64_t query_axes, Parts& parts, LoweredSpec& spec)
      : query_axes_(query_axes), parts_(parts), spec_(spec) {}

  const LoweredSpec& spec() const { return spec_; }
  const at::Tensor& mapped_query() const { return parts_[part::query]; }
  const at::Tensor& mapped_key() const { return parts_[part::key]; }
  int64_t last_query() const { return std::max<int64_t>(spec_.queries, 1) - 1; }

  // Return a tensor of a term in the dtype of the arithmetic. Error on another dtype or device;
  // `name` is used in messages. numbers() keeps the shape. number_per_head() takes [H] or one
  // number and returns [H]. number_per_pair() returns four axes that broadcast to [B, H, Tq, Tk].
  // number_per_query() returns [B, H, Tq] from a tensor that broadcasts to it.
  at::Tensor numbers(const at::Tensor& given, const char* name) const;
  at::Tensor number_per_head(const at::Tensor& given, const char* name) const;
  at::Tensor number_per_pair(const at::Tensor& given, const char* name) const;
  at::Tensor number_per_query(const at::Tensor& given, const char* name) const;
  // Returns [B, H, positions] from a tensor that broadcasts to it, whatever its last axis.
  at::Tensor number_per_position(const at::Tensor& given, const char* name) const;
  // Returns [B or 1, H or 1, 1, edges of the longest list] from [edges], [H, edges] or [B, H,
  // edges]. Error if the scope is not one clause with one condition of edges.
  at::Tensor number_per_edge(const at::Tensor& given, const char* name) const;

  // [B or 1, H or 1, Tq or 1, Tk or 1].
  void add_dense(const at::Tensor& given);
  // -slopes[h] |i + offset - j|, slopes [H].
  void add_slopes(const at::Tensor& slopes, int64_t offset);
  // relative[key position - query position + offset], with indices clamped to the valid range.
  // relative: [B or 1, H or 1, Tq or 1, distances]. Positions: int64 [Tq] and [Tk]; undefined: i
  // and j.
  void add_relative(const at::Tensor& relative, int64_t offset,
                    const at::Tensor& query_positions = {}, const at::Tensor& key_positions = {});
  // Shape as returned by number_per_edge().
  void add_edges(const at::Tensor& edges);
  // -(j - centres)^2 / (2 widths^2), both [B, H, Tq].
  void add_gaussian(const at::Tensor& centres, const at::Tensor& widths);
  // -|query_sums - key_sums|, float64 [B, H, Tq] and [B, H, Tk].
  void add_sums(const at::Tensor& query_sums, const at::Tensor& key_sums);
  // query_products[i][c] + key_products[j][c], c = columns[j - i + Tq - 1]. Products [B, H, Tq,
  // count] and [B, H, Tk, count]; one may be undefined. columns: int64 [B or 1, Tq + Tk - 1].
  void add_products(const at::Tensor& query_products, const at::Tensor& key_products,
                    const at::Tensor& columns);

 private:
  int64_t query_axes_;
  Parts& parts_;
  LoweredSpec& spec_;
};

// Converts a part of a bias to [B or 1, H or 1, Tq or 1, Tk].
at::Tensor dense_of_slopes(const at::Tensor& slopes, int64_t offset, int64_t queries, int64_t keys);
at::Tensor dense_of_relative(const at::Tensor& relative, const LoweredSpec& spec);
at::Tensor dense_of_gaussian(const at::Tensor& centres, const at::Tensor& widths, int64_t keys);
at::Tensor dense_of_products(const at::Tensor& query_products, const at::Tensor& key_products,
                             const LoweredSpec& spec);
at::Tensor dense_of_sums(const at::Tensor& query_sums, const at::Tensor& key_sums,
                         at::ScalarType type);

}  // namespace attend
