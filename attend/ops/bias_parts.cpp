#include <algorithm>
#include <cmath>
#include <limits>

#include "attend/base/error.h"
#include "attend/ops/lower-inl.h"
#include "attend/ops/scope_checks-inl.h"
#include "attend/ops/shape_text.h"

namespace attend {
namespace {

using at::Tensor;

Tensor positions(int64_t count, const Tensor& like) {
  return at::arange(count, like.options().dtype(at::kLong));
}

// What a term adds to the positions of the queries of each batch entry, [B]; undefined: 0. Error on
// another shape or dtype.
Tensor checked_offsets(const Tensor& offsets, const char* name, const LoweredSpec& spec,
                       const Tensor& like) {
  if (!offsets.defined()) return {};
  if (offsets.scalar_type() != at::kLong || offsets.sizes() != at::IntArrayRef{spec.batch})
    fail(
        "[attention] the offsets of {} are {} of shape {}; they must be int64 of shape [batch], {}",
        name, c10::toString(offsets.scalar_type()), shape_of(offsets), spec.batch);
  return offsets.to(like.device()).clamp(-farthest_offset, farthest_offset);
}

// j - i - offset, [Tq, Tk].
Tensor distances(int64_t queries, int64_t keys, int64_t offset, const Tensor& like) {
  return positions(keys, like).unsqueeze(0) - positions(queries, like).unsqueeze(1) - offset;
}

// Where a part is taken already, a term joins the dense bias: the kernels have one of each.
class BiasParts {
 public:
  BiasParts(int64_t query_axes, Parts& parts, LoweredSpec& spec)
      : query_axes_(query_axes), parts_(parts), spec_(spec) {}

  void add(const DenseBias& term) {
    Tensor bias = in_arithmetic(term.bias, "the dense bias", parts_, spec_);
    if (query_axes_ == 3 && bias.dim() == 3) bias = bias.unsqueeze(1);
    const int64_t shape[] = {spec_.batch, spec_.heads, spec_.queries, spec_.keys};
    check_broadcast(bias, shape, "the dense bias", "[batch, heads, queries, keys]");
    while (bias.dim() < 4) bias = bias.unsqueeze(0);
    add_dense(bias);
  }

  void add(const AlibiBias& term) {
    const bool by_entry = term.slopes.defined() && term.slopes.dim() == 2;
    const Tensor slopes = by_entry ? per_entry(term.slopes, "the slopes of alibi")
                                   : per_head(term.slopes, "the slopes of alibi", parts_, spec_);
    if (by_entry || term.offsets.defined()) {
      const Tensor far = distances_of(term, "alibi", slopes).abs().to(slopes.scalar_type());
      const Tensor of_heads = slopes.view({by_entry ? spec_.batch : 1, spec_.heads, 1, 1});
      return add_relative(-of_heads * far.unsqueeze(1).unsqueeze(1), last_query(), {}, {});
    }
    if (parts_[part::slopes].defined() && spec_.slope_offset != term.offset)
      return add_dense(dense_of_slopes(slopes, term.offset, spec_.queries, spec_.keys));
    parts_[part::slopes] = parts_[part::slopes].defined() ? parts_[part::slopes] + slopes : slopes;
    spec_.slope_offset = term.offset;
  }

  void add(const BucketBias& term) {
    const Tensor table = in_arithmetic(term.table, "the table of buckets", parts_, spec_);
    if (table.dim() < 1 || table.dim() > 2 || (table.dim() == 2 && table.size(0) != spec_.heads))
      fail(
          "[attention] the table of buckets has shape {}; it must have shape [buckets] or [heads, "
          "buckets] with {} heads",
          shape_of(table), spec_.heads);
    const Tensor bucket = distance_buckets(distances_of(term, "buckets", table), table.size(-1),
                                           term.bidirectional, term.maximum_distance);
    const int64_t heads = table.dim() == 2 ? spec_.heads : 1;
    const Tensor relative =
        table.index_select(-1, bucket.flatten()).view({heads, bucket.size(0), 1, bucket.size(1)});
    add_relative(relative.transpose(0, 1), last_query(), {}, {});
  }

  void add(const RelativeKeysBias& term) {
    const Tensor table = in_arithmetic(term.table, "the table of relative keys", parts_, spec_);
    const Tensor query = parts_[part::query].to(table.scalar_type());
    const bool fits = (table.dim() == 2 || (table.dim() == 3 && table.size(0) == spec_.heads)) &&
                      table.size(-1) == query.size(-1) && table.size(-2) % 2 == 1;
    if (!fits)
      fail(
          "[attention] the table of relative keys has shape {}; it must have shape [2 L + 1, {}] "
          "or that after an axis of {} heads",
          shape_of(table), query.size(-1), spec_.heads);
    const Tensor relative = at::matmul(query * spec_.scale, table.transpose(-2, -1));
    const int64_t reach = (table.size(-2) - 1) / 2;
    const Tensor offsets = checked_offsets(term.offsets, "relative_keys", spec_, table);
    if (!offsets.defined() || spec_.batch == 0)
      return add_relative(relative, reach - term.offset, {}, {});
    // Each entry's columns stand as much later as its offset is larger than the least, with the
    // first and the last repeated on both sides. Offsets beyond these bounds see nothing else.
    const Tensor bounded =
        (offsets + term.offset).clamp(-(spec_.queries + reach), spec_.keys + reach);
    const auto least = bounded.min().item<int64_t>();
    const Tensor later = bounded - least;
    const Tensor column = positions(2 * reach + 1 + later.max().item<int64_t>(), table);
    const Tensor from = (column - later.unsqueeze(1)).clamp(0, 2 * reach);
    add_relative(relative.gather(-1, from.view({spec_.batch, 1, 1, -1})
                                         .expand({spec_.batch, spec_.heads, spec_.queries, -1})),
                 reach - least, {}, {});
  }

  void add(const GaussianBias& term) {
    const Tensor centres = per_row(term.centres, "the centres of the gaussian");
    Tensor widths = per_row(term.widths, "the widths of the gaussian");
    if (widths.device().is_cpu() && !widths.detach().gt(0).all().item<bool>())
      fail("[attention] the widths of the gaussian must be positive, got {}",
           widths.detach().min().item<double>());
    // The gradient takes the inverse of a width, cubed, which must not overflow.
    widths = widths.clamp_min(narrowest(widths.scalar_type()));
    if (parts_[part::centres].defined())
      return add_dense(dense_of_gaussian(centres, widths, spec_.keys));
    parts_[part::centres] = centres;
    parts_[part::widths] = widths;
  }

  void add(const GridBias& term) {
    const Tensor table = in_arithmetic(term.table, "the table of the grid", parts_, spec_);
    const bool has_heads = table.dim() == 3;
    const bool shaped = (has_heads && table.size(0) == spec_.heads) || table.dim() == 2;
    const bool odd = shaped && table.size(-2) % 2 == 1 && table.size(-1) % 2 == 1;
    const int64_t height = odd ? (table.size(-2) + 1) / 2 : 0;
    const int64_t width = odd ? (table.size(-1) + 1) / 2 : 0;
    const int64_t cells = height * width;
    const bool holds_queries = term.offset >= 0 && term.offset <= cells - spec_.queries;
    const bool holds_keys = term.first_key >= 0 && term.first_key <= cells - spec_.keys;
    if (!odd || !holds_queries || !holds_keys)
      fail(
          "[attention] the table of the grid has shape {}; it must have shape [2 height - 1, 2 "
          "width - 1] or that after an axis of {} heads, with height width at least the {} queries "
          "from {} on and the {} keys from {} on",
          shape_of(table), spec_.heads, spec_.queries, term.offset, spec_.keys, term.first_key);
    const Tensor place = positions(cells, table);
    const Tensor position =
        at::floor_divide(place, width) * (2 * width - 1) + at::remainder(place, width);
    add_relative(table.reshape({1, has_heads ? spec_.heads : 1, 1, -1}),
                 (height - 1) * (2 * width - 1) + width - 1,
                 position.narrow(0, term.offset, spec_.queries),
                 position.narrow(0, term.first_key, spec_.keys));
  }

 private:
  static double narrowest(at::ScalarType type) {
    return std::cbrt(type == at::kDouble ? std::numeric_limits<double>::min()
                                         : double{std::numeric_limits<float>::min()});
  }

  int64_t last_query() const { return std::max<int64_t>(spec_.queries, 1) - 1; }

  // The distances that occur, from the last query to the first key on: [1, distances], or a row a
  // batch entry.
  template <class Term>
  Tensor distances_of(const Term& term, const char* name, const Tensor& like) const {
    const int64_t count = last_query() + std::max<int64_t>(spec_.keys, 1);
    const Tensor all = (positions(count, like) - last_query() - term.offset).unsqueeze(0);
    const Tensor offsets = checked_offsets(term.offsets, name, spec_, like);
    return offsets.defined() ? all - offsets.unsqueeze(1) : all;
  }

  Tensor per_entry(const Tensor& given, const char* name) const {
    Tensor numbers = in_arithmetic(given, name, parts_, spec_);
    const int64_t shape[] = {spec_.batch, spec_.heads};
    if (numbers.sizes() != at::IntArrayRef(shape))
      fail("[attention] {} have shape {}; a number for each batch entry and head is [{}]", name,
           shape_of(numbers), fmt::join(shape, ", "));
    return numbers;
  }

  void check_broadcast(const Tensor& tensor, at::IntArrayRef shape, const char* name,
                       const char* axes) const {
    const auto wanted = static_cast<int64_t>(shape.size());
    bool fits = tensor.dim() <= wanted;
    for (int64_t i = 1; fits && i <= tensor.dim(); ++i)
      fits = tensor.size(-i) == 1 || tensor.size(-i) == shape[static_cast<size_t>(wanted - i)];
    if (!fits)
      fail("[attention] {} of shape {} does not broadcast to {} = [{}]", name, shape_of(tensor),
           axes, fmt::join(shape, ", "));
  }

  Tensor per_row(const Tensor& given, const char* name) const {
    Tensor numbers = in_arithmetic(given, name, parts_, spec_);
    if (query_axes_ == 3 && numbers.dim() == 2) numbers = numbers.unsqueeze(1);
    const int64_t shape[] = {spec_.batch, spec_.heads, spec_.queries};
    check_broadcast(numbers, shape, name, "[batch, heads, queries]");
    return numbers.expand(shape);
  }

  void add_dense(const Tensor& given) {
    const Tensor bias = without_repetitions(given);
    const Tensor whole = bias.expand({bias.size(0), bias.size(1), bias.size(2), spec_.keys});
    Tensor& dense = parts_[part::dense];
    dense = dense.defined() ? dense + whole : whole;
  }

  void add_relative(const Tensor& relative, int64_t offset, const Tensor& query_positions,
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

  int64_t query_axes_;
  Parts& parts_;
  LoweredSpec& spec_;
};

}  // namespace

void add_bias(const Bias& bias, int64_t query_axes, Parts& parts, LoweredSpec& spec) {
  BiasParts adding(query_axes, parts, spec);
  for (const BiasTerm& term : bias.terms)
    std::visit([&](const auto& one) { adding.add(one); }, term);
}

Tensor dense_of_slopes(const Tensor& slopes, int64_t offset, int64_t queries, int64_t keys) {
  const Tensor distance = distances(queries, keys, offset, slopes).abs().to(slopes.scalar_type());
  return -slopes.view({1, -1, 1, 1}) * distance;
}

Tensor dense_of_relative(const Tensor& relative, const LoweredSpec& spec) {
  const Tensor row =
      spec.query_positions.defined() ? spec.query_positions : positions(spec.queries, relative);
  const Tensor key =
      spec.key_positions.defined() ? spec.key_positions : positions(spec.keys, relative);
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

}  // namespace attend
