#include "attend/ops/bias_parts.h"

#include <ATen/OpMathType.h>

#include <algorithm>

#include "attend/base/error.h"
#include "attend/ops/arithmetic-inl.h"
#include "attend/ops/conditions-inl.h"
#include "attend/ops/shape_text.h"

namespace attend {
namespace {

using at::Tensor;

Tensor all_positions(int64_t count, const Tensor& like) {
  return at::arange(count, like.options().dtype(at::kLong));
}

void check_broadcast(const Tensor& tensor, at::IntArrayRef shape, const char* name,
                     const char* axes) {
  if (!broadcasts(tensor, shape))
    fail("[attention] {} of shape {} does not broadcast to {} = [{}]", name, shape_of(tensor), axes,
         fmt::join(shape, ", "));
}

}  // namespace

Tensor BiasParts::numbers(const Tensor& given, const char* name) const {
  return in_arithmetic(given, name, parts_, spec_);
}

Tensor BiasParts::number_per_head(const Tensor& given, const char* name) const {
  return per_head(given, name, parts_, spec_);
}

Tensor BiasParts::number_per_pair(const Tensor& given, const char* name) const {
  Tensor pairs = numbers(given, name);
  if (query_axes_ == 3) pairs = with_axis_of_heads(pairs, 3);
  const int64_t shape[] = {spec_.batch, spec_.heads, spec_.queries, spec_.keys};
  check_broadcast(pairs, shape, name, "[batch, heads, queries, keys]");
  while (pairs.dim() < 4) pairs = pairs.unsqueeze(0);
  return pairs;
}

Tensor BiasParts::number_per_query(const Tensor& given, const char* name) const {
  Tensor queries = numbers(given, name);
  if (query_axes_ == 3) queries = with_axis_of_heads(queries, 2);
  const int64_t shape[] = {spec_.batch, spec_.heads, spec_.queries};
  check_broadcast(queries, shape, name, "[batch, heads, queries]");
  return queries.expand(shape);
}

Tensor BiasParts::number_per_position(const Tensor& given, const char* name) const {
  Tensor positions = numbers(given, name);
  if (query_axes_ == 3) positions = with_axis_of_heads(positions, 2);
  const int64_t count = positions.dim() == 0 ? 1 : positions.size(-1);
  const int64_t shape[] = {spec_.batch, spec_.heads, count};
  check_broadcast(positions, shape, name, "[batch, heads, positions]");
  return positions.expand(shape);
}

Tensor BiasParts::number_per_edge(const Tensor& given, const char* name) const {
  const EdgeTensors* lists = edge_tensors(spec_.scope);
  if (!lists)
    fail(
        "[attention] {} has a number for each edge; the scope is not one clause with one "
        "condition of edges",
        name);
  Tensor numbers = this->numbers(given, name);
  if (query_axes_ == 3) numbers = with_axis_of_heads(numbers, 2);
  const int64_t longest = longest_list(*lists);
  const int64_t shape[] = {spec_.batch, spec_.heads, longest};
  if (numbers.dim() == 0 || numbers.size(-1) != longest)
    fail("[attention] {} has shape {}; its last axis must have the {} edges of the longest list",
         name, shape_of(numbers), longest);
  check_broadcast(numbers, shape, name, "[batch, heads, edges]");
  while (numbers.dim() < 3) numbers = numbers.unsqueeze(0);
  return numbers.unsqueeze(2);
}

void BiasParts::add_edges(const Tensor& edges) {
  Tensor& sum = parts_[part::edges];
  sum = sum.defined() ? sum + edges : edges;
}

void BiasParts::add_dense(const Tensor& given) {
  const Tensor bias = without_repetitions(given);
  const Tensor whole = bias.expand({bias.size(0), bias.size(1), bias.size(2), spec_.keys});
  Tensor& dense = parts_[part::dense];
  dense = dense.defined() ? dense + whole : whole;
}

void BiasParts::add_slopes(const Tensor& slopes, int64_t offset) {
  Tensor& sum = parts_[part::slopes];
  if (sum.defined() && spec_.slope_offset != offset)
    return add_dense(dense_of_slopes(slopes, offset, spec_.queries, spec_.keys));
  sum = sum.defined() ? sum + slopes : slopes;
  spec_.slope_offset = offset;
}

void BiasParts::add_relative(const Tensor& relative, int64_t offset, const Tensor& query_positions,
                             const Tensor& key_positions) {
  LoweredSpec own;
  LoweredSpec& spec = parts_[part::relative].defined() ? own : spec_;
  own.queries = spec_.queries;
  own.keys = spec_.keys;
  spec.relative_offset = offset;
  spec.query_positions = query_positions;
  spec.key_positions = key_positions;
  if (&spec == &own) return add_dense(dense_of_relative(relative, own));
  parts_[part::relative] = relative;
}

void BiasParts::add_gaussian(const Tensor& centres, const Tensor& widths) {
  if (parts_[part::centres].defined())
    return add_dense(dense_of_gaussian(centres, widths, spec_.keys));
  parts_[part::centres] = centres;
  parts_[part::widths] = widths;
}

void BiasParts::add_sums(const Tensor& query_sums, const Tensor& key_sums) {
  if (parts_[part::query_sums].defined())
    return add_dense(
        dense_of_sums(query_sums, key_sums, at::toOpMathType(parts_[part::query].scalar_type())));
  parts_[part::query_sums] = query_sums;
  parts_[part::key_sums] = key_sums;
}

void BiasParts::add_products(const Tensor& query_products, const Tensor& key_products,
                             const Tensor& columns) {
  Tensor &queries = parts_[part::query_products], &keys = parts_[part::key_products];
  const Tensor& given = query_products.defined() ? query_products : key_products;
  const Tensor& kept = queries.defined() ? queries : keys;
  const bool fits = !kept.defined() ||
                    (kept.size(3) == given.size(3) && spec_.columns.sizes() == columns.sizes() &&
                     spec_.columns.equal(columns.to(at::kInt)));
  if (!fits) {
    LoweredSpec own;
    own.queries = spec_.queries;
    own.keys = spec_.keys;
    own.columns = columns;
    return add_dense(dense_of_products(query_products, key_products, own));
  }
  spec_.columns = columns.to(at::kInt);
  if (query_products.defined())
    queries = queries.defined() ? queries + query_products : query_products;
  if (key_products.defined()) keys = keys.defined() ? keys + key_products : key_products;
}

Tensor dense_of_slopes(const Tensor& slopes, int64_t offset, int64_t queries, int64_t keys) {
  const Tensor distance =
      all_positions(keys, slopes).unsqueeze(0) - all_positions(queries, slopes).unsqueeze(1);
  return -slopes.view({1, -1, 1, 1}) * (distance - offset).abs().to(slopes.scalar_type());
}

Tensor dense_of_relative(const Tensor& relative, const LoweredSpec& spec) {
  const Tensor row =
      spec.query_positions.defined() ? spec.query_positions : all_positions(spec.queries, relative);
  const Tensor key =
      spec.key_positions.defined() ? spec.key_positions : all_positions(spec.keys, relative);
  const Tensor place =
      (key.unsqueeze(0) - row.unsqueeze(1) + spec.relative_offset).clamp(0, relative.size(3) - 1);
  const std::vector<int64_t> shape = {relative.size(0), relative.size(1), spec.queries, spec.keys};
  if (relative.size(2) == 1)
    return relative.select(2, 0).index_select(-1, place.reshape({-1})).view(shape);
  return relative.gather(-1, place.expand(shape));
}

Tensor dense_of_gaussian(const Tensor& centres, const Tensor& widths, int64_t keys) {
  const Tensor key = at::arange(keys, centres.options());
  const Tensor distance = key - centres.unsqueeze(-1);
  return -(distance / widths.unsqueeze(-1)).square() / 2;
}

Tensor dense_of_sums(const Tensor& query_sums, const Tensor& key_sums, at::ScalarType type) {
  const Tensor difference = query_sums.unsqueeze(-1) - key_sums.unsqueeze(-2);
  // At 0 the slope is the one of a key before the query, as in the kernels.
  return at::where(difference.detach().gt(0), -difference, difference).to(type);
}

Tensor dense_of_products(const Tensor& query_products, const Tensor& key_products,
                         const LoweredSpec& spec) {
  const Tensor& one = query_products.defined() ? query_products : key_products;
  // The windows of the columns are the rows of the last query, of the query before it, and so on.
  const Tensor chosen = spec.columns.to(at::kLong)
                            .unfold(1, std::max<int64_t>(spec.keys, 1), 1)
                            .flip(1)
                            .narrow(1, 0, spec.queries)
                            .narrow(2, 0, spec.keys)
                            .unsqueeze(1)
                            .expand({one.size(0), one.size(1), spec.queries, spec.keys});
  Tensor sum;
  if (query_products.defined()) sum = query_products.gather(3, chosen);
  if (!key_products.defined()) return sum;
  const Tensor by_key = key_products.gather(3, chosen.transpose(2, 3)).transpose(2, 3);
  return sum.defined() ? sum + by_key : by_key;
}

}  // namespace attend
